"""Alarms are told to whoever asks, until somebody acknowledges them; warnings undo no write."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest

from causalarms import Study
from causalarms.errors import AlarmWarning


@pytest.fixture
def path(alarmed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(alarmed, tmp_path / "line5.db"))


def test_asking_warns_of_an_alarm_once_until_it_is_acknowledged(path: Path) -> None:
    with Study.open(path) as study:
        (alarm,) = study.new_alarms()
        checks = alarm["checks_left"]
        with pytest.warns(AlarmWarning, match="random on purpose") as caught:
            trial = study.ask()
        assert [str(w.message) for w in caught] == [f"alarm 0: {alarm['text']}"]
        assert caught[0].filename == __file__
        assert f"the next {checks} results are of check trials" in alarm["text"]
        study.tell(trial, [3.0, 3.0])
        with warnings.catch_warnings(record=True) as again:
            warnings.simplefilter("always")
            assert "random" in study.ask().why
        assert not again
        assert study.alarms()[0]["checks_left"] == checks - 1
    with Study.open(path) as study:
        study.acknowledge(0, "a new pump")
        assert study.new_alarms() == []
        with warnings.catch_warnings(record=True) as none:
            warnings.simplefilter("always")
            study.ask()
        assert not none


@pytest.mark.usefixtures("warnings_as_errors")
def test_with_warnings_as_errors_nothing_fails_after_it_was_written(path: Path) -> None:
    with Study.open(path) as study:
        trial = study.ask()  # warns of the alarm
        said = study.tell(trial, [4000.0, 5000.0])
        assert [("far outside" in message) for message in said] == [True, True]
        assert study.ledger().trials[trial.number].values == (4000.0, 5000.0)
        assert study.correct(trial, [4000.0, 5001.0]) != []
        assert study.ledger().trials[trial.number].values == (4000.0, 5001.0)


def test_a_study_that_does_not_watch_learns_nothing_to_say_that_it_has_no_alarm() -> None:
    with Study.create(None, ["a", "b"], "b", factors={"pump": {}}) as study:
        assert study.new_alarms() == []
        assert study._learner is None or study._learner.policy.n_told == 0
