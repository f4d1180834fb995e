"""Check, copy and save the file of a study: `verify`, `backup`, `recover`."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from causalarms.errors import CorruptStudyError, StudyError
from causalarms.files import SQLITE, Mark, write_output
from causalarms.study import log as kinds
from causalarms.study.ledger import Ledger
from causalarms.study.log import Event, Log, canonical, chain, decode, entry_of, now
from causalarms.study.settings import Settings
from causalarms.study.sqlite import SqliteStore, connect, free_path, new_file, resolved
from causalarms.study.store import ROOT, Entry, MemoryStore, Store

MIN_EVENT_BYTES = 120  # in the file, with its hashes
MAX_TRIALS = 10**7  # a number beyond is damaged
MAX_RANGES = 50  # that a text names
EVENT = re.compile(rb'\{"at":"[^"]*","data":.*?,"kind":"[a-z ]+","number":(\d{1,12})\}', re.DOTALL)
SAVED = Mark("`causalarms study recover`", b'{"at":"')  # a file of events


@dataclass
class Verdict:
    """`ok`, or the first event that cannot be trusted and why; None: every event is whole."""

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


# `learner.StudyPolicy`, handed in: checking a log needs no policy
Replay = Callable[[Settings], Any]


def verify(source: Store | str | Path, *, replay: Replay | None = None) -> Verdict:
    """Every hash, every event and their order, and SQLite's pages, of a store or a file.

    Damage is a verdict. A path that leads to no study, or not to it alone, is a StudyFileError, as
    for every other call. With `replay` (`StudyPolicy`) every suggestion is compared with what the
    log gives.
    """
    verdict, ledger = Verdict(), Ledger()
    try:
        try:
            store = source if isinstance(source, Store) else SqliteStore(source, read_only=True)
            _read(store, verdict, ledger)
        except CorruptStudyError as error:
            path = getattr(source, "path", None) if isinstance(source, Store) else resolved(source)
            if verdict.events or error.event == 1 or path is None:
                raise
            # SQLite could not read them all at once: at least those before the damage.
            _read(MemoryStore(_beginning(path)), verdict, ledger)
            n = verdict.events
            whole = f"events 1 to {n} are whole, no other can" if n else "no event can"
            raise CorruptStudyError(f"{whole} be read: {error}", n + 1) from error
        if not verdict.events:
            raise CorruptStudyError("event 1 is missing: there is none", 1)
        # After the events: a damaged page says less than which of them is gone.
        if isinstance(store, SqliteStore):
            _check_pages(store)
        # Last, because it takes longest.
        if replay is not None:
            recovered = max((note.event for note in ledger.recoveries), default=0)
            _compare_suggestions(store.entries(0, verdict.events), recovered, replay)
    except CorruptStudyError as error:
        verdict.ok, verdict.message, verdict.first_bad = False, str(error), error.event
    if verdict.ok and ledger.recoveries:
        verdict.message = "every event fits the one before it, but this study is not unbroken"
        verdict.remarks += [note.text for note in ledger.recoveries]
        if replay is not None:
            verdict.remarks.append(
                "suggestions before the last recovery were not compared: they came from results "
                "that may be gone"
            )
    verdict.trials = len(ledger.trials)
    verdict.told = ledger.counts().get(kinds.TOLD, 0)
    verdict.last_told = ledger.order[-1] if ledger.order else None
    return verdict


def _read(store: Store, verdict: Verdict, ledger: Ledger) -> None:
    """As a study does; the verdict knows the events before one that cannot be trusted."""
    before = ""

    def apply(event: Event) -> None:
        nonlocal before
        ledger.apply(event)
        if event.at < before:
            said = f"event {event.number}: the clock went back from {before} to {event.at}"
            verdict.remarks.append(said)
        before = event.at

    log = Log(store, apply)
    try:
        log.catch_up()
    finally:
        verdict.events, verdict.head = log.number, log.hash.hex() if log.number else ""


def _check_pages(store: SqliteStore) -> None:
    try:
        query = "PRAGMA integrity_check(1)"
        (found,) = store.read(lambda connection: connection.execute(query).fetchone())
    except CorruptStudyError as error:
        found = str(error)
    if found != "ok":
        raise CorruptStudyError(f"every event is whole, but the file is not: {found}")


def _compare_suggestions(entries: list[Entry], recovered: int, replay: Replay) -> None:
    """Compare the suggestions after the event that says what was recovered; all are whole."""
    ledger, learner = Ledger(), None
    for entry in entries:
        event = decode(entry.text, entry.number)
        # What was asked before a recovery came from results that may be gone.
        if event.kind == kinds.ASKED and event.number > recovered:
            learner = learner or replay(ledger.settings)
            learner.follow(ledger)
            trial = int(event.data["trial"])
            context = event.data.get("context", {})
            choice = learner.choose(trial, learner.pending(ledger), context)
            if choice.intervention.tolist() != event.data["intervention"]:
                words = f"trial {trial}: replaying the log suggests another intervention"
                raise CorruptStudyError(words, event.number)
        ledger.apply(event)


def backup(source: Store | str | Path, copy: str | Path) -> Verdict:
    """The study as it is at one moment, in a new file; the verdict on the copy."""
    store = source if isinstance(source, Store) else SqliteStore(source, read_only=True)
    if isinstance(store, SqliteStore):
        with new_file(copy) as target:
            store.read(lambda connection: connection.backup(target))
    else:
        SqliteStore.create(copy, store.entries())
    # A backup is looked at when the original is gone; that it is whole must be known before.
    verdict = verify(copy)
    if not verdict.ok:
        resolved(copy).unlink()
        raise StudyError(f"the study is damaged and was not copied: {verdict.message}")
    return verdict


class Rescue(NamedTuple):
    """What `recover` saved, and what it could not."""

    verdict: Verdict  # on the new file
    kept: int
    lost: list[int]  # events of the damaged file
    lost_trials: list[int]
    maybe_told: list[int]  # asked before an event that is gone, and without a result
    broken_links: list[int]  # events whose predecessor is gone
    events_file: str  # every whole event, a line each

    def as_dict(self) -> dict[str, Any]:
        return self._asdict() | {"verdict": self.verdict.as_dict()}


def recover(
    path: str | Path, rescued: str | Path, *, settings_from: str | Path | None = None
) -> Rescue:
    """Copy all whole events of a damaged study into a new file, chained again.

    They are first written to RESCUED.events.jsonl, whatever becomes of the rest. If event 1 is
    gone, which holds all settings, `settings_from` is a backup of the same study that still has it.
    A trial whose beginning is gone keeps its number as `lost`; the last event says what is missing.
    """
    path, rescued = resolved(path), free_path(rescued)
    stated, rows = _readable(path)
    whole = dict(sorted(_whole(rows).items()))
    if not whole:
        raise StudyError(f"nothing can be recovered: no event was found in {path}")
    saved = rescued.with_name(f"{rescued.name}.events.jsonl")
    write_output(saved, "".join(f"{row.text}\n" for row in whole.values()), SAVED, inputs=[path])
    found = {number: decode(row.text, number) for number, row in whole.items()}
    if 1 not in found:
        if settings_from is None:
            raise StudyError(
                f"event 1 of {path}, which holds the names of the nodes and all settings, is gone; "
                f"{len(whole)} other events are whole and written to {saved}. If there is a backup "
                "of this study, take the settings from it (--settings-from BACKUP)"
            )
        found = {1: _first_event(settings_from, rows)} | found
    log = _NewLog()
    # In the order of the damaged log, so that each finds what it refers to if that was saved.
    for event in found.values():
        log.take(event)
    last = max(stated, *whole)
    lost = sorted(set(range(1, last + 1)) - set(log.taken))
    rescue = Rescue(
        Verdict(),
        len(log.taken),
        lost,
        [r.number for r in log.ledger.trials if r.state == kinds.LOST],
        [n for n in log.ledger.pending if lost and log.asked_by[n] < lost[-1]],
        [n for n in whole if n > 1 and n - 1 not in whole],
        str(saved),
    )
    text = _told(rescue, path.name, last)
    if settings_from is not None and 1 not in whole:
        text += f". Event 1 was taken from {Path(settings_from).name}"
    data = {"source": path.name, "text": text, "lost": lost, "broken_links": rescue.broken_links}
    log.write(kinds.RECOVERED, now().isoformat(timespec="milliseconds"), data)
    SqliteStore.create(rescued, log.entries)
    return rescue._replace(verdict=verify(rescued))


class _Row(NamedTuple):
    number: int
    text: str
    hash: bytes
    previous: bytes


def _readable(path: Path) -> tuple[int, list[_Row]]:
    """The number noted as the last, and all that looks like events.

    A copy is read, in which SQLite may undo a write that was cut off. Damage to a page hides the
    rows on that page only, as long as the way to the others is whole; the rest is found by the
    shape of its text, behind which the hashes stand unless the event is too long for one page.
    """
    last, rows = 0, list[Any]()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy.db")
        try:
            content = path.read_bytes()
            copy.write_bytes(SQLITE + content[len(SQLITE) :])  # the first bytes are always the same
            journal = Path(f"{path}-journal")
            if journal.exists():
                Path(f"{copy}-journal").write_bytes(journal.read_bytes())
        except OSError as error:
            raise StudyError(f"cannot read {path}: {error.strerror}") from error
        with suppress(sqlite3.Error, UnicodeDecodeError), closing(connect(copy, "rw")) as opened:
            opened.execute("PRAGMA writable_schema = ON")  # or a file cut short is refused whole
            with suppress(sqlite3.Error, TypeError, ValueError):
                last = int(opened.execute("SELECT number FROM head").fetchone()[0])
            # One query per event: damage ends a query, and one over all would miss the rest.
            for number in range(1, len(content) // MIN_EVENT_BYTES + 2):
                with suppress(sqlite3.Error):
                    query = "SELECT * FROM events WHERE number = ?"
                    rows += opened.execute(query, (number,)).fetchall()
    for start in re.finditer(rb'\{"at":"', content):
        if event := EVENT.match(content, start.start()):
            text, end = event[0].decode("utf-8", "surrogateescape"), event.end()
            hashes = content[end : end + len(ROOT)], content[end + len(ROOT) : end + 2 * len(ROOT)]
            rows.append((int(event[1]), text, *hashes))
    types = [int, str, bytes, bytes]
    good = [_Row(*row) for row in rows if [type(value) for value in row] == types]
    # the note may be damaged, too
    return (last if last <= len(content) // MIN_EVENT_BYTES else 0), good


def _whole(rows: list[_Row]) -> dict[int, _Row]:
    """Rows whose text fits their hash and that of the event before, which is kept twice."""
    before: dict[int, set[bytes]] = {1: {ROOT}}
    for row in rows:
        before.setdefault(row.number + 1, set()).add(row.hash)
    whole: dict[int, _Row] = {}
    for row in rows:
        if row.number not in whole:
            links = {row.previous} | before.get(row.number, set())
            if any(chain(link, row.text) == row.hash for link in links):
                with suppress(CorruptStudyError):
                    decode(row.text, row.number)
                    whole[row.number] = row
    return whole


def _beginning(path: Path) -> list[Entry]:
    """The whole events of a damaged file before the first that is not."""
    whole, found = _whole(_readable(path)[1]), list[Entry]()
    while (row := whole.get(len(found) + 1)) is not None:
        found.append(Entry(*row[:3]))
    return found


def _first_event(backup_file: str | Path, rows: list[_Row]) -> Event:
    """Event 1 of a backup, if the hashes do not say that it is of another study."""
    entries = SqliteStore(backup_file, read_only=True).entries()
    if not entries:
        raise StudyError(f"{backup_file} holds no event")
    hashes = {entry.number: entry.hash for entry in entries}
    shared = [row for row in _whole(rows).values() if row.number in hashes]
    follows = [row.previous for row in rows if row.number == 2]
    if any(row.hash != hashes[row.number] for row in shared) or (
        follows and hashes[1] not in follows
    ):
        raise StudyError(f"{backup_file} is a backup of another study: its events are others")
    return decode(entries[0].text, 1)


class _NewLog:
    """Takes the events that make sense without the lost ones; other results become notes."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.entries: list[Entry] = []
        self.taken: list[int] = []  # their numbers in the damaged file
        self.asked_by: dict[int, int] = {}  # trial -> event of the damaged file

    def take(self, event: Event) -> None:
        key = {kinds.ASKED: "trial", kinds.IMPORTED: "first"}.get(event.kind, "")
        first = event.data.get(key)
        if isinstance(first, int):
            # Trials keep their numbers: results and notes name them, also outside of the study.
            for number in range(len(self.ledger.trials), min(first, MAX_TRIALS)):
                self.write(kinds.LOST, event.at, {"trial": number})
            self.asked_by[first] = event.number
        try:
            self.write(event.kind, event.at, event.data)
        except CorruptStudyError:
            if event.kind != kinds.TOLD:
                return
            text = f"what was executed is lost, what was told is {canonical(event.data)}"
            self.write(kinds.NOTE, event.at, {"text": text})
        self.taken.append(event.number)

    def write(self, kind: str, at: str, data: dict[str, Any]) -> None:
        event = Event(len(self.entries) + 1, kind, at, data)
        self.ledger.apply(event)
        previous = self.entries[-1].hash if self.entries else ROOT
        self.entries.append(entry_of(event, previous))


def _told(rescue: Rescue, name: str, last: int) -> str:
    if not rescue.lost:
        return f"recovered from {name}: none of its {last} events is gone"
    parts = [f"of {last} events {len(rescue.lost)} are gone ({_ranges(rescue.lost)})"]
    if rescue.lost_trials:
        parts.append(f"trials gone: {_ranges(rescue.lost_trials)}")
    if rescue.maybe_told:
        parts.append(f"trials whose result may be gone: {_ranges(rescue.maybe_told)}")
    return f"recovered from {name}, which was damaged: {'; '.join(parts)}"


def _ranges(numbers: Iterable[int]) -> str:
    """
    >>> _ranges([3, 4, 5, 9])
    '3-5, 9'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{a}-{b}" if b > a else str(a) for a, b in runs[:MAX_RANGES]]
    return ", ".join(shown) + (", ..." if len(runs) > MAX_RANGES else "")
