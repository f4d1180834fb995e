"""Is the log what was written, and does replaying it give what was suggested? And rescue."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from causalarms.errors import CausalArmsError, CorruptStudyError, StudyError
from causalarms.study import events
from causalarms.study.events import ROOT, decode
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
        for entry in entries:
            hash_ = check(entry, verdict.events, hash_)
            event = decode(entry.text, entry.number)
            if replay and event.kind == events.ASKED:
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
    verdict.trials = len(ledger.trials)
    verdict.told = sum(record.state == events.TOLD for record in ledger.trials)
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
        store = SqliteStore(path, read_only=True, any_version=True)
    except CorruptStudyError as error:
        return Verdict(ok=False, first_bad=1, message=str(error))
    try:
        return verify_store(store, replay=replay, quick=quick)
    finally:
        store.close()


def recover(path: str | Path, rescued: str | Path) -> Verdict:
    """Copy the intact beginning of a damaged study into a new file; what was copied."""
    try:
        source = SqliteStore(path, read_only=True, any_version=True)
    except CorruptStudyError as error:
        raise StudyError(f"nothing can be recovered: {error}") from error
    try:
        entries = _intact(source)
    finally:
        source.close()
    if not entries:
        raise StudyError(f"nothing can be recovered: the first event of {path} is damaged")
    copy_entries(entries, rescued)
    return verify_file(rescued)


def copy_entries(entries: list[Entry], path: str | Path) -> None:
    """A new study file with these events, hashes and all."""
    store = SqliteStore.create(path)
    try:
        with store.writing():
            for entry in entries:
                store.append(entry)
    finally:
        store.close()


def _entries(store: Store) -> tuple[list[Entry], CorruptStudyError | None]:
    """All events, or those before the first that cannot be read."""
    try:
        return store.entries(), None
    except CorruptStudyError as error:
        return (store.readable() if isinstance(store, SqliteStore) else []), error


def _intact(source: SqliteStore) -> list[Entry]:
    """The events before the first that is damaged or cannot be read."""
    intact: list[Entry] = []
    ledger, hash_ = Ledger(), ROOT
    with suppress(CausalArmsError):
        for entry in source.readable():
            hash_ = check(entry, len(intact), hash_)
            ledger.apply(decode(entry.text, entry.number))
            intact.append(entry)
    return intact


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
