"""Systems whose nodes have one, two or several regimes."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest

from causalarms import LinearSEM, random_sem, search
from causalarms.errors import DataError, ModelError, SettingError
from causalarms.limits import MAX_REGIMES
from causalarms.sem import Constraints, convert
from causalarms.sem.ensembles import regenerate
from causalarms.sem.regimes import existing, regime_counts, regimes_of
from causalarms.sem.rewards import (
    all_interventions,
    check_enumerable,
    index_of,
    intervention_of,
    neighbours,
    within,
)

MIXED = [1, 3, 2, 4, 2]


def system(seed: int = 0) -> LinearSEM:
    rng = np.random.default_rng(seed)
    has = existing(np.array(MIXED))
    return random_sem(5, seed=rng, regimes=MIXED).replace(
        noise_mean=np.where(has, rng.normal(size=has.shape), 0.0),
        noise_std=np.where(has, rng.uniform(0.5, 2.0, has.shape), 0.0),
    )


def test_mixed_radix_indices() -> None:
    arms = all_interventions(5, np.array(MIXED))
    assert arms.tolist() == [list(a) for a in product(*(range(k) for k in MIXED))]
    assert [index_of(a, np.array(MIXED)) for a in arms] == list(range(48))
    assert intervention_of(47, 5, np.array(MIXED)).tolist() == [0, 2, 1, 3, 1]


def test_expected_rewards_are_those_of_the_matrices() -> None:
    sem = system()
    arms = all_interventions(5, sem.regimes)
    means = []
    for a in arms:
        b = np.column_stack([sem.weights[a[i], :, i] for i in range(5)])
        noise = np.array([sem.noise_mean[a[i], i] for i in range(5)])
        means.append(np.linalg.solve(np.eye(5) - b.T, noise))
        assert np.array_equal(sem.post_intervention_weights(a), b)
        flow = np.linalg.inv(np.eye(5) - b)
        std = np.diag([sem.noise_std[a[i], i] ** 2 for i in range(5)])
        assert np.allclose(sem.covariance(a), flow.T @ std @ flow)
    rewards = np.array(means)[:, sem.reward]
    assert np.allclose(sem.expected_reward(arms), rewards)
    assert np.allclose(sem.all_expected_rewards(), rewards)
    assert np.isclose(sem.average_reward(), rewards.mean())
    assert np.array_equal(sem.best_intervention(), arms[np.argmax(rewards)])


def test_samples_have_the_exact_moments() -> None:
    sem, a = system(), [0, 2, 1, 3, 0]
    x = sem.sample(np.repeat([a], 40_000, axis=0), np.random.default_rng(1))
    error = np.sqrt(np.diag(sem.covariance(a)) / len(x))
    assert (np.abs(x.mean(axis=0) - sem.mean([a])[0]) < 4 * error).all()
    assert np.allclose(np.cov(x.T), sem.covariance(a), rtol=0.1, atol=0.2)


@pytest.mark.parametrize("regimes", [[1, 2, 2, 1, 2, 1], [1] * 6])
def test_search_with_nodes_without_a_switch(regimes: list[int]) -> None:
    for seed in range(20):
        sem = random_sem(6, seed=seed, regimes=regimes)
        arms, values = all_interventions(6, sem.regimes), sem.all_expected_rewards()
        best = sem.best_arm()
        assert best.exact
        assert np.isclose(best.value, values.max())
        assert not best.intervention[np.array(regimes) == 1].any()
        found = sem.top(3)
        assert np.allclose([b.value for b in found], np.sort(values)[::-1][: len(found)])
        assert len(found) == min(3, len(arms))


def test_search_among_several_regimes() -> None:
    for seed in range(20):
        sem = system(seed)
        values = sem.all_expected_rewards()
        best = sem.best_arm()
        assert best.exact
        assert np.isclose(best.value, values.max())
        assert np.isclose(sem.expected_reward(best.intervention[None])[0], values.max())
        assert np.allclose([b.value for b in sem.top(5)], np.sort(values)[:-6:-1])
        beside = neighbours(best.intervention, sem.regimes)
        assert len(beside) == sum(MIXED) - 5
        assert sem.expected_reward(beside).max() <= best.value + 1e-9


def test_constraints_among_several_regimes() -> None:
    arms = all_interventions(5, np.array(MIXED))
    on = arms != 0
    for seed in range(10):
        sem = system(seed)
        limits = Constraints(
            max_interventions=3,
            forbidden=[{"x1": 0}, {"x1": 2, "x2": 1}],
            required=[{"x2": 1, "x3": 3}],
            costs={"x3": 0.7},
        )
        fits = on[:, 1] & (on.sum(axis=1) <= 3) & ~((arms[:, 1] == 2) & (arms[:, 2] == 1))
        fits &= (arms[:, 2] == 1) == (arms[:, 3] == 3)
        values = np.where(fits, sem.all_expected_rewards() - 0.7 * on[:, 3], -np.inf)
        best = sem.best_arm(limits)
        assert np.isclose(best.value, values.max())
        assert values[index_of(best.intervention, sem.regimes)] == values.max()
    with pytest.raises(ModelError, match="node 'x0' has no switch of its own"):
        system().best_arm(Constraints(forbidden=[{"x0": 1}]))
    with pytest.raises(ModelError, match="factor 'x1' has no level 3; it has 0, 1, 2"):
        system().best_arm(Constraints(forbidden=[{"x1": 3}]))


def test_constraints_of_more_regimes_than_there_are() -> None:
    two = search.Constraints([2, 2, 2], allowed={1: [1]}, at_most=2, cost=[[0, 1.0]] * 3)
    assert within(np.array([2, 2, 2]), two) is two
    fewer = within(np.array([1, 2, 2]), two)
    assert fewer.interventions().tolist() == [[0, 1, 0], [0, 1, 1]]
    assert fewer.cost([[0, 1, 1]]).tolist() == [2.0]
    with pytest.raises(ModelError, match="constraints on 3 nodes, but there are 2"):
        within(np.array([2, 2]), two)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1, 0, 0, 0, 0], "row 0 of node 'x0'.*has 1 regime"),
        ([0, 3, 0, 0, 0], "row 0 of node 'x1'.*has 3 regimes"),
        ([0, 0, 2, 0, 0], "row 0 of node 'x2'.*has 2 regimes"),
        ([0, 0, 0, -1, 0], "row 0 of node 'x3'.*has 4 regimes"),
        ([0, 0, 0, 1.5, 0], "row 0 of node 'x3'.*has 4 regimes"),
        ([0, 0, 0, np.nan, 0], "row 0 of node 'x3'.*has 4 regimes"),
    ],
)
def test_regimes_that_a_node_does_not_have(row: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        system().mean([row])


def test_settings_that_are_refused() -> None:
    for wrong in (0, [1, 2], "ab", 2.5, MAX_REGIMES + 1, [2, 2, None]):
        with pytest.raises(SettingError, match="regimes"):
            regime_counts(wrong, 3)
    w = np.zeros((2, 2, 2))
    with pytest.raises(ModelError, match="up to 3"):
        LinearSEM(weights=w, regimes=[3, 2])
    w[1, 0, 1] = 1.0
    with pytest.raises(ModelError, match="node 'x1' has 1 regimes, but weights in regime 1"):
        LinearSEM(weights=w, regimes=[2, 1])
    with pytest.raises(ModelError, match="cannot be enumerated"):
        check_enumerable(16, np.full(16, 3))
    with pytest.raises(ModelError, match="has no regime 1"):
        system().parents("x0", 1)


def test_files_and_graphs_keep_regimes() -> None:
    sem = system()
    assert LinearSEM.from_dict(sem.to_dict()) == sem
    assert convert.from_networkx(convert.to_networkx(sem)) == sem
    assert "regimes" not in random_sem(3, seed=0).to_dict()
    alone = random_sem(3, seed=0, regimes=1)
    assert LinearSEM.from_dict(alone.to_dict()) == alone
    assert alone.weights.shape == (1, 3, 3)


def test_two_regimes_told_are_the_default_bit_for_bit() -> None:
    assert random_sem(7, seed=5, regimes=[2] * 7) == random_sem(7, seed=5)
    assert random_sem(7, seed=5, regimes=2) == random_sem(7, seed=5)


def test_columns_of_a_node_differ() -> None:
    for seed in range(30):
        sem = random_sem(4, seed=seed, regimes=[3, 1, 4, 3], edge_probability=0.2)
        for node in sem.order[1:]:
            columns = sem.weights[: sem.regimes[node], :, node]
            assert len(np.unique(columns, axis=0)) == sem.regimes[node]


def test_regeneration_changes_mechanisms_that_exist() -> None:
    sem = system()
    for seed in range(10):
        rng = np.random.default_rng(seed)
        for rule, n in (("plain", 12), ("authors", 2)):
            changed = regenerate(sem, n, rng, rule=rule)
            assert changed.mechanisms
            assert all(regime < MIXED[node] for regime, node in changed.mechanisms)
            assert np.array_equal(changed.sem.regimes, sem.regimes)
    with pytest.raises(ModelError, match="13 of 12 mechanisms"):
        regenerate(sem, 13, np.random.default_rng(0), rule="plain")


def test_counts_are_checked_once_and_a_foreign_array_always() -> None:
    checked = regime_counts([1, 2, 3], 3)
    assert regime_counts(checked, 3) is checked
    mine = np.array([1, 2, 3])
    seen = mine[:]
    seen.setflags(write=False)
    copied = regime_counts(seen, 3)
    mine[0] = 9
    assert copied.tolist() == [1, 2, 3]
    for wrong in ([0, 2, 2], [2, MAX_REGIMES + 1, 2], [2, 2]):
        fixed = np.array(wrong)
        fixed.setflags(write=False)
        with pytest.raises(SettingError, match="regimes"):
            regime_counts(fixed, 3)
    with pytest.raises(SettingError, match="regimes"):
        regime_counts([True, 2, 3], 3)  # equal to counts that were accepted
    most = np.array([1, MAX_REGIMES, 2])
    most.setflags(write=False)
    assert regime_counts(most, 3).tolist() == [1, MAX_REGIMES, 2]


def test_regimes_know_what_follows_from_their_counts() -> None:
    mixed = regimes_of([1, 3, 2], 3)
    assert (mixed.n_regimes, mixed.n_interventions, mixed.all_two) == (3, 6, False)
    assert mixed.existing.tolist() == existing(np.array([1, 3, 2])).tolist()
    assert regimes_of(None, 70).all_two
    assert regimes_of(None, 70).n_interventions == 2**70
    assert intervention_of(3, 70, regimes_of([3] + [2] * 69, 70))[-3:].tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        mixed.counts[0] = 2
    again = pickle.loads(pickle.dumps(mixed))
    assert again == mixed
    assert not again.counts.flags.writeable
    with pytest.raises(SettingError, match="3 of 4"):
        regimes_of(mixed, 4)
