"""A study in one SQLite file, and SQLite is trusted with it.

Transactions, undoing a write that was cut off, noticing a broken page: all that is SQLite's. Ours
is what its authors leave to the program (sqlite.org/howtocorrupt.html):

- One name per file, because the journal lies next to the name: symbolic links are followed once,
  and a file with a second hard link is refused.
- No connection outlives a call. So a fork inherits none, and a file that was moved away or replaced
  is noticed by the next call, which opens the path again and finds another history (log.py).
- Locks that closing another handle of the file does not drop (`FileLocks`).

The journal is SQLite's default (DELETE): between writes everything is in one file.
"""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import stat
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from causalarms.errors import (
    ChangedStudyError,
    CorruptStudyError,
    DiskFullError,
    StudyBusyError,
    StudyError,
    StudyFileError,
)
from causalarms.files import refuse_neighbour
from causalarms.study.store import ROOT, Entry, Store

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, whose own locks are not lost that way
    OWN_LOCKS = False
else:
    OWN_LOCKS = hasattr(fcntl, "F_OFD_SETLK")  # of Linux; elsewhere SQLite's locks have to do

APPLICATION_ID = 0x63617573  # "caus"
VERSION = 1  # of the tables
JOURNAL_VERSION_BYTE, WRITE_AHEAD = 18, b"\2"  # of SQLite's file format, section 1.3.3
WHOSE_FILE = (
    "SELECT application_id, user_version,"
    " EXISTS (SELECT 1 FROM sqlite_schema WHERE type IN ('trigger', 'view'))"
    " FROM pragma_application_id, pragma_user_version"
)
TABLES = (
    "CREATE TABLE events (number INTEGER PRIMARY KEY, text TEXT NOT NULL, hash BLOB NOT NULL,"
    " previous BLOB)",
    "CREATE TABLE head (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER, hash BLOB)",
    f"INSERT INTO head VALUES (1, 0, x'{ROOT.hex()}')",
)
LOCKED = "is locked by another process: try again when that is done"
MEANING: dict[int, tuple[type[StudyError], str]] = {  # of SQLite's error codes
    sqlite3.SQLITE_BUSY: (StudyBusyError, LOCKED),
    sqlite3.SQLITE_FULL: (DiskFullError, "cannot grow: the disk is full; nothing was written"),
    sqlite3.SQLITE_NOTADB: (
        StudyFileError,
        "is not a study; if it was one, `causalarms study recover` finds what is left of it",
    ),
    sqlite3.SQLITE_CORRUPT: (CorruptStudyError, "is damaged"),
    # Our statements are always the same: one that fails finds tables that are not ours.
    sqlite3.SQLITE_ERROR: (CorruptStudyError, "is damaged"),
    sqlite3.SQLITE_READONLY: (StudyFileError, "cannot be written: Read-only file or folder"),
    sqlite3.SQLITE_READONLY_ROLLBACK: (
        StudyFileError,
        "has a write that was cut off; somebody who may write to it must open it first",
    ),
}
WAIT_SECONDS = 60.0  # for other processes
LONGEST_NAP_SECONDS = 0.004  # between two looks at a lock
WRITER, CONTENT = 2**62, 2**62 + 1  # locked bytes, beyond every file; SQLite's own are at 2^30


