"""What a store of events is: an append-only list with exclusive writing, and one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol

from causalarms.errors import StudyError
from causalarms.study.forks import ForkSafeLock


class Entry(NamedTuple):
    """A stored event, not yet trusted."""

    number: int
    text: str
    hash: bytes


class Snapshot(NamedTuple):
    """A policy's state after event `number`, whose hash it carries."""

    number: int
    hash: bytes
    state: bytes
    digest: bytes


class Store(Protocol):
    """A reader sees whole transactions; `writing` holds all other writers off.

    `lock` lets the threads of this process take turns; every method takes it by itself.
    """

    read_only: bool
    lock: ForkSafeLock

    def entries(self, after: int = 0, limit: int = -1) -> list[Entry]:
        """Events with a number above `after`, ascending; at most `limit` unless it is negative."""

    def head(self) -> tuple[int, bytes]:
        """Number and hash of the last event as noted beside the log; (0, b"") where empty."""

    def writing(self) -> AbstractContextManager[None]:
        """A transaction: all that is appended inside is kept, or none where an error leaves it."""

    def append(self, entry: Entry) -> None:
        """Only inside `writing`."""

    def snapshot(self) -> Snapshot | None:
        """The newest snapshot."""

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Replace the snapshot, only inside `writing`."""

    def drop_snapshot(self) -> None:
        """Be without one; the log is replayed instead."""

    def close(self) -> None:
        """No further use."""


class MemoryStore:
    """A study that ends with the process."""

    def __init__(self) -> None:
        self.read_only = False
        self._entries: list[Entry] = []
        self._snapshot: Snapshot | None = None
        self.lock = ForkSafeLock("the study in memory")
        self._writing = False

    def entries(self, after: int = 0, limit: int = -1) -> list[Entry]:
        self.lock.check()
        with self.lock:
            return self._entries[after : None if limit < 0 else after + limit]

    def head(self) -> tuple[int, bytes]:
        self.lock.check()
        with self.lock:
            return (len(self._entries), self._entries[-1].hash) if self._entries else (0, b"")

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self.lock:
            before, snapshot = len(self._entries), self._snapshot
            self._writing = True
            try:
                yield
            except BaseException:
                del self._entries[before:]
                self._snapshot = snapshot
                raise
            finally:
                self._writing = False

    def append(self, entry: Entry) -> None:
        if not self._writing:
            raise StudyError("events are appended inside a transaction only")
        if entry.number != len(self._entries) + 1:
            raise StudyError(f"event {entry.number} cannot follow event {len(self._entries)}")
        self._entries.append(entry)

    def snapshot(self) -> Snapshot | None:
        return self._snapshot

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        if not self._writing:
            raise StudyError("a snapshot is kept inside a transaction only")
        self._snapshot = snapshot

    def drop_snapshot(self) -> None:
        self._snapshot = None

    def close(self) -> None:
        pass
