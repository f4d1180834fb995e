"""The best intervention by branch and bound against full enumeration, and its certificate."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms import LinearSEM, random_sem
from causalarms.errors import CausalArmsWarning, ModelError
from causalarms.search import best_intervention, best_interventions
from causalarms.sem.rewards import intervention_of


def drawn(n_nodes: int, seed: int, sparse: bool, rounded: bool = False) -> LinearSEM:
    """Any node is the reward; rounded weights and means give many exact ties."""
    rng = np.random.default_rng(seed)
    sem = random_sem(n_nodes, seed=seed, edge_probability=min(1.0, 2 / n_nodes) if sparse else 0.5)
    mean = rng.normal(size=(2, n_nodes))
    return sem.replace(
        reward=int(rng.integers(n_nodes)),
        weights=np.round(sem.weights) if rounded else sem.weights,
        noise_mean=np.round(mean) if rounded else mean,
    )


@given(st.integers(1, 12), st.integers(0, 10**6), st.booleans())
def test_best_is_that_of_full_enumeration(n_nodes: int, seed: int, sparse: bool) -> None:
    sem = drawn(n_nodes, seed, sparse)
    rewards = sem.all_expected_rewards()
    best = sem.best_arm()
    assert best.exact
    assert best.gap == 0
    assert best.value == pytest.approx(rewards.max(), rel=1e-10)
    first = intervention_of(int(np.argmax(rewards)), n_nodes)
    assert best.intervention.tolist() == first.tolist()


@pytest.mark.parametrize("n_nodes", [14, 15, 16])
@pytest.mark.parametrize("sparse", [False, True])
def test_best_of_larger_systems(n_nodes: int, sparse: bool) -> None:
    for seed in range(4):
        sem = drawn(n_nodes, seed, sparse)
        first = intervention_of(int(np.argmax(sem.all_expected_rewards())), n_nodes)
        assert sem.best_intervention().tolist() == first.tolist()


@given(st.integers(1, 11), st.integers(0, 10**6), st.booleans())
def test_among_equals_the_lexicographically_first(n_nodes: int, seed: int, sparse: bool) -> None:
    """Integers are exact, so enumeration has no rounding either."""
    sem = drawn(n_nodes, seed, sparse, rounded=True)
    first = intervention_of(int(np.argmax(sem.all_expected_rewards())), n_nodes)
    assert sem.best_intervention().tolist() == first.tolist()


@given(st.integers(1, 10), st.integers(0, 10**6), st.integers(1, 12), st.booleans())
def test_top_is_the_head_of_the_sorted_enumeration(
    n_nodes: int, seed: int, m: int, rounded: bool
) -> None:
    sem = drawn(n_nodes, seed, True, rounded)
    rewards = sem.all_expected_rewards()
    order = np.argsort(-rewards, kind="stable")[:m]
    top = sem.top(m)
    assert all(arm.exact for arm in top)
    np.testing.assert_allclose([arm.value for arm in top], rewards[order], rtol=1e-9, atol=1e-9)
    expected = intervention_of(order, n_nodes).tolist()
    if rounded or n_nodes < 4:  # others tie up to rounding, where enumeration has its own order
        assert [arm.intervention.tolist() for arm in top] == expected


def test_distinct_tops_differ_in_their_effect() -> None:
    sem = random_sem(12, seed=3, expected_degree=2)
    values = [arm.value for arm in sem.top(10, distinct=True)]
    assert values == sorted(values, reverse=True)
    every = np.unique(np.round(sem.all_expected_rewards(), 9))[::-1]
    np.testing.assert_allclose(values, every[:10], atol=1e-8)


def layered_ties(n_pairs: int) -> LinearSEM:
    """Every node of a long chain copies one of two equal parents: 2^(pairs) best interventions."""
    n = n_pairs + 3
    weights = np.zeros((2, n, n))
    for node in range(2, n - 1):
        weights[0, 0, node] = weights[1, 1, node] = 1.0
        weights[:, node, n - 1] = 1.0
    return LinearSEM(weights=weights, noise_mean=1.0)


@pytest.mark.parametrize("n_pairs", [5, 12, 40])
def test_any_number_of_ties(n_pairs: int) -> None:
    sem = layered_ties(n_pairs)
    best = sem.best_arm()
    assert best.exact
    assert best.value == 2.0 * n_pairs + 1
    assert not best.intervention.any()
    top = [arm.intervention.tolist() for arm in sem.top(4)]
    ends = ([0, 0], [0, 1], [1, 0], [1, 1])  # the reward's own regimes are equal too
    assert top == [[0] * (sem.n_nodes - 2) + end for end in ends]


def test_nodes_that_do_not_reach_the_reward_stay_natural() -> None:
    sem = random_sem(30, seed=5, expected_degree=2).replace(reward=4)
    union = np.logical_or(*sem.adjacency)
    reaching, before = {4}, 0
    while len(reaching) > before:
        before = len(reaching)
        reaching |= {int(p) for child in reaching for p in np.flatnonzero(union[:, child])}
    outside = [node for node in range(30) if node not in reaching]
    assert outside
    assert not sem.best_intervention()[outside].any()


@given(st.integers(4, 14), st.integers(0, 10**6), st.integers(1, 40))
def test_the_gap_holds_when_the_budget_ends(n_nodes: int, seed: int, budget: int) -> None:
    sem = drawn(n_nodes, seed, sparse=False)
    rewards = sem.all_expected_rewards()
    best = sem.best_arm(budget=budget)
    slack = 1e-9 * max(1.0, np.abs(rewards).max())
    assert best.value + best.gap >= rewards.max() - slack
    reward = sem.expected_reward(best.intervention[None])[0]
    assert best.value == pytest.approx(reward, rel=1e-9, abs=1e-9)
    for place, arm in enumerate(sem.top(3, budget=budget)):
        assert arm.value + arm.gap >= np.sort(rewards)[-1 - place] - slack


def test_a_tiny_budget_is_kept_and_said() -> None:
    sem = random_sem(60, seed=1)
    best = sem.best_arm(budget=1000)
    assert not best.exact
    assert 0 < best.gap < np.inf
    assert best.nodes <= 1001
    proven = sem.best_arm()
    assert proven.exact
    assert best.value <= proven.value <= best.value + best.gap


def test_an_unproven_best_intervention_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    sem = random_sem(60, seed=1)
    unproven = sem.best_arm(budget=1000)
    monkeypatch.setattr(LinearSEM, "best_arm", lambda self: unproven)
    with pytest.warns(CausalArmsWarning, match="not proven: after 100. tree nodes"):
        sem.best_intervention()


@given(st.integers(2, 25), st.integers(0, 10**6))
def test_relabelling_leaves_the_value(n_nodes: int, seed: int) -> None:
    sem = random_sem(n_nodes, seed=seed)
    labels = np.random.default_rng(seed).permutation(n_nodes)
    relabelled = LinearSEM(
        weights=sem.weights[:, labels][:, :, labels],
        noise_mean=sem.noise_mean[labels],
        reward=int(np.flatnonzero(labels == sem.reward)[0]),
    )
    assert relabelled.best_arm().value == pytest.approx(sem.best_arm().value, rel=1e-9)


@pytest.mark.parametrize(("n_nodes", "degree"), [(40, None), (60, None), (60, 3.0), (100, 3.0)])
def test_large_systems_are_proven_in_time(n_nodes: int, degree: float | None) -> None:
    sem = random_sem(n_nodes, seed=2, expected_degree=degree)
    sem.best_arm(budget=10)  # compiled
    start = process_time()
    best = sem.best_arm()
    assert process_time() - start < 1.0  # measured 0.001 to 0.02 s
    assert best.exact
    assert best.value == pytest.approx(sem.expected_reward(best.intervention[None])[0], rel=1e-9)
    flips = best.intervention ^ np.eye(n_nodes, dtype=np.uint8)
    assert (sem.expected_reward(flips) <= best.value * (1 + 1e-9)).all()


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_average_reward_is_that_of_averaged_mechanisms(n_nodes: int, seed: int) -> None:
    sem = drawn(n_nodes, seed, sparse=False)
    mean = sem.all_expected_rewards().mean()
    assert sem.average_reward() == pytest.approx(mean, rel=1e-9, abs=1e-9)


def test_the_reward_may_be_counted_from_the_end() -> None:
    sem = random_sem(6, seed=3)
    question = sem.weights, sem.mechanism_mean, sem.order
    last, counted = (best_intervention(*question, reward) for reward in (5, -1))
    assert last.value == counted.value
    assert last.intervention.tolist() == counted.intervention.tolist()


def test_what_is_refused() -> None:
    weights = np.zeros((2, 2, 2))
    with pytest.raises(ModelError, match="m must be an integer of at least 1"):
        best_interventions(weights, 0.0, [0, 1], 1, 0)
    with pytest.raises(ModelError, match="no node 2 to be the reward of 2 nodes"):
        best_intervention(weights, 0.0, [0, 1], 2)
    weights[0, 0, 1] = np.nan
    with pytest.raises(ModelError, match="must be finite"):
        best_intervention(weights, 0.0, [0, 1], 1)
