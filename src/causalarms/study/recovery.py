"""Save what is whole of a damaged study: events on both sides of the damage, and what is gone.

An event is whole when its hash fits its text and the hash of the event before it, which the file
keeps twice (beside that event and, since version 2, beside this one). Whole events are written to a
new file in their order and chained anew, so that the first broken link is also the last event that
keeps its old hash. Trials whose beginning is gone keep their number as `lost`; the last event says
what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from causalarms.errors import CorruptStudyError, StudyError
from causalarms.study import events
from causalarms.study.carving import Candidate, candidates, stated_end
from causalarms.study.events import ROOT, Event, canonical, chain, decode, encode
from causalarms.study.log import now
from causalarms.study.sqlite_file import create_file
from causalarms.study.store import Entry
from causalarms.study.trials import Ledger
from causalarms.study.verification import Verdict, verify_file


class Whole(NamedTuple):
    """An event that was kept."""

    event: Event
    linked: bool  # to the event before it, which is there, too
    proven: bool  # its text fits its hash


class Rescue(NamedTuple):
    """What `recover` saved, and what it could not."""

    verdict: Verdict  # on the new file
    kept: int
    lost: list[int]  # events of the damaged file
    lost_trials: list[int]
    maybe_told: list[int]  # asked before an event that is gone, and without a result
    broken_links: list[int]  # events whose predecessor is gone or another one
    unproven: list[int]  # kept, but nothing is left to check them by

    def as_dict(self) -> dict[str, Any]:
        return self._asdict() | {"verdict": self.verdict.as_dict()}


def recover(path: str | Path, rescued: str | Path) -> Rescue:
    """Copy all whole events of a damaged study into a new file."""
    path = Path(path)
    try:
        found = candidates(path)
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}") from error
    whole = _whole(found)
    if not whole:
        raise StudyError(f"nothing can be recovered: no event was found in {path}")
    if 1 not in whole:
        raise StudyError(
            f"nothing can be recovered: event 1 of {path}, which holds the names of the nodes and "
            f"all settings, is gone; {len(whole)} other events are whole"
        )
    last = max(stated_end(path), *whole)
    log = _Log()
    for number in sorted(whole):
        log.take(whole[number].event)
    lost = sorted((set(range(1, last + 1)) - set(whole)) | set(log.refused))
    first_lost = min(lost, default=last + 1)
    rescue = Rescue(
        Verdict(),
        len(whole) - len(log.refused),
        lost,
        sorted(r.number for r in log.ledger.trials if r.state == events.LOST),
        [n for n in log.ledger.pending if lost and log.asked_by[n] < max(lost)],
        [n for n in sorted(whole) if not whole[n].linked],
        [n for n in sorted(whole) if not whole[n].proven],
    )
    log.write(
        events.RECOVERED,
        now().isoformat(timespec="milliseconds"),
        {
            "source": path.name,
            "text": _text(rescue, path.name, first_lost, last),
            "lost": lost,
            "broken_links": rescue.broken_links,
            "unproven": rescue.unproven,
        },
    )
    create_file(Path(rescued), log.entries)
    return rescue._replace(verdict=verify_file(rescued))


def _whole(found: Iterable[Candidate]) -> dict[int, Whole]:
    """The events that can be trusted, by number."""
    by_number: dict[int, list[Candidate]] = {}
    for candidate in found:
        by_number.setdefault(candidate.number, []).append(candidate)
    whole: dict[int, Whole] = {}
    hashes: dict[int, bytes] = {0: ROOT}  # of the events kept
    for number in sorted(by_number):
        before = {c.hash for c in by_number.get(number - 1, ())} | (
            {ROOT} if number == 1 else set()
        )
        options = [_judged(c, before, hashes.get(number - 1)) for c in by_number[number]]
        good = [(w, c) for w, c in zip(options, by_number[number], strict=True) if w is not None]
        if good:
            best, candidate = max(good, key=lambda pair: (pair[0].linked, pair[0].proven))
            whole[number], hashes[number] = best, candidate.hash
    return whole


def _judged(candidate: Candidate, before: set[bytes], kept: bytes | None) -> Whole | None:
    number, text, hash_, previous = candidate
    try:
        event = decode(text, number)
    except CorruptStudyError:
        return None
    links = {p for p in before | {previous} if chain(p, text) == hash_}
    if links:
        return Whole(event, kept in links, True)
    if before or canonical(event._asdict()) != text:
        return None  # something was changed
    return Whole(event, False, False)


class _Log:
    """The new log; events that make no sense without a lost one are set aside or kept as notes."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.entries: list[Entry] = []
        self.refused: list[int] = []
        self.asked_by: dict[int, int] = {}  # trial -> the event of the damaged file
        self._hash = ROOT

    def take(self, event: Event) -> None:
        trial = event.data.get("trial")
        first = trial if event.kind == events.ASKED else event.data.get("first")
        if event.kind in (events.ASKED, events.IMPORTED) and isinstance(first, int):
            for number in range(len(self.ledger.trials), min(first, 10**7)):
                self.write(events.LOST, event.at, {"trial": number})
        if event.kind == events.ASKED and isinstance(trial, int):
            self.asked_by[trial] = event.number
        try:
            self.write(event.kind, event.at, event.data)
        except CorruptStudyError:
            if event.kind == events.TOLD:
                text = f"trial {trial} was told {canonical(event.data.get('values'))}; what was "
                self.write(events.NOTE, event.at, {"text": text + "played in it is lost"})
            else:
                self.refused.append(event.number)

    def write(self, kind: str, at: str, data: dict[str, Any]) -> None:
        event = Event(len(self.entries) + 1, kind, at, data)
        self.ledger.apply(event)
        text = encode(event)
        self._hash = chain(self._hash, text)
        self.entries.append(Entry(event.number, text, self._hash))


def _text(rescue: Rescue, name: str, first_lost: int, last: int) -> str:
    if not rescue.lost:
        return f"recovered from {name}: none of its {last} events is gone"
    parts = [f"recovered from {name}, which was damaged: of {last} events {len(rescue.lost)} are "]
    parts.append(f"gone ({_ranges(rescue.lost)})")
    if rescue.lost_trials:
        parts.append(f"; trials gone: {_ranges(rescue.lost_trials)}")
    if rescue.maybe_told:
        parts.append(f"; trials whose result may be gone: {_ranges(rescue.maybe_told)}")
    if rescue.unproven:
        parts.append(f"; kept, but nothing is left to check them by: {_ranges(rescue.unproven)}")
    parts.append(f". Nothing before event {first_lost} is touched")
    return "".join(parts)


def _ranges(numbers: list[int]) -> str:
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
    shown = [f"{a}-{b}" if b > a else str(a) for a, b in runs[:50]]
    return ", ".join(shown) + (", ..." if len(runs) > 50 else "")
