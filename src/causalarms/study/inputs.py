"""What users tell: results, endings of trials and past rounds, as plain values or refused.

Everything is checked before the log is locked, so that nobody waits for somebody else's mistake.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from causalarms.checks import LARGEST, usable, why_unusable
from causalarms.errors import (
    DataError,
    FarValueWarning,
    LearningWarning,
    ModelError,
    NodeValueError,
    StudyError,
    shown,
)
from causalarms.sem.factor import ON, Level
from causalarms.sem.factors import NamedFactors
from causalarms.sem.regimes import why_no_regime
from causalarms.study.far_values import far_from, far_values, in_words
from causalarms.study.learner import learns_from_gaps
from causalarms.study.ledger import Ledger, Record
from causalarms.study.log import ABANDONED, FAILED, TOLD, as_text, canonical_rows, key_entry
from causalarms.study.records import Remark, Trial
from causalarms.study.settings import Settings
from causalarms.study.store import Store
from causalarms.tables.read import as_frame
from causalarms.tables.rounds import rounds_of

Values = list[float | None]
Levels = dict[str, Level]
PACKAGE = Path(__file__).parents[1]


class PastRounds(NamedTuple):
    interventions: list[list[int]]
    values: list[Values]
    left_out: tuple[str, ...] = ()  # remarks on rows that are not here


def as_values(given: Any, nodes: tuple[str, ...], told: Sequence[float | None] = ()) -> Values:
    """One value per node from a dict, a Series, a row of a frame or a sequence in node order.

    None is a value that was not measured; a node that is not mentioned stays as it was `told`, or
    is an error.
    """
    is_row = isinstance(given, list | tuple) or type(given) is np.ndarray
    mapping = None if is_row else _mapping(given)
    if mapping is None:
        is_scalar = isinstance(given, str | bytes) or getattr(given, "ndim", 1) == 0
        if is_scalar or not isinstance(given, Sequence | np.ndarray):
            raise StudyError(f"values are a number per node, not {shown(given)}")
        if len(given) != len(nodes):
            raise StudyError(f"{len(given)} values for {len(nodes)} nodes ({', '.join(nodes)})")
        row = given.tolist() if isinstance(given, np.ndarray) else given
        mapping = dict(zip(nodes, row, strict=True))
    mapping = dict(zip(nodes, told, strict=False)) | mapping
    if len(mapping) == len(nodes):
        plain = [mapping.get(node) for node in nodes]
        if all(type(x) is float and -LARGEST <= x <= LARGEST for x in plain):
            return plain  # the usual case, quickly: many rounds may follow
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
    except (DataError, ModelError) as error:
        raise StudyError(str(error)) from error
    values = [[None if value != value else value for value in row] for row in found.values.tolist()]
    return PastRounds(found.regimes.tolist(), values, found.left_out)


def as_context(given: Any, settings: Settings) -> dict[str, float]:
    """Values of nodes that are context, as far as they are known before a trial."""
    if not isinstance(given, Mapping):
        raise StudyError(f"context is a value per node, not {shown(given)}")
    found = {}
    for name, value in given.items():
        if name not in settings.context:
            names = ", ".join(settings.context) or "none of the nodes is"
            raise StudyError(
                f"{shown(name)} is not context of this study; context: {names}. Say it with "
                "Study.create(..., context=[...]) or change_settings"
            )
        number = _number(value, name)
        if number is not None:
            found[str(name)] = number
    return found


def far_context(ledger: Ledger, known: Mapping[str, float]) -> list[Remark]:
    """What to say of values of the context that are far outside all that was measured."""
    found = []
    for node, value in known.items():
        at = ledger.settings.nodes.index(node)
        values = [record.values[at] for record in ledger.with_values() if record.values]
        seen = far_from(value, [x for x in values if x is not None])
        if seen is not None:
            text = f"far outside the {seen.low:g} to {seen.high:g} of the results"
            text = f"context {node!r} is said to be {value:g}, {text}: is it a typing error?"
            found.append(Remark(node, "", 1.0, text))
    return found


def about_context(
    ledger: Ledger, known: Mapping[str, float], trials: Iterable[Trial] = ()
) -> list[str]:
    """The same, and which of the `trials` were asked with another context, in words."""
    said = [remark.text for remark in far_context(ledger, known)]
    for trial in trials if known else ():
        asked = ledger.trial(trial.number).asked.get("context", {})
        if asked != known:
            words = ", ".join(f"{node} {value:g}" for node, value in asked.items())
            with_ = f"with {words}" if words else "without context"
            said.append(f"trial {trial.number} was pending: it was asked {with_}, and is as it was")
    return said


def as_intervention(given: Any, named: NamedFactors) -> list[int]:
    """The regime of every node from levels, from names of factors that are on, or from regimes.

    {factor: level} (absent: its first level), names of switches, or a regime per node, as a row or
    by name.
    """
    try:
        if isinstance(given, Mapping) and _are_regimes(given, named):
            return _from_regimes([given[node] for node in named.system_nodes], named)
        if isinstance(given, Mapping):
            return list(named.intervention(given))
        if isinstance(given, Collection) and not isinstance(given, str):
            if all(isinstance(name, str) for name in given):
                return list(named.intervention({name: _turned_on(name, named) for name in given}))
            if isinstance(given, Sequence | np.ndarray) and len(given) == len(named.system_nodes):
                return _from_regimes(list(given), named)
    except ModelError as error:
        raise StudyError(str(error)) from None
    raise StudyError(f"{shown(given)} is not an intervention: say the level of each factor to set")


def as_executed(given: Any, named: NamedFactors) -> Levels | None:
    """The levels that are said to have been set, as far as they are named; None if nothing is said.

    A list names every switch that was on: the others were off.
    """
    if given is None:
        return None
    levels = named.levels(as_intervention(given, named))
    if isinstance(given, Mapping) and not _are_regimes(given, named):
        return {name: levels[name] for name in given}
    if all(isinstance(name, str) for name in given):
        return {f.name: levels[f.name] for f in named.factors if f.is_switch}
    return levels


def as_interventions(given: Any, named: NamedFactors) -> list[list[int]]:
    """The regimes of several interventions, or of one; None: all factors at their first level."""
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
    return set(given) == set(named.system_nodes) and not set(given) <= set(named.names)


def _turned_on(name: str, named: NamedFactors) -> Any:
    factor = named.factors[named.factor(name)]
    if not factor.is_switch:
        words = ", ".join(str(level) for level in factor.levels)
        raise ModelError(f"factor {shown(name)} is not just on: say which level ({words})")
    return ON


def _from_regimes(given: Sequence[Any], named: NamedFactors) -> list[int]:
    for node, count, value in zip(named.system_nodes, named.regimes.tolist(), given, strict=True):
        if not isinstance(value, int | float | np.number | np.bool_) or value not in range(count):
            raise StudyError(f"node {shown(node)}: regime {shown(value)} {why_no_regime(count)}")
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
    # `float` takes True for 1 and reads text; as measured values both are mistakes.
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


class Ending(NamedTuple):
    """How a trial ends: told with values, failed, or abandoned. As given, until it is `checked`."""

    kind: str
    trial: int
    values: Any = None
    executed: Any = None  # if it may not be what was asked
    reason: str = ""

    def checked(self, settings: Settings) -> Ending:
        """The ending with plain values, or refused: an invalid event must never reach the log."""
        if self.kind == TOLD:
            values = as_values(self.values, settings.nodes)
            return Ending(TOLD, self.trial, values, as_executed(self.executed, settings.named))
        if self.kind not in (FAILED, ABANDONED):
            raise StudyError(f"a trial ends told, failed or abandoned, not {shown(self.kind)}")
        if self.values is not None or self.executed is not None:
            raise StudyError(f"trial {self.trial} is {self.kind}: values and executed go with told")
        as_text(self.reason, "the reason", empty=True)
        return self

    def data(self, record: Record, named: NamedFactors) -> dict[str, Any]:
        """What its event says."""
        if self.values is None:
            return {"trial": self.trial, "reason": self.reason}
        told = {"trial": self.trial, "values": self.values}
        return told | deviation(record, self.executed, named)

    def keep(self, store: Store, settings: Settings) -> str:
        """Write a result that the study cannot take to FILE-untold.jsonl; say where it is."""
        if self.values is None:
            return ""
        told = dict(zip(settings.nodes, self.values, strict=True))
        record: dict[str, Any] = {"trial": self.trial, "values": told}
        if self.executed is not None:
            record["executed"] = self.executed
        result = json.dumps(record, ensure_ascii=False)
        path: Path | None = getattr(store, "path", None)
        if path is None:
            return f"The result was not kept: {result}"
        kept = path.with_name(f"{path.name}-untold.jsonl")
        try:
            with kept.open("a", encoding="utf-8") as file:
                file.write(result + "\n")
                # This may be the only copy of the result.
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            return f"The result was not kept: {result}"
        return f"The result of trial {self.trial} is kept in {kept}"


def deviation(record: Record, executed: Levels | None, named: NamedFactors) -> dict[str, Any]:
    """What an event says of what was executed: nothing if that is known already."""
    if executed is None:
        return {}
    row = executed_row(record, executed, named)
    return {} if row == record.intervention else {"executed": list(row)}


def executed_row(record: Record, executed: Levels, named: NamedFactors) -> tuple[int, ...]:
    """The regime of every node; factors that are not named were as asked."""
    return named.intervention(named.levels(record.asked_intervention) | executed)


class Import(NamedTuple):
    """The data of an event with past rounds, except for the number of its first trial."""

    data: dict[str, Any]
    encoded: dict[str, str]  # its tables

    @property
    def n_rounds(self) -> int:
        return len(self.data["values"])


def checked_rounds(
    settings: Settings, interventions: Sequence[Any], values: Sequence[Any], *, first_row: int = 0
) -> PastRounds:
    """Past rounds that a caller may have built, by the rules of `tell`; an error names the row."""
    if len(values) != len(interventions):
        raise StudyError(f"{len(values)} rounds with {len(interventions)} interventions")
    found = PastRounds([], [])
    known: dict[Any, list[int]] = {}  # interventions repeat
    for number, (row, told) in enumerate(zip(interventions, values, strict=True), first_row):
        where = f"row {number} of the past rounds"
        try:
            key = tuple(row.items() if isinstance(row, Mapping) else row)
            if key not in known:
                known[key] = as_intervention(row, settings.named)
            found.interventions.append(known[key])
            found.values.append(as_values(told, settings.nodes))
        except NodeValueError as error:
            raise NodeValueError(f"{where}: {error}", error.node) from error
        except (StudyError, TypeError) as error:
            raise StudyError(f"{where}: {error}") from error
    return found


def prepare_import(rounds: PastRounds, source: str, key: str | None) -> Import:
    """Encode past rounds before the log is locked: a large table takes seconds."""
    data: dict[str, Any] = {
        "interventions": rounds.interventions,
        "values": rounds.values,
        "source": as_text(source, "the source", empty=True),
    }
    # The tables are the large part; the few other entries are encoded when the event is written.
    encoded = {name: canonical_rows(data[name]) for name in ("interventions", "values")}
    return Import(data | key_entry(key, data, encoded), encoded)


def prepare_correction(
    ledger: Ledger, number: int, values: Any, executed: Any, reason: str
) -> tuple[dict[str, Any], Levels | None]:
    """What a correction of this trial writes, and the levels that are said to be executed."""
    settings, told = ledger.settings, ledger.trial(number).values or ()
    plain = None if values is None else as_values(values, settings.nodes, told)
    if plain is None and executed is not None:
        raise StudyError("executed goes with values: a withdrawn result has neither")
    levels = as_executed(executed, settings.named)
    why = as_text(reason, "the reason", empty=True)
    return {"trial": number, "values": plain, "reason": why}, levels


def warn_the_caller(message: str, kind: type[Warning]) -> None:
    """A warning at the line outside this package that called it, and never an error.

    With warnings as errors a call must not fail after its event was written: the caller would
    take what is on the disk for lost. What is warned of is returned or shown elsewhere, too.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
        level, frame = level + 1, frame.f_back
    with suppress(kind):
        warnings.warn(message, kind, stacklevel=level)


