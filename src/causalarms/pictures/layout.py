"""Where nodes go: a layered drawing after Sugiyama, Tagawa and Toda (1981), causes on the left.

Layers are longest paths from a source; sweeps of barycentres order each layer; a last descent on
the heights keeps straight arrows away from nodes they do not belong to. That step matters here:
dense systems have nearly one node per layer, and would otherwise lie on one line.

This module needs no matplotlib: the service lays out its graphs with it, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.limits import MAX_SEPARATED_EDGES

SWEEPS = 6  # barycentre sweeps settle within a handful
DESCENT_ROUNDS, SHORT_DESCENT_ROUNDS = 8, 2  # the second of graphs with very many edges
FREE_DISTANCE = 0.13  # of the drawing's height: a node's half height and some air
TOUCH_COST = 8.0  # an arrow through a node, in crossings of two arrows
NEIGHBOUR_COST = 1000.0  # nodes must not overlap, whatever the arrows wish
LENGTH_COST = 0.4
BATCH_PAIRS = 2**18  # pairs of edges that are compared at once: some 20 MB


def layered_layout(
    adjacency: npt.ArrayLike,
    *,
    aspect: float = 2.0,
    node_width: float = 0.1,
    roots: Sequence[int] = (),
) -> FloatArray:
    """Positions (N, 2) in the unit square; parents are left of children unless a cycle forbids it.

    adjacency    (N, N), parent by child
    aspect       width by height of the drawing: distances are judged in its proportions
    node_width   in heights of the drawing; nodes closer than this are not put side by side
    roots        nodes that have no parents whatever is learned: left, also without an edge

    >>> layered_layout([[0, 1], [0, 0]])[:, 0].tolist()
    [0.0, 1.0]
    """
    edges = np.array(adjacency, dtype=bool)
    # an edge from a node to itself has no direction to lay out
    np.fill_diagonal(edges, False)
    layers = assign_layers(edges, roots)
    across = _stretched(layers.astype(float))
    heights = _order_layers(edges, layers, across)
    heights = _clear_heights(across * aspect, heights, np.argwhere(edges), node_width)
    return np.column_stack([across, _stretched(heights)])


def assign_layers(edges: BoolArray, roots: Sequence[int] = ()) -> IntArray:
    """The longest path from a source, (N,); nodes without any edge fill the emptiest layers.

    `roots` without an edge are in the first layer, and no other node without an edge is.
    """
    forward = edges & without_cycles(edges)
    n_nodes = len(edges)
    layers = np.zeros(n_nodes, dtype=np.int64)
    # a longest path has at most N - 1 edges: the last round confirms
    for _ in range(n_nodes):
        reached = np.where(forward, layers[:, None] + 1, 0).max(axis=0, initial=0)
        if np.array_equal(reached, layers):
            break
        layers = reached
    isolated = np.flatnonzero(~(edges.any(axis=0) | edges.any(axis=1)))
    isolated = np.setdiff1d(isolated, np.array(roots, dtype=np.int64))
    first = int(len(roots) > 0)
    n_layers = max(int(layers.max(initial=0)) + 1, first + math.ceil(math.sqrt(len(isolated))))
    filled = np.bincount(np.delete(layers, isolated), minlength=n_layers)
    for node in isolated:
        layers[node] = first + np.argmin(filled[first:])
        filled[layers[node]] += 1
    return layers


def without_cycles(edges: BoolArray) -> BoolArray:
    """The edges that go forward in the order of Eades, Lin and Smyth (1993): all, if acyclic."""
    left = np.ones(len(edges), dtype=bool)
    head: list[int] = []
    tail: list[int] = []
    while left.any():
        inside = edges & np.outer(left, left)
        n_parents, n_children = inside.sum(axis=0), inside.sum(axis=1)
        sources = np.flatnonzero(left & (n_parents == 0))
        sinks = np.flatnonzero(left & (n_children == 0))
        if len(sources):
            node = int(sources[0])
            head.append(node)
        elif len(sinks):
            node = int(sinks[0])
            tail.append(node)
        else:
            # every node left is on a cycle or between cycles: put first the one that causes most
            node = int(np.argmax(np.where(left, n_children - n_parents, -len(edges))))
            head.append(node)
        left[node] = False
    place = np.argsort(np.array(head + tail[::-1], dtype=np.int64))
    return edges & (place[:, None] < place[None, :])


def _order_layers(edges: BoolArray, layers: IntArray, across: FloatArray) -> FloatArray:
    heights = _evenly_spaced(np.arange(len(layers), dtype=float), layers)
    pairs = np.argwhere(edges)
    best, fewest = heights.copy(), _crossings(across, heights, pairs)
    neighbours = (edges | edges.T).astype(float)
    for sweep in range(SWEEPS):
        to_the_right = sweep % 2 == 0
        sequence = np.unique(layers) if to_the_right else np.unique(layers)[::-1]
        for layer in sequence[1:]:
            fixed = layers < layer if to_the_right else layers > layer
            links = neighbours * fixed
            n_links = links.sum(axis=1)
            centre = np.where(n_links > 0, links @ heights / np.maximum(n_links, 1), heights)
            members = layers == layer
            heights[members] = _evenly_spaced(centre[members], layers[members])
        # a sweep may also make it worse: the best order seen is kept
        found = _crossings(across, heights, pairs)
        if found < fewest:
            best, fewest = heights.copy(), found
    return best


def _evenly_spaced(wish: FloatArray, layers: IntArray) -> FloatArray:
    heights = np.empty(len(wish))
    for layer in np.unique(layers):
        members = np.flatnonzero(layers == layer)
        ranked = members[np.argsort(wish[members], kind="stable")]
        heights[ranked] = (np.arange(len(ranked)) + 0.5) / len(ranked)
    return heights


def _stretched(values: FloatArray) -> FloatArray:
    span = np.ptp(values) if len(values) else 0.0
    if span == 0:
        return np.full(len(values), 0.5)
    return (values - values.min()) / span


# -- heights at which straight arrows keep clear of the other nodes --------------------------------
#
# Coordinate descent: one node at a time moves to the best of a few heights in its column. A move is
# judged only by what it changes: the node's own edges, and the distance of other edges to it. All
# heights are judged at once: `heights` is (height, N) below, one row per choice.


class Surroundings(NamedTuple):
    """What the cost of a node's height depends on."""

    node: int
    own: IntArray  # (edge, 2), edges from and to the node
    others: IntArray  # (edge, 2)
    column: IntArray  # nodes above and below it
    gap: float  # that is wanted between them


