"""Locks on a study's file that only their owner can lose.

SQLite locks with POSIX record locks. Those belong to the process: closing *any* handle of the file
(a copy, a backup, `open(path).read()` in another thread) drops them all, and a forked child never
had them. The locks here belong to one open file description: nothing else releases them but their
owner, or the end of every process that holds a copy of it. Two bytes far beyond the end of the file
are locked, one for each purpose:

WRITER   held by whoever is writing, from reading the log until its events are safe
CONTENT  shared while pages are read, exclusive for the moment in which they change

Where the system has no such locks (they are Linux's), SQLite's own ones have to do.
"""

from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path

from causalarms.errors import StudyBusyError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, whose own locks are not lost that way
    SUPPORTED = False
else:
    SUPPORTED = hasattr(fcntl, "F_OFD_SETLK")

WRITER, CONTENT = 2**62, 2**62 + 1  # SQLite's own locks are at 2^30
PATIENCE = 60.0  # seconds to wait for others
LONGEST_NAP = 0.004
FLOCK = "hhqqi4x"  # struct flock: type, whence, start, length, process


class FileLocks:
    """The locks of one open file; `close` gives them up."""

    def __init__(self, path: Path, *, write: bool) -> None:
        self.path = path
        self._process = os.getpid()
        self._held: list[int] = []
        self._file = os.open(
            path, (os.O_RDWR if write else os.O_RDONLY) | getattr(os, "O_CLOEXEC", 0)
        )

    def same_file(self) -> bool:
        """Whether the path still leads to the file that is locked."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def take(self, place: int, *, exclusive: bool) -> None:
        """Wait for a lock; StudyBusyError after `PATIENCE` seconds."""
        if not SUPPORTED:
            return
        deadline = time.monotonic() + PATIENCE
        kind = fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK
        nap = LONGEST_NAP / 16
        while not self._try(kind, place):
            if time.monotonic() > deadline:
                raise StudyBusyError(f"{self.path} is locked by another process")
            time.sleep(nap * random.random())  # chance in time, not in results
            nap = min(2 * nap, LONGEST_NAP)
        self._held.append(place)

    def release(self, place: int) -> None:
        if place in self._held:
            self._held.remove(place)
            self._try(fcntl.F_UNLCK, place)

    def close(self) -> None:
        """A forked child that unwinds its parent's work must not release its parent's locks."""
        if self._process == os.getpid():
            for place in list(self._held):
                self.release(place)
        os.close(self._file)

    def _try(self, kind: int, place: int) -> bool:
        request = struct.pack(FLOCK, kind, os.SEEK_SET, place, 1, 0)
        try:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, request)
        except (BlockingIOError, PermissionError):
            return False
        return True
