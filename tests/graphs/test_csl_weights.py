"""Fitted weights, intercepts and noise are least squares on each mechanism's samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_rounds import random_rounds

from causalarms import CSL


def check_least_squares(model: CSL, X: np.ndarray, A: np.ndarray, nu: Any, rtol: float) -> None:
    """`nu` (2, N), or None where an intercept is fitted."""
    for regime, node in np.ndindex(2, X.shape[1]):
        rows = X[A[:, node] == regime]
        parents = np.flatnonzero(model.adjacency_[regime, :, node])
        design, response = rows[:, parents], rows[:, node]
        if nu is None:
            design = np.column_stack([design, np.ones(len(rows))])
        else:
            response = response - nu[regime, node]
        b, *_ = np.linalg.lstsq(design, response, rcond=None)
        residual = response - design @ b
        spread = np.sqrt(residual @ residual / (len(rows) - design.shape[1]))
        expected = np.zeros(X.shape[1])
        expected[parents] = b[: len(parents)]
        intercept = b[-1] if nu is None else nu[regime, node]
        np.testing.assert_allclose(model.weights_[regime, :, node], expected, rtol=rtol, atol=1e-9)
        assert model.intercept_[regime, node] == pytest.approx(intercept, rel=rtol, abs=1e-8)
        assert model.noise_std_[regime, node] == pytest.approx(spread, rel=rtol)


@given(st.integers(2, 6), st.integers(0, 10**6), st.booleans())
def test_least_squares(n_nodes: int, seed: int, known_means: bool) -> None:
    sem, X, A = random_rounds(n_nodes, 80, seed, noise_mean=0.5)
    nu = np.full((2, n_nodes), 0.5) if known_means else None
    model = CSL().fit(X, interventions=A, noise_mean=nu)
    check_least_squares(model, X, A, nu, 1e-6)
    assert model.nodes_ == sem.nodes


def test_unknown_means_are_estimated() -> None:
    """Intercepts within 4 standard errors, most generously sigma * sqrt((X'X)^-1) of a constant."""
    sem, X, A = random_rounds(5, 2000, seed=2, noise_mean=[[1, -2, 0, 3, 5], [4, 0, -1, 2, -3]])
    model = CSL(joint=True).fit(X, interventions=A)
    np.testing.assert_array_equal(model.adjacency_, sem.adjacency)
    for regime, node in np.ndindex(2, 5):
        rows = X[A[:, node] == regime]
        parents = np.flatnonzero(sem.adjacency[regime, :, node])
        design = np.column_stack([rows[:, parents], np.ones(len(rows))])
        error = np.sqrt(np.linalg.inv(design.T @ design)[-1, -1])
        assert abs(model.intercept_[regime, node] - sem.noise_mean[regime, node]) < 4 * error


@pytest.mark.parametrize(
    "given_mean",
    [2.0, [2.0] * 4, [[2.0] * 4] * 2, {"x3": 2.0, "x0": 2.0, "x1": 2.0, "x2": 2.0}],
    ids=["number", "per node", "per mechanism", "by name"],
)
def test_ways_to_give_the_noise_mean(given_mean: Any) -> None:
    _, X, A = random_rounds(4, 80, 3, noise_mean=2.0)
    model = CSL().fit(X, interventions=A, noise_mean=given_mean)
    check_least_squares(model, X, A, np.full((2, 4), 2.0), 1e-8)
    assert (model.intercept_ == 2.0).all()


@pytest.mark.parametrize("keep", ["oldest", "newest"])
def test_at_most_max_samples_per_mechanism(keep: str) -> None:
    sem, X, A = random_rounds(4, 300, 3)
    model = CSL(max_samples=40, keep=keep).fit(X, interventions=A, noise_mean=1.0)
    for regime, node in np.ndindex(2, 4):
        rows = np.flatnonzero(A[:, node] == regime)
        rows = rows[:40] if keep == "oldest" else rows[-40:]
        parents = np.flatnonzero(model.adjacency_[regime, :, node])
        b, *_ = np.linalg.lstsq(X[rows][:, parents], X[rows, node] - 1.0, rcond=None)
        np.testing.assert_allclose(model.weights_[regime, parents, node], b, rtol=1e-7)
    assert model.nodes_ == sem.nodes


def test_the_given_data_stay_as_they_were() -> None:
    sem, X, A = random_rounds(4, 80, 3)
    kept, nu = X.copy(), sem.noise_mean.copy()
    CSL().fit(X, interventions=A, noise_mean=nu)
    np.testing.assert_array_equal(X, kept)
    np.testing.assert_array_equal(nu, sem.noise_mean)
