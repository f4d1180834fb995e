"""Checks of GOLEM, of the small-matrix kernels under it, and of thresholding."""

import numpy as np
import pytest
from scipy.linalg import expm
from systems import (
    KNOWN_WEIGHTS,
    Matrix,
    numeric_gradient,
    population_covariance,
    random_weights,
)

from causalarms.graphs.continuous import (
    exponentiate,
    invert,
    invert_m_matrix,
    threshold_to_dag,
)
from causalarms.graphs.continuous.golem import GOLEMSettings, golem, golem_objective
from causalarms.sem.regimes import topological_order

COVARIANCE = population_covariance(KNOWN_WEIGHTS)


@pytest.mark.parametrize("size", [1, 2, 6, 14, 20])
@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_exponential_agrees_with_scipy(size: int, scale: float) -> None:
    matrix = np.random.default_rng(size).uniform(0, scale, (size, size))
    powers = np.empty((4, size, size))
    powers[0] = matrix
    result = np.empty((size, size))
    exponentiate(powers, result, np.empty((size, size)))
    np.testing.assert_allclose(result, expm(matrix), rtol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 6, 14, 20])
def test_inverses_and_log_determinants_agree_with_numpy(size: int) -> None:
    random = np.random.default_rng(size)
    general = random.normal(size=(size, size))
    m_matrix = np.eye(size) - random.uniform(0, 0.9 / size, (size, size))
    for matrix in (general, m_matrix):
        inverse = matrix.copy()
        log_determinant = invert(inverse, np.empty(size, np.int64))
        np.testing.assert_allclose(inverse @ matrix, np.eye(size), atol=1e-8)
        assert log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-9)
    inverse = m_matrix.copy()
    assert invert_m_matrix(inverse) == pytest.approx(np.linalg.slogdet(m_matrix)[1], abs=1e-9)
    np.testing.assert_allclose(inverse @ m_matrix, np.eye(size), atol=1e-9)


def test_singular_matrices_have_log_determinant_minus_infinity() -> None:
    assert invert(np.ones((3, 3)), np.empty(3, np.int64)) == -np.inf
    assert invert_m_matrix(np.array([[1.0, -2.0], [-2.0, 1.0]])) == -np.inf


