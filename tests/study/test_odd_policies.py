"""Callers and policies that err: what they give is refused, and the study goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalarms import Study
from causalarms.errors import StudyError
from causalarms.policies.base import Suggestion
from causalarms.policies.simple import RandomPolicy
from causalarms.study import study as study_module
from causalarms.study.inputs import PastRounds
from causalarms.study.learner import refuse_what_cannot_run

NODES = ["heat", "stir", "yield"]
ROW = np.array([1, 0, 0], dtype=np.uint8)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Suggestion(np.array([7, 0, 0]), "explore"), "not an allowed regime of every node"),
        (Suggestion(np.array([-1, 0, 0]), "explore"), "not an allowed regime"),
        (Suggestion(np.array([1.0, 0.0, 0.0]), "explore"), "not an allowed regime"),
        (Suggestion(ROW[:2], "explore"), "not an allowed regime"),
        (Suggestion(np.array([True, False, False]), "explore"), "not an allowed regime"),
        (Suggestion([1, 0, 0], "explore"), "not an allowed regime"),  # type: ignore[arg-type]
        (Suggestion(np.array([1, 1, 0]), "explore"), "not an allowed regime"),  # at most one
        (Suggestion(ROW, "guess"), "must explore or exploit, not 'guess'"),
        (Suggestion(ROW, "explore", None), "predicts None"),  # type: ignore[arg-type]
        (Suggestion(ROW, "explore", 10**400), "predicts 1000"),
        (Suggestion(ROW, "explore", 1.0, "wide"), "predicts 'wide'"),  # type: ignore[arg-type]
        (Suggestion(ROW, "explore", why="words"), "must give a Reason for why"),  # type: ignore[arg-type]
        (ROW, "must suggest a Suggestion"),
    ],
)
def test_what_a_policy_cannot_suggest_is_refused_and_nothing_is_written(
    given: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    limits = {"max_interventions": 1}
    with Study.create(path, NODES, "yield", policy="random", constraints=limits, seed=1) as study:
        study.tell(study.ask(), [1.0, 2.0, 3.0])
        events = study.seen
        with monkeypatch.context() as odd:
            odd.setattr(RandomPolicy, "suggest", lambda *_, **__: given)
            with pytest.raises(StudyError, match=f"policy 'random'.*{message}"):
                study.ask()
        assert study.seen == events
    with Study.open(path) as again:
        assert again.ask().number == 1
        assert again.verify().ok


@pytest.mark.parametrize(
    ("interventions", "values", "message"),
    [
        ([[9, 9, 9]], [[1.0, 2.0, 3.0]], "row 0 of the past rounds: node 'heat': regime 9"),
        ([[1, 0]], [[1.0, 2.0, 3.0]], "is not an intervention"),
        ([[1, 0, 0]] * 2, [[1.0, 2.0, 3.0], [1.0, 2.0]], "row 1 .*2 values for 3 nodes"),
        ([[1, 0, 0]], [[1.0, 2.0, float("inf")]], "'yield' is inf, which is not finite"),
        ([[1, 0, 0]], [[1.0, 2.0, 1e300]], "too large to compute with"),
        ([[1, 0, 0]], [[1.0, 2.0, "x"]], "'yield' is 'x', not a number"),
        ([[1, 0, 0]], [[1.0, 2.0, True]], "not a number"),
        ([[1, 0, 0]], [], "0 rounds with 1 interventions"),
        ([3], [[1.0, 2.0, 3.0]], "row 0 of the past rounds"),
    ],
)
def test_rounds_built_by_a_caller_are_refused_before_they_reach_the_log(
    interventions: Any, values: Any, message: str, tmp_path: Path
) -> None:
    with Study.create(tmp_path / "s.db", NODES, "yield", policy="random", seed=1) as study:
        with pytest.raises(StudyError, match=message):
            study.add_rounds(PastRounds(interventions, values))
        assert study.seen == 1
    Study.open(tmp_path / "s.db").close()


def test_an_event_that_nobody_could_read_again_is_never_written(tmp_path: Path) -> None:
    with Study.create(tmp_path / "s.db", NODES, "yield", policy="random", seed=1) as study:
        trial = study.ask()
        with pytest.raises(StudyError, match=r"nothing was written: event 3 .*makes no sense"):
            study._write("told", {"trial": trial.number, "values": [1.0]})
        study.tell(trial, [1.0, 2.0, 3.0])
        assert (study.ask().number, study.seen) == (1, 4)
    with Study.open(tmp_path / "s.db") as again:
        assert again.verify(replay=True).ok


def test_contradicting_changes_of_settings_from_two_handles(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Study.create(path, NODES, "yield", policy="random", seed=1) as a, Study.open(path) as b:
        b.change_settings(forbidden=[["heat", "stir"]])
        with pytest.raises(StudyError, match="never allow") as refused:
            a.change_settings(required=[{"heat": "on", "stir": "on"}])
        assert "event" not in str(refused.value)  # seen in the settings, not when it was written
        b.change_settings(forbidden=[])
        a.change_settings(required=[{"heat": "on", "stir": "on"}])  # not by rules that are gone
        a.change_settings(policy="ucb")  # with the defaults of that policy
        assert a.ask().number == 0
    with Study.open(path) as again:
        assert again.settings.policy == "ucb"
        assert again.settings.required == ({"heat": "on", "stir": "on"},)


def test_settings_that_others_change_while_these_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    with Study.create(path, NODES, "yield", policy="ucb", seed=1) as a, Study.open(path) as b:

        def meanwhile(settings: Any) -> Any:
            monkeypatch.undo()
            b.change_settings(policy="random")
            return refuse_what_cannot_run(settings)

        monkeypatch.setattr(study_module, "refuse_what_cannot_run", meanwhile)
        with pytest.raises(StudyError, match="'random' has no setting 'window'"):
            a.change_settings(policy_settings={"window": 5})
        assert a.ask().number == 0
