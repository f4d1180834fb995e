"""Conversions between weights[parent, child] and the other conventions, by explicit names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.errors import ModelError
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import all_two, regime_names

if TYPE_CHECKING:
    import networkx as nx


def to_lingam(weights: npt.ArrayLike) -> FloatArray:
    """LiNGAM's adjacency matrix, entry [child, parent]: the transpose of one regime's weights."""
    return np.array(weights, dtype=float).T


def from_lingam(matrix: npt.ArrayLike) -> FloatArray:
    """weights[parent, child] of one regime from LiNGAM's adjacency matrix."""
    return np.array(matrix, dtype=float).T


def to_causal_learn(adjacency: npt.ArrayLike) -> IntArray:
    """causal-learn's matrix: i -> j is -1 at [i, j] (tail) and 1 at [j, i] (arrow head)."""
    edges = np.asarray(adjacency) != 0
    return edges.T.astype(np.int64) - edges.astype(np.int64)


def from_causal_learn(matrix: npt.ArrayLike) -> BoolArray:
    """adjacency[parent, child] from causal-learn's matrix; refuses marks that are not arrows."""
    marks = np.asarray(matrix)
    edges = (marks == -1) & (marks.T == 1)
    undirected = (marks != 0) & ~edges & ~edges.T
    if undirected.any():
        i, j = np.argwhere(undirected)[0]
        raise ModelError(f"nodes {i} and {j} are joined by an edge without a direction")
    return edges


def to_networkx(sem: LinearSEM) -> nx.DiGraph:
    """One DiGraph for all regimes: an edge carries `natural` and `intervened` weights.

    With more than two regimes they are called `natural`, `regime 1`, ... and nodes carry how many
    `regimes` they have.
    """
    import networkx as nx

    graph = nx.DiGraph(reward=sem.nodes[sem.reward], order=[sem.nodes[i] for i in sem.order])
    names = regime_names(len(sem.weights))
    noise = {"noise_mean": sem.mechanism_mean, "noise_std": sem.mechanism_std}
    for i, node in enumerate(sem.nodes):
        own = {
            f"{what}_{name}": float(values[r, i])
            for what, values in noise.items()
            for r, name in enumerate(names[: sem.regimes[i]])
        }
        count = {} if all_two(sem.regimes) else {"regimes": int(sem.regimes[i])}
        graph.add_node(node, **own, **count)
    for parent, child in np.argwhere(sem.adjacency.any(axis=0)):
        # the child's own regimes only: weights of others are zeros that mean nothing
        own = dict(zip(names[: sem.regimes[child]], sem.weights[:, parent, child], strict=False))
        weights = {name: float(weight) for name, weight in own.items()}
        graph.add_edge(sem.nodes[parent], sem.nodes[child], **weights)
    return graph


def from_networkx(graph: nx.DiGraph) -> LinearSEM:
    """A system from a DiGraph as `to_networkx` makes it.

    An edge with only `weight` has it in all regimes; missing noise attributes are mean 0, std 1;
    nodes without `regimes` have two.
    """
    nodes = [str(node) for node in graph.nodes]
    position = {node: i for i, node in enumerate(graph.nodes)}
    regimes = [int(attributes.get("regimes", 2)) for _, attributes in graph.nodes(data=True)]
    names = regime_names(max(regimes, default=2))
    weights = np.zeros((len(names), len(nodes), len(nodes)))
    for parent, child, attributes in graph.edges(data=True):
        for regime, name in enumerate(names[: regimes[position[child]]]):
            value = attributes.get(name, attributes.get("weight"))
            if value is None:
                raise ModelError(f"edge {parent} -> {child} has neither {name!r} nor 'weight'")
            weights[regime, position[parent], position[child]] = value
    return LinearSEM(
        weights=weights,
        noise_mean=_attribute(graph, "noise_mean", 0.0, names),
        noise_std=_attribute(graph, "noise_std", 1.0, names),
        nodes=nodes,
        reward=graph.graph.get("reward"),
        regimes=regimes,
    )


def _attribute(
    graph: nx.DiGraph, name: str, default: float, regimes: tuple[str, ...]
) -> FloatArray:
    def of(attributes: dict[str, Any], regime: str) -> float:
        return float(attributes.get(f"{name}_{regime}", attributes.get(name, default)))

    return np.array(
        [[of(attributes, r) for _, attributes in graph.nodes(data=True)] for r in regimes]
    )
