"""Bring a file of an older version to this one, in one transaction, keeping every event.

UPGRADES[v] turns the tables of version v into those of v + 1. Events are never rewritten: an older
event stays readable by `Ledger`, which must go on understanding it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from causalarms.errors import StudyError
from causalarms.study import sqlite_file
from causalarms.study.sqlite_store import SqliteStore
from causalarms.study.verification import verify_store

UPGRADES: dict[int, Callable[[sqlite3.Connection], None]] = {}  # version 1 is the first


def upgrade(path: str | Path) -> tuple[int, int]:
    """Upgrade in place; the version before and now. A damaged log is refused."""
    store = SqliteStore(path, any_version=True)
    try:
        before = store.version
        if before == sqlite_file.VERSION:
            return before, before
        verdict = verify_store(store, quick=True)
        if not verdict.ok:
            raise StudyError(f"{path} is damaged and was left alone: {verdict.message}")
        with store.writing():
            for version in range(before, sqlite_file.VERSION):
                if version not in UPGRADES:
                    raise StudyError(f"file version {version} cannot be upgraded by this package")
                UPGRADES[version](store.connection)
            store.connection.execute(f"PRAGMA user_version = {sqlite_file.VERSION:d}")
        return before, sqlite_file.VERSION
    finally:
        store.close()
