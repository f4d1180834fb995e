"""Results with missing values: studies learn from the rest of them, and say how many there were."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_rounds import SEM, state_of
from study_rounds import SETTINGS as CSL

from causalarms import Study
from causalarms.cli.study_commands import summary
from causalarms.errors import LearningWarning, TooEarlyError
from causalarms.rng import stream
from causalarms.service.report import page
from causalarms.study.records import Trial

SETTINGS: dict[str, Any] = CSL | {"policy": None}


def result(trial: Trial, share: float = 0.2) -> list[float | None]:
    """What the system gives in a trial, with gaps, always the same."""
    rng = stream(7, "gaps", trial.number)
    a = np.array([list(trial.intervention.values())], dtype=np.uint8)
    values = SEM.sample(a, rng)[0].tolist()
    return [None if rng.random() < share else value for value in values]


def play(study: Study, rounds: int) -> None:
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, result(trial))


@pytest.mark.parametrize("changes", [False, True])
def test_a_study_with_gaps_is_the_replay_of_its_log(
    changes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gaps.db"
    with Study.create(path, changes=changes, **SETTINGS) as study:
        play(study, 12)
    for rounds in (1, 3, 40):
        with Study.open(path) as study:
            play(study, rounds)
            assert study.policy.n_told == len(study.ledger().trials)
    with Study.open(path) as study:
        study.ask()
        assert study.verify(replay=True).ok
        helped = repr(state_of(study))  # nan is not equal to itself
    monkeypatch.setenv("CAUSALARMS_CACHE", "")
    with Study.open(path) as study:
        assert repr(state_of(study)) == helped
        twin = Study.import_from(study.export(tmp_path / "gaps.json"), tmp_path / "twin.db")
        assert repr(state_of(twin)) == helped
        twin.close()


def test_gaps_are_learned_from_and_counted() -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 30)
    table = study.history()
    assert all(table["learned"])
    cells = [r.values for r in study.ledger().trials]
    missing = sum(row.count(None) for row in cells if row is not None)
    assert missing > 5
    facts = summary(study)
    trials = sum(None in row for row in cells if row is not None)
    assert facts["missing"].as_dict() == {"values": missing, "trials": trials, "learned": trials}
    assert all(isinstance(reward, float) for reward in facts["rewards"])
    assert f"{missing} values of {trials} trials were not measured" in page(study, "gaps")
    holed = next(r for r in study.ledger().trials if r.values is not None and None in r.values)
    assert "Not measured in it: " in study.explain(holed.number)["text"]
    found = study.explain(29)
    assert found["rounds_known"] == 29
    assert found["values_missing"] == sum(row.count(None) for row in cells[:29] if row is not None)
    assert f"{found['values_missing']} values were not measured" in found["text"]
    assert math.isfinite(study.best().reward)


def test_past_rounds_with_gaps_are_learned_from() -> None:
    study = Study.create(None, **SETTINGS)
    study.import_rounds({"heat": [1.0, None], "stir": [1.0, 3.0], "yield": [0.5, 0.1]})
    assert study.policy.n_told == 2
    study.correct(1, [2.0, 3.0, 0.1], "found in the notebook")
    assert study.policy.n_told == 2
    assert summary(study)["missing"].values == 0


def test_a_round_of_which_nothing_was_measured_teaches_nothing() -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 20)
    before = study.beliefs().known.counts
    study.tell(study.ask(), [None, None, None])
    assert study.policy.n_told == 21
    np.testing.assert_array_equal(study.beliefs().known.counts, before)
    play(study, 3)


@pytest.mark.parametrize(
    "settings", [{"policy": "csl-ucb"}, {"policy_settings": {"gaps": "drop"}}], ids=str
)
def test_policies_that_need_all_values_leave_such_rounds_out(settings: dict[str, Any]) -> None:
    study = Study.create(None, **(SETTINGS | settings))
    trial = study.ask()
    with pytest.warns(LearningWarning, match="left out of learning: 'stir' not measured"):
        study.tell(trial, [1.0, None, 2.0])
    assert study.policy.n_told == 0
    assert not any(study.history()["learned"])
    assert summary(study)["missing"].as_dict() == {"values": 1, "trials": 1, "learned": 0}
    assert "1 of these trials are left out" in page(study, "gaps")


OVEN: dict[str, Any] = {
    "nodes": ["h", "w", "q"],
    "reward": "q",
    "factors": {"oven": {"levels": [440, 450, 460]}, "cat": {"levels": ["Zn", "Sn"]}},
    "seed": 1,
}


def baked(n: int, **measured: int) -> Study:
    """After n trials of an oven; of nodes in `measured` only so many first values are told."""
    study, rng = Study.create(None, **OVEN), np.random.default_rng(0)
    for i in range(n):
        trial = study.ask()
        h, w = 300 + 0.2 * (float(trial.levels["oven"]) - 440) + rng.normal(), 10 + rng.normal()
        values = {"h": h, "w": w, "q": 50 + 0.5 * (h - 300) + rng.normal()}
        kept = {node: x if i < measured.get(node, n) else None for node, x in values.items()}
        study.tell(trial, kept)
    return study


def test_what_was_never_measured_ruins_nothing_and_is_said() -> None:
    for often, words in [(0, "was never measured"), (1, "was measured only once")]:
        study = baked(20, w=often)
        best, expected = study.best(), study.predict([{"oven": 460}])[0]["expected"]
        assert best.levels["oven"] == 460
        assert 50 < best.low < 52 < best.high < 54
        assert abs(expected["h"]["mean"] - 304) < 2
        assert expected["h"]["low"] > 290
        assert expected["w"]["high"] - expected["w"]["low"] > 2  # not narrower than its noise
        assert [r.text for r in best.remarks] == [f"w {words}: nothing is learned of it"]


def test_without_any_reward_nothing_is_said_of_it() -> None:
    study = baked(12, q=0)
    for call in (study.best, lambda: study.predict([{}])):
        with pytest.raises(TooEarlyError, match=r"^q was never measured: it is too early"):
            call()
    trial = study.ask()
    assert trial.predicted is None
    assert "as evenly as" in trial.why
    assert len(set(study.history()["do:oven"])) == 3
