"""A study's SQLite file: its tables, how it is made and opened, whose it is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from causalarms.errors import CorruptStudyError, StudyError
from causalarms.outputs import refuse_neighbour

APPLICATION_ID = 0x63617573  # "caus"
VERSION = 1  # of the tables; docs say how a newer version reads older files
PATIENCE = 60.0  # seconds to wait for other writers

TABLES = (
    "CREATE TABLE events (number INTEGER PRIMARY KEY, text TEXT NOT NULL, hash BLOB NOT NULL)",
    "CREATE TABLE head (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER, hash BLOB)",
    "CREATE TABLE snapshot (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER, hash BLOB,"
    " state BLOB, digest BLOB)",
    "INSERT INTO head VALUES (1, 0, x'')",
)


def create_file(path: Path) -> None:
    """A new, empty file. An existing one of any kind is refused."""
    refuse_neighbour(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("xb").close()
    except FileExistsError:
        raise StudyError(f"{path} exists already; open it, or choose another name") from None
    except OSError as error:
        raise StudyError(f"cannot create {path}: {error.strerror}") from error
    try:
        connection = connect(path, "rw")
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
            connection.execute(f"PRAGMA user_version = {VERSION:d}")
            for statement in TABLES:
                connection.execute(statement)
            connection.execute("COMMIT")
        finally:
            connection.close()
    except sqlite3.Error as error:
        path.unlink(missing_ok=True)
        raise StudyError(f"cannot create {path}: {error}") from error


def check_file(connection: sqlite3.Connection, path: Path, *, any_version: bool) -> None:
    """Refuse files of other programs, of newer versions and, unless told otherwise, older ones."""
    kind = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if kind != APPLICATION_ID:
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
    if version < VERSION and not any_version:
        raise StudyError(
            f"{path} has the older file version {version}: run "
            f"`causalarms study upgrade {path}` once"
        )


def connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,  # transactions are begun by hand
        check_same_thread=False,  # a study has its own lock
    )
    connection.text_factory = _lenient
    return connection


def _lenient(content: bytes) -> str:
    """Damaged text is found by its hash, which then also names the event."""
    return content.decode("utf-8", "surrogateescape")
