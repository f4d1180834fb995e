"""Forks and studies: no call on a study is cut in two by a fork.

A fork copies memory in the middle of whatever other threads do: locks stay locked for ever in the
child, half-written state stays half-written. So a fork waits until no other thread is inside a
store, and the child goes on with whole state. Between calls a store has nothing open that a child
could inherit.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from weakref import WeakSet

from causalarms.errors import StudyError

PATIENCE = 10.0  # seconds a fork waits for other threads to finish their calls

_everybody: WeakSet[ForkSafeLock] = WeakSet()
_guard = threading.RLock()  # of the set, and one fork at a time


class ForkSafeLock:
    """A re-entrant lock of threads; in a child forked inside a call the object is refused."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._lock = threading.RLock()
        self._depth = 0  # calls under way, of the thread that holds the lock
        self._waited = False  # whether the fork under way got the lock
        self._torn = False
        with _guard:
            _everybody.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._depth -= 1
        self._lock.release()

    def check(self) -> None:
        if self._torn:
            raise StudyError(
                f"{self.what} was in use when this process was forked from its parent: open the "
                "study again here"
            )

    def before_fork(self) -> None:
        self._waited = self._lock.acquire(timeout=PATIENCE)

    def after_fork_in_parent(self) -> None:
        if self._waited:
            self._lock.release()

    def after_fork_in_child(self) -> None:
        if not self._waited or self._depth:
            self._torn = True
        if self._waited:
            self._lock.release()
        else:
            self._lock = threading.RLock()


def _before() -> None:
    _guard.acquire()
    for lock in list(_everybody):
        lock.before_fork()


def _in_parent() -> None:
    for lock in list(_everybody):
        lock.after_fork_in_parent()
    _guard.release()


def _in_child() -> None:
    for lock in list(_everybody):
        lock.after_fork_in_child()
    _guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
