"""The log of a store, verified event by event as it is read."""

from __future__ import annotations

import gc
import sys
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

    def __init__(
        self,
        store: Store,
        apply: Callable[[Event], None],
        clock: Clock = now,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        self.store = store
        self.number = 0  # of the last event applied
        self.hash = ROOT
        self._apply_to_owner = apply
        self._forget = forget  # all that was applied
        self._applying = False
        self._clock = clock
        self._written: list[tuple[Event, bytes]] = []  # in the transaction under way
        self._end = (0, ROOT)  # number and hash of the last of them

    def catch_up(self) -> None:
        """Read, verify and apply what others wrote; another history than the one known is refused.

        A file may have been replaced by another study, or by an older copy of the same one.
        """
        if self._applying:  # Ctrl+C came in between: nobody knows what was applied
            self._forget()
            self.number, self.hash, self._applying = 0, ROOT, False
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

    def writing(self) -> _Writing:
        """Exclusive and up to date; what is written inside is applied once it is on the disk.

        Whoever calls it holds the lock of the store.
        """
        return _Writing(self)

    def write(
        self, kind: str, data: dict[str, Any], encoded: Mapping[str, str] | None = None
    ) -> Event:
        """Append one event, inside `writing`; `encoded` as in `events.encode`."""
        at = self._clock().isoformat(timespec="milliseconds")
        number, previous = self._end
        event = Event(number + 1, kind, at, data)
        text = encode(event, encoded)
        entry = Entry(event.number, text, chain(previous, text))
        self.store.append(entry)
        self._end = (entry.number, entry.hash)
        self._written.append((event, entry.hash))
        return event

    def _take(self, entry: Entry) -> None:
        hash_ = check(entry, self.number, self.hash)
        self._apply(decode(entry.text, entry.number), hash_)

    def _apply(self, event: Event, hash_: bytes) -> None:
        self._applying = True
        try:
            self._apply_to_owner(event)
        except CorruptStudyError:
            self._applying = False  # refused as a whole
            raise
        self.number, self.hash = event.number, hash_
        self._applying = False


class _Writing:
    """A class, not a generator: Ctrl+C between the last line of a generator and the block would
    leave the file locked for as long as somebody keeps the traceback."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._transaction = log.store.writing()

    def __enter__(self) -> None:
        log = self._log
        log.catch_up()  # a large event of others is read before anybody has to wait for it
        try:
            self._transaction.__enter__()
            log.catch_up()
            log._written, log._end = [], (log.number, log.hash)
        except BaseException:
            self._transaction.__exit__(*sys.exc_info())
            raise

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        try:
            self._transaction.__exit__(kind, *rest)
        except BaseException:  # Ctrl+C may have come before its first line
            self._transaction.__exit__(*sys.exc_info())
            raise
        log = self._log
        if kind is None:
            for event, hash_ in log._written:
                log._apply(event, hash_)


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
