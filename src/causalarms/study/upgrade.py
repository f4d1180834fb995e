"""Files of older versions: brought to this one when they are first opened for writing.

UPGRADES[v] turns the tables of version v into those of v + 1, in one transaction. Events are never
rewritten: an older event stays readable by `Ledger`, which must go on understanding it. Opened for
reading only, an older file stays as it is.

Version 1 kept its newest events in a write-ahead log, which is folded in here once it is known to
be whole and to belong to this file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from causalarms.errors import CorruptStudyError, StudyBusyError, StudyError
from causalarms.study import leftovers, sqlite_file
from causalarms.study.events import ROOT
from causalarms.study.log import check
from causalarms.study.store import Entry


def upgrade(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """All steps from `version` to this one."""
    if version == 1:
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        if mode != "delete":
            raise StudyBusyError(f"{path} is open in another program; close it there first")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in range(version, sqlite_file.VERSION):
            if step not in UPGRADES:
                raise StudyError(f"{path}: file version {step} cannot be upgraded by this package")
            UPGRADES[step](connection)
        connection.execute(f"PRAGMA user_version = {sqlite_file.VERSION:d}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def has_log(path: Path) -> bool:
    """Whether events of a version 1 file are still in its write-ahead log."""
    try:
        return leftovers.log_of(path).stat().st_size > 0
    except OSError:
        return False


def check_leftover_log(path: Path) -> None:
    """Refuse a log that is damaged or was left by another file."""
    if leftovers.check_log(path) is None:
        return
    alone = _head(path, "ro&immutable=1")
    if alone is None:
        return
    with_log = _head(path, "ro")
    if with_log is None:
        return
    (number, hash_), known = alone, with_log
    if known[0] < number or (number and _hash_of(path, number) != hash_):
        raise CorruptStudyError(
            f"{leftovers.log_of(path)} was left by another file than {path}, which has event "
            f"{number}: move the log away if you put this file in the place of another"
        )


def _head(path: Path, mode: str) -> Any:
    return _one(path, mode, "SELECT number, hash FROM head", (int, bytes))


def _hash_of(path: Path, number: int) -> Any:
    row = _one(path, "ro", f"SELECT hash FROM events WHERE number = {number:d}", (bytes,))
    return None if row is None else row[0]


def _one(path: Path, mode: str, query: str, kinds: tuple[type, ...]) -> Any:
    with suppress(sqlite3.Error):
        connection = sqlite_file.connect(path, mode)
        try:
            row = connection.execute(query).fetchone()
        finally:
            connection.close()
        if row is not None and all(isinstance(v, k) for v, k in zip(row, kinds, strict=True)):
            return row
    return None


def _to_2(connection: sqlite3.Connection) -> None:
    """Every event also carries the hash of the one before it, and can be checked by itself."""
    previous, links = ROOT, []
    rows = connection.execute("SELECT number, text, hash FROM events ORDER BY number")
    for last, row in enumerate(rows):
        links.append((previous, last + 1))
        previous = check(Entry(*row), last, previous)  # a damaged log is left alone
    connection.execute("ALTER TABLE events ADD COLUMN previous BLOB")
    connection.executemany("UPDATE events SET previous = ? WHERE number = ?", links)


UPGRADES: dict[int, Callable[[sqlite3.Connection], None]] = {1: _to_2}
