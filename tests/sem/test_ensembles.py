"""Random systems follow the stated laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from causalarms import LinearSEM, random_sem
from causalarms.errors import ModelError
from causalarms.sem import Ensemble


def pooled_weights(law: str) -> np.ndarray:
    values = [random_sem(12, seed=seed, weights=law).weights for seed in range(60)]
    flat = np.concatenate([v[v != 0] for v in values])
    assert len(flat) > 3000
    return flat


def test_separated_weights_are_sign_times_uniform() -> None:
    weights = pooled_weights("separated")
    size = np.abs(weights)
    assert size.min() >= 0.5
    assert size.max() <= 2.0
    assert stats.kstest(size, stats.uniform(0.5, 1.5).cdf).pvalue > 1e-3
    # share of positive signs within 4 standard errors of 1/2
    assert abs((weights > 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(len(weights))


def test_uniform_weights_fill_the_interval() -> None:
    weights = pooled_weights("uniform")
    assert stats.kstest(weights, stats.uniform(-2, 4).cdf).pvalue > 1e-3
    assert (np.abs(weights) < 0.5).any()


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_edge_probability(probability: float) -> None:
    """Mean number of edges within 4 standard errors of its expectation, in each regime.

    A column of B' is redrawn while it equals that of B, i.e. while both are empty: with m earlier
    nodes it has m p edges, or m p / (1 - (1-p)^m) where B's column is empty.
    """
    n_nodes, n_systems = 10, 150
    edges = np.array(
        [
            random_sem(n_nodes, seed=seed, edge_probability=probability).adjacency.sum(axis=(1, 2))
            for seed in range(n_systems)
        ]
    )
    m = np.arange(1, n_nodes)
    empty = (1 - probability) ** m
    natural = (m * probability).sum()
    intervened = (m * probability * (1 - empty + empty / (1 - empty))).sum()
    error = edges.std(axis=0) / np.sqrt(n_systems)
    assert (np.abs(edges.mean(axis=0) - [natural, intervened]) < 4 * error).all()


def test_expected_degree() -> None:
    """Mean number of neighbours within 4 standard errors of the stated one."""
    n_nodes, n_systems, degree = 20, 60, 3.0
    p = degree / (n_nodes - 1)
    pairs = n_nodes * (n_nodes - 1) / 2
    degrees = [
        2 * random_sem(n_nodes, seed=seed, expected_degree=degree).adjacency[0].sum() / n_nodes
        for seed in range(n_systems)
    ]
    error = 2 / n_nodes * np.sqrt(pairs * p * (1 - p) / n_systems)
    assert abs(np.mean(degrees) - degree) < 4 * error


def test_regimes_are_drawn_independently() -> None:
    """Pairs present in both regimes within 4 standard errors of 1/4."""
    both = sum(random_sem(10, seed=seed).adjacency.all(axis=0).sum() for seed in range(100))
    pairs = 100 * 45
    assert abs(both / pairs - 0.25) < 4 * np.sqrt(0.25 * 0.75 / pairs)


@given(st.integers(2, 9), st.integers(0, 10**6), st.sampled_from([0.05, 0.5, 1.0]))
def test_columns_differ_between_regimes_except_at_the_root(
    n_nodes: int, seed: int, probability: float
) -> None:
    sem = random_sem(n_nodes, seed=seed, edge_probability=probability)
    natural, intervened = sem.weights.transpose(0, 2, 1).tolist()
    same = [node for node in range(n_nodes) if natural[node] == intervened[node]]
    assert same == [sem.order[0]]


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_the_reward_comes_last_and_the_order_fits(n_nodes: int, seed: int) -> None:
    sem = random_sem(n_nodes, seed=seed)
    assert sem.reward == n_nodes - 1 == sem.order[-1]
    place = np.argsort(sem.order)
    for _, parent, child in np.argwhere(sem.adjacency):
        assert place[parent] < place[child]


def test_every_order_of_the_other_nodes_occurs_equally_often() -> None:
    """Each of the 6 orders of 3 nodes within 4 standard errors of 1/6."""
    n_systems = 600
    orders = [tuple(random_sem(4, seed=seed).order[:-1]) for seed in range(n_systems)]
    counts = np.array([orders.count(order) for order in set(orders)])
    assert len(counts) == 6
    assert (np.abs(counts / n_systems - 1 / 6) < 4 * np.sqrt(5 / 36 / n_systems)).all()


def test_a_visible_order_is_upper_triangular() -> None:
    sem = random_sem(8, seed=3, hidden_order=False)
    assert sem.order.tolist() == list(range(8))
    assert not np.tril(sem.weights).any()


def test_the_seed_decides() -> None:
    assert random_sem(8, seed=11) == random_sem(8, seed=11)
    assert random_sem(8, seed=11) != random_sem(8, seed=12)
    rng = np.random.default_rng(11)
    assert random_sem(8, seed=rng) == random_sem(8, seed=11)
    assert random_sem(8, seed=rng) != random_sem(8, seed=11)


def test_noise_is_standard_with_mean_one_unless_said() -> None:
    sem = random_sem(3, seed=0)
    assert sem.noise_mean.tolist() == [1.0] * 3
    assert sem.noise_std.tolist() == [1.0] * 3
    assert random_sem(3, seed=0, noise_mean=[1, 2, 3]).noise_mean.tolist() == [1.0, 2.0, 3.0]


def test_no_edges_at_all() -> None:
    sem = random_sem(4, seed=0, edge_probability=0.0)
    assert not sem.adjacency.any()
    assert isinstance(sem, LinearSEM)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_nodes": 0}, "n_nodes must be an integer of at least 1, not 0"),
        ({"edge_probability": 1.5}, r"edge_probability must lie in \[0, 1\], not 1.5"),
        ({"edge_probability": float("nan")}, r"must lie in \[0, 1\]"),
        ({"expected_degree": 9.0}, r"must lie in \[0, 1\]"),
        ({"weights": "gaussian"}, "weights must be one of separated, uniform, not 'gaussian'"),
    ],
)
def test_settings_that_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        random_sem(**({"n_nodes": 4} | arguments))  # type: ignore[arg-type]


def test_an_ensemble_checks_itself() -> None:
    with pytest.raises(ModelError, match="weights must be one of"):
        Ensemble(weights="none")
