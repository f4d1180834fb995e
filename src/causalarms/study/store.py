"""Where the events of a study are: an append-only list with one writer at a time.

In memory here, or durable in one SQLite file (`sqlite.py`).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakSet

from causalarms.errors import StudyError

ROOT = hashlib.sha256(b"causalarms study 1").digest()  # what the first event is chained to
FORK_WAIT_SECONDS = 10.0  # that a fork waits for the calls of other threads to end


class Entry(NamedTuple):
    """A stored event, not yet trusted."""

    number: int
    text: str
    hash: bytes


class Store:
    """Events of one study; a reader sees whole transactions.

    Threads take turns by `lock`; a child that inherited the object by a fork is refused. A fork
    copies memory in the middle of what other threads do, and SQLite keeps a list of the locks of
    its process, which is wrong in a child. So a fork waits for the calls of other threads, and the
    child opens the study again.
    """

    def __init__(self, name: str) -> None:
        self.name = name  # in messages
        self._process, self._closed = os.getpid(), False
        # Always used by `with`: this lock is entered in one step. An `__enter__` written in Python
        # can be interrupted by Ctrl+C after it has locked, and nobody would unlock it.
        self._turns = threading.RLock()
        with _registry_lock:
            _stores.add(self)

    @property
    def lock(self) -> threading.RLock:
        """The lock of this process's threads; a transaction holds it from `begin` to `end`."""
        if os.getpid() != self._process:
            raise StudyError(f"{self.name} was opened before a fork: open it again in the child")
        if self._closed:
            raise StudyError(f"{self.name} was closed: open it again")
        return self._turns

    def entries(self, after: int = 0, limit: int = -1) -> list[Entry]:
        """Events with a number above `after`, ascending; at most `limit` unless it is negative."""
        raise NotImplementedError

    def head(self) -> tuple[int, bytes]:
        """Number and hash of the last event as noted next to the log; (0, ROOT) if it is empty."""
        raise NotImplementedError

    def begin(self) -> None:
        """Hold off all other writers until `end`, which follows even if this fails."""

    def commit(self, entries: Sequence[Entry]) -> None:
        """Append all of these (at least one) between `begin` and `end`; nothing if this fails."""
        raise NotImplementedError

    def end(self) -> None:
        """Let others write; twice does no harm."""

    def close(self) -> None:
        """Refuse all further use."""
        self._closed = True


_registry_lock = threading.RLock()  # of the set, and one fork at a time
_stores: WeakSet[Store] = WeakSet()
_held: list[threading.RLock] = []  # by the fork under way
_inherited: list[Store] = []  # kept: destroying a connection here would undo its parent's work


def _before_fork() -> None:
    _registry_lock.acquire()
    for store in list(_stores):
        if store._turns.acquire(timeout=FORK_WAIT_SECONDS):
            _held.append(store._turns)


def _after_fork() -> None:
    while _held:
        _held.pop().release()
    _registry_lock.release()


def _after_fork_in_child() -> None:
    _inherited.extend(_stores)
    _stores.clear()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )


class MemoryStore(Store):
    """A study that ends with the process; no other process knows it, so the lock is enough."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        super().__init__("the study in memory")
        self._entries = list(entries)

    def entries(self, after: int = 0, limit: int = -1) -> list[Entry]:
        with self.lock:
            return self._entries[after : None if limit < 0 else after + limit]

    def head(self) -> tuple[int, bytes]:
        with self.lock:
            return len(self._entries), self._entries[-1].hash if self._entries else ROOT

    def commit(self, entries: Sequence[Entry]) -> None:
        self._entries += entries

    def close(self) -> None:
        """It stays: what is only in memory could not be opened again."""
