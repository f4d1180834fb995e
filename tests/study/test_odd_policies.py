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
from causalarms.study.inputs import PastRounds

NODES = ["heat", "stir", "yield"]
ROW = np.array([1, 0, 0], dtype=np.uint8)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Suggestion(np.array([7, 0, 0]), "explore"), "not an allowed regime of every node"),
        (Suggestion(np.array([-1, 0, 0]), "explore"), "not an allowed regime"),
        (Suggestion(np.array([1.0, 0.0, 0.0]), "explore"), "not an allowed regime"),
        (Suggestion(ROW[:2], "explore"), "not an allowed regime"),
        (Suggestion([1, 0, 0], "explore"), "not an allowed regime"),  # type: ignore[arg-type]
        (Suggestion(np.array([1, 1, 0]), "explore"), "not an allowed regime"),  # at most one
        (Suggestion(ROW, "guess"), "explore or exploit, not 'guess'"),
        (Suggestion(ROW, "explore", None), "predicts None"),  # type: ignore[arg-type]
        (Suggestion(ROW, "explore", 1.0, "wide"), "predicts 'wide'"),  # type: ignore[arg-type]
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
        ([[9, 9, 9]], [[1.0, 2.0, 3.0]], r"\(9, 9, 9\) is not an intervention"),
        ([[1, 0]], [[1.0, 2.0, 3.0]], r"\(1, 0\) is not an intervention"),
        ([[1, 0, 0]], [[1.0, 2.0]], "2 values for 3 nodes"),
        ([[1, 0, 0]], [[1.0, 2.0, float("inf")]], "a value is not finite"),
        ([[1, 0, 0]], [[1.0, 2.0, "x"]], "row per round"),
        ([[1, 0, 0]], [], "0 rounds with 1 interventions"),
        ([3], [[1.0, 2.0, 3.0]], "row per round"),
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
