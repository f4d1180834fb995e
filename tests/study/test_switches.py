"""A study without factors: every node but the reward has a switch, unless one is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalarms import Study
from causalarms.errors import StudyError

NODES = ("heat", "stir", "yield")
INTO_YIELD = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
# that learn from rounds of any kind; those told the graph get a true one
PLAYING: dict[str, dict[str, Any]] = {
    "csl-ucb": {"horizon": 200, "policy_settings": {"min_samples": 8}},
    "csl-ucb-cd": {"horizon": 200, "policy_settings": {"min_samples": 8}},
    "csl-ucb-joint": {"horizon": 200, "policy_settings": {"min_samples": 8}},
    "ucb": {},
    "posterior": {},
    "posterior-cd": {},
    "random": {},
    "linsem-ts": {"noise_mean": 0.0, "policy_settings": {"graph": [INTO_YIELD, [[0] * 3] * 3]}},
}
PLANNING = ("ga-lcb", "golem-mab", "golem-mab-cd", "dagma-mab", "explore-then-commit", "additive")


def factors_of(study: Study) -> list[str]:
    return [factor.name for factor in study.settings.named.factors]


@pytest.mark.parametrize("reward", ["yield", 2, -1, np.int64(2), np.str_("yield")])
def test_the_reward_has_no_switch_however_it_is_named(reward: Any) -> None:
    study = Study.create(None, NODES, reward)
    assert study.settings.reward == "yield"
    assert factors_of(study) == ["heat", "stir"]
    assert study.settings.named.regimes.tolist() == [2, 2, 1]


@pytest.mark.parametrize("wanted", [NODES, ["yield", "heat"], [2, "heat"]])
def test_a_switch_of_the_reward_is_asked_for(wanted: Any) -> None:
    study = Study.create(None, NODES, "yield", intervenable=wanted)
    assert factors_of(study) == (list(NODES) if len(wanted) == 3 else ["heat", "yield"])


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("yeild", "there is no node 'yeild'; did you mean 'yield'"),
        (3, "there is no node 3: there are 3 nodes"),
        (True, "given by its name or its position, not by True"),
        (1.0, "given by its name or its position, not by 1.0"),
        (["yield"], "given by its name or its position"),
        (None, "reward is missing in the settings"),
    ],
)
def test_a_wrong_reward_is_refused_as_with_factors(reward: Any, message: str) -> None:
    said = []
    given: tuple[Any, ...] = (None, {"heat": {}})
    for factors in given:
        with pytest.raises(StudyError, match=message) as refused:
            Study.create(None, NODES, reward, factors=factors)
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_a_reward_alone_is_no_study() -> None:
    with pytest.raises(StudyError, match="at least two nodes: the reward, and what may cause it"):
        Study.create(None, ["yield"], "yield")


def test_a_study_that_exists_keeps_the_switch_of_its_reward(tmp_path: Path) -> None:
    Study.create(tmp_path / "s.db", NODES, "yield", intervenable=NODES).close()
    with Study.open(tmp_path / "s.db") as study:
        study.change_settings(horizon=900)
        assert factors_of(study) == list(NODES)


@pytest.mark.parametrize("policy", PLAYING)
def test_policies_play_without_a_switch_of_the_reward(policy: str) -> None:
    study = Study.create(None, NODES, "yield", policy=policy, seed=1, **PLAYING[policy])
    rng = np.random.default_rng(1)
    for _ in range(40):
        trial = study.ask()
        assert trial.intervention["yield"] == 0
        assert set(trial.levels) == {"heat", "stir"}
        heat, stir = (trial.intervention[node] + rng.normal() for node in NODES[:2])
        study.tell(trial, [heat, stir, 2 * heat - stir + rng.normal()])
    assert study.problem is None


@pytest.mark.parametrize("policy", PLANNING)
def test_plans_that_need_all_switches_say_how_to_ask_for_them(policy: str) -> None:
    told = {"policy": policy, "noise_mean": 0.0, "horizon": 5000}
    if policy == "additive":
        del told["noise_mean"]
    with pytest.raises(StudyError, match="name every node in intervenable"):
        Study.create(None, NODES, "yield", **told)  # type: ignore[arg-type]
    study = Study.create(None, NODES, "yield", intervenable=NODES, **told)  # type: ignore[arg-type]
    assert set(study.ask().levels) == set(NODES)
