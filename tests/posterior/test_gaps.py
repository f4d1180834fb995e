"""Moments of incomplete rounds against the joint Gaussian of the round."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import LinearSEM, random_sem
from causalarms.posterior.gaps import add_rounds, fill, share_of_round

FloatArray = npt.NDArray[np.float64]

N = 6


@pytest.mark.parametrize("n_missing", [1, 3, 5, 6])
@pytest.mark.parametrize("seed", range(4))
def test_missing_values_given_the_others(seed: int, n_missing: int) -> None:
    rng = np.random.default_rng(seed)
    sem = random_sem(N, seed=seed, noise_std=rng.uniform(0.5, 2.0, N), edge_probability=0.8)
    a = rng.integers(0, 2, N).astype(np.uint8)
    x = sem.sample(a[None], rng)[0]
    missing = np.sort(rng.choice(N, n_missing, replace=False))
    x[missing] = np.nan
    row, spread = np.empty(N), np.empty((n_missing, n_missing))
    fill(x, missing, a, sem.weights, sem.mechanism_mean, sem.mechanism_std, row, spread)
    given = np.flatnonzero(~np.isnan(x))
    mean, cov = sem.mean(a[None])[0], sem.covariance(a)
    between = cov[np.ix_(missing, given)]
    gain = between @ np.linalg.inv(cov[np.ix_(given, given)])
    np.testing.assert_allclose(row[missing], mean[missing] + gain @ (x - mean)[given], atol=1e-9)
    np.testing.assert_allclose(spread, cov[np.ix_(missing, missing)] - gain @ between.T, atol=1e-9)
    np.testing.assert_array_equal(row[given], x[given])


def moments(
    sem: LinearSEM, A: npt.NDArray[np.uint8], X: FloatArray, *, move: float = 0.0
) -> FloatArray:
    gram = np.zeros((2, N, N + 1, N + 1))
    taught = np.ones(A.shape, dtype=bool)
    taught[0, 4] = False
    add_rounds(
        gram, X, np.full(N, move), A, taught, sem.weights[None], sem.mechanism_mean[None],
        sem.mechanism_std[None],
    )  # fmt: skip
    return gram


def test_a_round_says_the_same_to_all_mechanisms_it_teaches() -> None:
    sem = random_sem(N, seed=1)
    a, x = np.zeros((1, N), dtype=np.uint8), np.random.default_rng(0).normal(size=(1, N))
    a[0, 1] = 1
    z = np.append(x[0] + 3.0, 1.0)
    gram = moments(sem, a, x, move=3.0)
    for node in (0, 2, 3, 5):
        np.testing.assert_allclose(gram[0, node], np.outer(z, z))
    np.testing.assert_allclose(gram[1, 1], np.outer(z, z))
    assert not gram[0, [1, 4]].any()
    assert not gram[1, [0, 2, 3, 4, 5]].any()
    x[0, 2] = np.nan
    gram = moments(sem, a, x, move=3.0)
    assert gram[0, 0, -1, -1] == pytest.approx((5 / 6) ** 3)
    np.testing.assert_array_equal(gram[0, 0], gram[0, 2])
    known = [0, 1, 3, 4, 5, 6]
    expected = (5 / 6) ** 3 * np.outer(z, z)
    np.testing.assert_allclose(gram[0, 0][np.ix_(known, known)], expected[np.ix_(known, known)])
    x[:] = np.nan
    assert not moments(sem, a, x).any()


def test_rounds_with_gaps_leave_right_weights_and_noise_as_they_are() -> None:
    """Least squares on what is expected by the true system finds the true system."""
    sem = random_sem(N, seed=5, edge_probability=0.7)
    rng = np.random.default_rng(2)
    A = np.zeros((20_000, N), dtype=np.uint8)
    X = sem.sample(A, rng)
    X[rng.random(X.shape) < 1 / 3] = np.nan
    gram = moments(sem, A, X)[0]
    for node in range(N):
        parents = np.flatnonzero(sem.weights[0, :, node])
        used = [*parents.tolist(), N]
        found = np.linalg.solve(gram[node][np.ix_(used, used)], gram[node][used, node])
        count = gram[node, -1, -1]
        variance = (gram[node][node, node] - found @ gram[node][used, node]) / count
        assert variance == pytest.approx(1.0, abs=0.05)
        np.testing.assert_allclose(found, np.append(sem.weights[0, parents, node], 1.0), atol=0.05)
    shares = [share_of_round(k, N) for k in np.isnan(X).sum(axis=1)]
    assert count == pytest.approx(sum(shares))