def _clear_heights(
    across: FloatArray, start: FloatArray, edges: IntArray, node_width: float
) -> FloatArray:
    """The best of the descents from the given heights and from two zigzags."""
    n_nodes = len(across)
    if n_nodes < 2 or not len(edges):
        return start
    around = [_surroundings(node, across, edges, node_width) for node in range(n_nodes)]
    # so many overlap whatever is tried: one short descent
    if len(edges) > MAX_SEPARATED_EDGES:
        return _descend(across, start, around, SHORT_DESCENT_ROUNDS)
    starts = [start]
    rank = np.argsort(np.argsort(across, kind="stable"), kind="stable")
    for period in (2, 3):
        starts.append(0.5 * start + 0.5 * (rank % period) / (period - 1))
    ends = [_descend(across, heights, around, DESCENT_ROUNDS) for heights in starts]
    costs = [sum(_costs(near, end[[near.node]], across, end)[0] for near in around) for end in ends]
    return ends[int(np.argmin(costs))]


def _surroundings(
    node: int, across: FloatArray, edges: IntArray, node_width: float
) -> Surroundings:
    mine = (edges == node).any(axis=1)
    near = np.abs(across - across[node]) < max(node_width, 1e-9)
    column = np.flatnonzero(near & (np.arange(len(across)) != node))
    # a smaller gap is asked for in a crowded column, so that everybody finds a place
    gap = min(2 * FREE_DISTANCE, 0.9 / max(len(column), 1))
    return Surroundings(node, edges[mine], edges[~mine], column, gap)