def not_allowed(ledger: Ledger) -> list[str]:
    """What to say of pending trials that the settings do not allow any more."""
    allowed = ledger.settings.constraints
    return [
        f"trial {number} is pending with a setting that is not allowed any more: abandon it unless "
        "it is under way"
        for number in ledger.pending
        if not allowed.allows([ledger.trials[number].intervention])[0]
    ]


def remarks(ledger: Ledger, first: int, n_rounds: int) -> list[tuple[str, type[Warning]]]:
    """What to say of results that were just written, the first of them as this trial."""
    found: list[tuple[str, type[Warning]]] = []
    numbers = range(first, first + n_rounds)
    with_gaps = [n for n in numbers if None in (ledger.trials[n].values or ())]
    if with_gaps and not learns_from_gaps(ledger.settings):
        text = f"{len(with_gaps)} of {n_rounds} rows are kept and left out of learning"
        if n_rounds == 1:
            missing = (ledger.trials[first].values or ()).index(None)
            node = ledger.settings.nodes[missing]
            text = f"trial {first} is kept and left out of learning: {node!r} not measured"
        found.append((text, LearningWarning))
    known = {(r.intervention, r.values) for r in ledger.trials[:first]} if n_rounds > 1 else set()
    if known and all((r.intervention, r.values) in known for r in ledger.trials[first:][:n_rounds]):
        text = f"all {n_rounds} rows are in the study already: imported twice, they count twice"
        found.append((text, LearningWarning))
    return found + [(text, FarValueWarning) for text in in_words(far_values(ledger, numbers))]
