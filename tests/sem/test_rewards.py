"""Expected rewards: batched, enumerated, and one inverse per intervention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms import LinearSEM, random_sem
from causalarms.errors import DataError, ModelError
from causalarms.sem import all_interventions
from causalarms.sem.rewards import expected_values, index_of, intervention_of, reward_tables


def by_inverse(sem: LinearSEM, a: np.ndarray) -> float:
    n = sem.n_nodes
    nu = sem.mechanism_mean[a, np.arange(n)]
    inverse = np.linalg.inv(np.eye(n) - sem.post_intervention_weights(a))
    return float((inverse.T @ nu)[sem.reward])


def drawn(n_nodes: int, seed: int, weights: str = "separated") -> LinearSEM:
    """Any node is the reward, and the noise mean depends on the regime."""
    rng = np.random.default_rng(seed)
    return random_sem(n_nodes, seed=seed, weights=weights).replace(
        reward=int(rng.integers(n_nodes)), noise_mean=rng.normal(size=(2, n_nodes))
    )


@given(st.integers(1, 7), st.integers(0, 10**6), st.sampled_from(["separated", "uniform"]))
def test_enumerated_rewards_are_the_batched_ones(n_nodes: int, seed: int, weights: str) -> None:
    sem = drawn(n_nodes, seed, weights)
    batched = sem.expected_reward(all_interventions(n_nodes))
    np.testing.assert_allclose(sem.all_expected_rewards(), batched, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_nodes", [8, 9, 10])
def test_enumerated_rewards_of_larger_systems(n_nodes: int) -> None:
    sem = drawn(n_nodes, n_nodes)
    batched = sem.expected_reward(all_interventions(n_nodes))
    np.testing.assert_allclose(sem.all_expected_rewards(), batched, rtol=1e-9, atol=1e-9)


@given(st.integers(1, 8), st.integers(0, 10**6))
def test_batched_rewards_are_one_inverse_each(n_nodes: int, seed: int) -> None:
    sem = drawn(n_nodes, seed)
    A = np.random.default_rng(seed).integers(0, 2, (10, n_nodes))
    each = [by_inverse(sem, a) for a in A]
    np.testing.assert_allclose(sem.expected_reward(A), each, rtol=1e-9, atol=1e-9)


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_best_intervention_beats_every_other(n_nodes: int, seed: int) -> None:
    sem = drawn(n_nodes, seed)
    best = sem.best_intervention()
    rewards = [by_inverse(sem, a) for a in all_interventions(n_nodes)]
    assert by_inverse(sem, best) == pytest.approx(max(rewards), rel=1e-12)


def test_best_intervention_is_the_first_among_equals() -> None:
    """Node 0 does not reach the reward: its regime is 0 in the best intervention."""
    weights = np.zeros((2, 3, 3))
    weights[1, 1, 2] = 2.0
    sem = LinearSEM(weights=weights, noise_mean=1.0)
    assert sem.best_intervention().tolist() == [0, 0, 1]


def test_interventions_are_numbered_by_their_binary_digits() -> None:
    for number, a in enumerate(all_interventions(5)):
        assert index_of(a) == number
        assert intervention_of(number, 5).tolist() == a.tolist()


def test_too_many_nodes_to_enumerate() -> None:
    sem = random_sem(25, seed=0)
    with pytest.raises(ModelError, match=r"2\^25 interventions cannot be enumerated"):
        sem.all_expected_rewards()
    with pytest.raises(ModelError, match="at most 24 nodes"):
        all_interventions(25)
    assert np.isfinite(sem.expected_reward(np.zeros((1, 25)))).all()


@pytest.mark.parametrize(
    ("interventions", "message"),
    [
        ([[0, 0, 2]], "row 0 of node 'x2': regime 2 "),
        ([[0, 0, 0], [0, np.nan, 0]], "row 1 of node 'x1': regime nan"),
        ([[0, 0]], r"shape \(n, 3\).* not \(1, 2\)"),
        ([0, 0, 0], r"shape \(n, 3\).* not \(3,\)"),
        ([["a", "b", "c"]], "must be numbers 0"),
    ],
)
def test_interventions_that_are_refused(interventions: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        random_sem(3, seed=0).expected_reward(interventions)  # type: ignore[arg-type]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(0, 10**6))
def test_any_numbers_of_regimes(counts: list[int], seed: int) -> None:
    """Mixed-radix numbers: tables, rows and indices agree with one inverse per intervention."""
    rng = np.random.default_rng(seed)
    regimes = np.array(counts)
    n, r = len(counts), max(counts)
    order = rng.permutation(n)
    place = np.argsort(order)
    weights = rng.normal(size=(r, n, n)) * (place[:, None] < place)
    mean, reward = rng.normal(size=(r, n)), int(rng.integers(n))
    rows = all_interventions(n, regimes)
    assert rows.tolist() == sorted(rows.tolist())
    assert [index_of(row, regimes) for row in rows] == list(range(int(np.prod(regimes))))
    each = []
    for row in rows:
        b = np.array([weights[row[i], :, i] for i in range(n)])
        each.append(np.linalg.solve(np.eye(n) - b, mean[row, np.arange(n)])[reward])
    found = expected_values(weights, mean, order, rows)[:, reward]
    np.testing.assert_allclose(found, each, atol=1e-9)
    table = reward_tables(weights[None], mean[None], order[None], reward, regimes)[0]
    np.testing.assert_allclose(table, each, atol=1e-9)


def test_too_many_interventions_of_several_regimes() -> None:
    with pytest.raises(ModelError, match=r"847,288,609,443 interv.* \(at most 16,777,216\)"):
        all_interventions(25, np.full(25, 3))
