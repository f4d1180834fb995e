"""Orders and cycles of a directed graph given as a boolean adjacency [parent, child]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


def topological_order(adjacency: npt.ArrayLike) -> IntArray | None:
    """Parents before children, smallest index first among the free; None where there is a cycle.

    >>> topological_order([[0, 0], [1, 0]]).tolist()
    [1, 0]
    >>> topological_order([[0, 1], [1, 0]]) is None
    True
    """
    edges = np.asarray(adjacency, dtype=bool)
    n_nodes = len(edges)
    waiting_for = edges.sum(axis=0)
    placed = np.zeros(n_nodes, dtype=bool)
    order = np.empty(n_nodes, dtype=np.int64)
    for position in range(n_nodes):
        free = np.flatnonzero((waiting_for == 0) & ~placed)
        if not len(free):
            return None
        node = free[0]
        order[position] = node
        placed[node] = True
        waiting_for -= edges[node]
    return order


def find_cycle(adjacency: npt.ArrayLike) -> list[int]:
    """The nodes of one cycle in the direction of its edges, empty where there is none.

    >>> find_cycle([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    [0, 1, 2]
    """
    edges = np.asarray(adjacency, dtype=bool)
    inside = np.ones(len(edges), dtype=bool)
    while True:  # peel nodes without parents; whoever is left has a parent among the left
        sources = inside & ~edges[inside].any(axis=0)
        if not sources.any():
            break
        inside &= ~sources
    if not inside.any():
        return []
    path = [int(np.flatnonzero(inside)[0])]
    while path[-1] not in path[:-1]:
        path.append(int(np.flatnonzero(edges[:, path[-1]] & inside)[0]))
    cycle = path[path.index(path[-1]) : -1][::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def ancestors(adjacency: npt.ArrayLike) -> BoolArray:
    """`result[k, i]`: there is a directed path of at least one edge from k to i."""
    reach = np.array(adjacency, dtype=bool)
    for via in range(len(reach)):
        reach[reach[:, via]] |= reach[via]  # rows of those that reach it: few, of a sparse graph
    return reach
