"""Prop. I_decomp and the bound below it, where all terms have a closed form.

Under one intervention all variables are Gaussian and linear in the exogenous ones, so that every
mutual information is -log(1 - rho^2)/2. The proposition is written with flow weights C-hat; what
a regression on observed candidates leaves is r = (C B-hat_i - C_i)^T eps, with C B-hat_i in place
of C-hat_i. Both are tested by name: `flow` takes C-hat = (I - B-hat)^-1 of a B-hat in which all
nodes are candidates, `regression` takes B-hat_i from `regress` on 40 samples. Where a single
ancestor reaches both r_i and x_j, the intrinsic term is infinite and the bound says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import LinearSEM, random_sem
from causalarms.arrays import FloatArray
from causalarms.statistics import mutual_information, regress
from causalarms.statistics.dataset import gram_matrix

SLACK = 1e-9


class Case(NamedTuple):
    """Loadings on the exogenous variables, which have these variances."""

    sem: LinearSEM
    intervention: npt.NDArray[np.int64]
    variance: FloatArray
    residual: FloatArray  # of r_i
    candidate: FloatArray  # of x_j
    inside: npt.NDArray[np.bool_]  # the ancestors of i
    weights: FloatArray  # B-hat_i
    i: int
    j: int


def correlation(case: Case, u: FloatArray, v: FloatArray) -> float:
    spread = np.sqrt((u**2 @ case.variance) * (v**2 @ case.variance))
    return float((u * v) @ case.variance / spread) if spread > 0 else 0.0


def information(case: Case, u: FloatArray, v: FloatArray) -> float:
    unexplained = 1 - correlation(case, u, v) ** 2
    return -0.5 * float(np.log(unexplained)) if unexplained > 1e-12 else np.inf


def cases(kind: str, n_cases: int) -> Iterator[Case]:
    for seed in range(n_cases):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 7))
        sem = random_sem(n, seed=seed, noise_std=rng.uniform(0.5, 2, n))
        a = rng.integers(0, 2, n)
        i = int(rng.integers(n))
        C = sem.flow(a)
        inside = np.array([node in sem.ancestors(i, a) for node in sem.nodes])
        if kind == "flow":
            guess = sem.post_intervention_weights(a) + rng.normal(scale=0.2, size=(n, n))
            np.fill_diagonal(guess, 0)
            weights = guess[:, i]
            loading = np.linalg.inv(np.eye(n) - guess)[:, i]
        else:
            X = sem.sample(np.broadcast_to(a, (40, n)), rng)
            others = [k for k in range(n) if k != i]
            fit = regress(gram_matrix(np.ascontiguousarray(X.T)), i, others, 1.0)
            weights = np.zeros(n)
            weights[others] = fit.weights
            loading = C @ weights
        own = np.eye(n)[i]
        residual = np.where(inside, loading - C[:, i], loading - own)
        for j in range(n):
            if j != i:
                yield Case(sem, a, sem.noise_std**2, residual, C[:, j], inside, weights, i, j)


both = pytest.mark.parametrize("kind", ["flow", "regression"])


@both
def test_causal_and_intrinsic_errors_bound_the_information(kind: str) -> None:
    tight = loose = 0
    for case in cases(kind, 150):
        here = information(case, case.residual, case.candidate)
        causal, intrinsic = (
            information(case, case.residual * part, case.candidate * part)
            for part in (~case.inside, case.inside)
        )
        assert here <= causal + intrinsic + SLACK
        tight += here > 0.99 * (causal + intrinsic)
        loose += here < 0.5 * (causal + intrinsic) < np.inf
    assert tight > 10  # so no smaller multiple of the right side would do
    assert loose > 10


def test_equality_without_ancestors() -> None:
    """Nothing intrinsic is left: both sides are the same."""
    found = 0
    for case in cases("regression", 100):
        if not case.inside.any():
            found += 1
            causal = information(case, case.residual * ~case.inside, case.candidate * ~case.inside)
            here = information(case, case.residual, case.candidate)
            assert here == pytest.approx(causal, rel=1e-9, abs=1e-12)
    assert found > 10


@both
def test_bound_of_the_causal_error(kind: str) -> None:
    """log(1 + sigma_x/sigma_r |b|) - log(1 - rho^2)/2 with b = B-hat_ji; each part is needed."""
    needs_weight = needs_correlation = 0
    for case in cases(kind, 150):
        x = case.candidate * ~case.inside
        if not x.any():
            continue
        b = case.weights[case.j]
        whole = case.residual * ~case.inside
        rest = whole - b * x
        sigma_x, sigma_r = (np.sqrt(theta**2 @ case.variance) for theta in (x, rest))
        rho = correlation(case, x, rest)
        by_weight = np.log1p(sigma_x / sigma_r * abs(b))
        by_correlation = -0.5 * np.log1p(-(rho**2))
        here = information(case, whole, x)
        assert here <= by_weight + by_correlation + SLACK
        needs_weight += here > by_correlation + 1e-3
        needs_correlation += here > by_weight + 1e-3
    assert needs_weight > 10
    assert needs_correlation > 3


def test_loadings_are_those_of_the_real_residual() -> None:
    """Closed form by loadings against the covariance of x: r = B-hat_i . x - x_i."""
    for case in cases("regression", 60):
        sigma = case.sem.covariance(case.intervention)
        combination = case.weights - np.eye(len(sigma))[case.i]
        spread = np.sqrt(combination @ sigma @ combination * sigma[case.j, case.j])
        rho = combination @ sigma[:, case.j] / spread
        assert rho == pytest.approx(correlation(case, case.residual, case.candidate), abs=1e-8)


def test_the_estimate_from_samples_is_the_closed_form() -> None:
    """Kraskov's estimate over 30 sets of 600 samples, within 4 standard errors + 0.02 nats."""
    case = max(cases("regression", 20), key=lambda c: information(c, c.residual, c.candidate))
    rng = np.random.default_rng(0)
    A = np.broadcast_to(case.intervention, (600, case.sem.n_nodes))
    estimates = []
    for _ in range(30):
        X = case.sem.sample(A, rng)
        r = X @ case.weights - X[:, case.i]
        x = X[:, case.j]
        estimates.append(mutual_information(r / r.std(), x / x.std()))
    exact = information(case, case.residual, case.candidate)
    assert exact > 0.05
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - exact) < 4 * error + 0.02