@pytest.mark.parametrize("equal_variances", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_gradient_agrees_with_finite_differences(equal_variances: bool, seed: int) -> None:
    def objective(weights: Matrix) -> float:
        return golem_objective(weights, COVARIANCE, GOLEMSettings(equal_variances))[0]

    weights = random_weights(seed, 5, 0.8)
    _, gradient = golem_objective(weights, COVARIANCE, GOLEMSettings(equal_variances))
    np.testing.assert_allclose(gradient, numeric_gradient(objective, weights), rtol=1e-5, atol=1e-5)


def test_objective_is_the_published_formula() -> None:
    weights = random_weights(3, 5, 0.8)
    residual = np.eye(5) - weights
    variances = np.diag(residual.T @ COVARIANCE @ residual)
    shared = (
        -np.linalg.slogdet(residual)[1]
        + 0.02 * np.abs(weights).sum()
        + 5.0 * (np.trace(expm(weights * weights)) - 5)
    )
    equal, _ = golem_objective(weights, COVARIANCE, GOLEMSettings())
    unequal, _ = golem_objective(weights, COVARIANCE, GOLEMSettings(False))
    assert equal == pytest.approx(2.5 * np.log(variances.sum()) + shared)
    assert unequal == pytest.approx(0.5 * np.log(variances).sum() + shared)


def test_recovers_a_known_graph_and_leaves_the_covariance_alone() -> None:
    covariance = COVARIANCE.copy()
    fit = golem(covariance)
    np.testing.assert_array_equal(covariance, COVARIANCE)
    assert fit.converged
    assert fit.steps < 100_000
    assert not np.diagonal(fit.weights).any()
    np.testing.assert_array_equal(threshold_to_dag(fit.weights) != 0, KNOWN_WEIGHTS != 0)
    assert fit.objective == golem_objective(fit.weights, COVARIANCE, GOLEMSettings())[0]


def test_a_weak_penalty_hardly_shrinks_the_weights() -> None:
    fit = golem(COVARIANCE, GOLEMSettings(l1=1e-3))
    np.testing.assert_allclose(threshold_to_dag(fit.weights), KNOWN_WEIGHTS, atol=0.02)


def test_unequal_variances_start_where_equal_ones_end() -> None:
    settings = GOLEMSettings(equal_variances=False, l1=0.002)
    fit = golem(COVARIANCE, settings)
    np.testing.assert_allclose(threshold_to_dag(fit.weights), KNOWN_WEIGHTS, atol=0.1)
    equal = golem(COVARIANCE, settings._replace(equal_variances=True, steps=1)).weights
    moved = golem(COVARIANCE, settings._replace(steps=1)).weights
    assert 0 < np.abs(moved - equal).max() < 1.01e-3  # one step of Adam


def test_zero_tolerance_runs_every_step() -> None:
    fit = golem(COVARIANCE, GOLEMSettings(steps=2_500, tolerance=0.0))
    assert (fit.steps, fit.converged) == (2_500, False)


def test_relabelling_the_nodes_relabels_the_weights() -> None:
    order = np.array([3, 0, 4, 2, 1])
    moved = golem(COVARIANCE[np.ix_(order, order)], GOLEMSettings(steps=5_000))
    straight = golem(COVARIANCE, GOLEMSettings(steps=5_000))
    np.testing.assert_allclose(moved.weights, straight.weights[np.ix_(order, order)], atol=5e-3)


def test_two_runs_agree_exactly() -> None:
    first, second = (
        golem(COVARIANCE, GOLEMSettings(steps=3_000)),
        golem(COVARIANCE, GOLEMSettings(steps=3_000)),
    )
    np.testing.assert_array_equal(first.weights, second.weights)
    assert first[1:] == second[1:]


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (np.ones((3, 3)), "singular"),
        (np.diag([1.0, np.nan]), "NaN"),
        (np.ones((2, 3)), "square"),
        (np.array([[1.0, 0.5], [0.1, 1.0]]), "symmetric"),
    ],
)
def test_refuses_a_bad_covariance(covariance: Matrix, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        golem(covariance)


def test_refuses_bad_settings_and_divergence() -> None:
    with pytest.raises(ValueError, match="learning_rate"):
        golem(COVARIANCE, GOLEMSettings(learning_rate=0.0))
    with pytest.raises(ValueError, match="diverged"):
        golem(COVARIANCE, GOLEMSettings(learning_rate=1e3, steps=50))


def test_thresholding_drops_the_smallest_until_acyclic() -> None:
    weights = np.array([[0.0, 0.9, 0.29], [0.5, 0.0, -0.8], [-0.7, 0.3, 0.0]])
    kept = threshold_to_dag(weights)
    expected = np.array([[0.0, 0.9, 0.0], [0.0, 0.0, -0.8], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(kept, expected)
    assert weights[0, 2] == 0.29


def test_thresholding_breaks_ties_in_reading_order() -> None:
    kept = threshold_to_dag(np.array([[0.0, 0.5], [-0.5, 0.0]]))
    np.testing.assert_array_equal(kept, [[0.0, 0.0], [-0.5, 0.0]])


@pytest.mark.parametrize("seed", range(20))
def test_thresholding_gives_a_dag(seed: int) -> None:
    weights = random_weights(seed, 7, 1.5)
    kept = threshold_to_dag(weights, 0.3)
    assert topological_order(kept != 0) is not None
    dropped = weights[(kept == 0) & (weights != 0)]
    assert np.abs(dropped).max() <= np.abs(kept[kept != 0]).min()
