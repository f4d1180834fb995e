"""Regression from Gram moments against least squares on samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms.errors import DataError
from causalarms.statistics import Regression, regress
from causalarms.statistics.dataset import gram_matrix
from causalarms.statistics.normal_equations import SingularError


def samples(n_rows: int, n_nodes: int, seed: int) -> np.ndarray:
    """Correlated columns with offsets and scales of their own."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n_rows, n_nodes)) @ rng.normal(size=(n_nodes, n_nodes))
    return (mixed + rng.normal(size=n_nodes)) * rng.uniform(0.1, 10, n_nodes)


def from_moments(X: np.ndarray, target: int, parents: list[int], nu: float | None) -> Regression:
    return regress(gram_matrix(np.ascontiguousarray(X.T)), target, parents, nu)


def check_against_lstsq(
    regression: Regression, X: np.ndarray, target: int, parents: list[int], nu: float | None
) -> None:
    design = X[:, parents]
    response = X[:, target]
    if nu is None:
        design = np.column_stack([design, np.ones(len(X))])
    else:
        response = response - nu
    weights, *_ = np.linalg.lstsq(design, response, rcond=None)
    residual = response - design @ weights
    freedom = len(X) - design.shape[1]
    variance = residual @ residual / freedom
    near: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(regression.weights, weights, **near)
    inverse = np.linalg.inv(design.T @ design) if design.shape[1] else np.empty((0, 0))
    np.testing.assert_allclose(regression.inverse, inverse, **near)
    np.testing.assert_allclose(regression.covariance(), variance * inverse, **near)
    np.testing.assert_allclose(regression.covariance(2.0), 4.0 * inverse, **near)
    assert regression.degrees_of_freedom == freedom
    assert regression.rss == pytest.approx(residual @ residual, rel=1e-6)
    assert regression.residual_std == pytest.approx(np.sqrt(variance), rel=1e-6)


@given(st.integers(0, 10**6), st.booleans(), st.data())
def test_gram_against_least_squares(seed: int, intercept: bool, data: st.DataObject) -> None:
    n_nodes = data.draw(st.integers(2, 6))
    X = samples(40, n_nodes, seed)
    target = data.draw(st.integers(0, n_nodes - 1))
    others = [i for i in range(n_nodes) if i != target]
    parents = data.draw(st.lists(st.sampled_from(others), unique=True))
    nu = None if intercept else data.draw(st.floats(-3, 3))
    check_against_lstsq(from_moments(X, target, parents, nu), X, target, parents, nu)


@given(st.integers(0, 10**6), st.booleans(), st.data())
def test_downdate_against_refit(seed: int, intercept: bool, data: st.DataObject) -> None:
    """Along a random sequence of removals, down to nothing."""
    n_nodes = data.draw(st.integers(2, 7))
    X = samples(50, n_nodes, seed)
    nu = None if intercept else 0.7
    left = list(range(1, n_nodes))
    regression = from_moments(X, 0, left, nu)
    for parent in data.draw(st.permutations(left)):
        regression = regression.without(parent)
        left = [i for i in left if i != parent]
        expected = [*left, n_nodes] if intercept else left
        assert regression.columns.tolist() == expected
        check_against_lstsq(regression, X, 0, left, nu)


def test_no_spare_sample_gives_no_noise_estimate() -> None:
    X = samples(3, 4, 0)
    regression = from_moments(X, 0, [1, 2, 3], 0.0)
    assert regression.degrees_of_freedom == 0
    assert np.isnan(regression.residual_std)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_dependent_column_is_named(intercept: bool) -> None:
    X = samples(30, 4, 1)
    X[:, 3] = 2 * X[:, 1] - X[:, 2]
    with pytest.raises(SingularError, match="column 3 is a linear combination") as caught:
        from_moments(X, 0, [1, 2, 3], None if intercept else 0.0)
    assert caught.value.column == 3
    assert isinstance(caught.value, DataError)


def test_a_zero_column_is_named() -> None:
    X = samples(30, 3, 1)
    X[:, 2] = 0
    with pytest.raises(SingularError) as caught:
        from_moments(X, 0, [1, 2], 0.0)
    assert caught.value.column == 2


def test_a_constant_column_clashes_with_the_intercept_only() -> None:
    X = samples(30, 3, 1)
    X[:, 2] = 3.0
    with pytest.raises(SingularError):
        from_moments(X, 0, [1, 2], None)
    check_against_lstsq(from_moments(X, 0, [1, 2], 0.0), X, 0, [1, 2], 0.0)


def test_fewer_samples_than_regressors_is_singular() -> None:
    with pytest.raises(SingularError) as caught:
        from_moments(samples(2, 4, 0), 0, [1, 2, 3], 0.0)
    assert caught.value.column == 3


def test_units_do_not_decide_what_is_singular() -> None:
    X = samples(30, 3, 1) * [1.0, 1e-8, 1e8]
    regression = from_moments(X, 0, [1, 2], 0.0)
    weights, *_ = np.linalg.lstsq(X[:, 1:] * [1e8, 1e-8], X[:, 0], rcond=None)
    np.testing.assert_allclose(regression.weights, weights * [1e8, 1e-8], rtol=1e-6)
