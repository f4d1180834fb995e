"""Heights of nodes such that straight arrows keep clear of the other nodes.

Coordinate descent: one node at a time moves to the best of a few heights in its column. A move is
judged only by what it changes: the node's own edges, and the distance of other edges to it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.limits import MAX_SEPARATED_EDGES

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

ROUNDS = 8
FREE_DISTANCE = 0.13  # of the drawing's height: a node's half height and some air
TOUCH_COST = 8.0  # an arrow through a node, in crossings of two arrows
NEIGHBOUR_COST = 1000.0  # nodes must not overlap, whatever the arrows wish
LENGTH_COST = 0.4


def clear_heights(
    across: FloatArray, start: FloatArray, edges: IntArray, node_width: float
) -> FloatArray:
    """The best of the descents from the given heights and from two zigzags."""
    n_nodes = len(across)
    if n_nodes < 2 or not len(edges):
        return start
    if len(edges) > MAX_SEPARATED_EDGES:
        return _descend(across, start, edges, node_width, 2)
    starts = [start]
    rank = np.argsort(np.argsort(across, kind="stable"), kind="stable")
    for period in (2, 3):
        starts.append(0.5 * start + 0.5 * (rank % period) / (period - 1))
    ends = [_descend(across, heights, edges, node_width, ROUNDS) for heights in starts]
    costs = [
        sum(_cost_of(node, end[node], across, end, edges, node_width) for node in range(n_nodes))
        for end in ends
    ]
    return ends[int(np.argmin(costs))]


def crossings(across: FloatArray, heights: FloatArray, edges: IntArray) -> int:
    """How many pairs of straight edges cross."""
    return int(_cross(across, heights, edges, edges).sum()) // 2


def _descend(
    across: FloatArray, start: FloatArray, edges: IntArray, node_width: float, rounds: int
) -> FloatArray:
    heights = start.copy()
    n_nodes = len(heights)
    columns = np.unique(across, return_counts=True)[1]
    n_levels = 2 * int(max(columns.max(), 5)) + 1
    levels = np.linspace(0.0, 1.0, n_levels)
    for _ in range(rounds):
        before = heights.copy()
        for node in range(n_nodes):
            choices = np.append(levels, heights[node])
            costs = [
                _cost_of(node, height, across, heights, edges, node_width) for height in choices
            ]
            heights[node] = choices[int(np.argmin(np.round(costs, 9)))]
        if np.array_equal(before, heights):
            break
    return heights


def _cost_of(
    node: int,
    height: float,
    across: FloatArray,
    heights: FloatArray,
    edges: IntArray,
    node_width: float,
) -> float:
    moved = heights.copy()
    moved[node] = height
    mine = (edges == node).any(axis=1)
    own, others = edges[mine], edges[~mine]
    beside = np.abs(across - across[node]) < max(node_width, 1e-9)
    column = np.flatnonzero(beside & (np.arange(len(across)) != node))
    # a smaller gap is asked for in a crowded column, so that everybody finds a place
    gap = min(2 * FREE_DISTANCE, 0.9 / max(len(column), 1))
    close = np.clip(1 - np.abs(moved[column] - height) / gap, 0, None).sum()
    lengths = np.abs(moved[own[:, 0]] - moved[own[:, 1]]).sum()
    touching = _closeness(across, moved, own, np.arange(len(across))) + _closeness(
        across, moved, others, np.array([node])
    )
    crossing = _cross(across, moved, own, others).sum()
    return float(crossing + TOUCH_COST * touching + NEIGHBOUR_COST * close + LENGTH_COST * lengths)


def _closeness(across: FloatArray, heights: FloatArray, edges: IntArray, nodes: IntArray) -> float:
    """Sum over edges and nodes off the edge of how far the node's free space is invaded."""
    points = np.column_stack([across, heights])
    begin, end = points[edges[:, 0], None], points[edges[:, 1], None]  # (edge, 1, 2)
    along = end - begin
    offset = points[nodes][None] - begin  # (edge, node, 2)
    length = np.maximum((along**2).sum(axis=2), 1e-12)
    share = np.clip((offset * along).sum(axis=2) / length, 0, 1)
    distance = np.sqrt(((offset - share[..., None] * along) ** 2).sum(axis=2))
    foreign = (edges[:, :1] != nodes) & (edges[:, 1:] != nodes)
    return float((np.clip(1 - distance / FREE_DISTANCE, 0, None) ** 2 * foreign).sum())


def _cross(across: FloatArray, heights: FloatArray, some: IntArray, others: IntArray) -> BoolArray:
    points = np.column_stack([across, heights])
    a, b = points[some[:, 0], None], points[some[:, 1], None]
    c, d = points[None, others[:, 0]], points[None, others[:, 1]]
    apart = (some[:, None, :, None] != others[None, :, None, :]).all(axis=(2, 3))
    crossed: BoolArray = (_side(a, b, c) * _side(a, b, d) < 0) & (
        _side(c, d, a) * _side(c, d, b) < 0
    )
    return crossed & apart


def _side(a: FloatArray, b: FloatArray, point: FloatArray) -> FloatArray:
    ab, ap = b - a, point - a
    return np.sign(ab[..., 0] * ap[..., 1] - ab[..., 1] * ap[..., 0])
