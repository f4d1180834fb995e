"""Trials that fail: what is asked, what is recommended, and what is said about it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalarms import Study
from causalarms.errors import TooEarlyError
from causalarms.rng import stream
from causalarms.search.worth import Risk
from causalarms.study import report
from causalarms.study.records import Trial

NODES = ("a", "b", "c", "y")
SHORT: dict[str, dict[str, Any]] = {
    "golem-mab": {"policy_settings": {"n_explore": 10}},
    "csl-ucb": {"policy_settings": {"min_samples": 8, "refresh": 10}},
}


def create(path: Path | None = None, **settings: Any) -> Study:
    if "factors" not in settings:
        settings = {"intervenable": NODES} | settings  # plans of some policies need all switches
    return Study.create(path, nodes=NODES, reward="y", seed=1, horizon=400, **settings)


def values(trial: Trial, unit: float = 1.0) -> list[float]:
    """The reward is higher with a, and higher with b."""
    x = stream(3, "noise", trial.number).normal(size=4)
    x[:3] += [trial.levels.get(name, "off") == "on" for name in "abc"]
    x[3] += 2 * x[0] + x[1]
    return [float(value) * unit for value in x]


def play(study: Study, trials: int, fails: str = "a", unit: float = 1.0) -> list[Trial]:
    """Every trial with the factor `fails` on ends without a result."""
    played = []
    for _ in range(trials):
        trial = study.ask()
        played.append(trial)
        if trial.levels[fails] == "on":
            study.fail(trial)
        else:
            study.tell(trial, values(trial, unit))
    return played


@pytest.mark.parametrize(
    "policy", ["posterior", "posterior-cd", "csl-ucb", "ucb", "random", "golem-mab"]
)
def test_what_always_fails_is_not_asked_again_and_again(policy: str) -> None:
    study = create(policy=policy, **SHORT.get(policy, {}))
    on = [trial.levels["a"] == "on" for trial in play(study, 40)]
    assert sum(on) <= 10
    assert not any(on[25:])
    assert all(trial.levels["a"] == "off" for trial in study.ask(4, "other"))  # a batch
    try:
        best = study.best()
    except TooEarlyError:
        assert policy == "golem-mab"  # its plan has all switches on: it never ends
        return
    assert best.levels["a"] == "off"
    assert best.failing < 0.1


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("failing") / "s.db"
    with create(path) as study:
        play(study, 30)
    return path


def test_replay_equals_live(failing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUSALARMS_CACHE", str(tmp_path))  # empty
    with Study.open(failing) as study:
        assert study.verify(replay=True).message == "intact"
        replayed = study.policy
        assert replayed.failures.n_failed == sum(r.failed for r in study.ledger().trials) > 0
        with create() as live:
            play(live, 30)
            mine, other = replayed.state(), live.policy.state()
            assert mine.keys() == other.keys()
            for name, value in mine.items():
                np.testing.assert_array_equal(value, other[name], err_msg=name)
            assert live.best() == study.best()
        trial = study.ask()
        assert study.explain(trial)["rounds_known"] == replayed.n_told


def test_best_and_predict_say_how_likely_a_trial_fails(failing: Path) -> None:
    with Study.open(failing, read_only=True) as study:
        on, off = study.predict([["a", "b"], ["b"]])
        assert on["failing"] > 0.8
        assert off["failing"] < 0.1
        best = study.best()
        assert best.failing == study.predict([best.levels])[0]["failing"]


def test_what_mostly_fails_is_no_rival(failing: Path) -> None:
    """With results alone a setting with the factor a on would look like the best of them."""
    with Study.open(failing) as study:
        best, trial = study.best(), study.ask()
        runner_up = study.explain(trial)["runner_up"]["levels"]
        assert len(best.rivals) == 3
        shown = [runner_up, *(rival.levels for rival in best.rivals)]
        assert all(found["failing"] < 0.5 for found in study.predict(shown))


def test_first_rounds_move_on_from_what_fails() -> None:
    """Every level is asked for equally often, also if all trials of one of them fail."""
    study = create(intervenable=["a", "c"])
    played = play(study, 6, fails="c")
    assert sum(trial.levels["c"] == "on" for trial in played) == 3
    assert list(study.history()["state"]).count("told") == 3


def test_no_rival_is_better_for_a_risk_that_hardly_differs() -> None:
    """The factor c does nothing, but it fails more rarely by a five-thousandth if it is on."""
    study = create(intervenable=["a", "c"])
    for _ in range(20):
        trial = study.ask()
        study.tell(trial, values(trial))
    risk = Risk(lambda levels: 0.05 - 0.005 * levels[:, 1], -1e6)
    constraints = study.settings.constraints.at_risk(risk)
    found = report.best(replace(study.beliefs(), at_risk=constraints))
    assert found.levels == {"a": "on", "c": "off"}
    assert {rival.levels["c"] for rival in found.rivals} == {"on", "off"}
    assert all(rival.better < 0.9 for rival in found.rivals)


def test_nothing_changes_as_long_as_nothing_has_failed() -> None:
    study = create()
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, values(trial))
    policy = study.policy
    assert policy.constraints.risk is None
    assert policy.constraints.free == study.settings.constraints.free
    assert math.isnan(study.best().failing)
    assert study.predict()[0]["failing"] is None


def test_neither_abandoned_nor_withdrawn_trials_have_failed() -> None:
    study = create(policy="ucb")
    for number in range(6):
        trial = study.ask()
        if number < 3:
            study.abandon(trial)
        else:
            study.tell(trial, values(trial))
    study.correct(4, None, "the sensor was off")
    assert study.ledger().trials[4].state == "withdrawn"
    assert study.policy.failures.n_failed == 0
    assert math.isnan(study.best().failing)


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1), ("minimize", -1)])
def test_what_a_failed_trial_is_worth(direction: str, sign: int) -> None:
    study = create(policy="random", direction=direction)  # which asks everything
    told = {True: [2.0, 2.1, 2.2, 2.3, 2.0], False: [1.8, 1.9, 2.0, 1.9, 1.8, 1.7]}
    for on, rewards in told.items():
        rows = {node: [0.0] * len(rewards) for node in NODES[:3]}
        rows |= {"y": [sign * x for x in rewards], "do:a": [int(on)] * len(rewards)}
        study.import_rounds(rows)
    for _ in range(4):  # 4 of 9 with a on: not yet more often than not
        study.fail(_asked(study, "a"))
    study.change_settings(failure_reward=sign * 50.0)
    assert study.best().levels["a"] == "on"
    assert 0.2 < study.best().failing < 0.5
    study.change_settings(failure_reward=sign * -50.0)
    assert study.best().levels["a"] == "off"
    assert study.settings.as_dict()["failure_reward"] == sign * -50.0
    study.change_settings(failure_reward=None)
    assert study.settings.failure_reward is None
    assert study.best().levels["a"] == "on"  # again as little as the worst result


def _asked(study: Study, factor: str) -> int:
    """A pending trial with this factor on and no other; others are abandoned."""
    while True:
        trial = study.ask()
        if trial.switch == [factor]:
            return trial.number
        study.abandon(trial)


def test_units_do_not_matter() -> None:
    choices = [
        [tuple(trial.levels.values()) for trial in play(create(), 25, unit=unit)]
        for unit in (1.0, 1024.0)
    ]
    assert choices[0] == choices[1]


def test_nothing_is_recommended_if_everything_fails() -> None:
    study = create(policy="ucb")
    study.import_rounds({node: [1.0] for node in NODES} | {"do:b": [1]})
    for _ in range(20):
        study.fail(study.ask())
    with pytest.raises(TooEarlyError, match="fails more often than not"):
        study.best()
