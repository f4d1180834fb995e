"""The trials of a study as its events leave them: a fold over the log, no learning in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from math import isfinite
from operator import itemgetter
from sys import intern
from types import MappingProxyType
from typing import Any

import numpy as np

from causalarms.errors import (
    CausalArmsError,
    ClosedTrialError,
    CorruptStudyError,
    StudyError,
    UnknownTrialError,
    shown,
)
from causalarms.limits import MAX_PENDING_TRIALS
from causalarms.sem.factors import NamedFactors
from causalarms.study import log as kinds
from causalarms.study.log import Event, Keys, as_text, record_key
from causalarms.study.records import Before, Note, Trial
from causalarms.study.settings import FORMAT, Settings

PENDING, WITHDRAWN = kinds.ASKED, "withdrawn"
WITH_VALUES = (kinds.TOLD, kinds.IMPORTED)

Values = tuple[float | None, ...]
Bits = tuple[int, ...]

NOT_ASKED: Mapping[str, Any] = MappingProxyType({})  # shared by rounds that nobody asked for


@dataclass(frozen=True, slots=True)
class Record:
    """One trial as one event left it; the next event about it makes another record.

    Processes hold many of them, and a service four times as many: equal texts are one object.
    """

    number: int
    state: str  # asked | told | failed | abandoned | imported | withdrawn | lost
    intervention: Bits  # what was executed; until there is a result, what was asked
    worker: str = ""
    values: Values | None = None
    asked: Mapping[str, Any] = field(default_factory=lambda: NOT_ASKED)  # with diagnostics
    asked_at: str = ""
    done_at: str = ""
    reason: str = ""
    corrected: bool = False

    @property
    def asked_intervention(self) -> Bits:
        """What was asked; of rounds that nobody asked for, what was executed."""
        return tuple(self.asked["intervention"]) if self.asked else self.intervention

    @property
    def measured(self) -> bool:
        """Whether there is a result, even if some values are missing."""
        return self.values is not None

    @property
    def n_missing(self) -> int:
        """Values of a result that were not measured."""
        return sum(value is None for value in self.values or ())

    @property
    def complete(self) -> bool:
        """Whether any policy can learn from it."""
        return self.values is not None and None not in self.values

    @property
    def failed(self) -> bool:
        """Whether it was carried out and gave no result; one that was withdrawn had given one."""
        return self.state == kinds.FAILED

    def learnable(self, gaps: bool) -> bool:
        """Whether a policy can learn from it; `gaps`: it can if some values are missing."""
        return self.complete or (gaps and self.measured)


class TrialRequest:
    """How many trials a worker wants, and those it has: pending ones, then new ones.

    A trial that somebody ends while others are still being chosen counts: asking comes to an end.
    """

    def __init__(self, worker: str, n: int, context: Mapping[str, float] | None = None) -> None:
        self.context = context or {}  # what is known before the trials, by node
        self.worker = as_text(worker, "the worker")
        if type(n) is not int or not 1 <= n <= MAX_PENDING_TRIALS:
            raise StudyError(
                f"worker {shown(worker)} may have at most {MAX_PENDING_TRIALS} pending trials: ask "
                f"for 1 to {MAX_PENDING_TRIALS}, not {shown(n)}"
            )
        self.n = n
        self.found: dict[int, Record] = {}

    @property
    def missing(self) -> int:
        return self.n - len(self.found)


class Ledger:
    """All trials, and what else the log says. `revision` grows when the past is corrected."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self.trials: list[Record] = []
        self.order: list[int] = []  # trials with a result, as results came in
        self.ended: list[int] = []  # these, and trials that failed
        self.pending: dict[int, None] = {}
        self.acknowledged: dict[int, str] = {}  # number of the alarm -> note
        self.notes: list[Note] = []
        self.recoveries: list[Note] = []  # what `recover` found to be gone, newest last
        self.keys: Keys = {}  # of requests that were done
        self.revision = 0  # the last event that changed what was learned before it

    @property
    def settings(self) -> Settings:
        """Settings of the `created` event, with the changes since; StudyError if there is none."""
        if self._settings is None:
            raise StudyError("the study was never finished being created: remove its file")
        return self._settings

    def copy(self) -> Ledger:
        """The trials as they are now, whatever happens to them later."""
        twin = Ledger()
        for name, value in vars(self).items():
            # Records are never changed, only replaced: copies of the lists are enough.
            setattr(twin, name, value.copy() if isinstance(value, list | dict) else value)
        return twin

    def apply(self, event: Event) -> None:
        """Take in one event; CorruptStudyError if it cannot follow those before it."""
        # Every other event is checked against the settings, so `created` comes first and once.
        if (self._settings is None) != (event.kind == kinds.CREATED):
            raise CorruptStudyError(f"event {event.number} ({event.kind}) is out of place", 1)
        if event.kind not in _APPLY:
            raise CorruptStudyError(
                f"event {event.number} is not an event of this package: it is of the kind "
                f"{shown(event.kind)}, which a later version may know",
                event.number,
            )
        try:
            _APPLY[event.kind](self, event)
            record_key(self.keys, event)
        except (CausalArmsError, LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise CorruptStudyError(
                f"event {event.number} ({event.kind}) makes no sense: {error}", event.number
            ) from error

    def trial(self, number: int) -> Record:
        if not 0 <= number < len(self.trials):
            known = (
                f"the last is trial {len(self.trials) - 1}" if self.trials else "nothing was asked"
            )
            raise UnknownTrialError(f"there is no trial {shown(number)}; {known}", number)
        return self.trials[number]

    def counts(self) -> dict[str, int]:
        """How many trials are in each state."""
        return dict(Counter(record.state for record in self.trials))

    def as_trial(self, record: Record) -> Trial:
        """What was asked, as its worker gets it."""
        named, asked = self.settings.named, record.asked
        return Trial(
            record.number,
            dict(zip(named.system_nodes, record.intervention, strict=True)),
            record.worker,
            str(asked["reason"]),
            asked.get("mean"),
            named.levels(record.intervention),
            named.switched(record.intervention),
            str(asked.get("why", "")),
            self.before(record),
        )

    def hand_out_pending(self, requests: Sequence[TrialRequest]) -> list[str]:
        """Give workers their pending trials; whose are still to be made, a name per trial.

        Workers take turns: who wants many does not come first.
        """
        for request in requests:
            for record in map(self.trials.__getitem__, self.pending):
                if record.worker == request.worker and request.missing:
                    request.found.setdefault(record.number, record)
        turns = [(turn, r.worker) for r in requests for turn in range(r.missing)]
        return [worker for _, worker in sorted(turns, key=itemgetter(0))]

    def with_values(self) -> list[Record]:
        """Trials with a result, in the order their results came in."""
        return [self.trials[n] for n in self.order if self.trials[n].measured]

    def learnable(self, gaps: bool) -> list[Record]:
        """The trials a policy learns from, in the order it does; `gaps` as above."""
        return [r for r in self.with_values() if r.learnable(gaps)]

    def before(self, record: Record) -> Before | None:
        """What the worker of a trial carried out before it; if nothing, what anybody did.

        Workers may be machines of their own, so that of the same worker comes first. What nobody
        asked for was carried out some other time, and an abandoned trial was not carried out.
        """
        found: Record | None = None
        for number in range(record.number - 1 if record.asked else -1, -1, -1):
            other = self.trials[number]
            if not other.asked or other.state == kinds.ABANDONED:
                continue
            if other.worker == record.worker:
                found = other
                break
            found = found or other
        if found is None:
            return None
        levels = self.settings.named.levels(found.intervention)
        return Before(found.number, found.worker, levels)

    def check_open(self, number: int) -> Record:
        """The pending trial with this number, or an error that says what it is instead."""
        record = self.trial(number)
        if record.state != PENDING:
            raise ClosedTrialError(
                f"trial {number} is not pending: it was {record.state} already",
                number,
                record.state,
            )
        return record

    def _created(self, event: Event) -> None:
        if event.data["format"] != FORMAT:
            raise StudyError(
                f"settings format {event.data['format']!r:.20}, this one reads {FORMAT}"
            )
        self._settings = Settings.from_dict(event.data["settings"])

    def _asked(self, event: Event) -> None:
        data, number = event.data, self._next(event.data["trial"])
        bits = self._bits(data["intervention"])
        # A log repeats the same few names and reasons in every event.
        asked = {
            intern(name): intern(value) if type(value) is str else value
            for name, value in data.items()
            if name not in ("trial", "worker")
        } | {"intervention": bits}
        worker = intern(str(data["worker"]))
        record = Record(number, PENDING, bits, worker, asked=asked, asked_at=intern(event.at))
        self.trials.append(record)
        self.pending[number] = None

    def _next(self, given: Any) -> int:
        """The number of a new trial, which the event must agree on."""
        if given != len(self.trials):
            raise StudyError(f"trial {given} instead of {len(self.trials)}")
        return len(self.trials)

    def _told(self, event: Event) -> None:
        values = self._values(event.data["values"])
        number = self._ended(event, values)
        self.trials[number] = self._executed(self.trials[number], event)
        self.order.append(number)
        self.ended.append(number)

    def _failed(self, event: Event) -> None:
        self.ended.append(self._ended(event))

    def _ended(self, event: Event, values: Values | None = None) -> int:
        """The kinds of events that end a trial are the states in which they leave it."""
        record = self.check_open(event.data["trial"])
        reason = str(event.data.get("reason", ""))
        self.trials[record.number] = replace(
            record, state=event.kind, values=values, done_at=intern(event.at), reason=reason
        )
        del self.pending[record.number]
        return record.number

    def _imported(self, event: Event) -> None:
        data, begin = event.data, self._next(event.data["first"])
        interventions = self._all_bits(data["interventions"])
        values = self._all_values(data["values"])
        source = str(data.get("source", ""))
        self.trials += [
            Record(number, kinds.IMPORTED, bits, "", row, NOT_ASKED, "", event.at, source)
            for number, (bits, row) in enumerate(zip(interventions, values, strict=True), begin)
        ]
        self.order += range(begin, len(self.trials))
        self.ended += range(begin, len(self.trials))

    def _corrected(self, event: Event) -> None:
        record = self.trial(event.data["trial"])
        if record.state not in WITH_VALUES:
            raise StudyError(f"trial {record.number} has no result to correct")
        given = event.data["values"]
        self.trials[record.number] = replace(
            self._executed(record, event),
            state=WITHDRAWN if given is None else record.state,
            values=None if given is None else self._values(given),
            corrected=True,
            reason=str(event.data.get("reason", "")),
        )
        # No policy can unlearn a round: it learns the log again when the revision changes.
        self.revision = event.number

    def _executed(self, record: Record, event: Event) -> Record:
        """The record with what was really set, if the event says that it was another."""
        if "executed" not in event.data:
            return record
        return replace(record, intervention=self._bits(event.data["executed"]))

    def _changed(self, event: Event) -> None:
        before = self.settings.named
        self._settings = Settings.from_dict(self.settings.as_dict() | event.data["settings"])
        if "factors" in event.data["settings"]:
            self._renumber(before, self._settings.named)
        self.revision = event.number

    def _renumber(self, before: NamedFactors, now: NamedFactors) -> None:
        """The same levels of all trials as regimes of factors that have more levels now."""

        @cache
        def renumbered(bits: Bits) -> Bits:
            rows = now.numbers.interventions([before.numbers_of(bits) or []])
            return tuple(int(regime) for regime in rows[0])

        for record in self.trials:
            asked = dict(record.asked)
            if asked:
                asked["intervention"] = renumbered(tuple(asked["intervention"]))
            self.trials[record.number] = replace(
                record, intervention=renumbered(record.intervention), asked=asked or NOT_ASKED
            )

    def _acknowledged(self, event: Event) -> None:
        self.acknowledged[int(event.data["alarm"])] = str(event.data.get("note", ""))

    def _note(self, event: Event) -> None:
        text, trial = str(event.data["text"]), event.data.get("trial")
        self.notes.append(Note(event.number, event.at, trial, text))

    def _lost(self, event: Event) -> None:
        # Nobody knows what was executed; nothing is learned from it, because it has no result.
        number, bits = self._next(event.data["trial"]), (0,) * len(self.settings.named.system_nodes)
        self.trials.append(Record(number, kinds.LOST, bits, done_at=event.at))

    def _recovered(self, event: Event) -> None:
        self._note(event)
        self.recoveries.append(self.notes[-1])

    def _bits(self, given: Any) -> Bits:
        counts = self.settings.named.regimes.tolist()
        if len(given) != len(counts) or any(
            type(regime) is not int or not 0 <= regime < count
            for regime, count in zip(given, counts, strict=True)
        ):
            raise StudyError(f"{shown(given)} is not an intervention")
        return tuple(given)

    def _all_bits(self, given: Any) -> list[Bits]:
        """The interventions of many rounds; equal ones are checked once and are one object."""
        # Interventions repeat: a table of 100,000 rounds may have only a few different ones.
        known: dict[Bits, Bits] = {}
        if set(map(type, chain.from_iterable(given))) != {int}:
            return [self._bits(bits) for bits in given]  # says which is wrong
        return [
            known[bits] if bits in known else known.setdefault(bits, self._bits(bits))
            for bits in map(tuple, given)
        ]

    def _all_values(self, given: Any) -> list[Values]:
        """The values of many rounds, checked at once if all are ordinary."""
        # Ten times as fast as one by one, which is done only to say which value is wrong.
        if set(map(type, chain.from_iterable(given))) <= {float, type(None)}:
            table = np.array(given, dtype=float)  # ValueError if rows differ in length
            if table.shape[1:] == (self.settings.n_nodes,) and not np.isinf(table).any():
                return list(map(tuple, given))
        return [self._values(values) for values in given]

    def _values(self, given: Any) -> Values:
        if len(given) != self.settings.n_nodes:
            raise StudyError(f"{len(given)} values for {self.settings.n_nodes} nodes")
        values = tuple(None if value is None else float(value) for value in given)
        for value in values:
            if value is not None and not isfinite(value):
                raise StudyError("a value is not finite")
        return values


_APPLY: dict[str, Callable[[Ledger, Event], object]] = {
    kinds.CREATED: Ledger._created,
    kinds.ASKED: Ledger._asked,
    kinds.TOLD: Ledger._told,
    kinds.FAILED: Ledger._failed,
    kinds.ABANDONED: Ledger._ended,
    kinds.IMPORTED: Ledger._imported,
    kinds.CORRECTED: Ledger._corrected,
    kinds.CHANGED: Ledger._changed,
    kinds.ACKNOWLEDGED: Ledger._acknowledged,
    kinds.NOTE: Ledger._note,
    kinds.LOST: Ledger._lost,
    kinds.RECOVERED: Ledger._recovered,
}
