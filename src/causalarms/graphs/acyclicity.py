"""Is a graph that only loses edges acyclic yet?

Nodes without parents are peeled off for good, so all removals together cost one topological sort.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class ShrinkingGraph:
    """A directed graph under removal of edges; parallel edges are counted.

    >>> graph = ShrinkingGraph(np.array([[0, 1], [1, 0]]))
    >>> graph.acyclic
    False
    >>> graph.remove(1, 0)
    >>> graph.acyclic, graph.order
    (True, [0, 1])
    """

    def __init__(self, multiplicity: npt.ArrayLike) -> None:
        self._edges = np.array(multiplicity, dtype=np.int64)  # (N, N) [parent, child]
        self._unplaced_parents = (self._edges > 0).sum(axis=0)
        self._placed = np.zeros(len(self._edges), dtype=bool)
        self.order: list[int] = []  # parents before children, as far as known
        for node in range(len(self._edges)):
            self._place_from(node)

    @property
    def acyclic(self) -> bool:
        return len(self.order) == len(self._edges)

    def remove(self, parent: int, child: int) -> None:
        """Take away one of the edges parent -> child."""
        if self._edges[parent, child] < 1:
            raise ValueError(f"there is no edge {parent} -> {child} to remove")
        self._edges[parent, child] -= 1
        if self._edges[parent, child] == 0 and not self._placed[parent]:
            self._unplaced_parents[child] -= 1
            self._place_from(child)

    def _place_from(self, node: int) -> None:
        waiting = [node]
        while waiting:
            node = waiting.pop()
            if self._placed[node] or self._unplaced_parents[node]:
                continue
            self._placed[node] = True
            self.order.append(node)
            children = np.flatnonzero(self._edges[node])
            self._unplaced_parents[children] -= 1
            waiting.extend(children[::-1].tolist())
