"""What incomplete rounds say, against the joint Gaussian of the round."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import LinearSEM, random_sem
from causalarms.arrays import FloatArray
from causalarms.posterior.base import Draws
from causalarms.posterior.missing import WITHOUT, add_rounds, expectations, fill

N = 6


def given(
    sem: LinearSEM, a: npt.NDArray[np.uint8], x: FloatArray, known: list[int], wanted: list[int]
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of nodes given others."""
    mean, cov = sem.mean(a[None])[0], sem.covariance(a)
    between = cov[np.ix_(wanted, known)]
    gain = between @ np.linalg.inv(cov[np.ix_(known, known)])
    rest = cov[np.ix_(wanted, wanted)] - gain @ between.T
    return mean[wanted] + gain @ (x - mean)[known], rest


def mechanisms(sem: LinearSEM) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, mean and spread in arrays as policies have them: kernels are compiled once."""
    weights, mean, std = sem.weights, sem.mechanism_mean, sem.mechanism_std
    return np.array(weights, order="C"), np.array(mean, order="C"), np.array(std, order="C")


def holed(seed: int, n_missing: int) -> tuple[LinearSEM, npt.NDArray[np.uint8], FloatArray]:
    """A system, an intervention, and a round of it in which values are missing."""
    rng = np.random.default_rng(seed)
    sem = random_sem(N, seed=seed, noise_std=rng.uniform(0.5, 2.0, N), edge_probability=0.8)
    a = rng.integers(0, 2, N).astype(np.uint8)
    x = sem.sample(a[None], rng)[0]
    x[rng.choice(N, n_missing, replace=False)] = np.nan
    return sem, a, x


@pytest.mark.parametrize("n_missing", [1, 3, 5, 6])
@pytest.mark.parametrize("seed", range(4))
def test_missing_values_given_all_others(seed: int, n_missing: int) -> None:
    sem, a, x = holed(seed, n_missing)
    missing = np.flatnonzero(np.isnan(x))
    row, spread = np.empty(N), np.empty((n_missing, n_missing))
    fill(x, missing, a, *mechanisms(sem), row, spread)
    known = np.flatnonzero(~np.isnan(x)).tolist()
    mean, cov = given(sem, a, x, known, missing.tolist())
    np.testing.assert_allclose(row[missing], mean, atol=1e-9)
    np.testing.assert_allclose(spread, cov, atol=1e-9)
    np.testing.assert_array_equal(row[known], x[known])


@pytest.mark.parametrize("n_missing", [1, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_expected_before_a_node_is_known(seed: int, n_missing: int) -> None:
    sem, a, x = holed(seed, n_missing)
    order = np.array(sem.order)
    filled, extra = np.empty((N, N)), np.empty(N)
    expectations(x, a, order, *mechanisms(sem), filled, extra)
    for place, node in enumerate(order.tolist()):
        known = [j for j in order[:place].tolist() if not np.isnan(x[j])]
        others = [j for j in range(N) if j not in known]
        np.testing.assert_allclose(
            filled[node, others], given(sem, a, x, known, others)[0], atol=1e-9
        )
        np.testing.assert_array_equal(filled[node, known], x[known])
        parents = [j for j in order[:place].tolist() if np.isnan(x[j])]
        w = sem.weights[a[node], parents, node]
        assert extra[node] == pytest.approx(w @ given(sem, a, x, known, parents)[1] @ w, abs=1e-9)


def moments(
    sem: LinearSEM, A: npt.NDArray[np.uint8], X: FloatArray, *, move: float = 0.0
) -> FloatArray:
    gram = np.zeros((2, N, N + 1, N + 1))
    taught = np.ones(A.shape, dtype=bool)
    taught[0, 4] = False
    weights, intercept, noise_std = (array[None] for array in mechanisms(sem))
    draws = Draws(np.array(sem.order)[None], weights != 0, weights, intercept, noise_std)
    add_rounds(gram, X, np.full(N, move), A, taught, draws)
    return gram


def test_a_round_without_gaps_counts_fully_for_those_it_teaches() -> None:
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


def test_a_missing_node_learns_nothing_and_its_children_less() -> None:
    weights = np.zeros((2, N, N))
    weights[:, 0, 1], weights[:, 1, 2] = 2.0, 1.0
    sem = LinearSEM(weights=weights, order=range(N))
    a, x = np.zeros((1, N), dtype=np.uint8), np.ones((1, N))
    x[0, 1] = np.nan
    gram = moments(sem, a, x)[0]
    assert not gram[1].any()
    assert gram[2, -1, -1] == pytest.approx(1 / (1 + 1))  # its noise, and that of its parent
    assert gram[0, -1, -1] == gram[3, -1, -1] == 1.0
    # x_2 = 1 is expected to be 2: half of a sample, of which half of the error is plain noise
    assert gram[2, 2, 2] == pytest.approx(0.5 - 0.25)
    assert gram[2, 1, 1] == pytest.approx(0.5 * 2.0**2)  # as expected before x_2 is known
    # of a node that the missing one does not cause: mostly as expected of all
    assert gram[0, 1, 0] == pytest.approx((1 - WITHOUT) * 1.5)
    assert gram[0, 1, 1] == pytest.approx((1 - WITHOUT) * (1.5**2 + 0.5))
    x[:] = np.nan
    assert not moments(sem, a, x).any()


def test_weights_and_noise_are_found_from_rounds_of_which_a_third_is_missing() -> None:
    """Least squares on the weighted rows, given the true system: right within its own errors."""
    sem = random_sem(N, seed=5, edge_probability=0.7)
    rng = np.random.default_rng(2)
    A = np.zeros((8000, N), dtype=np.uint8)
    X = sem.sample(A, rng)
    X[rng.random(X.shape) < 1 / 3] = np.nan
    gram = moments(sem, A, X)[0]
    for node in range(N):
        parents = np.flatnonzero(sem.weights[0, :, node])
        used = [*parents.tolist(), N]
        system = gram[node][np.ix_(used, used)]
        found = np.linalg.solve(system, gram[node][used, node])
        count = gram[node, -1, -1]
        variance = (gram[node][node, node] - found @ gram[node][used, node]) / count
        assert variance == pytest.approx(1.0, abs=0.1)
        truth = np.append(sem.weights[0, parents, node], 1.0)
        errors = (found - truth) / np.sqrt(np.diag(np.linalg.inv(system)))
        assert np.abs(errors).max() < 3.5, node
        assert count < 0.7 * len(X)
