"""Several workers ask, and several trials end, in one transaction."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_rounds import SETTINGS, play, result

from causalarms import Study
from causalarms.errors import ChangedStudyError, ClosedTrialError, StudyError, UnknownTrialError
from causalarms.study import log
from causalarms.study.inputs import Ending


def test_asking_for_many_is_what_asking_one_after_the_other_is(tmp_path: Path) -> None:
    together = Study.create(tmp_path / "a.db", **SETTINGS)
    apart = Study.create(tmp_path / "b.db", **SETTINGS)
    for study in (together, apart):
        play(study, 5)
        study.ask(worker="b")
    wanted = {"a": 1, "b": 2, "c": 3}
    found = together.ask_for(wanted)
    alone = {worker: apart.ask(n, worker) for worker, n in wanted.items()}
    assert found == {w: t if isinstance(t, list) else [t] for w, t in alone.items()}
    assert [len(trials) for trials in found.values()] == [1, 2, 3]
    assert together.ask_for(wanted) == found
    assert len(together.ledger().pending) == 6


def test_nobody_gets_a_trial_where_one_request_is_wrong() -> None:
    study = Study.create(None, **SETTINGS)
    for wanted in ({"a": 1, "b": 0}, {"a": 1, "b": 1001}, {"a": 1, " ": 1}):
        with pytest.raises(StudyError):
            study.ask_for(wanted)
    with pytest.raises(StudyError, match="how many"):
        study.ask_for(["a"])  # type: ignore[arg-type]
    assert study.ledger().trials == []
    assert len(study.ask_for({"a": 1000})["a"]) == 1000


def test_trials_end_together_and_those_that_cannot_say_why(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "s.db", **SETTINGS)
    trials = study.ask(4)
    study.fail(trials[0])
    before = study.seen
    endings = [
        Ending(log.TOLD, 1, result(trials[1])),
        Ending(log.FAILED, 0, reason="again"),
        Ending(log.ABANDONED, 3, reason="no time"),
        Ending(log.FAILED, 9, reason=""),
        Ending(log.TOLD, 2, result(trials[2]), {"heat": 1 - trials[2].intervention["heat"]}),
    ]
    first, closed, third, unknown, last = study.finish(endings)
    assert first is third is last is None
    assert isinstance(closed, ClosedTrialError)
    assert isinstance(unknown, UnknownTrialError)
    records = Study.open(tmp_path / "s.db").ledger().trials
    assert [record.state for record in records] == ["failed", "told", "told", "abandoned"]
    assert records[3].reason == "no time"
    assert records[2].intervention[0] != trials[2].intervention["heat"]
    assert study.seen == before + 3


def test_a_trial_ends_once() -> None:
    study = Study.create(None, **SETTINGS)
    study.ask()
    twice = [Ending(log.FAILED, 0), Ending(log.ABANDONED, 0)]
    with pytest.raises(StudyError, match="once"):
        study.finish(twice)
    assert study.ledger().trials[0].state == "asked"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Ending(log.TOLD, 1, [1.0, 2.0]), "2 values for 3 nodes"),
        (Ending(log.TOLD, 1), "a number per node"),
        (Ending(log.TOLD, 1, [1.0, 2.0, 3.0], [0, 7, 0]), "'stir'"),
        (Ending(log.NOTE, 1), "told, failed or abandoned"),
        (Ending(log.FAILED, 1, [1.0, 2.0, 3.0]), "trial 1 is failed"),
        (Ending(log.ABANDONED, 1, executed=[0, 0, 0]), "trial 1 is abandoned"),
        (Ending(log.FAILED, 1, reason="\ud800"), "the reason"),
    ],
)
def test_a_wrong_ending_is_refused_and_spoils_nothing(
    tmp_path: Path, wrong: Ending, words: str
) -> None:
    study = Study.create(tmp_path / "s.db", **SETTINGS)
    trials = study.ask(2)
    before = study.seen
    with pytest.raises(StudyError, match=words):
        study.finish([Ending(log.TOLD, 0, result(trials[0])), wrong])
    assert study.seen == before
    assert Study.open(tmp_path / "s.db").verify().told == 0


def test_results_that_the_file_cannot_take_are_kept_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    study = Study.create(path, **SETTINGS)
    trials = study.ask(3)
    path.rename(tmp_path / "moved.db")
    Study.create(path, **SETTINGS | {"seed": 8}).ask(3)
    found = study.finish(
        [Ending(log.TOLD, t.number, result(t)) for t in trials[:2]]
        + [Ending(log.FAILED, 2, reason="")]
    )
    assert all(isinstance(error, ChangedStudyError) for error in found)
    assert ["is kept in" in str(error) for error in found] == [True, True, False]
    assert str(found[0]).startswith(f"{found[2]}. The result of trial 0")
    assert len((tmp_path / "s.db-untold.jsonl").read_text().splitlines()) == 2
    assert len(Study.open(path).ledger().pending) == 3
