"""Which interventions are allowed and what they cost: plain data, checked once.

Everything is numbered: nodes, factors, levels, regimes. A caller with names translates them, and
translates `InfeasibleError.conflict` back.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention, Interventions
from causalarms.errors import InfeasibleError, ModelError
from causalarms.limits import MAX_AT_RISK, MAX_DRAWN_FROM_LIST, MAX_LISTED, MAX_REGIMES
from causalarms.search import feasible
from causalarms.search.factors import NOT_SET, Factors, Levels
from causalarms.search.feasible import Box, Rules, keeps, rules_of, uniform
from causalarms.search.worth import Risk, Worth

Part = tuple[str, int]  # ("allowed", node), ("forbidden", number), ("at_most", 0)


class Constraints:
    """Constraints on interventions of nodes with these numbers of regimes.

    `factors` are what is set; without them, every node for itself. `allowed` are the regimes that a
    node may have. A combination {factor: level or levels} of `forbidden` is never set, that is, not
    all of its factors have one of their levels. That says everything: "a implies b" forbids a with
    the levels other than b; "a or b" forbids the levels other than a with those other than b. At
    most `at_most` factors leave their level 0. `cost` is subtracted from the reward, per factor and
    level.

    >>> two = Constraints([2, 3], forbidden=[{0: 1, 1: [1, 2]}], cost=[[0, 0.5], [0, 1, 1]])
    >>> two.interventions().tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0]]
    >>> two.allows([[1, 2], [1, 0]]).tolist(), two.cost([[1, 0]]).tolist()
    ([False, True], [0.5])
    """

    def __init__(
        self,
        regimes: Sequence[int] | IntArray,
        *,
        factors: Factors | None = None,
        allowed: Mapping[int, Collection[int]] | None = None,
        forbidden: Sequence[Mapping[int, int | Collection[int]]] = (),
        at_most: int | None = None,
        cost: Sequence[Sequence[float]] | None = None,
    ) -> None:
        self.regimes = tuple(int(count) for count in regimes)
        self.factors = _factors(factors, self.regimes)
        self.allowed = _allowed(allowed or {}, self.regimes)
        self.forbidden = tuple(
            _combination(number, given, self.factors) for number, given in enumerate(forbidden)
        )
        if at_most is not None and at_most < 0:
            raise ModelError(f"at_most must not be negative, but is {at_most}")
        self.at_most = None if at_most is None else int(at_most)
        self.level_cost = _cost(cost, self.factors)
        self.risk: Risk | None = None  # once a trial has failed
        self._lists: dict[str, Any] = {}  # copies with another risk share it
        self.rules, self.start = self._checked()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for constraints that say the same in the same words."""
        return (
            self.regimes, self.factors, self.allowed, self.forbidden, self.at_most, self.level_cost,
            self.risk,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraints) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    # policies ask in every round: constraints are keys of what is remembered about them
    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    @property
    def n_nodes(self) -> int:
        return len(self.regimes)

    @cached_property
    def free(self) -> bool:
        """Whether every intervention is allowed and costs nothing."""
        everything = self.rules.domain.sum(axis=1).tolist() == list(self.regimes)
        unbound = not self.rules.n_boxes and self.rules.limit >= len(self.factors.levels)
        plain = everything and unbound and self.risk is None
        return self.factors.is_per_node and plain and not self.rules.cost.any()

    def levels(self, interventions: npt.ArrayLike) -> npt.NDArray[np.int16]:
        """The levels (n, F) that these rows (n, N) were set by; NOT_SET if there are none."""
        return self.factors.levels_of(_rows(interventions, self.n_nodes))

    def allows(self, interventions: npt.ArrayLike) -> BoolArray:
        """Which of these rows (n, N) may be played."""
        levels = self.levels(interventions)
        # NOT_SET would count from the end
        return (levels != NOT_SET).all(axis=1) & self.allows_levels(np.maximum(levels, 0))

    def allows_levels(self, levels: npt.ArrayLike) -> BoolArray:
        """Which of these rows (n, F) may be set."""
        return keeps(self.rules, np.asarray(levels))

    def cost(self, interventions: npt.ArrayLike) -> FloatArray:
        """What each of these rows (n, N) costs."""
        levels = self.levels(interventions)
        if (levels == NOT_SET).any():
            row = int(np.argmax((levels == NOT_SET).any(axis=1)))
            raise ModelError(f"row {row}: no levels of the factors give this intervention")
        return self.rules.cost[np.arange(levels.shape[1]), levels].sum(axis=1)

    def worth(self, interventions: npt.ArrayLike) -> Worth:
        """What each of these rows (n, N) is worth; probabilities of up to MAX_AT_RISK of them."""
        cost, risk = self.cost(interventions), self.risk
        if risk is None or math.isnan(risk.reward) or len(cost) > MAX_AT_RISK:
            return Worth(cost)
        return Worth(cost, risk.probability(self.levels(interventions)), risk.reward)

    def failing(self, interventions: npt.ArrayLike) -> FloatArray:
        """How likely each of these rows (n, N) fails; nan as long as nothing has failed."""
        levels = self.levels(interventions)
        return (
            np.full(len(levels), math.nan) if self.risk is None else self.risk.probability(levels)
        )

    def interventions(self, most: int = MAX_LISTED) -> Levels:
        """All allowed interventions, (n, N), in lexicographic order of the levels."""
        listed = self._listed(most)
        if listed is None:
            raise ModelError(f"more than {most} interventions are allowed: too many to list")
        return self.factors.interventions(listed)

    def count(self, most: int = MAX_LISTED) -> int | None:
        """How many interventions are allowed; None if more than `most`."""
        listed = self._listed(most)
        return None if listed is None else len(listed)

    def random(self, rng: np.random.Generator) -> Levels:
        """One allowed intervention (N,), each with the same probability.

        Exact if a random choice is allowed often enough or all can be listed; else from a
        chain of random changes that keeps the constraints (see `uniform`).
        """
        return self.factors.interventions(uniform(self.rules, rng, self._start_list)[None])[0]

    def reaches(self, node: int, regime: int) -> bool:
        """Whether some allowed intervention puts the node into this regime."""
        return bool(self.reached[regime, node])

    @property
    def reached(self) -> BoolArray:
        """Which regimes some allowed intervention puts each node into, (R, N)."""
        if "reached" not in self._lists:
            # the factors may set fewer regimes than there are
            found = np.zeros((max(self.regimes), self.n_nodes), dtype=bool)
            for node in range(self.n_nodes):
                for regime, setting in enumerate(self.factors.settings(node)):
                    domain = self.rules.domain.copy()
                    for factor, level in setting:
                        domain[factor] &= np.arange(domain.shape[1]) == level
                    found[regime, node] = self.narrowed(domain) is not None
            self._lists["reached"] = found
        return np.asarray(self._lists["reached"])

    def priced(self, scale: float) -> Constraints:
        """The same with all costs times this: for rewards in other units."""
        cost = [[scale * value for value in of_levels] for of_levels in self.level_cost]
        return self._with(dict(self.allowed), cost)

    def at_risk(self, risk: Risk | None) -> Constraints:
        """The same with this risk of failing."""
        found = copy(self)
        for name in ("_hash", "free"):  # remembered of the other risk
            found.__dict__.pop(name, None)
        found.risk = risk
        return found

    def relative_to(self, origin: float) -> Constraints:
        """The same for rewards that are relative to an origin."""
        risk = self.risk
        if risk is None:
            return self
        return self.at_risk(risk._replace(reward=risk.reward - origin))

    def avoiding(self, combinations: Sequence[Mapping[int, int]]) -> Constraints:
        """The same without as many of the first of these combinations as leaves something."""
        found, fewest, most = self, 0, len(combinations)
        n = most
        while fewest < most:
            try:
                found = self._with(dict(self.allowed), self.level_cost, combinations[:n])
                fewest = n
            except ModelError:  # nothing is left
                most = n - 1
            n = (fewest + most + 1) // 2
        return found

    def only(self, regimes: Sequence[int]) -> Constraints:
        """The same of nodes that have no more than so many regimes.

        >>> Constraints([2, 2], at_most=1).only([1, 2]).interventions().tolist()
        [[0, 0], [0, 1]]
        """
        if len(regimes) != self.n_nodes:
            raise ModelError(f"constraints on {self.n_nodes} nodes, but there are {len(regimes)}")
        given = dict(self.allowed)
        allowed = {
            node: [r for r in given.get(node, range(most)) if r < regimes[node]]
            for node, most in enumerate(self.regimes)
        }
        return self._with(allowed, self.level_cost)

    def following(self, by: tuple[int, ...]) -> Constraints:
        """The same of nodes that follow the regimes of others: node j those of `by[j]`.

        The factors, levels and costs are the same; `by[j]` other than j has its own regimes.

        >>> Constraints([1, 3], at_most=1).following((1, 1)).interventions().tolist()
        [[0, 0], [1, 1], [2, 2]]
        """
        return self if by == tuple(range(self.n_nodes)) else _following(self, by)

    def _with(
        self,
        allowed: Mapping[int, Collection[int]],
        cost: Sequence[Sequence[float]],
        avoided: Sequence[Mapping[int, int]] = (),
    ) -> Constraints:
        found = Constraints(
            self.regimes,
            factors=self.factors,
            allowed=allowed,
            forbidden=[*(dict(combination) for combination in self.forbidden), *avoided],
            at_most=self.at_most,
            cost=cost,
        )
        found.risk = self.risk
        return found

    def neighbours(self, intervention: Intervention) -> Interventions:
        """Allowed interventions with another level of one factor, or of two if one returns.

        The second kind, a factor back at level 0 and another one in its place, leads on where
        `at_most` factors have left theirs. (n, N)
        """
        levels = self.levels(intervention[None])[0]
        changed = []
        for factor, n_levels in enumerate(self.factors.levels):
            for level in range(n_levels):
                if level != levels[factor]:
                    row = levels.copy()
                    row[factor] = level
                    changed.append(row)
                    if self.at_most is not None and level > 0 and levels[factor] == 0:
                        for other in np.flatnonzero(levels):
                            exchanged = row.copy()
                            exchanged[other] = 0
                            changed.append(exchanged)
        rows = np.array(changed, dtype=np.int16).reshape(-1, len(levels))
        return self.factors.interventions(rows[self.allows_levels(rows)])

    def narrowed(self, domain: BoolArray) -> tuple[Rules, Levels] | None:
        """The rules and a start with fewer levels, (F, L); None if nothing is left."""
        # boxes and costs stay: only levels are taken away, so all that was checked still holds
        rules = self.rules._replace(domain=self.rules.domain & domain)
        start, proven = feasible.first_allowed(rules)
        if start is None and not proven:
            raise _not_found()
        return None if start is None else (rules, start)

    def _start_list(self) -> Levels | None:
        return self._listed(MAX_DRAWN_FROM_LIST)

    def _listed(self, most: int) -> Levels | None:
        """All allowed levels, remembered; None if more than `most`."""
        known: Levels | None = self._lists.get("all")
        if known is None:
            # counting up to `most` and failing took a search; it is not repeated for a smaller one
            if most <= self._lists.get("more than", -1):
                return None
            known = feasible.all_allowed(self.rules, most, 20 * most + feasible.MAX_STEPS)
            if known is None:
                self._lists["more than"] = most
                return None
            self._lists["all"] = known
        return known if len(known) <= most else None

    def _checked(self) -> tuple[Rules, Levels]:
        parts: list[Part] = [("allowed", node) for node, _ in self.allowed]
        if self.at_most is not None:
            parts.append(("at_most", 0))
        parts += [("forbidden", number) for number in range(len(self.forbidden))]
        rules = self._rules(parts)
        start, proven = feasible.first_allowed(rules)
        if start is None and not proven:
            raise _not_found()
        if start is None:
            conflict = self._conflict(parts)
            words = [kind if kind == "at_most" else f"{kind} {number}" for kind, number in conflict]
            raise InfeasibleError(f"no intervention satisfies {', '.join(words)}", conflict)
        return rules, start

    def _conflict(self, parts: list[Part]) -> tuple[Part, ...]:
        """Parts that conflict, none of which could be left out."""
        left = list(parts)
        # a deletion filter: a part without which there is still a conflict is not needed for it
        for part in parts:
            others = [other for other in left if other != part]
            start, proven = feasible.first_allowed(self._rules(others))
            if start is None and proven:
                left = others
        return tuple(left)

    def _rules(self, parts: Collection[Part]) -> Rules:
        levels = self.factors.levels
        domain = np.arange(max(levels, default=0)) < np.array(levels, dtype=np.int64)[:, None]
        boxes: list[Box] = [self.forbidden[n] for kind, n in parts if kind == "forbidden"]
        allowed = dict(self.allowed)
        for kind, node in parts:
            if kind == "allowed":
                boxes += self._leave(node, allowed[node], domain)
        limit = (
            self.at_most if ("at_most", 0) in parts and self.at_most is not None else len(levels)
        )
        cost = np.zeros(domain.shape)
        for factor, of_levels in enumerate(self.level_cost):
            cost[factor, : len(of_levels)] = of_levels
        return rules_of(self.factors, domain, cost, limit, boxes)

    def _leave(self, node: int, regimes: Collection[int], domain: BoolArray) -> list[Box]:
        """Take from the domain what gives the node another regime, or the boxes that forbid it."""
        boxes: list[Box] = []
        for regime, setting in enumerate(self.factors.settings(node)):
            if regime in regimes:
                continue
            if not setting:
                domain[:] = False  # the node has one regime, and it is not allowed
            elif len(setting) == 1:
                domain[setting[0]] = False
            else:
                boxes.append([(factor, [level]) for factor, level in setting])
        return boxes


