"""Studies that decide with the posterior, in whatever units things are measured."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalarms import Study, random_sem
from causalarms.errors import FarValueWarning
from causalarms.policies.stopping import StopRule
from causalarms.sem.rewards import all_interventions, index_of
from causalarms.study.explain import model_checks

SEM = random_sem(5, seed=3)
UNITS = np.array([1000.0, 0.1, 5.0, 1.0, 20.0])
NODES = ["heat", "feed", "purity", "flow", "yield"]


@pytest.mark.parametrize("policy", ["posterior", "posterior-cd"])
def test_a_reopened_study_asks_what_it_would_have_asked(policy: str, tmp_path: Path) -> None:
    path = tmp_path / "line.db"
    settings = {"noise_scale": "estimate"}
    study = Study.create(
        path, nodes=NODES, reward="yield", policy=policy, policy_settings=settings, seed=2,
        intervenable=NODES,
    )  # fmt: skip
    rng, played = np.random.default_rng(0), []
    for round_ in range(120):
        if round_ in (5, 60, 110):
            study.close()
            study = Study.open(path)
        trial = study.ask()
        a = np.array([trial.intervention[node] for node in NODES])
        x = 300.0 + UNITS * SEM.sample(a[None], rng)[0]
        study.tell(trial, dict(zip(NODES, x.tolist(), strict=True)))
        played.append(a)
    rewards = SEM.expected_reward(np.array(played[-20:]))
    best = SEM.expected_reward(SEM.best_intervention()[None])[0]
    spread = best - SEM.average_reward()
    assert (best - rewards).mean() < 0.2 * spread
    assert study.verify(replay=True).ok
    rule = StopRule(probability=0.9)
    advice = rule.look(study.policy)
    assert advice is not None
    assert advice.probability == study.best().probability
    assert len(study.ask(3)) == 3
    study.close()


@pytest.mark.parametrize("idle", [[], ["feed"]])
@pytest.mark.filterwarnings("ignore::causalarms.errors.AlarmWarning")  # the world changes
@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")
def test_probes_asked_side_by_side_are_pairs_of_opposites(idle: list[str]) -> None:
    study = Study.create(
        None,
        nodes=NODES,
        reward="yield",
        policy="posterior-cd",
        noise_mean=SEM.noise_mean.tolist(),
        intervenable=[node for node in NODES if node not in idle],
        seed=2,
    )
    rng = np.random.default_rng(0)
    for round_ in range(200):
        trial = study.ask()
        a = np.array([trial.intervention[node] for node in NODES])
        x = SEM.sample(a[None], rng)[0]
        x[3] += 40.0 * (round_ > 60)
        study.tell(trial, dict(zip(NODES, x.tolist(), strict=True)))
        if study.alarms():
            break
    trials = [*study.ask(3), *study.ask(3, worker="the other")]
    played = np.array(
        [[t.intervention[node] for node in NODES if node not in idle] for t in trials]
    )
    assert (played[0::2] != played[1::2]).all()
    assert len(np.unique(played, axis=0)) > 2
    assert study.verify(replay=True).ok


def test_constraints_and_costs_are_kept_and_the_best_within_them_is_found() -> None:
    arms = all_interventions(5)
    few = (arms.sum(axis=1) <= 2) & ~((arms[:, 0] == 1) & (arms[:, 1] == 1))
    reward = SEM.expected_reward(arms)
    dear = int(np.flatnonzero(arms[few][reward[few].argmax()])[0])  # worth it but for its price
    price = float(reward[few].max() - reward[few & (arms[:, dear] == 0)].max()) + 1.0
    value = reward - price * arms[:, dear]
    assert arms[few][value[few].argmax(), dear] == 0
    study = Study.create(
        None,
        nodes=NODES,
        reward="yield",
        intervenable=NODES,
        policy="posterior",
        noise_mean=SEM.noise_mean.tolist(),
        constraints={"max_interventions": 2, "forbidden": [["heat", "feed"]]},
        costs={NODES[dear]: price},
        seed=1,
    )
    rng, values = np.random.default_rng(0), []
    for _ in range(150):
        trial = study.ask()
        a = np.array([trial.intervention[node] for node in NODES])
        assert few[index_of(a)]
        values.append(value[index_of(a)])
        x = SEM.sample(a[None], rng)[0]
        study.tell(trial, dict(zip(NODES, x.tolist(), strict=True)))
    assert np.mean(np.isclose(values[-30:], value[few].max(), atol=0.05)) > 0.7


@pytest.mark.parametrize("policy", ["posterior", "csl-ucb", "linsem-ts", "random"])
def test_constraints_of_many_nodes_are_kept(policy: str) -> None:
    """24 nodes, of which at most two are switched, never the first two together."""
    n = 24
    sem = random_sem(n, seed=3, expected_degree=3)
    settings: dict[str, Any] = {"policy": policy}
    if policy == "linsem-ts":
        settings |= {"policy_settings": {"graph": sem.adjacency.tolist()}, "noise_mean": 0.0}
    study = Study.create(
        None,
        nodes=sem.nodes,
        reward=sem.nodes[-1],
        intervenable=sem.nodes,
        constraints={"max_interventions": 2, "forbidden": [[sem.nodes[0], sem.nodes[1]]]},
        costs={sem.nodes[2]: 0.5},
        **settings,
    )
    rng = np.random.default_rng(0)
    for _ in range(12):
        trial = study.ask()
        a = np.array(list(trial.intervention.values()), dtype=np.uint8)
        assert a.sum() <= 2
        assert not a[:2].all()
        study.tell(trial, sem.sample(a[None], rng)[0].tolist())
    if policy == "posterior":
        assert sum(study.best().intervention.values()) <= 2


def test_a_typing_error_is_left_out_told_and_taken_back_when_corrected() -> None:
    study = Study.create(None, NODES, "yield", "minimize", intervenable=NODES, seed=2)
    rng = np.random.default_rng(0)
    study.fail(study.ask(), "tube broke")  # trials are not rounds
    for _ in range(20):
        trial = study.ask()
        a = np.array([trial.intervention[node] for node in NODES])
        x = SEM.sample(a[None], rng)[0]
        if trial.number == 12:
            honest = dict(zip(NODES, x.tolist(), strict=True))
            x[-1] = 1000.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FarValueWarning)
            study.tell(trial, dict(zip(NODES, x.tolist(), strict=True)))
    (out,) = study.left_out()
    assert (out.trial, out.node, out.value) == (12, "yield", 1000.0)
    (suspect,) = study.suspects()
    assert (suspect.trial, suspect.node, suspect.learned) == (12, "yield", False)
    assert suspect.why.startswith("far outside the ")
    assert suspect.as_dict()["why"] == suspect.why
    assert "trial 12: 'yield' = 1000 left out as a probable typing error" in out.message
    assert out.message in study.explain(18)["text"]
    assert "left out" not in study.explain(10)["text"]
    # one answer everywhere, and no check of the model looks at it
    assert [far.learned for far in study.far_values()] == [False]
    assert not study.history()["learned"][12]
    assert study.best().basis.startswith("19 rounds")
    assert not any(check.doubtful for check in model_checks(study.beliefs()))
    study.correct(12, honest, "typing error")
    assert study.left_out() == []
    assert study.history()["learned"][12]
    assert study.best().basis.startswith("20 rounds")


def test_new_studies_are_of_any_noise_and_leave_typing_errors_out() -> None:
    for changes in (False, True):
        study = Study.create(None, nodes=NODES, reward="yield", changes=changes)
        told = study.settings.policy_settings
        assert told["typing_errors"] == "left out"
        assert told.get("noise") == ("any" if changes else None)
    mine = {"typing_errors": "kept", "noise": "gaussian"}
    study = Study.create(None, nodes=NODES, reward="yield", changes=True, policy_settings=mine)
    others = {"noise_scale": "estimate", "gaps": "learn", "decide": "auto"}
    assert study.settings.policy_settings == others | mine
