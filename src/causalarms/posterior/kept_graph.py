"""One graph for those who need one: a DAG that misses an edge with at most a stated probability.

Edges above a threshold need not form a DAG, for instance where both directions of an edge are
likely. The order of the nodes is therefore chosen first: the one against which the edges have the
smallest total probability, those above the tolerance before all others. It is exact (dynamic
programming over sets) up to 20 nodes and a local optimum past that, and it loses no edge above the
tolerance where a DAG can keep all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.limits import MAX_ORDERED_NODES
from causalarms.posterior.base import Posterior
from causalarms.posterior.feedback_order import feedback_order
from causalarms.posterior.orders import best_order

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

ABOVE = 1e6  # how much more an edge above the tolerance counts than one below


class KeptGraph(NamedTuple):
    """A graph per regime inside one order, and what it may miss among the known mechanisms."""

    order: IntArray  # (N,)
    adjacency: BoolArray  # (R, N, N)
    largest_dropped: float  # probability of the most probable edge that is not there
    misses: float  # probability that at least one edge is not there
    order_misses: float  # the part of it that any graph inside this order would have
    left_out: BoolArray  # (R, N, N) edges above the tolerance against the order
    honoured: bool  # does it keep the promise, or do open directions forbid it to any such graph


def keep_per_edge(posterior: Posterior, tolerance: float, known: BoolArray) -> KeptGraph:
    """The sparsest DAG without a missing edge of probability above the tolerance.

    Where no DAG is without, those of the smallest total probability are missing (`left_out`).
    """
    probability = _of_known(posterior, known)
    order = safe_order(probability, tolerance)
    likely = probability > tolerance
    forward = _forward(order, probability.shape)
    left_out = likely & ~forward
    return _described(posterior, order, likely & forward, known, left_out, not left_out.any())


def keep_whole_graph(posterior: Posterior, tolerance: float, known: BoolArray) -> KeptGraph:
    """As few of the most probable edges as miss none at all with probability 1 - tolerance.

    Where no graph inside the order can promise that, the tolerance applies to the case that all
    edges follow the order.
    """
    probability = _of_known(posterior, known)
    order = safe_order(probability, 1.0)
    forward = _forward(order, probability.shape) & known[:, None, :]
    candidates = np.argwhere(forward)
    ranked = candidates[np.argsort(-probability[forward], kind="stable")]
    reachable = posterior.probability_within(_or_unknown(forward, known))
    needed = 1 - tolerance if reachable >= 1 - tolerance else (1 - tolerance) * reachable
    few, many = int((probability[forward] >= 1.0).sum()), len(ranked)
    while few < many:  # misses fall with every further edge
        middle = (few + many) // 2
        kept = _or_unknown(_edges(ranked[:middle], forward.shape), known)
        if posterior.probability_within(kept) >= needed:
            many = middle
        else:
            few = middle + 1
    kept = _edges(ranked[:many], forward.shape)
    left_out = (probability > tolerance) & ~_forward(order, probability.shape)
    return _described(posterior, order, kept, known, left_out, reachable >= 1 - tolerance)


def safe_order(probability: FloatArray, tolerance: float) -> IntArray:
    """The order with the least probability on edges against it, those above tolerance first."""
    weighted = probability * np.where(probability > tolerance, ABOVE, 1.0)
    if probability.shape[1] > MAX_ORDERED_NODES:
        above = np.where(probability > tolerance, probability, 0.0)
        return feedback_order(above.sum(axis=0), weighted.sum(axis=0))
    local = np.zeros((probability.shape[1], 1 << (probability.shape[1] - 1)))
    fill_costs(weighted.sum(axis=0), local)
    return best_order(local)


@kernel
def fill_costs(weight: FloatArray, local: FloatArray) -> None:
    """local[i, S] = minus the weight of the edges from i to nodes of S, all before i."""
    for node in range(len(local)):
        for mask in range(1, local.shape[1]):
            lowest = 0
            while not mask >> lowest & 1:
                lowest += 1
            child = lowest + (lowest >= node)
            local[node, mask] = local[node, mask & (mask - 1)] - weight[node, child]


def _of_known(posterior: Posterior, known: BoolArray) -> FloatArray:
    return np.where(known[:, None, :], posterior.edge_probability, 0.0)


def _or_unknown(kept: BoolArray, known: BoolArray) -> BoolArray:
    """Nothing is promised of mechanisms without data: whatever edges they have are no misses."""
    return kept | ~known[:, None, :]


def _forward(order: IntArray, shape: tuple[int, ...]) -> BoolArray:
    place = np.argsort(order)
    return np.broadcast_to(place[:, None] < place[None, :], shape)


def _edges(chosen: IntArray, shape: tuple[int, ...]) -> BoolArray:
    edges = np.zeros(shape, dtype=bool)
    edges[tuple(chosen.T)] = True
    return edges


def _described(
    posterior: Posterior,
    order: IntArray,
    kept: BoolArray,
    known: BoolArray,
    left_out: BoolArray,
    honoured: bool,
) -> KeptGraph:
    within_order = posterior.probability_within(_or_unknown(_forward(order, kept.shape), known))
    return KeptGraph(
        order=order,
        adjacency=kept,
        largest_dropped=float(np.where(kept, 0.0, _of_known(posterior, known)).max()),
        misses=1 - posterior.probability_within(_or_unknown(kept, known)),
        order_misses=1 - within_order,
        left_out=left_out,
        honoured=honoured,
    )
