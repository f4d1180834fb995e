"""Constraints and costs as people say them, in factors and levels, for the search.

A study has factors of its own; a system has one per node, named like it, whose levels are the
regimes. Both say what is allowed in the same words, and this is the one place that reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from causalarms.checks import as_mapping, as_sequence, integer, optional
from causalarms.errors import InfeasibleError, SettingError, shown
from causalarms.search.constraints import Constraints as NumberedConstraints
from causalarms.sem.factor import Factor
from causalarms.sem.factors import NamedFactors

NAMES = "a list of names"
Combination = dict[int, list[int]]  # factor -> levels, by number


@dataclass(frozen=True)
class Constraints:
    """What may be set, and what it costs. Factors are named, or numbered from 0.

    intervenable        factors that may leave their first level; None: all of them
    max_interventions   how many factors may be away from their first level at once
    forbidden           lists of factors that are never moved together, or combinations
                        {factor: level or levels} that never occur all at once
    required            combinations {factor: level} that occur all together or not at all
    costs               {factor: cost of leaving its first level} or {factor: {level: cost}}, in
                        units of the reward

    >>> rules = Constraints(max_interventions=1, forbidden=[{"heat": "on"}])
    >>> named = NamedFactors.of({"heat": {}, "stir": {}}, ("heat", "stir"))
    >>> rules.checked(named).over(named).interventions().tolist()
    [[0, 0], [0, 1]]
    """

    intervenable: Sequence[str] | None = None
    max_interventions: int | None = None
    forbidden: Sequence[Any] = ()
    required: Sequence[Mapping[str, Any]] = ()
    costs: Mapping[str, Any] = field(default_factory=dict)

    def checked(self, named: NamedFactors) -> Constraints:
        """The same with names of factors and values of levels; SettingError names what is wrong."""
        return Constraints(
            _movable(self.intervenable, named),
            optional(integer, "max_interventions", self.max_interventions, minimum=1),
            tuple(_forbidden(self.forbidden, named)),
            tuple(_required(self.required, named)),
            _costs(self.costs, named),
        )

    def over(self, named: NamedFactors) -> NumberedConstraints:
        """Checked ones for the search; InfeasibleError names those that nothing satisfies."""
        said = list(self._combinations(named))
        try:
            return NumberedConstraints(
                named.regimes,
                factors=named.numbers,
                forbidden=[combination for _, combination in said],
                at_most=self.max_interventions,
                cost=[_of_levels(self.costs.get(f.name, 0.0), f) for f in named.factors],
            )
        # The search numbers the rules; people gave them in words.
        except InfeasibleError as error:
            limit = f"max_interventions {self.max_interventions}"
            culprits = dict.fromkeys(
                said[number][0] if kind == "forbidden" else limit for kind, number in error.conflict
            )
            raise InfeasibleError(f"nothing satisfies {', '.join(culprits)}") from None

    def _combinations(self, named: NamedFactors) -> Iterator[tuple[str, Combination]]:
        """Forbidden combinations by number, each with the words it comes from."""
        sizes = [len(factor.levels) for factor in named.factors]
        for at, name in enumerate(named.names):
            if self.intervenable is not None and name not in self.intervenable:
                # A factor that stays at its first level is one whose other levels are forbidden.
                yield f"intervenable without {shown(name)}", {at: list(range(1, sizes[at]))}
        for group in self.forbidden:
            if isinstance(group, Mapping):
                yield f"forbidden {group}", _numbered(group, named)
            else:
                places = [named.factor(name) for name in group]
                moved = {at: list(range(1, sizes[at])) for at in places}
                yield f"forbidden {list(group)}", moved
        for group in self.required:
            ring = list(_numbered(group, named).items())
            # A ring is enough: each level demands the next, and the last one the first.
            for (one, levels), (other, wanted) in zip(ring, ring[1:] + ring[:1], strict=True):
                rest = [level for level in range(sizes[other]) if level not in wanted]
                yield f"required {group}", {one: levels, other: rest}


def refuse_unreachable(
    allowed: NumberedConstraints,
    named: NamedFactors,
    movable: Sequence[str],
    retired: Collection[tuple[int, int]] = (),
) -> None:
    """SettingError for a level that the constraints never allow: it should not be there.

    A (factor, level) in `retired` is there for what was learned when it still was allowed.
    """
    for at, factor in enumerate(named.factors):
        if factor.name not in movable:
            continue
        for number, level in enumerate(factor.levels):
            if (at, number) in retired:
                continue
            # Only this level of the factor, and all levels of the others.
            domain = np.ones_like(allowed.rules.domain)
            domain[at] = np.arange(domain.shape[1]) == number
            if allowed.narrowed(domain) is None:
                what = f"level {shown(level)} of {factor.name!r}"
                if factor.is_switch and number:
                    what = f"{factor.name!r} to be switched"
                raise SettingError(f"the constraints never allow {what}")


def retired_levels(forbidden: Sequence[Any], named: NamedFactors) -> set[tuple[int, int]]:
    """(factor, level) of the levels that checked rules forbid by themselves."""
    alone = [g for g in forbidden if isinstance(g, Mapping) and len(g) == 1]
    combinations = [_numbered(group, named) for group in alone]
    return {(at, level) for group in combinations for at, of in group.items() for level in of}


def _factor(given: object, named: NamedFactors) -> Factor:
    """By name or, as nodes may be, by position."""
    if isinstance(given, int) and not isinstance(given, bool):
        if not -len(named.names) <= given < len(named.names):
            raise SettingError(f"there is no factor {given}: there are {len(named.names)}")
        return named.factors[given]
    return named.factors[named.factor(given)]


def _movable(given: Any, named: NamedFactors) -> tuple[str, ...] | None:
    if given is None:
        return None
    chosen = {_factor(name, named).name for name in as_sequence("intervenable", given, NAMES)}
    if not chosen:
        raise SettingError("intervenable is empty: there would be nothing to try")
    return tuple(name for name in named.names if name in chosen)


def _forbidden(given: Any, named: NamedFactors) -> Iterator[Any]:
    for group in as_sequence("forbidden", given, "a list of combinations"):
        if isinstance(group, Mapping):
            yield _levels("forbidden", group, named)
            continue
        kind = "a list of factors or {factor: level}"
        factors = as_sequence("a forbidden combination", group, kind)
        names = tuple(_factor(name, named).name for name in factors)
        if len(set(names)) < 2:
            raise SettingError(
                f"forbidden {list(names)}: name at least two factors; one that must never be "
                "moved is left out of intervenable"
            )
        yield names


def _required(given: Any, named: NamedFactors) -> Iterator[dict[str, Any]]:
    for group in as_sequence("required", given, "a list of {factor: level}"):
        group = as_mapping("a required combination", group, "{factor: level}")
        levels = _levels("required", group, named)
        if len(levels) < 2:
            raise SettingError(f"required {dict(group)}: name at least two factors to join")
        for name, level in levels.items():
            if isinstance(level, list):
                raise SettingError(f"required: name one level of {shown(name)}, not {level}")
        yield levels


def _costs(given: Any, named: NamedFactors) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, cost in as_mapping("costs", given).items():
        factor = _factor(name, named)
        if isinstance(cost, Mapping):
            found[factor.name] = {
                # Keys of JSON are text; `Factor.number` finds the level by its text again.
                str(factor.levels[factor.number(level)]): _cost(
                    value, f"level {shown(level)} of {shown(name)}"
                )
                for level, value in cost.items()
            }
        else:
            found[factor.name] = _cost(cost, f"switching {shown(name)}")
    return found


def _cost(given: Any, what: str) -> float:
    try:
        cost = float(given)
    except (TypeError, ValueError, OverflowError):
        cost = np.nan
    if isinstance(given, bool) or not np.isfinite(cost) or cost < 0:
        raise SettingError(f"the cost of {what} is {shown(given)}, not a number from 0 on")
    return cost


def _of_levels(cost: Any, factor: Factor) -> list[float]:
    """What each level costs."""
    if isinstance(cost, Mapping):
        of_level = {factor.number(level): float(value) for level, value in cost.items()}
        return [of_level.get(at, 0.0) for at in range(len(factor.levels))]
    # Costs are those of leaving the first level: staying there is free.
    return [0.0, *[float(cost)] * (len(factor.levels) - 1)]


def _levels(kind: str, given: Mapping[Any, Any], named: NamedFactors) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, level in given.items():
        factor = _factor(name, named)
        several = isinstance(level, Sequence) and not isinstance(level, str)
        numbers = sorted({factor.number(one) for one in (level if several else [level])})
        levels = [factor.levels[number] for number in numbers]
        if not levels:
            raise SettingError(f"{kind}: no level of {factor.name!r} is named")
        found[factor.name] = levels if several else levels[0]
    if not found:
        raise SettingError(f"a {kind} combination is empty")
    return found


def _numbered(group: Mapping[str, Any], named: NamedFactors) -> Combination:
    found: Combination = {}
    for name, level in group.items():
        at = named.factor(name)
        several = level if isinstance(level, list) else [level]
        found[at] = [named.factors[at].number(one) for one in several]
    return found