class FileLocks:
    """Locks on an open file that only their owner can lose.

    SQLite's locks belong to the process: closing *any* handle of the file (a copy, `open(path)` in
    another thread) drops them all. These belong to one open file description.

    WRITER   held by the one that writes, from reading the log until its events are safe
    CONTENT  shared while pages are read, exclusive for the moment in which they change
    """

    def __init__(self, path: Path, mode: Literal["rb", "r+b", "x+b"]) -> None:
        self._process = os.getpid()
        self.file = path.open(mode, buffering=0)  # closes itself if nobody comes to do it

    def take(self, place: int, *, exclusive: bool) -> None:
        """Wait for a lock; StudyBusyError after `WAIT_SECONDS`."""
        if not OWN_LOCKS:
            return
        deadline, nap = time.monotonic() + WAIT_SECONDS, LONGEST_NAP_SECONDS / 16
        while not self._set(fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK, place):
            if time.monotonic() > deadline:
                raise StudyBusyError(f"{self.file.name} {LOCKED}")
            time.sleep(nap * random.random())  # chance in time, not in results
            nap = min(2 * nap, LONGEST_NAP_SECONDS)

    def release(self, *places: int) -> None:
        for place in places if OWN_LOCKS else ():
            self._set(fcntl.F_UNLCK, place)

    def close(self) -> None:
        """A forked child that unwinds its parent's work must not release its parent's locks."""
        # Closing is not enough: a child that was forked meanwhile holds the same description open.
        # It is closed already if Ctrl+C came just after that and the transaction ends once more.
        if self._process == os.getpid() and not self.file.closed:
            self.release(CONTENT, WRITER)
        self.file.close()

    def _set(self, kind: int, place: int) -> bool:
        # struct flock: type, whence, start, length, process
        request = struct.pack("hhqqi4x", kind, os.SEEK_SET, place, 1, 0)
        try:
            return bool(fcntl.fcntl(self.file.fileno(), fcntl.F_OFD_SETLK, request))
        except (BlockingIOError, PermissionError):
            return False


