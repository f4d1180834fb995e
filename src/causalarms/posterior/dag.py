"""One graph from the posterior: a DAG that misses an edge with at most a stated probability.

Edges above a threshold need not form a DAG, for instance if both directions of an edge are likely.
The order of the nodes is therefore chosen first: the one against which the edges have the smallest
total probability, those above the tolerance before all others. It is exact (dynamic programming
over sets) up to 20 nodes and a local optimum past that. It loses no edge above the tolerance if a
DAG can keep all of them.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.errors import IdentifiabilityWarning
from causalarms.kernels import kernel
from causalarms.limits import MAX_ORDERED_NODES
from causalarms.posterior.orders import best_order
from causalarms.sem.regimes import regime_names, topological_order

LIKELY = 0.5  # an edge is in "the graph" if its probability is above this
PRIORITY = 1e6  # how much more an edge above the tolerance counts than one below


class EdgeProbabilities(Protocol):
    """What a graph is chosen by: a posterior, or the part of one that is about some nodes."""

    @property
    def edge_probability(self) -> FloatArray: ...

    def probability_within(self, kept: BoolArray) -> float: ...


class KeptGraph(NamedTuple):
    """A graph per regime inside one order, and what it may miss among the known mechanisms."""

    order: IntArray  # (N,)
    adjacency: BoolArray  # (R, N, N)
    largest_dropped: float  # probability of the most probable edge that is not there
    misses: float  # probability that at least one edge is not there
    order_misses: float  # the part of it that any graph inside this order would have
    left_out: BoolArray  # (R, N, N) edges above the tolerance against the order
    honoured: bool  # whether the tolerance holds; open directions may make that impossible


def likely_edges(probability: FloatArray) -> BoolArray:
    """The graph: edges (R, N, N) more likely than not.

    If they form a cycle, edges of the smallest total probability are removed until they do not.
    """
    likely = probability > LIKELY
    if topological_order(likely.any(axis=0)) is not None:
        return likely
    return np.asarray(likely & _forward(safe_order(probability, LIKELY), probability.shape))


def keep_per_edge(posterior: EdgeProbabilities, tolerance: float, known: BoolArray) -> KeptGraph:
    """The sparsest DAG that has every edge of probability above the tolerance.

    If no DAG has all of them, those of the smallest total probability are missing (`left_out`).
    `known` (R, N) says which mechanisms have data.
    """
    probability = _of_known(posterior, known)
    order = safe_order(probability, tolerance)
    likely = probability > tolerance
    forward = _forward(order, probability.shape)
    left_out = likely & ~forward
    return _described(posterior, order, likely & forward, known, left_out, not left_out.any())


def keep_whole_graph(posterior: EdgeProbabilities, tolerance: float, known: BoolArray) -> KeptGraph:
    """The fewest of the most probable edges that contain all edges with probability 1 - tolerance.

    If no graph inside the order can do that, the tolerance holds given that all edges follow the
    order. `known` (R, N) says which mechanisms have data.
    """
    probability = _of_known(posterior, known)
    # no priority for likely edges: what counts is that no edge at all is missed
    order = safe_order(probability, 1.0)
    forward = _forward(order, probability.shape) & known[:, None, :]
    candidates = np.argwhere(forward)
    ranked = candidates[np.argsort(-probability[forward], kind="stable")]
    reachable = posterior.probability_within(_or_unknown(forward, known))
    # Otherwise every edge of the order would be kept, and the promise would still be broken.
    needed = 1 - tolerance if reachable >= 1 - tolerance else (1 - tolerance) * reachable
    few, many = int((probability[forward] >= 1.0).sum()), len(ranked)
    while few < many:  # bisection: the probability of a miss falls with every further edge
        middle = (few + many) // 2
        kept = _or_unknown(_edges(ranked[:middle], forward.shape), known)
        if posterior.probability_within(kept) >= needed:
            many = middle
        else:
            few = middle + 1
    kept = _edges(ranked[:many], forward.shape)
    left_out = (probability > tolerance) & ~_forward(order, probability.shape)
    return _described(posterior, order, kept, known, left_out, reachable >= 1 - tolerance)


def left_out_edges(
    kept: KeptGraph, nodes: tuple[str, ...], probability: npt.NDArray[np.float64]
) -> list[dict[str, Any]]:
    """The edges above the tolerance that run against the order, most probable first."""
    names = regime_names(len(kept.left_out))
    edges = [
        {
            "regime": names[r],
            "parent": nodes[p],
            "child": nodes[c],
            "probability": float(probability[r, p, c]),
        }
        for r, p, c in np.argwhere(kept.left_out)
    ]
    return sorted(edges, key=lambda edge: -edge["probability"])


def warn_of_open_directions(kept: KeptGraph, left_out: list[dict[str, Any]]) -> None:
    """Warn if a graph without cycles could not keep the tolerance, with the likeliest lost edge."""
    if kept.honoured:
        return
    example = ""
    if left_out:
        edge = left_out[0]
        example = (
            f"; given up, among others: {edge['parent']} -> {edge['child']} ({edge['regime']}) "
            f"with probability {edge['probability']:.2f}"
        )
    warnings.warn(
        "the data leave directions open and no graph without cycles keeps the promise: some edge "
        f"runs against the order of this one with probability {kept.order_misses:.2g}{example}",
        IdentifiabilityWarning,
        stacklevel=4,
    )


def safe_order(probability: FloatArray, tolerance: float) -> IntArray:
    """The order with the least probability on edges against it, those above tolerance first."""
    # A million: one edge above the tolerance outweighs all edges below it, of up to 1000 nodes with
    # two regimes.
    weighted = probability * np.where(probability > tolerance, PRIORITY, 1.0)
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


def feedback_order(first: FloatArray, weight: FloatArray) -> IntArray:
    """An order for more nodes than dynamic programming can take.

    No edge of `first` (N, N) runs against it if `first` has no cycle; of `weight` (N, N) little
    does.
    """
    order = greedy_order(first)
    improve_order(weight, order)
    return order


@kernel
def greedy_order(weight: FloatArray) -> IntArray:
    """An order with little weight on edges against it (Eades, Lin and Smyth, 1993).

    `weight` is (N, N) as [parent, child]. Nodes without weight from others come first and those
    without weight to others last, as long as there are any; else the node comes next whose weight
    to others exceeds the weight from others most. If edges have no cycle, all follow the order.
    """
    n = len(weight)
    order = np.empty(n, dtype=np.int64)
    left = np.ones(n, dtype=np.bool_)
    first, last = 0, n - 1
    while first <= last:
        chosen, most, to_front = -1, -np.inf, True
        for i in range(n):
            if not left[i]:
                continue
            gives, gets = 0.0, 0.0
            for j in range(n):
                if left[j] and j != i:
                    gives += weight[i, j]
                    gets += weight[j, i]
            # a source or a sink can be placed without any edge against the order
            if gets == 0.0 or gives == 0.0:
                chosen, to_front = i, gets == 0.0
                break
            if gives - gets > most:
                chosen, most = i, gives - gets
        left[chosen] = False
        if to_front:
            order[first] = chosen
            first += 1
        else:
            order[last] = chosen
            last -= 1
    return order


@kernel
def improve_order(weight: FloatArray, order: IntArray) -> None:
    """Move single nodes while that lowers the weight of edges against the order."""
    n = len(order)
    least = 1e-12 * weight.sum()  # smaller savings may be rounding, and nodes would move for ever
    moved = True
    while moved:
        moved = False
        for node in range(n):
            home = 0
            while order[home] != node:
                home += 1
            best, saved = home, least
            for step in (-1, 1):
                gain, position = 0.0, home
                while 0 <= position + step < n:
                    position += step
                    other = order[position]
                    gain += step * (weight[other, node] - weight[node, other])
                    if gain > saved:
                        best, saved = position, gain
            while home != best:
                step = 1 if best > home else -1
                order[home] = order[home + step]
                home += step
                moved = True
            order[home] = node


def _of_known(posterior: EdgeProbabilities, known: BoolArray) -> FloatArray:
    return np.where(known[:, None, :], posterior.edge_probability, 0.0)


def _or_unknown(kept: BoolArray, known: BoolArray) -> BoolArray:
    """Mechanisms without data may have any edge: nothing is promised of them."""
    return kept | ~known[:, None, :]


def _forward(order: IntArray, shape: tuple[int, ...]) -> BoolArray:
    place = np.argsort(order)
    return np.broadcast_to(place[:, None] < place[None, :], shape)


def _edges(chosen: IntArray, shape: tuple[int, ...]) -> BoolArray:
    edges = np.zeros(shape, dtype=bool)
    edges[tuple(chosen.T)] = True
    return edges


def _described(
    posterior: EdgeProbabilities,
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
