"""Worlds whose nodes are shifted by factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import LinearSEM
from causalarms.errors import ModelError, SettingError
from causalarms.policies.registry import make_policy
from causalarms.posterior.roots import factor_columns
from causalarms.sem import random_shifted_sem, shifted_sem
from causalarms.simulation import (
    Contestant,
    Experiment,
    LearnerContestant,
    LearnerExperiment,
    World,
    compare_learners,
    monte_carlo,
    simulate,
    summarise,
)

FACTORS: dict[str, Any] = {"load": {"levels": [1, 2, 4]}, "kind": {"levels": ["x", "y", "z"]}}


def plant() -> LinearSEM:
    weights = np.zeros((2, 2, 2))
    weights[:, 0, 1] = 2.0, -1.0
    return LinearSEM(
        weights=weights, nodes=("heat", "yield"), noise_mean=[1.0, 0.0], regimes=[1, 2]
    )


def test_means_are_those_of_the_shifts() -> None:
    shifts = {"load": {"heat": [0, 3, -2], "yield": [1, 1, 1]}, "kind": {"yield": [5, 0, 7]}}
    sem, named = shifted_sem(plant(), FACTORS, shifts)
    assert named.names == ("yield", "load", "kind")
    for k, load in enumerate((1, 2, 4)):
        for m, kind in enumerate("xyz"):
            for regime, switch in enumerate(("off", "on")):
                row = named.intervention({"load": load, "kind": kind, "yield": switch})
                heat = 1 + [0, 3, -2][k]
                wanted = [heat, (2.0, -1.0)[regime] * heat + 1 + [5, 0, 7][m]]
                assert sem.mean([row])[0, :2] == pytest.approx(wanted)
    assert sem.mechanism_std[:, 2:].max() == 0.0


def test_the_best_and_the_average_are_of_levels_that_can_be_set() -> None:
    sem, named = random_shifted_sem(4, FACTORS, seed=3)
    world = World(sem, factors=named)
    rows = [named.intervention({"load": a, "kind": b}) for a in (1, 2, 4) for b in "xyz"]
    rewards = sem.expected_reward(rows)
    assert world.best_reward(0) == pytest.approx(rewards.max())
    assert world.average_reward(0) == pytest.approx(rewards.mean())
    # columns set one by one would seem to be better
    assert sem.best_arm().value > world.best_reward(0) + 0.1


def test_a_policy_learns_what_factors_act_on() -> None:
    """Over several systems: in a single one the second best may be hardly worse."""
    optimal = []
    for seed in range(5, 13):
        sem, named = random_shifted_sem(4, FACTORS, seed=seed, n_context=1)
        world = World(sem, factors=named)
        policy = make_policy(
            "posterior", n_nodes=world.n_nodes, reward=world.reward, regimes=world.regimes,
            constraints=world.constraints, columns=factor_columns(named, reward=world.reward),
        )  # fmt: skip
        trace = simulate(policy, world, horizon=60, seed=1)
        optimal.append(trace.optimal[-20:].mean())
        levels = [named.levels(row) for row in trace.interventions.tolist()]  # all can be set
        assert {row["load"] for row in levels} <= {1, 2, 4}
        assert (trace.observations[:, 4:] == [named.values(a) for a in trace.interventions]).all()
    # 0.88 over 58 systems, each with a standard deviation of about 0.3; random play: below 0.2
    assert np.mean(optimal) > 0.88 - 3 * 0.3 / np.sqrt(len(optimal))


def test_context_has_no_causes_and_no_factor_moves_it() -> None:
    for seed in range(20):
        sem, named = random_shifted_sem(5, FACTORS, seed=seed, n_context=2, edge_probability=0.9)
        first = [i for i in sem.order if i < 5][:2]
        causes = (sem.weights != 0).sum(axis=0)[:, first]
        causes[first] = 0
        assert not causes.any()
        acts = (sem.weights != 0).sum(axis=0)[5:, :5]
        for at in named.shifting:
            own = [c for c, column in enumerate(named.columns) if column.factors == (at,)]
            assert acts[own].any()


def make(rng: np.random.Generator) -> World:
    sem, named = random_shifted_sem(3, FACTORS, seed=rng)
    return World(sem, factors=named)


def test_policies_are_compared_on_them() -> None:
    contestants = tuple(Contestant(name) for name in ("posterior", "ucb", "random", "oracle"))
    experiment = Experiment(systems=make, horizon=40, block=10, contestants=contestants)
    records = monte_carlo(experiment, runs=3, n_jobs=1)
    regret = {row.policy: row.normalised_regret.value for row in summarise(experiment, records)}
    assert regret["oracle"] == 0.0
    assert regret["posterior"] < 0.5 * regret["random"]
    assert regret["posterior"] < regret["ucb"]


def test_a_policy_must_know_the_factors() -> None:
    world = make(np.random.default_rng(0))
    policy = make_policy("random", n_nodes=world.n_nodes, reward=2, regimes=world.regimes)
    with pytest.raises(ModelError, match=r"constraints=world\.constraints"):
        simulate(policy, world, horizon=5)


def test_learners_are_not_compared_on_them() -> None:
    experiment = LearnerExperiment(systems=make, rounds=50, learners=(LearnerContestant("csl"),))
    with pytest.raises(ModelError, match="systems without factors"):
        compare_learners(experiment, runs=1, n_jobs=1)


@pytest.mark.parametrize(
    ("factors", "shifts", "message"),
    [
        ({"heat": {"levels": [1, 2]}}, {}, "'heat' has the name of a node"),
        (FACTORS, {"lod": {}}, "did you mean 'load'"),
        (FACTORS, {"load": {"rain": [1, 2, 3]}}, "rain"),
        (FACTORS, {"load": {"heat": [1, 2]}}, "must be 3 numbers, one per level"),
        (FACTORS, {"load": {"heat": 3}}, "must be 3 numbers, one per level"),
        (FACTORS, {"yield": {"heat": [1, 2]}}, "'yield' switches a node"),
        (
            {"load": {"levels": [1, 2, 3, 4, 5, 6]}}, {"load": {"heat": [0, 1, 0, 1, 0, 1]}},
            "must lie on a curve of degree 3",
        ),
        (
            {"load": {"levels": [1, 2], "acts_on": ["heat"]}}, {},
            "'load' has a mechanism per level",
        ),
    ],
)  # fmt: skip
def test_wrong_shifts_are_refused(factors: Any, shifts: Any, message: str) -> None:
    with pytest.raises((ModelError, SettingError), match=message):
        shifted_sem(plant(), factors, shifts)


def test_worlds_with_other_factors_are_refused() -> None:
    sem, named = random_shifted_sem(3, FACTORS, seed=0)
    with pytest.raises(ModelError, match="the factors are for a system of the nodes"):
        World(plant(), factors=named)
    with pytest.raises(ModelError, match="no bends and no hidden nodes"):
        World(sem, factors=named, bend="u-shaped")
