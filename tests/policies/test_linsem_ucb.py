"""LinSEM-UCB: radius, optimism, growth of the regret, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import make_policy, random_sem, simulate
from causalarms.errors import SettingError
from causalarms.policies.base import Policy
from causalarms.policies.linsem_ucb import LinSEMUCB
from causalarms.rng import stream
from causalarms.sem.linear_sem import LinearSEM


def policy_for(sem: LinearSEM, **settings: object) -> LinSEMUCB:
    told = {"graph": sem.adjacency, "noise_mean": sem.noise_mean, "horizon": 400} | settings
    return LinSEMUCB(sem.n_nodes, sem.reward, **told)  # type: ignore[arg-type]


def test_the_radius_of_the_theorem() -> None:
    sem = random_sem(4, seed=2)
    d = int(sem.adjacency.sum(axis=1).max())
    expected = 1 + np.sqrt(2 * np.log(2 * 4 * 400) + d * np.log(1 + 9 * 400 / d))
    assert policy_for(sem, beta="theory", bound=3.0).beta == pytest.approx(expected)
    assert policy_for(sem, beta=2.5).beta == 2.5


def test_the_best_setting_is_never_underrated() -> None:
    """What the regret bound rests on: in every round the index of the best is above its reward."""
    for seed in range(4):
        sem = random_sem(4, seed=seed)
        policy, noise = policy_for(sem, beta="theory"), stream(seed, "noise")
        best = sem.best_intervention()[None]
        reward = sem.expected_reward(best)[0]
        for t in range(100):
            a = policy.ask(stream(seed, "policy", t))
            _, index = policy.scores(best)
            assert index[0] >= reward - 1e-9
            policy.tell(a, sem.sample(a[None], noise)[0])


def test_the_regret_grows_slower_than_the_root_of_time() -> None:
    """Theorem 3 of its paper says sqrt(T) up to logarithms, whatever the system."""
    early, late = [], []
    for seed in range(8):
        sem = random_sem(4, seed=seed)
        trace = simulate(policy_for(sem, beta="theory"), sem, horizon=800, seed=seed)
        early.append(trace.regret[199])
        late.append(trace.regret[-1])
    assert 0 < np.mean(late) < 2 * np.mean(early)  # a linear regret would be 4 times as large


def test_it_needs_fewer_rounds_than_there_are_interventions() -> None:
    sem = random_sem(9, seed=3)
    trace = simulate(policy_for(sem), sem, horizon=256, seed=1)
    blind: Policy = make_policy("ucb", n_nodes=9)
    assert trace.regret[-1] < 0.1 * simulate(blind, sem, horizon=256, seed=1).regret[-1]


def test_the_unit_of_the_noise_is_the_unit_of_all() -> None:
    """Everything 10 times as large, told so: the same choices."""
    sem = random_sem(4, seed=6)
    one, other = policy_for(sem), policy_for(sem, noise_mean=10 * sem.noise_mean, noise_std=10.0)
    rng, noise = np.random.default_rng(0), stream(0, "noise")
    for _ in range(60):
        a, again = one.suggest(rng), other.suggest(rng)
        np.testing.assert_array_equal(a.intervention, again.intervention)
        assert again.mean == pytest.approx(10 * a.mean)
        x = sem.sample(a.intervention[None], noise)[0]
        one.tell(a.intervention, x)
        other.tell(a.intervention, 10 * x)


def test_what_cannot_work_is_refused_by_name() -> None:
    sem = random_sem(4, seed=2)
    with pytest.raises(SettingError, match="beta must be a number or 'theory', not 'wide'"):
        policy_for(sem, beta="wide")
    with pytest.raises(SettingError, match="beta='theory' must be told the horizon"):
        policy_for(sem, beta="theory", horizon=None)
    with pytest.raises(SettingError, match=r"131,072 are too many for it \(at most 2\^16\)"):
        LinSEMUCB(17, graph=np.zeros((2, 17, 17)), noise_mean=1.0)
