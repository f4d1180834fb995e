"""Weights and their uncertainty against least squares on the samples themselves."""

from __future__ import annotations

import numpy as np
import pytest
from mechanism_models import fitted, random_data

from causalarms.errors import DataError
from causalarms.models.linear import fit_weights
from causalarms.statistics.dataset import Dataset, Moments


@pytest.mark.parametrize("known_mean", [True, False], ids=["known", "intercepts"])
def test_every_mechanism_is_a_least_squares_fit(known_mean: bool) -> None:
    sem, data = random_data(5, 300, seed=2)
    mean = sem.mechanism_mean if known_mean else None
    model = fit_weights(Moments.of(data), sem.adjacency, noise_mean=mean)
    for regime, node in np.ndindex(2, 5):
        parents = np.flatnonzero(sem.adjacency[regime, :, node])
        samples = data.samples(regime, node)
        design, response = samples[:, parents], samples[:, node]
        if known_mean:
            response = response - sem.mechanism_mean[regime, node]
        else:
            design = np.column_stack([design, np.ones(len(samples))])
        expected, *_ = np.linalg.lstsq(design, response, rcond=None)
        residual = response - design @ expected
        variance = residual @ residual / (len(samples) - design.shape[1])
        np.testing.assert_allclose(
            model.weights[regime, parents, node], expected[: len(parents)], rtol=1e-8
        )
        nu = sem.mechanism_mean[regime, node] if known_mean else expected[-1]
        assert model.intercept[regime, node] == pytest.approx(nu, rel=1e-8)
        assert model.noise_std[regime, node] ** 2 == pytest.approx(variance, rel=1e-8)
        assert model.n_regressors[regime, node] == design.shape[1]
        spread = 0.0
        if design.shape[1]:
            spread = np.linalg.eigvalsh(variance * np.linalg.inv(design.T @ design))[-1]
        assert model.spread[regime, node] == pytest.approx(spread, rel=1e-8)


def test_weights_of_absent_edges_are_exactly_zero() -> None:
    sem, model = fitted(5, 200, seed=2)
    assert (model.weights[~sem.adjacency] == 0).all()


def test_a_given_noise_std_scales_the_spread() -> None:
    sem, data = random_data(4, 200, seed=1)
    moments = Moments.of(data)
    std = np.arange(1.0, 9.0).reshape(2, 4)
    estimated = fit_weights(moments, sem.adjacency, noise_mean=sem.mechanism_mean)
    given = fit_weights(moments, sem.adjacency, noise_mean=sem.mechanism_mean, noise_std=std)
    np.testing.assert_array_equal(given.noise_std, std)
    np.testing.assert_array_equal(given.weights, estimated.weights)
    expected = estimated.spread * (std / estimated.noise_std) ** 2
    np.testing.assert_allclose(given.spread, expected, rtol=1e-10)


def test_an_estimated_intercept_is_one_more_parent() -> None:
    sem, known = fitted(4, 200, seed=1)
    _, estimated = fitted(4, 200, seed=1, known_mean=False)
    np.testing.assert_array_equal(estimated.n_regressors, known.n_regressors + 1)
    roots = ~sem.adjacency.any(axis=1)
    assert roots.any()
    assert (known.spread[roots] == 0).all()
    assert (estimated.spread[roots] > 0).all()


def test_no_order_where_the_regimes_mix_into_a_cycle() -> None:
    _, data = random_data(3, 100, seed=0)
    adjacency = np.zeros((2, 3, 3), dtype=bool)
    adjacency[0, 0, 1] = adjacency[1, 1, 0] = True
    moments = Moments.of(data)
    assert fit_weights(moments, adjacency, noise_mean=None).order is None
    adjacency[1] = False
    order = fit_weights(moments, adjacency, noise_mean=None).order
    assert order is not None
    assert order.tolist().index(0) < order.tolist().index(1)


def test_dependent_parents_are_refused_by_name() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[:, 1] = 2 * X[:, 0]
    data = Dataset(3)
    data.append(X, np.zeros((50, 3)))
    adjacency = np.zeros((2, 3, 3), dtype=bool)
    adjacency[0, :2, 2] = True
    with pytest.raises(DataError, match=r"x2.*50 samples are linearly dependent"):
        fit_weights(Moments.of(data), adjacency, noise_mean=np.zeros((2, 3)))