def _descend(
    across: FloatArray, start: FloatArray, around: list[Surroundings], rounds: int
) -> FloatArray:
    heights = start.copy()
    columns = np.unique(across, return_counts=True)[1]
    levels = np.linspace(0.0, 1.0, 2 * int(max(columns.max(), 5)) + 1)
    for _ in range(rounds):
        before = heights.copy()
        for near in around:
            choices = np.append(levels, heights[near.node])
            costs = _costs(near, choices, across, heights)
            # rounded, so that rounding errors do not decide between equal heights
            heights[near.node] = choices[int(np.argmin(np.round(costs, 9)))]
        if np.array_equal(before, heights):
            break
    return heights


def _costs(
    near: Surroundings, choices: FloatArray, across: FloatArray, heights: FloatArray
) -> FloatArray:
    """What every choice of the node's height costs, (height,)."""
    batch = max(1, BATCH_PAIRS // max(len(near.own) * len(near.others), 1))
    if len(choices) > batch:
        parts = [choices[k : k + batch] for k in range(0, len(choices), batch)]
        return np.concatenate([_costs(near, part, across, heights) for part in parts])
    moved = np.tile(heights, (len(choices), 1))
    moved[:, near.node] = choices
    distance = np.abs(moved[:, near.column] - choices[:, None])
    close = np.clip(1 - distance / near.gap, 0, None).sum(axis=1)
    lengths = np.abs(moved[:, near.own[:, 0]] - moved[:, near.own[:, 1]]).sum(axis=1)
    points = np.stack([np.broadcast_to(across, moved.shape), moved], axis=-1)
    touching = _closeness(points, near.own, np.arange(len(across))) + _closeness(
        points, near.others, np.array([near.node])
    )
    crossing = _cross(points, near.own, near.others).sum(axis=(1, 2))
    costs: FloatArray = (
        crossing + TOUCH_COST * touching + NEIGHBOUR_COST * close + LENGTH_COST * lengths
    )
    return costs


def _closeness(points: FloatArray, edges: IntArray, nodes: IntArray) -> FloatArray:
    """Sum over edges and nodes off the edge of how far the node's free space is invaded."""
    begin, end = points[:, edges[:, 0], None], points[:, edges[:, 1], None]  # (height, edge, 1, 2)
    along = end - begin
    offset = points[:, None, nodes] - begin  # (height, edge, node, 2)
    length = np.maximum((along**2).sum(axis=-1), 1e-12)
    fraction = np.clip((offset * along).sum(axis=-1) / length, 0, 1)
    distance = np.sqrt(((offset - fraction[..., None] * along) ** 2).sum(axis=-1))
    foreign = (edges[:, :1] != nodes) & (edges[:, 1:] != nodes)
    invaded = np.clip(1 - distance / FREE_DISTANCE, 0, None) ** 2 * foreign
    total: FloatArray = invaded.reshape(len(points), -1).sum(axis=1)
    return total


def _crossings(across: FloatArray, heights: FloatArray, edges: IntArray) -> int:
    """How many pairs of straight edges cross."""
    # every pair is counted from both sides
    return int(_cross(np.column_stack([across, heights])[None], edges, edges).sum()) // 2


def _cross(points: FloatArray, some: IntArray, others: IntArray) -> BoolArray:
    """Whether edges without a common node cross, (height, some, others)."""
    a, b = points[:, some[:, 0], None], points[:, some[:, 1], None]
    c, d = points[:, None, others[:, 0]], points[:, None, others[:, 1]]
    apart = (some[:, None, :, None] != others[None, :, None, :]).all(axis=(2, 3))
    crossed: BoolArray = (_side(a, b, c) * _side(a, b, d) < 0) & (
        _side(c, d, a) * _side(c, d, b) < 0
    )
    return crossed & apart


def _side(a: FloatArray, b: FloatArray, point: FloatArray) -> FloatArray:
    ab, ap = b - a, point - a
    return np.sign(ab[..., 0] * ap[..., 1] - ab[..., 1] * ap[..., 0])
