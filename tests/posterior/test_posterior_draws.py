"""Draws have the exact distribution: graphs, orders, weights, intercepts and noise."""

from __future__ import annotations

import numpy as np
import pytest
from posterior_by_enumeration import INTERCEPT_SCALE, NOISE_SHAPE, WEIGHT_SCALE, enumerate_pairs
from scipy import stats
from small_systems import posterior_of, rounds

from causalarms.posterior.prior import MechanismPrior

N_DRAWS = 20_000
STANDARD_ERRORS = 4.5  # some hundred comparisons with fixed seeds: by chance one in 100,000


def test_edge_frequencies() -> None:
    sem, X, A = rounds(5, 15, 1)
    posterior = posterior_of(X, A, noise_mean=sem.noise_mean)
    found = posterior.draw(np.random.default_rng(0), N_DRAWS).adjacency.mean(axis=0)
    exact = posterior.edge_probability
    error = np.sqrt(exact * (1 - exact) / N_DRAWS)
    assert (np.abs(found - exact) <= STANDARD_ERRORS * error + 1e-12).all()
    assert ((exact > 0.05) & (exact < 0.95)).sum() > 10


def test_pairs_of_graphs_as_a_whole() -> None:
    """Chi-squared over the pairs of an exhaustive list, rare ones together."""
    sem, X, A = rounds(3, 8, 2)
    truth = enumerate_pairs(X, A, noise_mean=sem.noise_mean)
    draws = posterior_of(X, A, noise_mean=sem.noise_mean).draw(np.random.default_rng(1), N_DRAWS)
    number = {dag.tobytes(): k for k, dag in enumerate(truth.dags)}
    counts = np.zeros(truth.joint.shape)
    for first, second in draws.adjacency:
        counts[number[first.tobytes()], number[second.tobytes()]] += 1
    assert counts[truth.joint == 0].sum() == 0
    often = truth.joint * N_DRAWS >= 10
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(truth.joint[often], truth.joint[~often].sum()) * N_DRAWS
    assert often.sum() > 20
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_edges_follow_the_drawn_order() -> None:
    _, X, A = rounds(6, 20, 0)
    draws = posterior_of(X, A).draw(np.random.default_rng(0), 500)
    assert (np.sort(draws.order, axis=1) == np.arange(6)).all()
    place = np.argsort(draws.order, axis=1)
    t, _, parent, child = np.nonzero(draws.adjacency)
    assert (place[t, parent] < place[t, child]).all()
    assert ((draws.weights != 0) == draws.adjacency).all()


def test_without_data_all_orders_are_equally_likely() -> None:
    draws = posterior_of(np.empty((0, 4)), np.empty((0, 4))).draw(np.random.default_rng(0), N_DRAWS)
    _, counts = np.unique(draws.order, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("known_mean", [True, False])
def test_weights_and_noise_given_the_graph(known_mean: bool) -> None:
    """With all edges forced, against the textbook normal-inverse-gamma posterior."""
    sem, X, A = rounds(4, 40, 5)
    full = np.triu(np.ones((4, 4), dtype=bool), 1)
    mean = sem.noise_mean if known_mean else None
    posterior = posterior_of(X, A, noise_mean=mean, allowed=full, required=full)
    draws = posterior.draw(np.random.default_rng(3), N_DRAWS)
    estimate = posterior.estimate(np.array([full, full]))
    for regime, node in np.ndindex(2, 4):
        rows = X[A[:, node] == regime]
        design = rows[:, :node]
        prior = np.full(node, WEIGHT_SCALE**-2.0)
        target = rows[:, node] - sem.noise_mean[node]
        if not known_mean:
            target = rows[:, node]
            design = np.column_stack([design, np.ones(len(rows))])
            prior = np.append(prior, INTERCEPT_SCALE**-2.0)
        precision = design.T @ design + np.diag(prior)
        middle = np.linalg.solve(precision, design.T @ target)
        shape = NOISE_SHAPE + len(rows) / 2
        scale = NOISE_SHAPE + (target @ target - middle @ precision @ middle) / 2
        std = draws.noise_std[:, regime, node]
        assert stats.kstest(std**2, stats.invgamma(shape, scale=scale).cdf).pvalue > 1e-4
        values = draws.weights[:, regime, :node, node]
        point = estimate.weights[regime, :node, node]
        if not known_mean:
            values = np.column_stack([values, draws.intercept[:, regime, node]])
            point = np.append(point, estimate.intercept[regime, node])
        np.testing.assert_allclose(point, middle, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(estimate.noise_std[regime, node] ** 2, scale / shape, rtol=1e-8)
        # standardised by the drawn std, all directions are independent standard normals
        white = (values - middle) @ np.linalg.cholesky(precision) / std[:, None]
        for column in white.T:
            assert stats.kstest(column, "norm").pvalue > 1e-4
        if white.shape[1] > 1:
            off = np.atleast_2d(np.corrcoef(white.T))[np.triu_indices(white.shape[1], 1)]
            assert (np.abs(off) < STANDARD_ERRORS / np.sqrt(N_DRAWS)).all()


def test_the_same_seed_gives_the_same_draws() -> None:
    _, X, A = rounds(5, 20, 0)
    posterior = posterior_of(X, A)
    one, two = (posterior.draw(np.random.default_rng(7), 5) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("known_mean", [True, False])
def test_draws_given_a_graph_have_the_estimated_means(known_mean: bool) -> None:
    """Few samples of weak parents."""
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(12, 3)), np.zeros((12, 3), dtype=int)
    full = np.triu(np.ones((3, 3), dtype=bool), 1)
    posterior = posterior_of(
        X,
        A,
        noise_mean=np.zeros(3) if known_mean else None,
        allowed=full,
        required=full,
        prior=MechanismPrior(weight_scale=0.3),
    )
    draws = posterior.draw(rng, N_DRAWS)
    estimate = posterior.estimate(np.array([full, full]))
    spread = draws.weights.std(axis=0)
    error = np.abs(draws.weights.mean(axis=0) - estimate.weights)
    assert (error <= STANDARD_ERRORS * spread / np.sqrt(N_DRAWS)).all()
    precision = draws.noise_std**-2.0
    error = np.abs(precision.mean(axis=0) - estimate.noise_std**-2.0)
    assert (error <= STANDARD_ERRORS * precision.std(axis=0) / np.sqrt(N_DRAWS)).all()
