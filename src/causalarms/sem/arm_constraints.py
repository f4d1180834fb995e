"""Which interventions are allowed and what they cost; all of it prunes the one search tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.sem.arm_feasible import Part, allowed_start, conflict
from causalarms.sem.arm_problem import FREE, Arm, Clauses, FloatArray, Regimes
from causalarms.sem.nodes import node_index

Node = str | int
Combination = Mapping[Node, int]


@dataclass(frozen=True)
class Constraints:
    """Nodes by name or number.

    `forbidden` and `required` are combinations {node: regime}: of a forbidden one the regimes never
    all occur; of a required one they occur all together or not at all. `cost` is subtracted from
    the expected reward for each node intervened on: a number, one per node, or {node: cost}.

    >>> Constraints(never_on=["x0"], at_most=3, forbidden=[{"x1": 1, "x2": 1}]).at_most
    3
    """

    never_on: Sequence[Node] = ()
    always_on: Sequence[Node] = ()
    at_most: int | None = None
    cost: npt.ArrayLike | Mapping[Node, float] = 0.0
    forbidden: Sequence[Combination] = ()
    required: Sequence[Combination] = ()

    def over(self, nodes: Sequence[str]) -> Allowed:
        """The constraints as arrays; refuses those that no intervention satisfies."""
        names = tuple(nodes)
        parts = self._parts(names)
        start = allowed_start(parts, len(names))
        if start is None:
            culprits = ", ".join(part.name for part in conflict(parts, len(names)))
            raise ModelError(f"no intervention satisfies {culprits}")
        forced = np.full(len(names), FREE, dtype=np.int8)
        for part in parts:
            if part.kind == "fixed":
                ((node, regime),) = part.literals
                forced[node] = regime
        limit = (len(names) if self.at_most is None else self.at_most) - int((forced == 1).sum())
        combinations = [part for part in parts if part.kind in ("forbidden", "required")]
        return Allowed(self._cost(names), forced, limit, _clauses(combinations), start)

    def _parts(self, nodes: tuple[str, ...]) -> list[Part]:
        """One part per constraint, with the name it has in messages."""
        parts = []
        for setting, regime in (("never_on", 0), ("always_on", 1)):
            for node in getattr(self, setting):
                i = node_index(node, nodes)
                parts.append(Part(f"{setting} {nodes[i]!r}", "fixed", ((i, regime),)))
        if self.at_most is not None:
            if self.at_most < 0:
                raise ModelError(f"at_most must not be negative, but is {self.at_most}")
            parts.append(Part(f"at_most {self.at_most}", "at_most", (), self.at_most))
        for kind in ("forbidden", "required"):
            for combination in getattr(self, kind):
                parts.append(_combination(kind, combination, nodes))
        return parts

    def _cost(self, nodes: tuple[str, ...]) -> FloatArray:
        cost = np.zeros(len(nodes))
        if isinstance(self.cost, Mapping):
            for node, value in self.cost.items():
                cost[node_index(node, nodes)] = value
        else:
            given = np.asarray(self.cost, dtype=float)
            if given.shape not in ((), cost.shape):
                raise ModelError(f"cost must have shape {cost.shape}, not {given.shape}")
            cost[:] = given
        if not np.isfinite(cost).all():
            node = int(np.argmin(np.isfinite(cost)))
            raise ModelError(f"cost of node {nodes[node]!r} is {cost[node]}")
        return cost


class Allowed(NamedTuple):
    """Constraints over N numbered nodes."""

    cost: FloatArray  # (N,)
    forced: Regimes  # (N,) FREE, 0 or 1
    limit: int  # interventions on free nodes
    clauses: Clauses
    start: Arm  # (N,) one intervention that is allowed

    def narrowed(self, regimes: Mapping[int, int]) -> Allowed | None:
        """With more nodes decided; None where nothing is left."""
        forced = self.forced.copy()
        limit = self.limit
        for node, regime in regimes.items():
            if forced[node] not in (FREE, regime):
                return None
            limit -= int(forced[node] == FREE and regime == 1)
            forced[node] = regime
        if not len(self.clauses.required):
            start = (forced == 1).astype(np.uint8)
            return None if limit < 0 else self._replace(forced=forced, limit=limit, start=start)
        parts = [
            Part("", "fixed", ((node, int(forced[node])),))
            for node in range(len(forced))
            if forced[node] != FREE
        ]
        parts.append(Part("", "at_most", (), limit + int((forced == 1).sum())))
        for c, required in enumerate(self.clauses.required):
            span = slice(self.clauses.start[c], self.clauses.start[c + 1])
            literals = zip(self.clauses.node[span], self.clauses.regime[span], strict=True)
            kind = "required" if required else "forbidden"
            parts.append(Part("", kind, tuple((int(i), int(r)) for i, r in literals)))
        found = allowed_start(parts, len(forced))
        return None if found is None else self._replace(forced=forced, limit=limit, start=found)


@cache
def unconstrained(n_nodes: int) -> Allowed:
    """Everything is allowed and free."""
    start = np.zeros(n_nodes, dtype=np.uint8)
    forced = np.full(n_nodes, FREE, dtype=np.int8)
    return Allowed(np.zeros(n_nodes), forced, n_nodes, _clauses([]), start)


def _combination(kind: str, given: Combination, nodes: tuple[str, ...]) -> Part:
    literals = {node_index(node, nodes): regime for node, regime in given.items()}
    shown = ", ".join(f"{nodes[i]}={regime}" for i, regime in literals.items())
    wrong = [nodes[i] for i, regime in literals.items() if regime not in (0, 1)]
    if wrong:
        raise ModelError(f"{kind} {{{shown}}}: the regime of {wrong[0]!r} is neither 0 nor 1")
    if not literals:
        raise ModelError(f"a {kind} combination is empty")
    if kind == "required" and len(literals) == 1:
        raise ModelError(
            f"required {{{shown}}} joins one node to nothing; use always_on or never_on"
        )
    return Part(f"{kind} {{{shown}}}", kind, tuple((i, int(r)) for i, r in literals.items()))


def _clauses(parts: Sequence[Part]) -> Clauses:
    literals = [literal for part in parts for literal in part.literals]
    return Clauses(
        np.array([part.kind == "required" for part in parts], dtype=bool),
        np.cumsum([0, *(len(part.literals) for part in parts)], dtype=np.int64),
        np.array([node for node, _ in literals], dtype=np.int64),
        np.array([regime for _, regime in literals], dtype=np.int8),
    )
