"""Calling nodes by other numbers changes nothing but the numbers, whatever regimes they have."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from causalarms import LinearSEM, random_sem
from causalarms.graphs.csl import csl
from causalarms.models.linear import fit_weights
from causalarms.posterior.exact import ExactPosterior
from causalarms.sem.rewards import all_interventions
from causalarms.statistics import Dataset, Moments

Regimes = st.lists(st.integers(1, 4), min_size=2, max_size=5)


def relabelled(sem: LinearSEM, order: list[int]) -> LinearSEM:
    return LinearSEM(
        weights=sem.weights[:, order][:, :, order],
        noise_mean=sem.mechanism_mean[:, order],
        regimes=sem.regimes[order],
        reward=order.index(sem.reward),
    )


@given(Regimes, st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_rewards_and_the_best(regimes: list[int], seed: int) -> None:
    sem = random_sem(len(regimes), seed=seed, regimes=regimes)
    order = np.random.default_rng(seed).permutation(len(regimes)).tolist()
    other = relabelled(sem, order)
    arms = all_interventions(sem.n_nodes, sem.regimes)
    assert np.allclose(other.expected_reward(arms[:, order]), sem.expected_reward(arms))
    assert np.allclose(np.sort(other.all_expected_rewards()), np.sort(sem.all_expected_rewards()))
    assert np.isclose(other.best_arm().value, sem.best_arm().value)
    assert np.isclose(sem.best_arm().value, sem.expected_reward(arms).max())
    assert np.isclose(other.average_reward(), sem.average_reward())


@given(st.lists(st.integers(1, 3), min_size=2, max_size=4), st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_what_is_learned(regimes: list[int], seed: int) -> None:
    n = len(regimes)
    sem, rng = random_sem(n, seed=seed, regimes=regimes), np.random.default_rng(seed)
    a = rng.integers(0, sem.regimes, (240, n), dtype=np.uint8)
    x = sem.sample(a, rng)
    order = rng.permutation(n)
    data = Dataset(n, regimes=regimes)
    data.append(x, a)
    other = Dataset(n, regimes=sem.regimes[order])
    other.append(x[:, order], a[:, order])
    mean = sem.mechanism_mean
    one, two = (ExactPosterior(n, Moments.of(d), noise_mean=m).edge_probability
                for d, m in ((data, mean), (other, mean[:, order])))  # fmt: skip
    assert np.allclose(two, one[:, order][:, :, order], atol=1e-8)
    fit, again = csl(data, noise_mean=mean), csl(other, noise_mean=mean[:, order])
    assert np.array_equal(again.adjacency, fit.adjacency[:, order][:, :, order])
    first = fit_weights(Moments.of(data), fit.adjacency, noise_mean=mean)
    second = fit_weights(Moments.of(other), again.adjacency, noise_mean=mean[:, order])
    assert np.allclose(second.weights, first.weights[:, order][:, :, order])
    assert np.array_equal(second.counts, sem.regimes[order])
