"""The log of a store, verified event by event as it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from causalarms.errors import CorruptStudyError
from causalarms.study.events import ROOT, Event, chain, decode, encode
from causalarms.study.store import Entry, Store

Clock = Callable[[], datetime]


def now() -> datetime:
    return datetime.now(UTC)


class Log:
    """Hands every event to `apply` exactly once and in order, whoever wrote it."""

    def __init__(self, store: Store, apply: Callable[[Event], None], clock: Clock = now) -> None:
        self.store = store
        self.number = 0  # of the last event applied
        self.hash = ROOT
        self._apply = apply
        self._clock = clock

    def catch_up(self) -> None:
        """Read, verify and apply what others wrote."""
        head, head_hash = self.store.head()
        if head == self.number and (head == 0 or head_hash == self.hash):
            return
        for entry in self.store.entries(self.number):
            self._take(entry)
            if entry.number == head and entry.hash != head_hash:
                raise CorruptStudyError(f"event {head} is not the one noted as the last", head)
        if self.number < head:
            missing = self.number + 1
            raise CorruptStudyError(f"event {missing} is missing: {head} were written", missing)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Exclusive and up to date; what is written inside is applied once it is on the disk."""
        with self.store.writing():
            self.catch_up()
            before = (self.number, self.hash)
            self._written: list[Event] = []
            try:
                yield
            except BaseException:
                self.number, self.hash = before
                raise
            written = self._written
            after = (self.number, self.hash)
            self.number, self.hash = before  # until the transaction has ended well
        self.number, self.hash = after
        for event in written:
            self._apply(event)

    def write(self, kind: str, data: dict[str, Any]) -> Event:
        """Append one event, inside `writing`."""
        at = self._clock().isoformat(timespec="milliseconds")
        event = Event(self.number + 1, kind, at, data)
        text = encode(event)
        hash_ = chain(self.hash, text)
        self.store.append(Entry(event.number, text, hash_))
        self.number, self.hash = event.number, hash_
        self._written.append(event)
        return event

    def _take(self, entry: Entry) -> None:
        hash_ = check(entry, self.number, self.hash)
        self._apply(decode(entry.text, entry.number))
        self.number, self.hash = entry.number, hash_


def check(entry: Entry, last: int, previous: bytes) -> bytes:
    """The hash of an entry that follows event `last`, or an error that names it."""
    if entry.number != last + 1:
        raise CorruptStudyError(
            f"event {last + 1} is missing: event {entry.number} follows event {last}", last + 1
        )
    if chain(previous, entry.text) != entry.hash:
        raise CorruptStudyError(
            f"event {entry.number} is damaged: its hash does not fit its text", entry.number
        )
    return entry.hash
