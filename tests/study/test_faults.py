"""What goes wrong with files, disks and clocks, and what is said and saved then."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from study_rounds import SETTINGS, play, result

from causalarms import Study
from causalarms.errors import CorruptStudyError, StudyError
from causalarms.study.repair import recover, verify

EVENTS = 81  # created, and 40 rounds


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("played") / "s.db"
    with Study.create(path, **SETTINGS) as study:
        play(study, 40)
    return path.read_bytes()


@pytest.fixture
def path(played: bytes, tmp_path: Path) -> Path:
    (tmp_path / "s.db").write_bytes(played)
    return tmp_path / "s.db"


def play_and_count(study: Study, acknowledged: list[int]) -> None:
    for _ in range(5000):
        trial = study.ask()
        study.tell(trial, result(trial))
        acknowledged[0] += 1


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_loses_nothing_that_was_told(tmp_path: Path) -> None:
    with small_disk(tmp_path, "256k") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(100_000))
        study = Study.create(disk / "s.db", **SETTINGS)
        acknowledged = [0]
        with pytest.raises(StudyError, match="disk is full; nothing was written"):
            play_and_count(study, acknowledged)
        assert 0 < acknowledged[0] < 5000
        assert study.verify(replay=True).told == acknowledged[0]
        ballast.unlink()
        play(study, 5)
        assert study.verify(replay=True).told == acknowledged[0] + 5
        study.close()
        assert [p.name for p in disk.iterdir()] == ["s.db"]


def test_a_study_is_not_half_made_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path, "64k") as disk:
        (disk / "ballast").write_bytes(bytes(60_000))
        with pytest.raises(StudyError, match="disk is full; nothing was written"):
            Study.create(disk / "s.db", **SETTINGS)
        assert [p.name for p in disk.iterdir()] == ["ballast"]
        (disk / "ballast").unlink()
        Study.create(disk / "s.db", **SETTINGS).close()


def test_a_read_only_study_can_be_looked_at(path: Path) -> None:
    with Study.open(path, read_only=True) as study:
        assert len(study.history()) == 40
        assert study.policy.n_told == 40
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
            pytest.raises(StudyError, match="cannot be written: Read-only"),
            Study.open(disk / "s.db") as s,
        ):
            s.ask()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("column", ["text", "hash"])
@pytest.mark.parametrize("event", [1, 2, 40, EVENTS])
def test_a_changed_event_is_named_and_all_others_saved(
    path: Path, tmp_path: Path, event: int, column: str
) -> None:
    connection = sqlite3.connect(path)
    value = connection.execute(f"SELECT {column} FROM events WHERE number = {event}").fetchone()[0]
    changed = value.replace("2", "3", 1) if column == "text" else bytes(31) + b"!"
    connection.execute("PRAGMA secure_delete = ON")  # or the old row can still be found
    connection.execute(f"UPDATE events SET {column} = ? WHERE number = {event}", (changed,))
    connection.commit()
    connection.close()
    verdict = verify(path)
    assert not verdict.ok
    assert (verdict.first_bad, verdict.events) == (event, event - 1)
    with pytest.raises(CorruptStudyError, match=f"event {event} is damaged"):
        Study.open(path)
    if event == 1:
        with pytest.raises(StudyError, match=r"event 1 .* is gone; 80 other events are whole"):
            recover(path, tmp_path / "saved.db")
        assert len((tmp_path / "saved.db.events.jsonl").read_text().splitlines()) == EVENTS - 1
        return
    rescue = recover(path, tmp_path / "saved.db")
    assert rescue.lost == [event]
    assert rescue.kept == EVENTS - 1
    assert rescue.broken_links == ([event + 1] if event < EVENTS else [])
    with Study.open(tmp_path / "saved.db") as saved:
        assert saved.verify(replay=True).ok
        assert "not unbroken" in saved.verify().message
        play(saved, 3)
        assert saved.verify(replay=True).ok


@pytest.mark.parametrize("kept", [10, EVENTS - 1])
def test_removed_events_are_missed(path: Path, kept: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"DELETE FROM events WHERE number > {kept}")
    connection.commit()
    connection.close()
    assert verify(path).first_bad == kept + 1
    with pytest.raises(CorruptStudyError, match=f"event {kept + 1} is missing"):
        Study.open(path)


def results(study: Study) -> dict[int, object]:
    return {r.number: r.values for r in study.ledger().trials if r.values is not None}


def test_every_flipped_byte_is_found_or_harmless(path: Path, tmp_path: Path) -> None:
    """Never a wrong result: an error that is ours, or the log exactly as it was."""
    content = path.read_bytes()
    with Study.open(path) as study:
        right, told = [entry.text for entry in study.store.entries()], results(study)
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
                rescue = recover(damaged, tmp_path / f"r{number}.db")
            except StudyError:
                continue  # the first event, without which there are no settings
            assert len(rescue.lost) <= 1
            with Study.open(tmp_path / f"r{number}.db", read_only=True) as saved:
                kept = results(saved)
            assert len(kept) >= len(told) - 1
            assert all(told[trial] == values for trial, values in kept.items())
            recovered += 1
    assert found > 10
    assert recovered > 10
    assert harmless > 0  # free space


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.95])
def test_a_truncated_file_is_found_and_what_is_left_saved(
    path: Path, tmp_path: Path, share: float
) -> None:
    with Study.open(path) as study:
        told = results(study)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StudyError):
        Study.open(path)
    try:
        rescue = recover(path, tmp_path / "saved.db")
    except StudyError:
        assert share < 0.5  # the first event is behind the tables
        return
    assert rescue.verdict.ok
    assert rescue.kept + len(rescue.lost) == EVENTS
    assert rescue.kept > (2 * share - 1) * EVENTS
    with Study.open(tmp_path / "saved.db") as saved:
        kept = results(saved)
        assert all(told[trial] == values for trial, values in kept.items())
        gone = set(told) - set(kept)
        assert gone <= {
            *rescue.lost_trials,
            *rescue.maybe_told,
            *range(len(saved.ledger().trials), 40),
        }


@pytest.mark.parametrize("place", range(16))
def test_a_damaged_first_line_of_the_file_loses_nothing(
    path: Path, tmp_path: Path, place: int
) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x20
    path.write_bytes(content)
    rescue = recover(path, tmp_path / "saved.db")
    assert (rescue.kept, rescue.lost) == (EVENTS, [])


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
    with pytest.raises(StudyError, match=r"file version 99, this one reads 1"):
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
    with pytest.raises(StudyError, match="has no model yet"):
        study.best()
