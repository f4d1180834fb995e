"""The log of a store, verified event by event as it is read."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from causalarms.errors import ChangedStudyError, CorruptStudyError
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
        """Read, verify and apply what others wrote; another history than the one known is refused.

        A file may have been replaced by another study, or by an older copy of the same one.
        """
        head, head_hash = self.store.head()
        if head == self.number and (head == 0 or head_hash == self.hash):
            return
        with _no_garbage():
            for entry in self._after_known(head):
                self._take(entry)
                if entry.number == head and entry.hash != head_hash:
                    raise CorruptStudyError(f"event {head} is not the one noted as the last", head)
        if self.number < head:
            missing = self.number + 1
            raise CorruptStudyError(f"event {missing} is missing: {head} were written", missing)

    def _after_known(self, head: int) -> list[Entry]:
        """Events that are new here, once the last known one is still what it was."""
        if not self.number:
            return self.store.entries()
        found = self.store.entries(self.number - 1)
        if not found or (found[0].number, found[0].hash) != (self.number, self.hash):
            raise ChangedStudyError(
                f"the study has another history than the one read here before: event {self.number} "
                + ("is another one" if found else f"is gone, its last one is {head}")
                + ". Its file was replaced; open the study again"
            )
        return found[1:]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Exclusive and up to date; what is written inside is applied once it is on the disk."""
        self.catch_up()  # a large event of others is read before anybody has to wait for it
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

    def write(
        self, kind: str, data: dict[str, Any], encoded: Mapping[str, str] | None = None
    ) -> Event:
        """Append one event, inside `writing`; `encoded` as in `events.encode`."""
        at = self._clock().isoformat(timespec="milliseconds")
        event = Event(self.number + 1, kind, at, data)
        text = encode(event, encoded)
        hash_ = chain(self.hash, text)
        self.store.append(Entry(event.number, text, hash_))
        self.number, self.hash = event.number, hash_
        self._written.append(event)
        return event

    def _take(self, entry: Entry) -> None:
        hash_ = check(entry, self.number, self.hash)
        self._apply(decode(entry.text, entry.number))
        self.number, self.hash = entry.number, hash_


@contextmanager
def _no_garbage() -> Iterator[None]:
    """All that is read is kept: looking for garbage meanwhile would double the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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
