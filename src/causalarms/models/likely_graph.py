"""The graph of a belief: its likely edges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.graphs.graph import Graph
from causalarms.models.belief import Belief
from causalarms.sem.regimes import Counts, existing, topological_order

FloatArray = npt.NDArray[np.float64]

LIKELY = 0.5  # probability from which an edge is shown


def likely_graph(belief: Belief, nodes: tuple[str, ...], regimes: Counts) -> Graph:
    """The likely edges, without a cycle; weights are those of the draws that have the edge.

    `regimes` (N,) says how many regimes of each node are meant.
    """
    exists = existing(regimes, len(belief.counts))
    adjacency = likely_edges(np.where(exists[:, None, :], belief.edge_probability, 0.0))
    draws = belief.draws
    present = draws.adjacency.sum(axis=0)
    weights = np.divide(
        draws.weights.sum(axis=0),
        present,
        where=adjacency & (present > 0),
        out=np.zeros(adjacency.shape),
    )
    deviation = np.where(draws.adjacency, draws.weights - weights, 0.0)
    error = np.sqrt((deviation**2).sum(axis=0) / np.maximum(present, 1))
    order = topological_order(adjacency.any(axis=0))
    assert order is not None
    return Graph(
        nodes,
        adjacency,
        weights,
        known=exists & (belief.counts > 0),
        order=tuple(nodes[i] for i in order),
        measures={
            "probability": belief.edge_probability,
            "standard_error": np.where(adjacency, error, np.nan),
        },
        regimes=regimes,
    )


def likely_edges(probability: FloatArray) -> npt.NDArray[np.bool_]:
    """Edges (R, N, N) more likely than not; the least likely of those that close a cycle go."""
    adjacency = probability > LIKELY
    while topological_order(adjacency.any(axis=0)) is None:
        least = np.where(adjacency, probability, np.inf).argmin()
        adjacency[np.unravel_index(least, adjacency.shape)] = False
    return adjacency
