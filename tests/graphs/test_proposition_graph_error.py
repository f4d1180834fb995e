"""Prop. graph_error: false positives leave the weights unbiased, false negatives do not.

Monte Carlo over everything but the declared parents' values, which are what the proposition
conditions on. Interventions are drawn in advance (not adaptively), and false positive parents are
non-descendants. Every mean lies within 4.5 standard errors of the formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import LinearSEM, random_sem
from causalarms.arrays import FloatArray
from causalarms.statistics import regress
from causalarms.statistics.dataset import gram_matrix

N_REPEATS = 1500
N_ERRORS = 4.5


def rounds_of(sem: LinearSEM, node: int, rng: np.random.Generator) -> tuple[FloatArray, Any]:
    """40 rounds of random interventions in which the node is natural."""
    A = rng.integers(0, 2, (40, sem.n_nodes))
    A[:, node] = 0
    return sem.sample(A, rng), A


def estimate(X: FloatArray, node: int, declared: list[int], nu: float) -> FloatArray:
    return regress(gram_matrix(np.ascontiguousarray(X.T)), node, declared, nu).weights


@pytest.mark.parametrize("seed", range(4))
def test_only_false_positives(seed: int) -> None:
    """Declared: every node before i in the order, true parents or not."""
    sem, rng = random_sem(6, seed=seed), np.random.default_rng(seed)
    node = int(sem.order[4])
    declared = sorted(sem.order[:4].tolist())
    truth = sem.weights[0, declared, node]
    assert (truth == 0).any()
    assert (truth != 0).any()
    X, _ = rounds_of(sem, node, rng)
    estimates = np.empty((N_REPEATS, len(declared)))
    for repeat in range(N_REPEATS):
        X[:, node] = 1.0 + X[:, declared] @ truth + rng.standard_normal(len(X))
        estimates[repeat] = estimate(X, node, declared, 1.0)
    inverse = np.linalg.inv(X[:, declared].T @ X[:, declared])
    error = np.sqrt(np.diag(inverse) / N_REPEATS)
    assert (np.abs(estimates.mean(axis=0) - truth) < N_ERRORS * error).all()
    # and their spread is the covariance of Lemma 1: a variance has relative error sqrt(2/R)
    spread = estimates.var(axis=0) / np.diag(inverse)
    assert (np.abs(spread - 1) < N_ERRORS * np.sqrt(2 / N_REPEATS)).all()


def conditional(
    sem: LinearSEM, A: Any, X: FloatArray, missing: list[int], given: list[int]
) -> tuple[FloatArray, list[FloatArray]]:
    """Mean (n, m) and covariance of the missing parents given the declared ones, row by row."""
    means, covariances = [], []
    for x, a in zip(X, A, strict=True):
        mu, sigma = sem.mean([a])[0], sem.covariance(a)
        gain = sigma[np.ix_(missing, given)] @ np.linalg.inv(sigma[np.ix_(given, given)])
        means.append(mu[missing] + gain @ (x[given] - mu[given]))
        covariances.append(sigma[np.ix_(missing, missing)] - gain @ sigma[np.ix_(given, missing)])
    return np.array(means), covariances


@pytest.mark.parametrize("n_missing", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_false_negatives_bias_by_the_formula(seed: int, n_missing: int) -> None:
    """Eq. (Ba_error_cf), with missing parents that cause, or are caused by, declared ones."""
    sem = random_sem(6, seed=seed, edge_probability=0.9)
    rng = np.random.default_rng(seed)
    node = int(sem.order[4])
    parents = np.flatnonzero(sem.adjacency[0, :, node])
    assert len(parents) > n_missing
    missing = sorted(rng.choice(parents, n_missing, replace=False).tolist())
    declared = [int(p) for p in parents if p not in missing]
    X, A = rounds_of(sem, node, rng)
    mean, covariances = conditional(sem, A, X, missing, declared)
    roots = np.array([np.linalg.cholesky(c) for c in covariances])
    Q = X[:, declared]
    b_declared, b_missing = sem.weights[0, declared, node], sem.weights[0, missing, node]
    expected = b_declared + np.linalg.solve(Q.T @ Q, Q.T @ mean) @ b_missing
    estimates = np.empty((N_REPEATS, len(declared)))
    for repeat in range(N_REPEATS):
        X[:, missing] = mean + np.einsum(
            "rij,rj->ri", roots, rng.standard_normal((len(X), n_missing))
        )
        X[:, node] = 1.0 + Q @ b_declared + X[:, missing] @ b_missing
        X[:, node] += rng.standard_normal(len(X))
        estimates[repeat] = estimate(X, node, declared, 1.0)
    error = estimates.std(axis=0) / np.sqrt(N_REPEATS)
    found = estimates.mean(axis=0)
    assert (np.abs(found - expected) < N_ERRORS * error).all()
    assert (np.abs(found - b_declared) > 10 * error).any()  # the bias is there to be seen


def test_a_descendant_is_no_harmless_false_positive() -> None:
    """Why the proposition excludes them: x0 -> x1 -> x2, estimating x1 on x0 and x2.

    Population coefficients by hand for unit weights, variances and no means: (1/2, 1/2).
    """
    weights = np.zeros((2, 3, 3))
    weights[:, 0, 1] = weights[:, 1, 2] = 1.0
    sem = LinearSEM(weights=weights)
    X = sem.sample(np.zeros((20_000, 3)), np.random.default_rng(0))
    found = estimate(X, 1, [0, 2], 0.0)
    assert (np.abs(found - 0.5) < N_ERRORS * 1 / np.sqrt(20_000)).all()
