"""Is the log what was written, and does replaying it give what was suggested?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from causalarms.errors import CausalArmsError, CorruptStudyError
from causalarms.study import carving, events
from causalarms.study.events import ROOT, chain, decode
from causalarms.study.learner import Learner
from causalarms.study.log import check
from causalarms.study.snapshot_check import UNCHECKED, check_snapshot
from causalarms.study.sqlite_store import SqliteStore
from causalarms.study.store import Entry, Store
from causalarms.study.trials import Ledger


@dataclass
class Verdict:
    """`ok`, or the first event that cannot be trusted and why; None: only the snapshot is wrong."""

    ok: bool = True
    events: int = 0  # intact ones
    trials: int = 0
    told: int = 0
    first_bad: int | None = None
    message: str = "intact"
    remarks: list[str] = field(default_factory=list)
    head: str = ""  # hash of the last intact event
    last_told: int | None = None  # the last trial whose result came in before the damage

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def verify_store(store: Store, *, replay: bool = False, quick: bool = False) -> Verdict:
    """Every hash, every event, their order, and the snapshot's content unless `quick`.

    With `replay` every suggestion as well.
    """
    verdict, ledger = Verdict(), Ledger()
    learner: Learner | None = None
    hash_, before = ROOT, ""
    try:
        head, head_hash = store.head()
        entries, error = _entries(store)
        recovered = _last_recovery(entries)
        for entry in entries:
            hash_ = check(entry, verdict.events, hash_)
            event = decode(entry.text, entry.number)
            if replay and event.kind == events.ASKED and entry.number > recovered:
                learner = learner or Learner(_settings(ledger))
                _compare(learner, ledger, event, verdict)
            ledger.apply(event)
            if _earlier(event.at, before):
                verdict.remarks.append(
                    f"event {event.number}: the clock went back from {before} to {event.at}"
                )
            before = event.at
            verdict.events, verdict.head = event.number, hash_.hex()
            if entry.number == head and entry.hash != head_hash:
                raise CorruptStudyError(f"event {head} is not the one noted as the last", head)
        if error is not None:
            raise error
        if verdict.events < head:
            missing = verdict.events + 1
            raise CorruptStudyError(f"event {missing} is missing: {head} were written", missing)
        if not verdict.events:
            raise CorruptStudyError("there is no event at all", 1)
        _judge_snapshot(store, ledger, entries, verdict, quick=quick)
    except CausalArmsError as error:
        verdict.ok, verdict.message = False, str(error)
        verdict.first_bad = getattr(error, "event", None) or verdict.events + 1
    if verdict.ok and ledger.recoveries:
        verdict.message = "every event fits the one before it, but this study is not unbroken"
        verdict.remarks += [str(found["text"]) for found in ledger.recoveries]
    _count(verdict, ledger)
    return verdict


def _judge_snapshot(
    store: Store, ledger: Ledger, entries: list[Entry], verdict: Verdict, *, quick: bool
) -> None:
    fits, said = (True, UNCHECKED) if quick else check_snapshot(store, ledger, entries)
    if not fits and verdict.ok:
        verdict.ok, verdict.message = False, said
    elif said:
        verdict.remarks.append(said)


def verify_file(path: str | Path, *, replay: bool = False, quick: bool = False) -> Verdict:
    """As `verify_store`; a file that cannot be opened gives a verdict as well."""
    try:
        store = SqliteStore(path, read_only=True)
    except CorruptStudyError as error:
        return _of_unreadable(Path(path), error)
    try:
        return verify_store(store, replay=replay, quick=quick)
    finally:
        store.close()


def _of_unreadable(path: Path, error: CorruptStudyError) -> Verdict:
    """What the raw bytes say of a file that cannot be opened: its unbroken beginning."""
    verdict = Verdict(ok=False, message=str(error))
    ledger, hash_ = Ledger(), ROOT
    try:
        found = carving.candidates(path)
    except OSError:
        found = []
    for candidate in found:  # in the order of their numbers
        if (
            candidate.number == verdict.events + 1
            and chain(hash_, candidate.text) == candidate.hash
        ):
            try:
                ledger.apply(decode(candidate.text, candidate.number))
            except CorruptStudyError:
                break
            hash_, verdict.events = candidate.hash, candidate.number
    verdict.first_bad, verdict.head = verdict.events + 1, hash_.hex() if verdict.events else ""
    _count(verdict, ledger)
    return verdict


def _count(verdict: Verdict, ledger: Ledger) -> None:
    verdict.trials = len(ledger.trials)
    verdict.last_told = ledger.order[-1] if ledger.order else None
    verdict.told = sum(record.state == events.TOLD for record in ledger.trials)


def _last_recovery(entries: list[Entry]) -> int:
    """The event up to which suggestions cannot be compared: some of what they knew is gone."""
    marks = [e.number for e in entries if f'"kind":"{events.RECOVERED}"' in e.text]
    return marks[-1] if marks else 0


def _entries(store: Store) -> tuple[list[Entry], CorruptStudyError | None]:
    """All events, or those before the first that cannot be read."""
    try:
        return store.entries(), None
    except CorruptStudyError as error:
        return (store.readable() if isinstance(store, SqliteStore) else []), error


def _compare(learner: Learner, ledger: Ledger, event: events.Event, verdict: Verdict) -> None:
    learner.follow(ledger)
    data = event.data
    choice = learner.choose(int(data["trial"]), learner.pending(ledger))
    if choice.intervention.tolist() != data["intervention"]:
        verdict.ok = False
        verdict.message = f"trial {data['trial']}: replaying the log suggests another intervention"
        verdict.first_bad = verdict.first_bad or event.number


def _settings(ledger: Ledger) -> Any:
    if ledger.settings is None:
        raise CorruptStudyError("the first event did not create a study", 1)
    return ledger.settings


def _earlier(at: str, before: str) -> bool:
    try:
        return bool(before) and datetime.fromisoformat(at) < datetime.fromisoformat(before)
    except (ValueError, TypeError):
        return False
