"""The durable store: one SQLite file, write-ahead log, every commit on the disk before it returns.

While a study is open its newest events are in FILE-wal beside it; the last one to close it folds
them in. Copy a study that is in use with `export`, not by copying the file alone.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from causalarms.errors import CorruptStudyError, StudyBusyError, StudyError
from causalarms.study.sqlite_file import PATIENCE, check_file, connect, create_file
from causalarms.study.store import Entry, Snapshot


class SqliteStore:
    """Several processes may have the same file open; a reader never waits for a writer."""

    def __init__(self, path: str | Path, *, read_only: bool = False, any_version: bool = False):
        self.path = Path(path)
        self.read_only = read_only
        self._any_version = any_version
        if not self.path.is_file():
            raise StudyError(f"there is no study {self.path}")
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = self._open()

    @classmethod
    def create(cls, path: str | Path) -> SqliteStore:
        """A new, empty store. An existing file of any kind is refused."""
        create_file(Path(path))
        return cls(path)

    @property
    def version(self) -> int:
        with self._reading() as connection:
            return int(connection.execute("PRAGMA user_version").fetchone()[0])

    def entries(self, after: int = 0) -> list[Entry]:
        try:
            with self._reading() as connection:
                rows = connection.execute(
                    "SELECT number, text, hash FROM events WHERE number > ? ORDER BY number",
                    (after,),
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
            row = connection.execute("SELECT number, hash FROM head").fetchone()
        if row is None or not isinstance(row[0], int) or not isinstance(row[1], bytes):
            raise CorruptStudyError(f"{self.path}: the note of the last event is damaged")
        return row[0], row[1]

    @contextmanager
    def writing(self) -> Iterator[None]:
        if self.read_only:
            raise StudyError(f"{self.path} was opened for reading only")
        with self._translated("write"):
            connection = self.connection
            self._begin(connection)
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled back already
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                raise

    def append(self, entry: Entry) -> None:
        connection = self.connection
        if not connection.in_transaction:
            raise StudyError("events are appended inside a transaction only")
        last = connection.execute("SELECT number FROM head").fetchone()[0]
        if entry.number != last + 1:
            raise StudyError(f"event {entry.number} cannot follow event {last}")
        connection.execute("INSERT INTO events VALUES (?, ?, ?)", entry)
        connection.execute("UPDATE head SET number = ?, hash = ?", (entry.number, entry.hash))

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
        connection = self.connection
        if not connection.in_transaction:
            raise StudyError("a snapshot is kept inside a transaction only")
        connection.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?)", snapshot)

    def drop_snapshot(self) -> None:
        with self.writing():
            self.connection.execute("DELETE FROM snapshot")

    def close(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _open(self) -> sqlite3.Connection:
        with self._translated("open"):
            if self.read_only:
                return self._open_read_only()
            connection = connect(self.path, "rw")
            try:
                check_file(connection, self.path, any_version=self._any_version)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
            except BaseException:
                connection.close()
                raise
        return connection

    def _open_read_only(self) -> sqlite3.Connection:
        """A file on a read-only disk has no room for the index of its log: it cannot change."""
        for mode in ("ro", "ro&immutable=1"):
            connection = connect(self.path, mode)
            try:
                check_file(connection, self.path, any_version=self._any_version)
            except sqlite3.OperationalError:
                connection.close()
                if "immutable" in mode or self._has_unmerged_events():
                    raise
            except BaseException:
                connection.close()
                raise
            else:
                break
        return connection

    def _has_unmerged_events(self) -> bool:
        log = self.path.with_name(f"{self.path.name}-wal")
        return log.exists() and log.stat().st_size > 0

    @property
    def connection(self) -> sqlite3.Connection:
        if self._process != os.getpid():  # a connection must not be used across a fork
            self._process = os.getpid()
            self._connection = self._open()
        if self._connection is None:
            raise StudyError(f"{self.path} was closed")
        return self._connection

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._translated("read"):
            yield self.connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not _busy(error) or time.monotonic() > deadline:
                    raise

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if _busy(error):
                raise StudyBusyError(f"{self.path} is locked by another process") from error
            if "full" in str(error):
                raise StudyError(f"{self.path}: the disk is full; nothing was written") from error
            if "readonly" in str(error):
                raise StudyError(f"{self.path} cannot be written: it is read-only") from error
            raise StudyError(f"cannot {what} {self.path}: {error}") from error
        except UnicodeDecodeError as error:  # a message of SQLite that quotes damaged bytes
            raise CorruptStudyError(f"cannot {what} {self.path}: it is damaged") from error
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise StudyError(f"{self.path} is not a study: {error}") from error
            raise CorruptStudyError(f"cannot {what} {self.path}: {error}") from error


def _entry(row: tuple[int, object, object]) -> Entry:
    number, text, hash_ = row
    if not (isinstance(text, str) and isinstance(hash_, bytes)):
        raise CorruptStudyError(f"event {number} is damaged", number)
    return Entry(number, text, hash_)


def _busy(error: sqlite3.Error) -> bool:
    return "locked" in str(error) or "busy" in str(error)