@lru_cache(maxsize=256)
def unconstrained(regimes: tuple[int, ...]) -> Constraints:
    """Everything is allowed and free."""
    return Constraints(regimes)


@lru_cache(maxsize=1024)  # draws of many rounds agree on which nodes follow which
def _following(constraints: Constraints, by: tuple[int, ...]) -> Constraints:
    factors = constraints.factors
    return Constraints(
        [constraints.regimes[node] for node in by],
        factors=Factors(factors.levels, tuple(factors.acting[node] for node in by)),
        # what those may be that are followed says it for those that follow
        allowed={node: of for node, of in constraints.allowed if by[node] == node},
        forbidden=[dict(combination) for combination in constraints.forbidden],
        at_most=constraints.at_most,
        cost=constraints.level_cost,
    )


def _not_found() -> ModelError:
    return ModelError(
        f"no allowed intervention was found in {feasible.MAX_STEPS} steps, and it is not proven "
        "that there is none: simplify the constraints"
    )


def _rows(interventions: npt.ArrayLike, n_nodes: int) -> npt.NDArray[np.integer]:
    rows = np.asarray(interventions)
    if rows.ndim != 2 or rows.shape[1] != n_nodes:
        raise ModelError(f"interventions must have shape (n, {n_nodes}), not {rows.shape}")
    return rows


