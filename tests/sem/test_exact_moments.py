"""Flow, mean and covariance: algebra in topological order against inverses and against samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms import LinearSEM, random_sem


def regime_dependent(n_nodes: int, seed: int) -> tuple[LinearSEM, np.random.Generator]:
    """A system whose interventions also shift the mean and the spread of the noise."""
    rng = np.random.default_rng(seed)
    sem = random_sem(n_nodes, seed=seed).replace(
        noise_mean=rng.normal(size=(2, n_nodes)), noise_std=rng.uniform(0.5, 2.0, (2, n_nodes))
    )
    return sem, rng


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_flow_is_the_inverse(n_nodes: int, seed: int) -> None:
    sem, rng = regime_dependent(n_nodes, seed)
    a = rng.integers(0, 2, n_nodes)
    inverse = np.linalg.inv(np.eye(n_nodes) - sem.post_intervention_weights(a))
    np.testing.assert_allclose(sem.flow(a), inverse, rtol=1e-9, atol=1e-9)


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_mean_and_covariance_by_inverses(n_nodes: int, seed: int) -> None:
    sem, rng = regime_dependent(n_nodes, seed)
    a = rng.integers(0, 2, n_nodes)
    nodes = np.arange(n_nodes)
    inverse = np.linalg.inv(np.eye(n_nodes) - sem.post_intervention_weights(a))
    mean = inverse.T @ sem.noise_mean[a, nodes]
    covariance = inverse.T @ np.diag(sem.noise_std[a, nodes] ** 2) @ inverse
    np.testing.assert_allclose(sem.mean([a])[0], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sem.covariance(a), covariance, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mean_and_covariance_against_samples(seed: int) -> None:
    """Every entry within 4.5 standard errors of its Monte Carlo estimate."""
    n_nodes, n_samples = 6, 40_000
    sem, rng = regime_dependent(n_nodes, seed)
    a = rng.integers(0, 2, n_nodes)
    X = sem.sample(np.broadcast_to(a, (n_samples, n_nodes)), rng)
    mean, covariance = sem.mean([a])[0], sem.covariance(a)
    variance = np.diag(covariance)
    assert (np.abs(X.mean(axis=0) - mean) < 4.5 * np.sqrt(variance / n_samples)).all()
    centred = X - mean
    estimate = centred.T @ centred / n_samples
    # Gaussian: var(x_i x_j) = s_ii s_jj + s_ij^2
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / n_samples)
    assert (np.abs(estimate - covariance) < 4.5 * error).all()


def test_each_row_is_sampled_under_its_own_intervention() -> None:
    """Group means of mixed rows within 4.5 standard errors of each intervention's mean."""
    sem, rng = regime_dependent(3, 5)
    A = rng.integers(0, 2, (40_000, 3))
    X = sem.sample(A, rng)
    for a in np.unique(A, axis=0):
        rows = X[(a == A).all(axis=1)]
        error = np.sqrt(np.diag(sem.covariance(a)) / len(rows))
        assert (np.abs(rows.mean(axis=0) - sem.mean([a])[0]) < 4.5 * error).all()


def test_samples_satisfy_the_structural_equation() -> None:
    """x - B_a^T x is the noise, whose draws depend on the generator alone."""
    sem = random_sem(7, seed=3, noise_mean=0.0)
    A = np.random.default_rng(0).integers(0, 2, (50, 7))
    X = sem.sample(A, np.random.default_rng(9))
    noise = np.array(
        [x - sem.post_intervention_weights(a).T @ x for x, a in zip(X, A, strict=True)]
    )
    np.testing.assert_allclose(noise, np.random.default_rng(9).standard_normal((50, 7)), atol=1e-9)


def test_no_spread_means_no_randomness() -> None:
    sem = random_sem(5, seed=1, noise_std=0.0)
    A = np.eye(5, dtype=int)
    X = sem.sample(A, np.random.default_rng(0))
    np.testing.assert_allclose(X, sem.mean(A), rtol=1e-12)
