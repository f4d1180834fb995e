"""Whether any intervention satisfies all constraints, and if none, which of them conflict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from causalarms.sem.arm_problem import Arm


class Part(NamedTuple):
    """One constraint."""

    name: str
    kind: str  # fixed, at_most, forbidden, required
    literals: tuple[tuple[int, int], ...] = ()  # (node, regime)
    limit: int = 0  # of at_most

    def broken_by(self, regimes: dict[int, int]) -> bool:
        """By the nodes decided so far; the others may still save it."""
        if self.kind == "at_most":
            return sum(regimes.values()) > self.limit
        hits = sum(regimes.get(node) == regime for node, regime in self.literals)
        misses = sum(regimes.get(node) == 1 - regime for node, regime in self.literals)
        if self.kind == "forbidden":
            return hits == len(self.literals)
        return misses > 0 if self.kind == "fixed" else hits > 0 and misses > 0


def allowed_start(parts: Sequence[Part], n_nodes: int) -> Arm | None:
    """An intervention that breaks no part; nodes that none speaks of stay natural."""
    nodes = list(dict.fromkeys(node for part in parts for node, _ in part.literals))
    limits = [part for part in parts if part.kind == "at_most"]
    speaking = {n: [p for p in parts if any(n == node for node, _ in p.literals)] for n in nodes}
    fixed = {p.literals[0][0]: p.literals[0][1] for p in parts if p.kind == "fixed"}
    nodes.sort(key=lambda node: node not in fixed)  # stable: the decided ones first
    regimes: dict[int, int] = {}

    def complete(depth: int) -> bool:
        if depth == len(nodes):
            return True
        node = nodes[depth]
        for regime in (fixed[node],) if node in fixed else (0, 1):
            regimes[node] = regime
            if not any(part.broken_by(regimes) for part in (*speaking[node], *limits)) and complete(
                depth + 1
            ):
                return True
            del regimes[node]
        return False

    if not complete(0):
        return None
    start = np.zeros(n_nodes, dtype=np.uint8)
    for node, regime in regimes.items():
        start[node] = regime
    return start


def conflict(parts: Sequence[Part], n_nodes: int) -> list[Part]:
    """Parts that conflict, none of which could be left out."""
    left = list(parts)
    for part in parts:
        others = [other for other in left if other is not part]
        if allowed_start(others, n_nodes) is None:
            left = others
    return left