def _factors(given: Factors | None, regimes: tuple[int, ...]) -> Factors:
    for node, count in enumerate(regimes):
        if not 1 <= count <= MAX_REGIMES:
            raise ModelError(f"node {node} has {count} regimes, not between 1 and {MAX_REGIMES}")
    if given is None:
        return Factors.per_node(regimes)
    if given.n_nodes != len(regimes):
        raise ModelError(f"factors for {given.n_nodes} nodes, but there are {len(regimes)}")
    for node, (spoken_of, count) in enumerate(zip(given.regimes, regimes, strict=True)):
        if spoken_of > count:
            raise ModelError(
                f"node {node} has {count} regimes, but its factors set regime {spoken_of - 1}"
            )
    return given


def _allowed(
    given: Mapping[int, Collection[int]], regimes: tuple[int, ...]
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    for node, of_node in given.items():
        if not 0 <= node < len(regimes):
            raise ModelError(f"allowed: there is no node {node}")
        wrong = [regime for regime in of_node if not 0 <= regime < regimes[node]]
        if wrong:
            raise ModelError(f"allowed: node {node} has no regime {wrong[0]}")
    return tuple(
        (int(node), tuple(sorted({int(r) for r in given[node]}))) for node in sorted(given)
    )


def _combination(
    number: int, given: Mapping[int, int | Collection[int]], factors: Factors
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    if not given:
        raise ModelError(f"forbidden combination {number} is empty")
    found = []
    for factor, level in sorted(given.items()):
        if not 0 <= factor < len(factors.levels):
            raise ModelError(f"forbidden combination {number}: there is no factor {factor}")
        several = level if isinstance(level, Collection) else [level]
        levels = sorted({int(one) for one in several})
        wrong = [one for one in levels if not 0 <= one < factors.levels[factor]]
        if wrong:
            raise ModelError(
                f"forbidden combination {number}: factor {factor} has no level {wrong[0]}"
            )
        found.append((int(factor), tuple(levels)))
    return tuple(found)


def _cost(
    given: Sequence[Sequence[float]] | None, factors: Factors
) -> tuple[tuple[float, ...], ...]:
    if given is None:
        return tuple((0.0,) * n_levels for n_levels in factors.levels)
    if len(given) != len(factors.levels):
        raise ModelError(f"cost of {len(given)} factors, but there are {len(factors.levels)}")
    for factor, (costs, n_levels) in enumerate(zip(given, factors.levels, strict=True)):
        if len(costs) != n_levels:
            raise ModelError(f"factor {factor}: {len(costs)} costs for {n_levels} levels")
        for level, value in enumerate(costs):
            if not math.isfinite(value):
                raise ModelError(f"cost of level {level} of factor {factor} is {value}")
    return tuple(tuple(float(value) for value in costs) for costs in given)
