"""Logs and journals left beside a file by a writer that died, damaged ones and foreign ones.

Files of version 1 kept their newest events in a write-ahead log; they are written here as that
version wrote them, by a process that ends without closing.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import struct
from pathlib import Path

import pytest
from study_rounds import SETTINGS, play

from causalarms import Study
from causalarms.errors import ChangedStudyError, CorruptStudyError, StudyError
from causalarms.study.events import ROOT
from causalarms.study.leftovers import JOURNAL_MAGIC, check_journal
from causalarms.study.recovery import recover
from causalarms.study.store import Entry
from causalarms.study.verification import verify_file

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

VERSION_1 = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA application_id = 0x63617573",
    "PRAGMA user_version = 1",
    "CREATE TABLE events (number INTEGER PRIMARY KEY, text TEXT NOT NULL, hash BLOB NOT NULL)",
    "CREATE TABLE head (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER, hash BLOB)",
    "CREATE TABLE snapshot (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER, hash BLOB,"
    " state BLOB, digest BLOB)",
    "INSERT INTO head VALUES (1, 0, x'')",
)
ROUNDS = 50
EVENTS = 2 * ROUNDS + 1


def entries(seed: int = 1, rounds: int = ROUNDS) -> list[Entry]:
    study = Study.create(None, **(SETTINGS | {"policy": "random", "seed": seed}))
    play(study, rounds)
    return study.store.entries()


RIGHT = entries()


def write_version_1(path: Path, events: list[Entry], folded: int = 0) -> None:
    """All events; those after the first `folded` stay in the log, as after kill -9."""
    child = os.fork()
    if child == 0:
        connection = sqlite3.connect(path, isolation_level=None)
        for statement in VERSION_1:
            connection.execute(statement)
        for entry in events:
            connection.execute("BEGIN")
            connection.execute("INSERT INTO events VALUES (?, ?, ?)", entry)
            connection.execute("UPDATE head SET number = ?, hash = ?", (entry.number, entry.hash))
            connection.execute("COMMIT")
            if entry.number == folded:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        os._exit(0)
    os.waitpid(child, 0)


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def copy_of(path: Path, name: str) -> Path:
    copy = path.with_name(name)
    for ending in ("", "-wal", "-shm"):
        if path.with_name(path.name + ending).exists():
            shutil.copy(path.with_name(path.name + ending), copy.with_name(copy.name + ending))
    return copy


@pytest.fixture
def old(tmp_path: Path) -> Path:
    write_version_1(tmp_path / "old.db", RIGHT, folded=21)
    assert log_of(tmp_path / "old.db").stat().st_size > 100_000
    return tmp_path / "old.db"


def test_a_whole_log_is_folded_in(old: Path) -> None:
    assert verify_file(old).events == EVENTS
    with Study.open(old) as study:
        assert study.store.entries() == RIGHT
        assert not log_of(old).exists()
        play(study, 2)
        assert study.verify(replay=True).ok
    connection = sqlite3.connect(old)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    rows = connection.execute("SELECT hash, previous FROM events ORDER BY number").fetchall()
    connection.close()
    assert [previous for _, previous in rows] == [ROOT, *(hash_ for hash_, _ in rows[:-1])]


def test_damage_to_the_log_is_never_silent(old: Path) -> None:
    """Flips and cuts: found (and most saved), or nothing is missing."""
    chance, found = random.Random(0), 0
    for case in range(60):
        copy = copy_of(old, f"d{case}.db")
        log = log_of(copy)
        content = bytearray(log.read_bytes())
        if case % 6 == 5:
            del content[chance.randrange(1, len(content)) :]
        else:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        log.write_bytes(content)
        verdict = verify_file(copy)
        if verdict.ok:
            assert verdict.events == EVENTS
            continue
        found += 1
        assert "damaged" in verdict.message
        assert verdict.last_told is not None
        with pytest.raises(StudyError):
            Study.open(copy)
        rescue = recover(copy, copy.with_suffix(".saved"))
        assert rescue.verdict.ok
        if case % 6 != 5:
            assert len(rescue.lost) <= 1
    assert found > 50


def test_the_log_of_another_study_is_refused(old: Path) -> None:
    """A longer, finished study copied over one that was killed, whose log stayed."""
    other = old.with_name("finished.db")
    write_version_1(other, entries(seed=2, rounds=60))
    sqlite3.connect(other).close()
    connection = sqlite3.connect(other)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    shutil.copy(other, old)
    verdict = verify_file(old)
    assert not verdict.ok
    assert "left by another file" in verdict.message
    with pytest.raises(CorruptStudyError, match="move the log away"):
        Study.open(old)
    log_of(old).unlink()
    old.with_name("old.db-shm").unlink()
    assert verify_file(old).events == 121


def test_a_log_without_its_file_is_not_given_to_a_new_study(old: Path) -> None:
    old.unlink()
    old.with_name("old.db-shm").unlink()
    with pytest.raises(StudyError, match="left by a study that is gone"):
        Study.create(old, **SETTINGS)
    assert [p.name for p in old.parent.iterdir()] == ["old.db-wal"]


def test_a_log_put_beside_an_open_study_is_refused(old: Path, tmp_path: Path) -> None:
    study = Study.create(tmp_path / "new.db", **SETTINGS)
    play(study, 3)
    shutil.copy(log_of(old), tmp_path / "new.db-wal")
    with pytest.raises(ChangedStudyError, match="does not belong"):
        study.ask()
    (tmp_path / "new.db-wal").unlink()
    play(study, 3)
    assert study.verify(replay=True).told == 6


def test_an_old_damaged_file_is_left_alone(old: Path) -> None:
    connection = sqlite3.connect(old)
    connection.execute("UPDATE events SET text = replace(text, '1', '2') WHERE number = 30")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    before = old.read_bytes()
    with pytest.raises(CorruptStudyError, match="event 30 is damaged"):
        Study.open(old)
    assert sqlite3.connect(old).execute("PRAGMA user_version").fetchone() == (1,)
    assert len(old.read_bytes()) == len(before)


def test_reading_an_old_file_leaves_it_as_it_is(old: Path) -> None:
    with Study.open(old, read_only=True) as study:
        assert len(study.history()) == ROUNDS
    assert sqlite3.connect(old).execute("PRAGMA user_version").fetchone() == (1,)


def cut_off_write(path: Path) -> None:
    """A writer that dies when its pages are in the journal and some are in the file."""
    child = os.fork()
    if child == 0:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")  # spills into the file before the commit
        connection.execute("BEGIN IMMEDIATE")
        for number in range(200, 400):
            connection.execute(
                "INSERT INTO events VALUES (?, ?, x'00', x'00')", (number, "half" * 200)
            )
        os._exit(0)
    os.waitpid(child, 0)
    assert path.with_name(f"{path.name}-journal").stat().st_size > 1000


@pytest.mark.parametrize("read_only", [True, False])
def test_a_write_that_was_cut_off_is_undone(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "s.db"
    with Study.create(path, **SETTINGS) as study:
        play(study, 10)
    cut_off_write(path)
    with Study.open(path, read_only=read_only) as study:
        assert study.verify(replay=True).ok
        assert len(study.history()) == 10
    assert [p.name for p in tmp_path.iterdir()] == ["s.db"]


def test_the_journal_of_another_study_is_not_put_back(tmp_path: Path) -> None:
    path, other = tmp_path / "s.db", tmp_path / "other.db"
    for file, rounds in ((path, 10), (other, 30)):
        with Study.create(file, **SETTINGS) as study:
            play(study, rounds)
    cut_off_write(path)
    shutil.copy(other, path)
    for open_it in (Study.open, lambda p: Study.open(p, read_only=True)):
        with pytest.raises(CorruptStudyError, match="was left by another file"):
            open_it(path)
    assert path.read_bytes() == other.read_bytes()
    path.with_name("s.db-journal").unlink()
    assert verify_file(path).told == 30


@pytest.mark.parametrize(("ahead", "own"), [(0, True), (1, True), (2, False), (-1, False)])
def test_a_journal_is_known_by_the_number_of_changes(tmp_path: Path, ahead: int, own: bool) -> None:
    """A write changes the first page once: the file is level with its journal, or one ahead."""
    path = tmp_path / "s.db"
    Study.create(path, **SETTINGS).close()
    content = bytearray(path.read_bytes())
    content[24:28] = (10).to_bytes(4, "big")
    header = JOURNAL_MAGIC + struct.pack(">5I", 1, 0, len(content) // 4096, 512, 4096)
    record = b"\0\0\0\1" + bytes(content[:4096]) + bytes(4)
    path.with_name("s.db-journal").write_bytes(header.ljust(512, b"\0") + record)
    content[24:28] = (10 + ahead).to_bytes(4, "big")
    path.write_bytes(content)
    if own:
        check_journal(path)
    else:
        with pytest.raises(CorruptStudyError, match="was left by another file"):
            check_journal(path)
