"""Damaged files: what is found, what is saved; and files that lie where they should not."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from study_rounds import SETTINGS, play, result

from causalarms import Study
from causalarms.errors import ChangedStudyError, StudyError, StudyFileError
from causalarms.study.repair import backup, recover, verify

CHEAP = SETTINGS | {"policy": "random"}
ROUNDS = 20
EVENTS = 2 * ROUNDS + 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Study.create(tmp_path / "s.db", **CHEAP) as study:
        play(study, ROUNDS)
    return tmp_path / "s.db"


def texts(path: Path) -> list[str]:
    with Study.open(path, read_only=True) as study:
        return [entry.text for entry in study.store.entries()]


def flip(path: Path, event: int) -> None:
    """One bit of the text of an event."""
    content = bytearray(path.read_bytes())
    content[content.index(texts(path)[event - 1].encode()) + 20] ^= 1
    path.write_bytes(content)


def test_every_whole_event_is_written_out_without_the_first(path: Path, tmp_path: Path) -> None:
    right = texts(path)
    flip(path, 1)
    with pytest.raises(StudyError, match=r"event 1 .*is gone; 40 other events are whole") as caught:
        recover(path, tmp_path / "new.db")
    saved = tmp_path / "new.db.events.jsonl"
    assert str(saved) in str(caught.value)
    assert saved.read_text().splitlines() == right[1:]
    assert json.loads(saved.read_text().splitlines()[0])["number"] == 2
    assert not (tmp_path / "new.db").exists()


def test_settings_of_a_backup_make_the_study_again(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "copy.db")
    with Study.open(path) as study:
        play(study, 3)
        right = study.history()["yield"]
    flip(path, 1)
    rescue = recover(path, tmp_path / "new.db", settings_from=tmp_path / "copy.db")
    assert (rescue.kept, rescue.lost) == (EVENTS + 6, [])
    assert "Event 1 was taken from copy.db" in rescue.verdict.remarks[0]
    with Study.open(tmp_path / "new.db") as study:
        assert list(study.history()["yield"]) == list(right)
        play(study, 2)
        assert study.verify(replay=True).ok


@pytest.mark.parametrize("rounds", [0, 5])
def test_the_settings_of_another_study_are_refused(path: Path, tmp_path: Path, rounds: int) -> None:
    other = tmp_path / "other.db"
    with Study.create(other, **(CHEAP | {"seed": 9})) as study:
        play(study, rounds)
    flip(path, 1)
    with pytest.raises(StudyError, match=r"other\.db is a backup of another study"):
        recover(path, tmp_path / "new.db", settings_from=other)
    assert not (tmp_path / "new.db").exists()


def test_long_events_are_saved_although_the_first_line_is_damaged(
    path: Path, tmp_path: Path
) -> None:
    with Study.open(path) as study:
        study.import_rounds({node: [1.5] * 500 for node in study.nodes})  # several pages
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)
    rescue = recover(path, tmp_path / "new.db")
    assert (rescue.kept, rescue.lost) == (EVENTS + 1, [])
    assert path.read_bytes() == content


def test_damage_beyond_the_events_is_found_by_sqlite(path: Path) -> None:
    """The list of free pages: no event is touched, and the next write would go wrong."""
    with Study.open(path) as study:
        study.import_rounds({node: [1.5] * 500 for node in study.nodes})
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM events WHERE number = ?", (EVENTS + 1,))
    hash_ = connection.execute("SELECT hash FROM events WHERE number = ?", (EVENTS,)).fetchone()[0]
    connection.execute("UPDATE head SET number = ?, hash = ?", (EVENTS, hash_))
    connection.commit()
    connection.close()
    assert verify(path).ok
    content = bytearray(path.read_bytes())
    content[36:40] = (999).to_bytes(4, "big")  # how many pages are free
    path.write_bytes(content)
    verdict = verify(path)
    assert (verdict.ok, verdict.first_bad, verdict.events) == (False, None, EVENTS)
    assert "every event is whole, but the file is not" in verdict.message


def test_a_damaged_study_is_not_backed_up(path: Path, tmp_path: Path) -> None:
    flip(path, 7)
    with pytest.raises(StudyError, match="not copied: event 7 is damaged"):
        backup(path, tmp_path / "copy.db")
    assert [p.name for p in tmp_path.iterdir()] == ["s.db"]


def test_a_study_and_a_memory_can_be_backed_up(path: Path, tmp_path: Path) -> None:
    with Study.open(path) as study:
        assert study.backup(tmp_path / "copy.db").events == EVENTS
        with pytest.raises(StudyError, match="exists already"):
            study.backup(tmp_path / "copy.db")
    assert texts(tmp_path / "copy.db") == texts(path)
    memory = Study.create(None, **CHEAP)
    play(memory, 3)
    assert memory.backup(tmp_path / "memory.db").told == 3


def cut_off_write(path: Path) -> None:
    """A writer that dies when its pages are in the journal and some are in the file."""
    child = os.fork()
    if child == 0:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")  # spills into the file before the commit
        connection.execute("BEGIN IMMEDIATE")
        for number in range(200, 400):
            row = (number, "half" * 200)
            connection.execute("INSERT INTO events VALUES (?, ?, x'00', x'00')", row)
        os._exit(0)
    os.waitpid(child, 0)
    assert path.with_name(f"{path.name}-journal").stat().st_size > 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("read_only", [True, False])
def test_a_write_that_was_cut_off_is_undone(path: Path, read_only: bool) -> None:
    right = path.read_bytes()
    cut_off_write(path)
    assert path.read_bytes() != right
    damaged = path.read_bytes()
    rescue = recover(path, path.with_name("new.db"))
    assert (rescue.kept, path.read_bytes()) == (EVENTS, damaged)  # a copy was looked at
    with Study.open(path, read_only=read_only) as study:
        assert study.verify(replay=True).ok
        assert len(study.history()) == ROUNDS
    assert not path.with_name("s.db-journal").exists()


def test_a_log_put_next_to_an_open_study_is_refused(path: Path) -> None:
    study = Study.open(path)
    path.with_name("s.db-wal").write_bytes(b"of another file")
    with pytest.raises(ChangedStudyError, match="does not belong"):
        study.ask()
    path.with_name("s.db-wal").unlink()
    play(study, 1)


def test_a_file_with_two_names_is_refused_by_name(path: Path) -> None:
    study = Study.open(path)
    trial = study.ask()
    second = path.with_name("second.db")
    second.hardlink_to(path)
    for refused in (lambda: Study.open(path), lambda: Study.open(second), study.ask):
        with pytest.raises(StudyFileError, match="remove one of the names, or use a copy"):
            refused()
    second.unlink()
    study.tell(trial, result(trial))
    assert study.verify().ok


def test_a_symbolic_link_is_the_study_it_points_to(path: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "line.db"
    link.symlink_to(path)
    study = Study.open(link)
    assert study.store.path == path  # type: ignore[attr-defined]
    elsewhere = shutil.copy(path, tmp_path / "other.db")
    link.unlink()
    link.symlink_to(elsewhere)  # the study stays where it was
    play(study, 2)
    assert (len(texts(path)), len(texts(tmp_path / "other.db"))) == (EVENTS + 4, EVENTS)


@pytest.mark.parametrize("format_", [2, None])
def test_settings_of_another_format_are_refused(path: Path, format_: int | None) -> None:
    from causalarms.study.log import chain
    from causalarms.study.sqlite import SqliteStore
    from causalarms.study.store import ROOT, Entry

    event = json.loads(texts(path)[0])
    event["data"]["format"] = format_
    text = json.dumps(event)
    other = path.with_name("other.db")
    SqliteStore.create(other, [Entry(1, text, chain(ROOT, text))])
    with pytest.raises(StudyError, match=f"settings format {format_}, this one reads 1"):
        Study.open(other)
