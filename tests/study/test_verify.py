"""`verify` of a file that changed under an open study: damage is a verdict, all else an error."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from study_rounds import SETTINGS, play

from causalarms import Study
from causalarms.errors import ChangedStudyError, CorruptStudyError, StudyError, StudyFileError
from causalarms.study.learner import StudyPolicy
from causalarms.study.log import chain
from causalarms.study.repair import recover, verify
from causalarms.study.store import ROOT, Entry, MemoryStore

CHEAP = SETTINGS | {"policy": "random"}
EVENTS = 49  # created, and 24 rounds


@pytest.fixture
def study(tmp_path: Path) -> Study:
    study = Study.create(tmp_path / "s.db", **CHEAP)
    play(study, 4)
    shutil.copy(tmp_path / "s.db", tmp_path / "early.db")
    play(study, 20)
    return study


@pytest.fixture
def path(study: Study, tmp_path: Path) -> Path:
    return tmp_path / "s.db"


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def moved(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def given_a_second_name(path: Path) -> None:
    path.with_name("second.db").hardlink_to(path)


def made_a_text(path: Path) -> None:
    path.write_text("hello\n" * 2000)


def made_another_database(path: Path) -> None:
    path.unlink()
    by_sql(path, "CREATE TABLE t (a)")


def given_a_stray_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").write_bytes(b"of another file")


@pytest.mark.parametrize(
    ("change", "said", "said_of_the_file"),
    [
        (emptied, "is empty: somebody emptied it", None),
        (moved, "is gone: put the file of the study back", "there is no study .*No such file"),
        (Path.unlink, "is gone: put the file of the study back", "there is no study"),
        (made_a_folder, "is a folder now: put the file", "there is no study .*is a folder"),
        (given_a_second_name, "remove one of the names, or use a copy", None),
        (made_a_text, "is not a study; if it was one, `causalarms study recover`", None),
        (made_another_database, "is a file of another program: give the file of a study", None),
        (given_a_stray_log, "does not belong to .*: move it away", None),
    ],
)
def test_a_path_that_leads_to_no_study_is_an_error(
    study: Study, path: Path, change: Callable[[Path], None], said: str, said_of_the_file: str
) -> None:
    change(path)
    for look in (study.verify, lambda: study.backup(path.with_name("copy.db")), study.history):
        with pytest.raises(StudyFileError, match=said):
            look()
    for open_again in (verify, Study.open):
        with pytest.raises(StudyFileError, match=said_of_the_file or said):
            open_again(path)
    assert not path.with_name("copy.db").exists()


def replaced(path: Path) -> None:
    other = path.with_name("other.db")
    with Study.create(other, **(CHEAP | {"seed": 5})) as study:
        play(study, 30)
    other.replace(path)


def brought_back(path: Path) -> None:
    path.write_bytes(path.with_name("early.db").read_bytes())


@pytest.mark.parametrize("change", [replaced, brought_back])
def test_another_study_in_its_place_is_an_error_though_it_is_intact(
    study: Study, path: Path, change: Callable[[Path], None]
) -> None:
    change(path)
    looks: list[Callable[[], object]] = [
        study.verify, lambda: study.backup(path.with_name("copy.db"))
    ]  # fmt: skip
    for look in looks:
        with pytest.raises(ChangedStudyError, match=r"another history.*open the study again"):
            look()
    assert verify(path).ok
    assert Study.open(path).verify(replay=True).ok


def by_sql(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("damage", "events", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:80]), 0, "no event can be read"),
        (lambda path: path.write_bytes(path.read_bytes()[:9000]), 0, "is damaged"),
        (lambda path: by_sql(path, "DROP TABLE events"), 0, "no such table: events"),
        (lambda path: by_sql(path, "DROP TABLE head"), EVENTS, "no such table: head"),
        (lambda path: by_sql(path, "DELETE FROM head"), EVENTS, "the note of the last event"),
        (lambda path: by_sql(path, "CREATE VIEW v AS SELECT 1"), EVENTS, "triggers or views"),
        (lambda path: by_sql(path, "DELETE FROM events WHERE number = 7"), 6, "event 7 is missing"),
    ],
)
def test_damage_is_a_verdict(
    study: Study, path: Path, damage: Callable[[Path], object], events: int, said: str
) -> None:
    damage(path)
    for verdict in (study.verify(), verify(path)):
        assert (verdict.ok, verdict.events, verdict.first_bad) == (False, events, events + 1)
        assert said in verdict.message
    with pytest.raises(CorruptStudyError, match="`causalarms study recover` saves every event"):
        Study.open(path)
    with pytest.raises(StudyError):
        study.backup(path.with_name("copy.db"))
    assert not path.with_name("copy.db").exists()


def test_suggestions_before_a_recovery_are_not_compared_and_that_is_said(
    study: Study, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_sql(path, "DELETE FROM events WHERE number = 7")
    by_sql(path, "VACUUM")  # or the row can still be found in its free space
    assert recover(path, tmp_path / "saved.db").lost == [7]
    compared: list[int] = []
    choose = StudyPolicy.choose

    def counted(self: StudyPolicy, trial: int, *given: Any) -> object:
        compared.append(trial)
        return choose(self, trial, *given)

    with Study.open(tmp_path / "saved.db") as saved:
        play(saved, 2)
        monkeypatch.setattr(StudyPolicy, "choose", counted)
        verdict = saved.verify(replay=True)
        assert verdict.ok
        assert "suggestions before the last recovery were not compared" in verdict.remarks[-1]
        assert compared == [24]  # trial 2 was pending again
        assert "not compared" not in str(saved.verify().remarks)


def test_another_suggestion_than_the_log_gives_is_named(study: Study) -> None:
    entries, hash_ = list[Entry](), ROOT
    for number, text, _ in study.store.entries():
        if number == 4:
            assert '"intervention":[' in text
            at = text.index('"intervention":[') + len('"intervention":[')
            text = f"{text[:at]}{1 - int(text[at])}{text[at + 1 :]}"
        hash_ = chain(hash_, text)
        entries.append(Entry(number, text, hash_))
    store = MemoryStore(entries)
    assert verify(store).ok
    verdict = verify(store, replay=StudyPolicy)
    assert (verdict.ok, verdict.first_bad, verdict.events) == (False, 4, EVENTS)
    assert verdict.message == "trial 1: replaying the log suggests another intervention"


def test_an_event_of_a_later_version_is_said_to_be_one(study: Study) -> None:
    first = study.store.entries(0, 1)[0]
    text = '{"at":"","data":{},"kind":"merged","number":2}'
    forged = MemoryStore([first, Entry(2, text, chain(first.hash, text))])
    verdict = verify(forged)
    assert (verdict.ok, verdict.first_bad) == (False, 2)
    assert verdict.message.startswith("event 2 is not an event of this package: it is of the kind")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("below", r"below is a folder: give the name of a new file"),
        ("s.db", r"s\.db exists already; open it, or choose another name"),
        ("s.db/new.db", r"cannot create .*s\.db/new\.db: "),
    ],
)
def test_a_file_that_cannot_be_made(study: Study, tmp_path: Path, given: str, said: str) -> None:
    (tmp_path / "below").mkdir()
    for make in (lambda path: Study.create(path, **CHEAP), study.backup):
        with pytest.raises(StudyError, match=said):
            make(tmp_path / given)
