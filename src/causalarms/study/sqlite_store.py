"""The durable store: one SQLite file, every commit on the disk and read back before it returns.

Nothing stays open between two calls: each opens the file by its path, under locks of its own
(file_locks.py). So a fork, a second handle or a file that was moved away, replaced or written over
cannot leave a store with a connection that writes into the void. Writes go through SQLite's
rollback journal: when a commit has returned everything is in the one file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from causalarms.errors import (
    ChangedStudyError,
    CorruptStudyError,
    DiskFullError,
    StudyBusyError,
    StudyError,
)
from causalarms.study import leftovers, sqlite_file, upgrade
from causalarms.study.file_locks import CONTENT, WRITER, FileLocks
from causalarms.study.forks import ForkSafeLock
from causalarms.study.store import Entry, Snapshot

LEFT_OPEN: list[object] = []  # connections that a forked child must neither use nor close


class SqliteStore:
    """Several processes and threads may have the same file open; readers hardly ever wait."""

    def __init__(self, path: str | Path, *, read_only: bool = False):
        self.path = Path(path).absolute()
        self.read_only = read_only
        self.lock = ForkSafeLock(str(self.path))
        self._closed = False
        self._writer: sqlite3.Connection | None = None  # while writing
        self._appended: list[Entry] = []
        self._kept: Snapshot | None = None
        self._drop = False  # the snapshot
        self._last = (0, b"")  # number and hash of the event that the next one follows
        if not self.path.is_file():
            raise StudyError(f"there is no study {self.path}")
        self.version = 0
        self.version = self._first_look()

    @classmethod
    def create(cls, path: str | Path, entries: list[Entry] | None = None) -> SqliteStore:
        """A new store with these events. An existing file of any kind is refused."""
        sqlite_file.create_file(Path(path), entries or [])
        return cls(path)

    def entries(self, after: int = 0, limit: int = -1) -> list[Entry]:
        try:
            with self._reading() as connection:
                rows = connection.execute(
                    "SELECT number, text, hash FROM events WHERE number > ? ORDER BY number "
                    "LIMIT ?",
                    (after, limit),
                ).fetchall()
        except CorruptStudyError as error:
            number = after + 1 + len(self.readable(after))
            raise CorruptStudyError(f"event {number} cannot be read: {error}", number) from error
        return [_entry(row) for row in rows]

    def readable(self, after: int = 0) -> list[Entry]:
        """What is left of a damaged file: events one by one, until one cannot be read."""
        found: list[Entry] = []
        with suppress(StudyError):
            while (entry := self.entry(after + len(found) + 1)) is not None:
                found.append(entry)
        return found

    def entry(self, number: int) -> Entry | None:
        """One event."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT number, text, hash FROM events WHERE number = ?", (number,)
            ).fetchone()
        return None if row is None else _entry(row)

    def head(self) -> tuple[int, bytes]:
        with self._reading() as connection:
            return _head(connection, self.path)

    @contextmanager
    def writing(self) -> Iterator[None]:
        if self.read_only:
            raise StudyError(f"{self.path} was opened for reading only")
        with self.lock, self._translated("write"), self._locks(write=True) as locks:
            locks.take(WRITER, exclusive=True)
            if leftovers.has_journal(self.path):
                self._settle(locks)
            with self._connected("rw", locks) as connection:
                self._last = _head(connection, self.path)
                self._writer, self._appended = connection, []
                self._kept, self._drop = None, False
                try:
                    yield
                finally:
                    self._writer = None
                if not (self._appended or self._kept or self._drop):
                    return
                locks.take(CONTENT, exclusive=True)
                self._commit(connection)
            self._read_back(locks)

    def append(self, entry: Entry) -> None:
        if self._writer is None:
            raise StudyError("events are appended inside a transaction only")
        last = self._appended[-1].number if self._appended else self._last[0]
        if entry.number != last + 1:
            raise StudyError(f"event {entry.number} cannot follow event {last}")
        self._appended.append(entry)

    def snapshot(self) -> Snapshot | None:
        with self._reading() as connection:
            row = connection.execute("SELECT number, hash, state, digest FROM snapshot").fetchone()
        if row is None:
            return None
        kinds = (int, bytes, bytes, bytes)
        if not all(isinstance(v, k) for v, k in zip(row, kinds, strict=True)):
            raise CorruptStudyError(f"{self.path}: the snapshot is damaged")
        return Snapshot(*row)

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        if self._writer is None:
            raise StudyError("a snapshot is kept inside a transaction only")
        self._kept = snapshot

    def copy_to(self, draft: Path) -> None:
        """All pages of one moment into a new file."""
        with self._reading() as connection, self._translated("copy"):
            target = sqlite_file.connect(draft, "rwc")
            try:
                target.execute("PRAGMA synchronous = EXTRA")
                connection.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")
            finally:
                target.close()

    def drop_snapshot(self) -> None:
        with self.writing():
            self._drop = True

    def close(self) -> None:
        self._closed = True

    def _first_look(self) -> int:
        """Refuse what is no study; bring an older file to this version if it may be written."""
        with self.lock, self._translated("open"):
            if not self.read_only:
                sqlite_file.remove_draft(self.path)
                upgrade.check_leftover_log(self.path)
                with self._locks(write=True) as locks:
                    locks.take(WRITER, exclusive=True)
                    if leftovers.has_journal(self.path):
                        self._settle(locks)
                    with self._connected("rw", locks) as connection:
                        version = sqlite_file.check_file(connection, self.path)
                        if version < sqlite_file.VERSION:
                            locks.take(CONTENT, exclusive=True)
                            upgrade.upgrade(connection, self.path, version)
                return sqlite_file.VERSION
            upgrade.check_leftover_log(self.path)
            with self._reading() as connection:
                return sqlite_file.check_file(connection, self.path)

    def _commit(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = EXTRA")  # the journal's end is on the disk, too
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _head(connection, self.path) != self._last:
                raise ChangedStudyError(f"{self.path} was changed by another program meanwhile")
            sqlite_file.insert(connection, self._appended, self._last[1])
            if self._drop:
                connection.execute("DELETE FROM snapshot")
            if self._kept is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?)", self._kept
                )
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk may have rolled back already
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            raise

    def _read_back(self, locks: FileLocks) -> None:
        """What was written must be there for whoever opens the path."""
        if not self._appended:
            return
        with self._connected("ro", locks) as connection:
            rows = connection.execute(
                "SELECT number, text, hash FROM events WHERE number >= ? ORDER BY number",
                (self._appended[0].number,),
            ).fetchall()
            last = self._appended[-1]
            if rows != self._appended or _head(connection, self.path) != (last.number, last.hash):
                raise ChangedStudyError(
                    f"what was written to {self.path} cannot be read back from it: the file was "
                    "replaced or is being written by another program"
                )

    def _settle(self, locks: FileLocks) -> None:
        """Let SQLite undo a write that was cut off, once the journal is known to be this file's."""
        locks.take(CONTENT, exclusive=True)
        try:
            if leftovers.has_journal(self.path):
                leftovers.check_journal(self.path)
                with self._connected("rw", locks) as connection:
                    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        finally:
            locks.release(CONTENT)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self.lock, self._translated("read"):
            self.lock.check()
            if self._writer is not None:
                yield self._writer
                return
            with self._locks(write=False) as locks:
                locks.take(CONTENT, exclusive=False)
                if leftovers.has_journal(self.path):
                    locks.release(CONTENT)
                    self._settle_for_reading()
                    locks.take(CONTENT, exclusive=False)
                with self._connected("ro", locks) as connection:
                    yield connection

    def _settle_for_reading(self) -> None:
        try:
            with self._locks(write=True) as locks:
                locks.take(WRITER, exclusive=True)
                self._settle(locks)
        except (PermissionError, OSError) as error:
            raise StudyError(
                f"{self.path}: a write to it was cut off, which somebody who may write to it must "
                f"undo first (`causalarms study ask {self.path}`): {error.strerror}"
            ) from error

    @contextmanager
    def _locks(self, *, write: bool) -> Iterator[FileLocks]:
        self.lock.check()
        if self._closed:
            raise StudyError(f"{self.path} was closed")
        try:
            locks = FileLocks(self.path, write=write)
        except FileNotFoundError:
            raise ChangedStudyError(f"{self.path} is gone: it was moved or deleted") from None
        except OSError as error:
            kind = "written" if write else "read"
            raise StudyError(f"{self.path} cannot be {kind}: {error.strerror}") from error
        try:
            yield locks
        finally:
            locks.close()

    @contextmanager
    def _connected(self, mode: str, locks: FileLocks) -> Iterator[sqlite3.Connection]:
        """A connection to the very file that is locked."""
        process = os.getpid()
        connection = self._connection(mode)
        try:
            if not locks.same_file():
                raise ChangedStudyError(f"{self.path} was replaced by another file")
            if self.version > 1 and upgrade.has_log(self.path):
                raise ChangedStudyError(
                    f"{leftovers.log_of(self.path)} does not belong to {self.path}, which has no "
                    "such log: move it away"
                )
            yield connection
        finally:
            if process == os.getpid():
                connection.close()
            else:
                LEFT_OPEN.append(connection)

    def _connection(self, mode: str) -> sqlite3.Connection:
        connection = sqlite_file.connect(self.path, mode)
        if mode == "rw":
            return connection
        try:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError:
            # version 1 on a disk where its log cannot have an index: nothing can change there
            connection.close()
            if upgrade.has_log(self.path):
                raise
            return sqlite_file.connect(self.path, "ro&immutable=1")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            text = str(error)
            if "locked" in text or "busy" in text:
                raise StudyBusyError(f"{self.path} is locked by another process") from error
            if "full" in text or ("I/O" in text and sqlite_file.disk_is_full(self.path)):
                text = f"{self.path}: the disk is full; nothing was written"
                raise DiskFullError(text) from error
            if "readonly" in text:
                raise StudyError(f"{self.path} cannot be written: it is read-only") from error
            raise StudyError(f"cannot {what} {self.path}: {error}") from error
        except UnicodeDecodeError as error:  # a message of SQLite that quotes damaged bytes
            raise CorruptStudyError(f"cannot {what} {self.path}: it is damaged") from error
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise StudyError(f"{self.path} is not a study: {error}") from error
            raise CorruptStudyError(f"cannot {what} {self.path}: {error}") from error


def _head(connection: sqlite3.Connection, path: Path) -> tuple[int, bytes]:
    row = connection.execute("SELECT number, hash FROM head").fetchone()
    if row is None or not isinstance(row[0], int) or not isinstance(row[1], bytes):
        raise CorruptStudyError(f"{path}: the note of the last event is damaged")
    return row[0], row[1]


def _entry(row: tuple[int, object, object]) -> Entry:
    number, text, hash_ = row
    if not (isinstance(text, str) and isinstance(hash_, bytes)):
        raise CorruptStudyError(f"event {number} is damaged", number)
    return Entry(number, text, hash_)