class SqliteStore(Store):
    """Several processes and threads may use one file; readers wait only while pages change."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = resolved(path)
        super().__init__(str(self.path))
        self._read_only = read_only
        self._writer: sqlite3.Connection | None = None  # of the transaction under way
        self._locks: FileLocks | None = None  # its locks
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):  # opening a pipe would wait for ever
                raise OSError(errno.EISDIR, "it is a folder or a device")
        except OSError as error:
            raise StudyFileError(f"there is no study {self.path}: {error.strerror}") from error
        self.read(lambda connection: None)  # refuses what is not a study

    @classmethod
    def create(cls, path: str | Path, entries: Sequence[Entry] = ()) -> Self:
        """A new file with these events, in one transaction; a kill may leave it empty."""
        with new_file(path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
            connection.execute(f"PRAGMA user_version = {VERSION:d}")
            for statement in TABLES:
                connection.execute(statement)
            _insert(connection, entries)
            connection.execute("COMMIT")
        return cls(path)

    def entries(self, after: int = 0, limit: int = -1) -> list[Entry]:
        # Of these types whatever a damaged file holds: the hash tells what is wrong with them.
        columns = "number, CAST(ifnull(text, '') AS TEXT), CAST(ifnull(hash, '') AS BLOB)"
        query = f"SELECT {columns} FROM events WHERE number > ? ORDER BY number LIMIT ?"
        rows = self.read(lambda c: c.execute(query, (after, limit)).fetchall())
        return [Entry(*row) for row in rows]

    def head(self) -> tuple[int, bytes]:
        query = "SELECT number, hash FROM head"
        found: tuple[int, bytes] = self.read(lambda c: c.execute(query).fetchone())
        if not found or [type(value) for value in found] != [int, bytes]:
            raise CorruptStudyError(f"{self.path}: the note of the last event is damaged")
        return found

    def begin(self) -> None:
        if self._read_only:
            raise StudyError(f"{self.path} was opened for reading only")
        with self.lock, explained(self.path, "written"):
            self._hold_off_writers()

    def end(self) -> None:
        """Closing a connection undoes what it has not committed.

        A forked child keeps it open: it would undo the work of its parent.
        """
        if self._process != os.getpid():
            return
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            self._writer = None
            if self._locks is not None:
                self._locks.close()
                self._locks = None

    def read(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Do `work` with the connection of the transaction under way, or with one of its own."""
        with self.lock, explained(self.path, "read"):
            if self._writer is not None:
                return work(self._writer)
            try:
                with closing(FileLocks(self.path, "rb")) as locks:
                    locks.take(CONTENT, exclusive=False)
                    with closing(self._connection("ro", locks)) as connection:
                        return work(connection)
            except sqlite3.OperationalError as error:
                cut_off = error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK
                if not cut_off or not os.access(self.path, os.W_OK):
                    raise
            try:
                return work(self._hold_off_writers())  # which undoes what was cut off
            finally:
                self.end()

    def _hold_off_writers(self) -> sqlite3.Connection:
        self.end()  # Ctrl+C may have come before the end of the last transaction
        self._locks = locks = FileLocks(self.path, "r+b")
        locks.take(WRITER, exclusive=True)
        if Path(f"{self.path}-journal").exists():
            # SQLite undoes a write that was cut off at its first look; nobody may read meanwhile.
            locks.take(CONTENT, exclusive=True)
        self._writer = connection = self._connection("rw", locks)
        # FULL would not sync the folder: after a power cut the journal could be back and undo a
        # commit that was acknowledged.
        connection.execute("PRAGMA synchronous = EXTRA")
        # SQLite's default, said here because another program may have changed it.
        connection.execute("PRAGMA journal_mode = DELETE")
        # Before the log is read: what is decided from it must still be true when written.
        connection.execute("BEGIN IMMEDIATE")
        locks.release(CONTENT)
        return connection

    def commit(self, entries: Sequence[Entry]) -> None:
        locks, connection = self._locks, self._writer
        if locks is None or connection is None:
            raise StudyError("events are appended inside a transaction only")
        with explained(self.path, "written"):
            # Only now: readers need not wait while somebody decides what to write.
            locks.take(CONTENT, exclusive=True)
            _insert(connection, entries)
            connection.execute("COMMIT")
            self._writer = None
            connection.close()
            # What was written must be there for everybody who opens the path from now on. A new
            # connection: the old one would read its own file even if that was deleted.
            with closing(self._connection("ro", locks)) as connection:
                query = "SELECT events.hash, head.hash FROM events, head WHERE events.number = ?"
                found = connection.execute(query, (entries[-1].number,)).fetchone()
        if found != (entries[-1].hash, entries[-1].hash):
            raise ChangedStudyError(
                f"what was written to {self.path} cannot be read back from it: the file was "
                "replaced or is being written by another program"
            )

    def _connection(self, mode: str, locks: FileLocks) -> sqlite3.Connection:
        """A connection to the very file that is locked, and that is a study."""
        connection = connect(self.path, mode)
        try:
            _check_study(connection, self.path, locks)
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def new_file(path: str | Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file that was not there; the file goes again if an error leaves this.

    The file has its name from the beginning: a draft under another name would have to be linked to
    it, and a kill would leave two names.
    """
    path = free_path(path)
    if not path.parent.is_dir():  # a typing error would make folders
        raise StudyFileError(f"cannot create {path}: there is no folder {path.parent}")
    try:
        locks = FileLocks(path, "x+b")
    except OSError as error:
        raise StudyFileError(f"cannot create {path}: {error.strerror}") from error
    try:
        with closing(locks), explained(path, "written"):
            locks.take(CONTENT, exclusive=True)  # who opens it waits
            with closing(connect(path, "rw")) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")
                yield connection
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def resolved(given: str | Path) -> Path:
    """Where the file really is: SQLite's journal must lie next to it, not next to a link."""
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise StudyError(f"the path of a study must be text or a Path, got {given!r:.80}")
    text = os.fspath(given)
    if not text or "\0" in text:
        what = "it is empty" if not text else "it holds a NUL character"
        raise StudyError(f"{text!r:.80} cannot be the path of a study: {what}")
    return Path(os.path.realpath(text))


def free_path(given: str | Path) -> Path:
    """The path of a file that is to be made; StudyError if it cannot be."""
    path = resolved(given)
    if os.path.lexists(given):  # a link that leads nowhere, too
        if path.is_dir():
            raise StudyError(f"{path} is a folder: give the name of a new file")
        raise StudyError(f"{path} exists already; open it, or choose another name")
    refuse_neighbour(Path(given))
    for left in (f"{path}-journal", f"{path}-wal"):
        if os.path.lexists(left):
            raise StudyError(
                f"{left} was left by a study that is gone and would be taken for part of the new "
                "one: move it away first"
            )
    return path


def connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=WAIT_SECONDS,  # for programs that know only SQLite's own locks
        isolation_level=None,  # transactions are begun by hand
        check_same_thread=False,  # a store has its own lock
    )
    # damaged text is found by its hash, which then also names the event
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
    return connection


