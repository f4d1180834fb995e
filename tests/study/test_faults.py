"""What goes wrong with files, disks and clocks, and what is said and saved then."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from study_rounds import SETTINGS, play, result

from causalarms import Study
from causalarms.errors import CorruptStudyError, StudyError
from causalarms.study.sqlite_store import SqliteStore
from causalarms.study.verification import recover, verify_file

EVENTS = 81  # created, and 40 rounds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Study.create(tmp_path / "s.db", **SETTINGS) as study:
        play(study, 40)
    return tmp_path / "s.db"


def play_and_count(study: Study, acknowledged: list[int]) -> None:
    for _ in range(5000):
        trial = study.ask()
        study.tell(trial, result(trial))
        acknowledged[0] += 1


def test_a_full_disk_loses_nothing_that_was_told(path: Path) -> None:
    with Study.open(path) as study:
        connection = study.store.connection  # type: ignore[attr-defined]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        acknowledged = [40]
        with pytest.raises(StudyError, match="disk is full; nothing was written"):
            play_and_count(study, acknowledged)
        connection.execute("PRAGMA max_page_count = 100000")
        assert study.verify(replay=True).told == acknowledged[0]
        play(study, 5)
        assert study.verify(replay=True).told == acknowledged[0] + 5


def test_a_really_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        study = Study.create(disk / "s.db", **SETTINGS)
        acknowledged = [0]
        with pytest.raises(StudyError, match=r"full|I/O error"):
            play_and_count(study, acknowledged)
        assert 0 < acknowledged[0] < 5000
        study.close()
        (tmp_path / "copy.db").write_bytes((disk / "s.db").read_bytes())
        if (disk / "s.db-wal").exists():
            (tmp_path / "copy.db-wal").write_bytes((disk / "s.db-wal").read_bytes())
        with Study.open(tmp_path / "copy.db") as copy:
            assert copy.verify(replay=True).ok
            assert copy.verify().told == acknowledged[0]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_read_only_study_can_be_looked_at(path: Path) -> None:
    with Study.open(path, read_only=True) as study:
        assert len(study.history()) == 40
        assert study.best().switch is not None
        with pytest.raises(StudyError, match="reading only"):
            study.ask()


def test_a_study_on_a_read_only_disk(path: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "--bind", str(path.parent), str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs root")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(disk)], check=True)
        with Study.open(disk / "s.db", read_only=True) as study:
            assert study.verify().ok
        with (
            pytest.raises(StudyError, match=r"read-only|cannot open"),
            Study.open(disk / "s.db") as s,
        ):
            s.ask()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("column", ["text", "hash"])
@pytest.mark.parametrize("event", [1, 2, 40, EVENTS])
def test_a_changed_event_is_named_and_the_rest_before_it_saved(
    path: Path, tmp_path: Path, event: int, column: str
) -> None:
    connection = sqlite3.connect(path)
    value = connection.execute(f"SELECT {column} FROM events WHERE number = {event}").fetchone()[0]
    changed = value.replace("2", "3", 1) if column == "text" else bytes(31) + b"!"
    connection.execute(f"UPDATE events SET {column} = ? WHERE number = {event}", (changed,))
    connection.commit()
    connection.close()
    verdict = verify_file(path)
    assert not verdict.ok
    assert (verdict.first_bad, verdict.events) == (event, event - 1)
    with pytest.raises(CorruptStudyError, match=f"event {event} is damaged"):
        Study.open(path)
    if event == 1:
        with pytest.raises(StudyError, match="nothing can be recovered"):
            recover(path, tmp_path / "saved.db")
        return
    assert recover(path, tmp_path / "saved.db").events == event - 1
    with Study.open(tmp_path / "saved.db") as saved:
        assert saved.verify(replay=True).ok
        play(saved, 3)


@pytest.mark.parametrize("kept", [10, EVENTS - 1])
def test_removed_events_are_missed(path: Path, kept: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"DELETE FROM events WHERE number > {kept}")
    connection.commit()
    connection.close()
    assert verify_file(path).first_bad == kept + 1
    with pytest.raises(CorruptStudyError, match=f"event {kept + 1} is missing"):
        Study.open(path)


def test_every_flipped_byte_is_found_or_harmless(path: Path, tmp_path: Path) -> None:
    """Never a wrong result: an error that is ours, or the log exactly as it was."""
    content = path.read_bytes()
    with Study.open(path) as study:
        right = [entry.text for entry in study.store.entries()]
    found = harmless = recovered = 0
    for number, place in enumerate(range(7, len(content), 977)):
        damaged = tmp_path / f"d{number}.db"
        damaged.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            with Study.open(damaged, read_only=True) as study:
                assert [e.text for e in study.store.entries()] == right
            harmless += 1
        except StudyError:
            found += 1
            try:
                recover(damaged, tmp_path / f"r{number}.db")
            except StudyError:
                continue
            with Study.open(tmp_path / f"r{number}.db", read_only=True) as saved:
                texts = [e.text for e in saved.store.entries()]
            assert texts == right[: len(texts)]
            recovered += 1
    assert found > 10
    assert recovered > 10
    assert harmless > 0  # free space, or the snapshot


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.95])
def test_a_truncated_file_is_found_and_its_beginning_saved(
    path: Path, tmp_path: Path, share: float
) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StudyError):
        Study.open(path)
    try:
        saved = recover(path, tmp_path / "saved.db")
    except StudyError:
        assert share < 0.9
    else:
        assert saved.ok
        assert 0 < saved.events <= EVENTS


def test_files_of_others_and_of_the_future(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE events (number INTEGER)")
    connection.close()
    with pytest.raises(StudyError, match="another program"):
        Study.open(other)
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to look like one " * 100)
    with pytest.raises(StudyError, match="not a study"):
        Study.open(text)
    assert text.read_text().startswith("not a database")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StudyError, match=r"newer causalarms \(file version 99"):
        Study.open(path)
    assert path.read_bytes() == before
    with pytest.raises(StudyError, match="there is no study"):
        Study.open(tmp_path / "nothing.db")
    with pytest.raises(StudyError, match="there is no study"):
        Study.open(tmp_path)


def test_a_clock_that_goes_back_changes_nothing_but_is_mentioned(tmp_path: Path) -> None:
    times = iter(range(1000, 0, -1))

    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(times))

    with Study.create(tmp_path / "s.db", clock=clock, **SETTINGS) as study:
        play(study, 5)
        verdict = study.verify(replay=True)
        assert verdict.ok
        assert "the clock went back" in verdict.remarks[0]
        twin = Study.create(None, **SETTINGS)
        play(twin, 5)
        assert twin.ask() == study.ask()


def test_an_older_file_is_upgraded_on_request(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from causalarms.study import sqlite_file, upgrade

    assert upgrade.upgrade(path) == (1, 1)

    def to_2(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE added (x INTEGER)")

    monkeypatch.setattr(sqlite_file, "VERSION", 2)
    with pytest.raises(StudyError, match="study upgrade"):
        Study.open(path)
    with pytest.raises(StudyError, match="cannot be upgraded"):
        upgrade.upgrade(path)
    monkeypatch.setitem(upgrade.UPGRADES, 1, to_2)
    assert upgrade.upgrade(path) == (1, 2)
    with Study.open(path) as study:
        assert study.verify(replay=True).ok
    store = SqliteStore(path)
    assert store.connection.execute("SELECT count(*) FROM added").fetchone() == (0,)
    store.close()


def test_a_policy_that_cannot_learn_does_not_stop_the_study() -> None:
    study = Study.create(None, **SETTINGS)
    for _ in range(90):
        trial = study.ask()
        study.tell(trial, [1.0, 1.0, result(trial)[2]])  # two nodes are stuck
    assert study.problem is not None
    assert "node 'heat' (natural)" in study.problem
    assert "problem" in study.ledger().trials[-1].asked
    assert "could not learn" in study.explain(89)["text"]
    assert study.verify(replay=True).ok
    study.best()
