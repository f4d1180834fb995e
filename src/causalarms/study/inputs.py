"""Results and past rounds as users give them, turned into plain values or refused."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from causalarms.checks import LARGEST, usable, why_unusable
from causalarms.errors import DataError, ModelError, NodeValueError, StudyError, shown
from causalarms.sem.factors import ON, NamedFactors
from causalarms.tables.read import as_frame
from causalarms.tables.rounds import TableRounds, rounds_of

Values = list[float | None]


class PastRounds(NamedTuple):
    interventions: list[list[int]]
    values: list[Values]
    left_out: tuple[str, ...] = ()  # remarks on rows that are not here


def as_values(given: Any, nodes: tuple[str, ...]) -> Values:
    """One value per node from a dict, a Series, a row of a frame or a sequence in node order.

    None is a value that was not measured; a node that is not mentioned is an error.
    """
    mapping = _mapping(given)
    if mapping is not None and len(mapping) == len(nodes):
        plain = [mapping.get(node) for node in nodes]
        if all(type(x) is float and -LARGEST <= x <= LARGEST for x in plain):
            return plain  # nothing to say: many rounds may follow
    if mapping is None:
        if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
            raise StudyError(f"values are a number per node, not {shown(given)}")
        if len(given) != len(nodes):
            raise StudyError(f"{len(given)} values for {len(nodes)} nodes ({', '.join(nodes)})")
        mapping = dict(zip(nodes, given, strict=True))
    for name in mapping:
        if name not in nodes:
            label = name if isinstance(name, str) else shown(name)
            near = get_close_matches(label, nodes, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise NodeValueError(f"there is no node {shown(name)}{hint}", label)
    missing = [node for node in nodes if node not in mapping]
    if missing:
        raise NodeValueError(
            f"the value of node {missing[0]!r} is missing; say None (null) if it was not measured",
            missing[0],
        )
    return [_number(mapping[node], node) for node in nodes]


def as_past_rounds(
    given: Any,
    named: NamedFactors,
    interventions: Any = None,
    *,
    intervened: str | None = None,
    ignore: Sequence[str] = (),
) -> PastRounds:
    """Rounds of a file, frame or dict (`tables/rounds.py`); an empty cell was not measured."""
    try:
        found = rounds_of(
            given, interventions, nodes=named.nodes, factors=named, only_nodes=True,
            intervened=intervened, ignore=ignore,
        )  # fmt: skip
        return past_rounds(found)
    except (DataError, ModelError) as error:
        raise StudyError(str(error)) from error


def past_rounds(found: TableRounds) -> PastRounds:
    """Rounds of any table as they are stored."""
    values = [[None if value != value else value for value in row] for row in found.values.tolist()]
    return PastRounds(found.regimes.tolist(), values, found.left_out)


def as_intervention(given: Any, named: NamedFactors) -> list[int]:
    """The regime of every node from levels, from names of factors that are on, or from regimes.

    {factor: level} (absent: its first level), names of switches, or a regime per node, as a row or
    by name.
    """
    if isinstance(given, str) or not isinstance(given, Collection):
        raise StudyError(f"{shown(given)} is no intervention: say the level of each factor to set")
    try:
        if isinstance(given, Mapping) and _are_regimes(given, named):
            return _from_regimes([given[node] for node in named.nodes], named)
        if isinstance(given, Mapping):
            return list(named.intervention(given))
        if all(isinstance(name, str) for name in given):
            return list(named.intervention({name: _turned_on(name, named) for name in given}))
        if isinstance(given, Sequence | np.ndarray) and len(given) == len(named.nodes):
            return _from_regimes(list(given), named)
    except ModelError as error:
        raise StudyError(str(error)) from None
    raise StudyError(f"{shown(given)} is no intervention: say the level of each factor to set")


def as_interventions(given: Any, named: NamedFactors) -> list[list[int]]:
    """Several, of a list; one may stand for itself, and None for all factors at their first."""
    if given is None:
        given = [[]]
    elif isinstance(given, str | bytes) or not isinstance(given, Sequence | Mapping | np.ndarray):
        raise StudyError(f"interventions must be a list of them, got {shown(given)}")
    rows = list(given) if not isinstance(given, Mapping) else [given]
    if rows and isinstance(rows[0], str | int | np.integer):
        rows = [given]
    return [as_intervention(row, named) for row in rows]


def _are_regimes(given: Mapping[Any, Any], named: NamedFactors) -> bool:
    """All nodes by name, as `trial.intervention` has them; levels of factors are not that."""
    return set(given) == set(named.nodes) and not set(given) <= set(named.names)


def _turned_on(name: str, named: NamedFactors) -> Any:
    factor = named.factors[named.factor(name)]
    if not factor.is_switch:
        words = ", ".join(str(level) for level in factor.levels)
        raise ModelError(f"factor {shown(name)} is not just on: say which level ({words})")
    return ON


def _from_regimes(given: Sequence[Any], named: NamedFactors) -> list[int]:
    for node, count, value in zip(named.nodes, named.regimes.tolist(), given, strict=True):
        if not isinstance(value, int | float | np.number | np.bool_) or value not in range(count):
            has = (
                "is neither 0 (natural) nor 1 (intervened)"
                if count == 2
                else f"is none of its {count}, which count from 0"
            )
            raise StudyError(f"node {shown(node)}: regime {shown(value)} {has}")
    regimes = [int(value) for value in given]
    named.levels(regimes)  # refuses what no levels give
    return regimes


def _mapping(given: Any) -> dict[str, Any] | None:
    if isinstance(given, Mapping):
        return dict(given)
    if hasattr(given, "to_dict") and getattr(given, "ndim", 0) == 1:  # a pandas Series
        return {str(name): value for name, value in given.to_dict().items()}
    try:
        frame = as_frame(given)
    except DataError as error:
        raise StudyError(str(error)) from error
    if frame is None:
        return None
    if len(frame) != 1:
        raise StudyError(f"a result is one row, not {len(frame)}")
    return {str(c.name): c.to_list()[0] for c in frame.iter_columns()}


def _number(value: Any, node: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool | np.bool_ | str | bytes | complex):
        raise NodeValueError(f"node {shown(node)} is {shown(value)}, not a number", node)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise NodeValueError(f"node {shown(node)} is {shown(value)}, not a number", node) from None
    if not usable(np.array(number)):
        if not math.isfinite(number):
            raise NodeValueError(
                f"node {node!r} is {number}, which is not finite; None says: not measured", node
            )
        raise NodeValueError(f"node {shown(node)} {why_unusable(number)}", node)
    return number
