"""Constraints and costs of a study, as people say them in factors and levels, for the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from causalarms.errors import InfeasibleError, ModelError, StudyError, shown
from causalarms.search.constraints import Constraints, all_or_none
from causalarms.sem.factors import NamedFactors

Combination = dict[int, list[int]]  # factor -> levels


def constraints_of(
    named: NamedFactors,
    *,
    movable: Sequence[str] | None,
    forbidden: Sequence[Any],
    required: Sequence[Mapping[str, Any]],
    at_most: int | None,
    costs: Mapping[str, Any],
) -> Constraints:
    """Checked settings as constraints of the search; refuses what nothing satisfies."""
    said = list(_combinations(named, movable, forbidden, required))
    try:
        return Constraints(
            named.regimes,
            factors=named.numbers,
            forbidden=[combination for _, combination in said],
            at_most=at_most,
            cost=_level_costs(costs, named),
        )
    # The search numbers the rules; people gave them in words.
    except InfeasibleError as error:
        culprits = [
            said[number][0] if kind == "forbidden" else f"max_interventions {at_most}"
            for kind, number in error.conflict
        ]
        raise StudyError(f"nothing satisfies {', '.join(dict.fromkeys(culprits))}") from None


def refuse_unreachable(allowed: Constraints, named: NamedFactors, movable: set[str]) -> None:
    """StudyError for a level that the constraints never allow: it should not be there."""
    for at, factor in enumerate(named.factors):
        if factor.name not in movable:
            continue
        for number, level in enumerate(factor.levels):
            # Only this level of the factor, and all levels of the others.
            domain = np.ones_like(allowed.rules.domain)
            domain[at] = np.arange(domain.shape[1]) == number
            if allowed.narrowed(domain) is None:
                if factor.is_switch and number:
                    raise StudyError(f"the constraints never allow {factor.name!r} to be switched")
                raise StudyError(
                    f"the constraints never allow level {shown(level)} of {factor.name!r}"
                )


def as_sequence(given: Any, said: str) -> Sequence[Any]:
    """A list or tuple; else StudyError, whose message begins with what is `said`."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise StudyError(f"{said} {shown(given)}")
    return given


def as_mapping(given: Any, said: str) -> Mapping[Any, Any]:
    """As above, of names with values."""
    if not isinstance(given, Mapping):
        raise StudyError(f"{said} {shown(given)}")
    return given


def checked_movable(given: Any, named: NamedFactors) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str):
        raise StudyError(f"intervenable is a list of names, not {shown(given)}")
    chosen = {named.names[named.factor(_name(name, named))] for name in given}
    if not chosen:
        raise StudyError("intervenable is empty: there would be nothing to try")
    return tuple(name for name in named.names if name in chosen)


def checked_forbidden(given: Any, named: NamedFactors) -> tuple[Any, ...]:
    """Lists of factors not to be moved together, or {factor: level or levels} never all at once."""
    found: list[Any] = []
    for group in as_sequence(given, "forbidden is a list of combinations, not"):
        if isinstance(group, Mapping):
            found.append(_checked_levels("forbidden", group, named))
            continue
        group = as_sequence(group, "forbidden is a list of lists of names, not of")
        names = tuple(named.names[named.factor(_name(name, named))] for name in group)
        if len(set(names)) < 2:
            raise StudyError(
                f"forbidden {list(names)}: name at least two factors; one that must never be "
                "moved is left out of intervenable"
            )
        found.append(names)
    return tuple(found)


def checked_required(given: Any, named: NamedFactors) -> tuple[dict[str, Any], ...]:
    """{factor: level}, set all together or not at all."""
    found = []
    for group in as_sequence(given, "required is a list of {factor: level}, not"):
        group = as_mapping(group, "required is a list of {factor: level}, not of")
        levels = _checked_levels("required", group, named)
        if len(levels) < 2:
            raise StudyError(f"required {dict(group)}: name at least two factors to join")
        for name, level in levels.items():
            if isinstance(level, list):
                raise StudyError(f"required: name one level of {shown(name)}, not {level}")
        found.append(levels)
    return tuple(found)


def checked_costs(given: Any, named: NamedFactors) -> dict[str, Any]:
    """{factor: cost of leaving its first level} or {factor: {level: cost}}, from 0 on."""
    found: dict[str, Any] = {}
    for name, cost in as_mapping(given, "costs are names with numbers, not").items():
        at = named.factor(_name(name, named))
        factor = named.factors[at]
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


def _name(given: Any, named: NamedFactors) -> Any:
    """Factors may be given by position, as nodes may."""
    if isinstance(given, int) and not isinstance(given, bool):
        if not -len(named.names) <= given < len(named.names):
            raise StudyError(f"there is no factor {given}: there are {len(named.names)}")
        return named.names[given]
    return given


def _cost(given: Any, what: str) -> float:
    try:
        cost = float(given)
    except (TypeError, ValueError, OverflowError):
        raise StudyError(f"the cost of {what} is {shown(given)}, not a number from 0 on") from None
    if isinstance(given, bool) or not np.isfinite(cost) or cost < 0:
        raise StudyError(f"the cost of {what} is {shown(given)}, not a number from 0 on")
    return cost


def _checked_levels(kind: str, given: Mapping[Any, Any], named: NamedFactors) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, level in given.items():
        factor = named.factors[named.factor(_name(name, named))]
        several = isinstance(level, Sequence) and not isinstance(level, str)
        try:
            numbers = sorted({factor.number(one) for one in (level if several else [level])})
        except ModelError as error:
            raise StudyError(f"{kind}: {error}") from None
        levels = [factor.levels[number] for number in numbers]
        if not levels:
            raise StudyError(f"{kind}: no level of {factor.name!r} is named")
        found[factor.name] = levels if several else levels[0]
    if not found:
        raise StudyError(f"a {kind} combination is empty")
    return found


def _combinations(
    named: NamedFactors,
    movable: Sequence[str] | None,
    forbidden: Sequence[Any],
    required: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, Combination]]:
    """Forbidden combinations by number, each with the words it comes from."""
    sizes = [len(factor.levels) for factor in named.factors]
    for at, name in enumerate(named.names):
        if movable is not None and name not in movable:
            # A factor that stays at its first level is one whose other levels are all forbidden.
            yield f"intervenable without {shown(name)}", {at: list(range(1, sizes[at]))}
    for group in forbidden:
        if isinstance(group, Mapping):
            yield f"forbidden {dict(group)}", _numbered(group, named)
        else:
            places = [named.factor(name) for name in group]
            yield f"forbidden {list(group)}", {at: list(range(1, sizes[at])) for at in places}
    for group in required:
        for combination in all_or_none(_numbered(group, named), sizes):
            yield f"required {dict(group)}", combination


def _numbered(group: Mapping[str, Any], named: NamedFactors) -> Combination:
    found: Combination = {}
    for name, level in group.items():
        at = named.factor(name)
        several = level if isinstance(level, list | tuple) else [level]
        found[at] = [named.factors[at].number(one) for one in several]
    return found


def _level_costs(costs: Mapping[str, Any], named: NamedFactors) -> list[list[float]]:
    found = []
    for factor in named.factors:
        cost = costs.get(factor.name, 0.0)
        if isinstance(cost, Mapping):
            of_level = {factor.number(level): float(value) for level, value in cost.items()}
            found.append([of_level.get(at, 0.0) for at in range(len(factor.levels))])
        else:
            # Costs are those of leaving the first level: staying there is free.
            found.append([0.0, *[float(cost)] * (len(factor.levels) - 1)])
    return found
