"""Constraints on interventions in the names of the nodes; the search itself knows numbers only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.errors import InfeasibleError, ModelError
from causalarms.search import Constraints as NumberedConstraints
from causalarms.sem.nodes import node_index
from causalarms.sem.regimes import GivenRegimes, regimes_of

Node = str | int
Combination = Mapping[Node, int]
Literals = dict[int, int]  # node and regime


@dataclass(frozen=True)
class Constraints:
    """Nodes by name or number, each natural (0) or intervened on (1, or another of its regimes).

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

    def over(
        self, nodes: Sequence[str], regimes: GivenRegimes | None = None
    ) -> NumberedConstraints:
        """The constraints of the search; refuses those that no intervention satisfies.

        `regimes` (N,) says how many each node has (two).
        """
        names = tuple(nodes)
        counts = regimes_of(regimes, len(names)).key
        allowed: dict[int, set[int]] = {}
        said_of: dict[int, list[str]] = {}  # what was said of each node, for messages
        for setting, on in (("never_on", False), ("always_on", True)):
            for node in getattr(self, setting):
                i = node_index(node, names)
                every = range(counts[i])
                allowed[i] = allowed.get(i, set(every)) & set(every[1:] if on else every[:1])
                said_of.setdefault(i, []).append(f"{setting} {names[i]!r}")
        combinations = list(self._combinations(names, counts))
        try:
            return NumberedConstraints(
                counts,
                allowed=allowed,
                forbidden=[combination for _, combination in combinations],
                at_most=self.at_most,
                cost=[
                    [0.0] + [cost] * (count - 1)
                    for count, cost in zip(counts, self._cost(names), strict=True)
                ],
            )
        except InfeasibleError as error:
            culprits: list[str] = []
            for kind, number in error.conflict:
                if kind == "allowed":
                    culprits += said_of[number]
                elif kind == "forbidden":
                    culprits.append(combinations[number][0])
                else:
                    culprits.append(f"at_most {self.at_most}")
            words = ", ".join(dict.fromkeys(culprits))
            raise InfeasibleError(f"no intervention satisfies {words}", error.conflict) from None

    def _combinations(
        self, nodes: tuple[str, ...], counts: tuple[int, ...]
    ) -> Iterator[tuple[str, dict[int, list[int]]]]:
        """Forbidden combinations by number, each with the words it comes from."""
        for given in self.forbidden:
            words, literals = _checked("forbidden", given, nodes, counts)
            yield words, {i: [regime] for i, regime in literals.items()}
        for given in self.required:
            words, literals = _checked("required", given, nodes, counts)
            if len(literals) == 1:
                raise ModelError(f"{words} joins one node to nothing; use always_on or never_on")
            ring = list(literals.items())
            for (i, regime), (j, other) in zip(ring, ring[1:] + ring[:1], strict=True):
                others = [r for r in range(counts[j]) if r != other]
                if others:
                    yield words, {i: [regime], j: others}

    def _cost(self, nodes: tuple[str, ...]) -> npt.NDArray[np.float64]:
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


def _checked(
    kind: str, given: Mapping[Any, int], nodes: tuple[str, ...], counts: tuple[int, ...]
) -> tuple[str, Literals]:
    literals = {node_index(node, nodes): regime for node, regime in given.items()}
    shown = ", ".join(f"{nodes[i]}={regime}" for i, regime in literals.items())
    for i, regime in literals.items():
        if regime not in range(counts[i]):
            known = "neither 0 nor 1" if counts[i] == 2 else f"not one of its {counts[i]}"
            raise ModelError(f"{kind} {{{shown}}}: the regime of {nodes[i]!r} is {known}")
    if not literals:
        raise ModelError(f"a {kind} combination is empty")
    return f"{kind} {{{shown}}}", {i: int(regime) for i, regime in literals.items()}
