"""Where nodes go: a layered drawing after Sugiyama, Tagawa and Toda (1981), causes on the left.

Layers are longest paths from a source; sweeps of barycentres order each layer; a last descent on
the heights (`clearance`) keeps straight arrows away from nodes they do not belong to. That step
matters here: dense systems have nearly one node per layer, and would otherwise lie on one line.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.graphs.clearance import clear_heights, crossings

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

SWEEPS = 6  # barycentre sweeps settle within a handful


def layered_layout(
    adjacency: npt.ArrayLike, *, aspect: float = 2.0, node_width: float = 0.1
) -> FloatArray:
    """Positions (N, 2) in the unit square; parents are left of children wherever no cycle forbids.

    `aspect` is width by height of the drawing: distances are judged in its proportions,
    and nodes closer than `node_width` (in heights of the drawing) are not put side by side.

    >>> layered_layout([[0, 1], [0, 0]])[:, 0].tolist()
    [0.0, 1.0]
    """
    edges = np.array(adjacency, dtype=bool)
    np.fill_diagonal(edges, False)
    layers = assign_layers(edges)
    across = _stretched(layers.astype(float))
    heights = _order_layers(edges, layers, across)
    heights = clear_heights(across * aspect, heights, np.argwhere(edges), node_width)
    return np.column_stack([across, _stretched(heights)])


def assign_layers(edges: BoolArray) -> IntArray:
    """The longest path from a source; nodes without any edge fill the emptiest layers."""
    forward = edges & without_cycles(edges)
    n_nodes = len(edges)
    layers = np.zeros(n_nodes, dtype=np.int64)
    for _ in range(n_nodes):
        reached = np.where(forward, layers[:, None] + 1, 0).max(axis=0, initial=0)
        if np.array_equal(reached, layers):
            break
        layers = reached
    isolated = np.flatnonzero(~(edges.any(axis=0) | edges.any(axis=1)))
    n_layers = max(int(layers.max(initial=0)) + 1, math.ceil(math.sqrt(len(isolated))))
    filled = np.bincount(np.delete(layers, isolated), minlength=n_layers)
    for node in isolated:
        layers[node] = np.argmin(filled)
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
            node = int(np.argmax(np.where(left, n_children - n_parents, -len(edges))))
            head.append(node)
        left[node] = False
    place = np.argsort(np.array(head + tail[::-1], dtype=np.int64))
    return edges & (place[:, None] < place[None, :])


def _order_layers(edges: BoolArray, layers: IntArray, across: FloatArray) -> FloatArray:
    heights = _evenly_spaced(np.arange(len(layers), dtype=float), layers)
    pairs = np.argwhere(edges)
    best, fewest = heights.copy(), crossings(across, heights, pairs)
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
        found = crossings(across, heights, pairs)
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
