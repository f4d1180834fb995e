"""Marginal elimination: phases by hand, least squares, how many rounds it takes, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import LinearSEM, simulate
from causalarms.errors import SettingError
from causalarms.policies.additive import Additive
from causalarms.rng import stream


def hard(n_set: int, levels: int = 3) -> LinearSEM:
    """The reward is a sum over nodes; level l sets node i to l, or to 2 - l where i is odd."""
    n = n_set + 1
    weights = np.zeros((levels, n, n))
    weights[0, :n_set, n_set] = 1.0
    values = np.zeros((levels, n))
    values[:, :n_set] = np.arange(levels)[:, None]
    values[:, 1:n_set:2] = levels - 1.0 - np.arange(levels)[:, None]
    std = np.zeros((levels, n))
    std[0, n_set] = 1.0
    return LinearSEM(
        weights=weights, noise_mean=values, noise_std=std, regimes=[levels] * n_set + [1]
    )


def additive(sem: LinearSEM, **settings: float) -> Additive:
    return Additive(sem.n_nodes, sem.reward, regimes=sem.regimes, **settings)


def test_phases_are_as_long_as_the_formula_says() -> None:
    """bound 8, epsilon 1: P = 3; gamma = 4, 2, 1, 0.5; n = 4 * 5 levels * ln(3 / 0.1) / gamma^2."""
    sem = hard(2, levels=2)  # 2 + 2 levels and the reward's one
    policy = additive(sem, epsilon=1.0, bound=8.0)
    assert [policy.tolerance(k) for k in range(4)] == [4.0, 2.0, 1.0, 0.5]
    assert [policy.n_rounds(k) for k in range(4)] == [5, 18, 69, 273]
    assert policy.state()["phase"] == 0  # 5 rounds are as many as there are levels
    assert additive(sem, epsilon=1.0, bound=16.0).state()["phase"] == 1  # gamma = 8: too short


def test_levels_go_when_they_are_gamma_below_the_best() -> None:
    """Without noise the terms are exact: node 0 has 0, 1.1, 2.2 and node 1 has 2.2, 1.1, 0."""
    policy = additive(hard(2), epsilon=1.0, bound=3.9, noise_std=1.0)
    n_first = policy.n_rounds(0)
    assert policy.tolerance(0) == 2.0
    rng = np.random.default_rng(0)
    for _ in range(n_first):
        a = policy.ask(rng)
        policy.tell(a, [0.0, 0.0, 1.1 * (a[0] + 2.0 - a[1])])
    alive = policy.state()["alive"]
    assert alive[:, 0].tolist() == [False, True, True]  # 2.2 below the best goes, 1.1 stays
    assert alive[:, 1].tolist() == [True, True, False]
    expected = np.outer([0.0, 1.1, 2.2], [1, -1])
    np.testing.assert_allclose(policy.terms()[:, :2], expected, atol=1e-9)
    assert policy.state()["phase"] == 1
    while not policy.committed:
        a = policy.ask(rng)
        assert alive[a, np.arange(3)].all()
        policy.tell(a, [0.0, 0.0, 1.1 * (a[0] + 2.0 - a[1])])
    chosen = policy.suggest(rng)
    assert chosen.intervention.tolist() == [2, 0, 0]
    assert chosen.mean == pytest.approx(4.4)
    assert chosen.reason == "exploit"


def test_terms_are_those_of_least_squares_on_the_rows() -> None:
    sem = hard(3)
    policy, noise = additive(sem, epsilon=1.0, bound=4.0), stream(1, "noise")
    rows, values = [], []
    for t in range(policy.n_rounds(0)):
        a = policy.ask(stream(1, "policy", t))
        x = sem.sample(a[None], noise)[0]
        policy.tell(a, x)
        rows.append([1.0, *(float(a[i] == r) for i in range(3) for r in (1, 2))])
        values.append(x[3])
    expected = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    found = policy.terms()[1:, :3].T.ravel()
    np.testing.assert_allclose(found, expected[1:], atol=1e-9)
    counts = np.array(rows).sum(axis=0)[1:].reshape(3, 2)
    assert counts.max() - counts.min() <= 1  # every level equally often


@pytest.mark.parametrize("n_set", [2, 4, 8])
def test_rounds_grow_with_the_levels_and_not_with_their_combinations(n_set: int) -> None:
    """Its claim: a sum of 3 per node instead of 3^n. Every arm once would be 6561 with eight."""
    sem = hard(n_set)
    trace = simulate(additive(sem, epsilon=1.0, bound=16.0), sem, horizon=1500, seed=2)
    explored = int(trace.explored.sum())
    assert explored < 140 * (n_set + 1)
    assert trace.optimal[explored:].all()


def test_a_round_that_nobody_asked_for_counts_but_does_not_end_a_phase() -> None:
    policy = additive(hard(2), epsilon=1.0, bound=4.0)
    for _ in range(3 * policy.n_rounds(0)):
        policy.tell([0, 0, 0], [0.0, 0.0, 1.0])
    assert policy.state()["phase"] == 0
    assert not policy.committed


def test_what_cannot_work_is_refused_by_name() -> None:
    with pytest.raises(SettingError, match=r"epsilon=2 is above the bound=1"):
        Additive(3, epsilon=2.0, bound=1.0)
    with pytest.raises(SettingError, match="a term for each of 1280 levels; at most 1024"):
        Additive(5, regimes=256)