@contextmanager
def explained(path: Path, doing: Literal["read", "written"]) -> Iterator[None]:
    """Errors of SQLite and of the system as ours."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError) as error:
        what = "gone" if isinstance(error, FileNotFoundError) else "a folder now"
        raise ChangedStudyError(
            f"{path} is {what}: put the file of the study back, or open it where it is now"
        ) from None
    except OSError as error:
        raise StudyFileError(f"{path} cannot be {doing}: {error.strerror}") from error
    except UnicodeDecodeError as error:  # a message of SQLite that quotes damaged bytes
        raise CorruptStudyError(f"{path} is damaged") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_INTERNAL)
        other = MEANING.get(code & 0xFF, (StudyFileError, f"cannot be {doing}"))
        kind, meaning = MEANING.get(code, other)
        raise kind(f"{path} {meaning} ({error})") from error


def _check_study(connection: sqlite3.Connection, path: Path, locks: FileLocks) -> None:
    """Refuse a path that does not lead to a study alone, the one that is locked."""
    # Before SQLite reads anything, which a log or a journal of another file would change.
    found = path.stat()
    if not os.path.samestat(found, os.fstat(locks.file.fileno())):
        raise ChangedStudyError(f"{path} was replaced by another file: open the study again")
    if found.st_nlink > 1:
        raise StudyFileError(
            f"{path} has a second name (a hard link), under which SQLite would not find what a "
            "crash leaves next to this one: remove one of the names, or use a copy"
        )
    if found.st_size == 0:
        raise ChangedStudyError(
            f"{path} is empty: somebody emptied it, or its creation was interrupted; remove it "
            "(and its -journal if there is one), or go back to a backup"
        )
    locks.file.seek(JOURNAL_VERSION_BYTE)
    if locks.file.read(1) == WRITE_AHEAD:
        # SQLite's first look would make a -wal and a -shm next to it.
        raise ChangedStudyError(
            f"{path} was switched to write-ahead logging by another program: close that, and "
            f"switch it back by `sqlite3 {path} 'PRAGMA journal_mode = DELETE'`"
        )
    if Path(f"{path}-wal").exists():
        raise ChangedStudyError(f"{path}-wal does not belong to this study: move it away")
    # In one statement: SQLite locks and reads the file once, and every call makes a connection.
    program, version, strange = connection.execute(WHOSE_FILE).fetchone()
    if program != APPLICATION_ID:
        raise StudyFileError(f"{path} is a file of another program: give the file of a study")
    if version != VERSION:
        raise StudyFileError(
            f"{path} was written by another causalarms (file version {version}, this one reads "
            f"{VERSION}): use the package that wrote it"
        )
    if strange:
        raise CorruptStudyError(f"{path} holds triggers or views, which no study has")


def _insert(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    """Append and note the last, in the transaction under way."""
    number, previous = connection.execute("SELECT number, hash FROM head").fetchone()
    for entry in entries:
        if entry.number != number + 1:
            raise StudyError(f"event {entry.number} cannot follow event {number}")
        # The hash before it stands next to every event: each can be checked without its neighbour.
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (*entry, previous))
        number, _, previous = entry
    connection.execute("UPDATE head SET number = ?, hash = ?", (number, previous))
