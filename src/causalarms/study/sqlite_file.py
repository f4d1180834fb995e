"""A study's SQLite file: its tables, how it is made and opened, whose it is."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from causalarms.errors import CorruptStudyError, StudyError
from causalarms.outputs import refuse_neighbour
from causalarms.study import leftovers
from causalarms.study.events import ROOT
from causalarms.study.store import Entry

APPLICATION_ID = 0x63617573  # "caus"
VERSION = 2  # of the tables; upgrade.py says how older ones become this one

TABLES = (
    "CREATE TABLE events (number INTEGER PRIMARY KEY, text TEXT NOT NULL, hash BLOB NOT NULL,"
    " previous BLOB)",
    "CREATE TABLE head (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER, hash BLOB)",
    "CREATE TABLE snapshot (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER, hash BLOB,"
    " state BLOB, digest BLOB)",
    "INSERT INTO head VALUES (1, 0, x'')",
)


def create_file(path: Path, entries: Sequence[Entry]) -> None:
    """A new file with these events: whole, or not at all. An existing one of any kind is refused.

    It is made under another name and given its own when everything in it is on the disk.
    """
    refuse_neighbour(path)
    if os.path.lexists(path):
        raise StudyError(f"{path} exists already; open it, or choose another name")
    draft = draft_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = connect(draft, "rwc")
        try:
            _fill(connection, entries)
        finally:
            connection.close()
        publish(draft, path)
    except sqlite3.Error as error:
        raise StudyError(f"cannot create {path}: {_why(error, path)}") from error
    except OSError as error:
        raise StudyError(f"cannot create {path}: {error.strerror}") from error
    finally:
        for leftover in (draft, Path(f"{draft}-journal")):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)


def draft_of(path: Path) -> Path:
    """A name beside `path` that nobody else uses."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.new")


def publish(draft: Path, path: Path) -> None:
    """Give a finished file its name, which must be free, and make sure that it keeps it."""
    for beside in (leftovers.log_of(path), leftovers.journal_of(path)):
        if beside.exists():
            raise StudyError(
                f"{beside} was left by a study that is gone and would be taken for part of the new "
                "one: move it away first"
            )
    try:
        os.link(draft, path)
    except FileExistsError:
        raise StudyError(f"{path} exists already; open it, or choose another name") from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
            raise
        draft.rename(path)  # a file system without links
    with suppress(FileNotFoundError):
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_draft(path: Path) -> None:
    """The second name of a file whose maker was killed between giving it its name and tidying."""
    with suppress(OSError):
        if path.stat().st_nlink > 1:
            for draft in path.parent.glob(f".{_literal(path.name)}.*.new"):
                if draft.samefile(path):
                    draft.unlink()


def insert(connection: sqlite3.Connection, entries: Sequence[Entry], previous: bytes) -> None:
    """Append events and note the last one, inside a transaction."""
    for entry in entries:
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (*entry, previous or ROOT))
        previous = entry.hash
    if entries:
        last = entries[-1]
        connection.execute("UPDATE head SET number = ?, hash = ?", (last.number, last.hash))


def check_file(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the file. Files of other programs and of newer versions are refused."""
    kind = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if kind != APPLICATION_ID:
        if path.stat().st_size == 0:
            raise StudyError(f"{path} is empty: its creation was interrupted; remove it")
        raise StudyError(f"{path} is a file of another program, not a study")
    strange = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE type IN ('trigger', 'view')"
    ).fetchone()[0]
    if strange:
        raise CorruptStudyError(f"{path} holds triggers or views, which no study has")
    if version > VERSION:
        raise StudyError(
            f"{path} was written by a newer causalarms (file version {version}, this "
            f"one reads up to {VERSION}): upgrade the package"
        )
    return int(version)


def connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=10.0,  # for programs that know only SQLite's own locks
        isolation_level=None,  # transactions are begun by hand
        check_same_thread=False,  # a store has its own lock
    )
    connection.text_factory = _lenient
    return connection


def _fill(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
    connection.execute(f"PRAGMA user_version = {VERSION:d}")
    for statement in TABLES:
        connection.execute(statement)
    insert(connection, entries, b"")
    connection.execute("COMMIT")


def disk_is_full(path: Path) -> bool:
    """Whether there is no room for another write; SQLite often only says `disk I/O error`."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < 64 * 1024 or (disk.f_files > 0 and disk.f_favail == 0)


def _why(error: sqlite3.Error, path: Path) -> str:
    full = "full" in str(error) or ("I/O" in str(error) and disk_is_full(path))
    return "the disk is full; nothing was written" if full else str(error)


def _literal(name: str) -> str:
    """A name as a pattern that matches only itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _lenient(content: bytes) -> str:
    """Damaged text is found by its hash, which then also names the event."""
    return content.decode("utf-8", "surrogateescape")
