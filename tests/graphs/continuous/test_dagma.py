"""Checks of DAGMA."""

from typing import Any

import numpy as np
import pytest
from systems import (
    KNOWN_WEIGHTS,
    Matrix,
    numeric_gradient,
    population_covariance,
    random_weights,
)

from causalarms.graphs.continuous import threshold_to_dag
from causalarms.graphs.continuous.dagma import (
    DAGMASettings,
    Loss,
    Stage,
    barrier,
    dagma,
    penalised_score,
)

COVARIANCE = population_covariance(KNOWN_WEIGHTS)
LOSSES: list[Loss] = ["likelihood", "least-squares"]
SHORT: dict[str, Any] = {"steps": 2_000, "last_steps": 3_000}


def objective_at(weights: Matrix, loss: Loss = "likelihood") -> tuple[float, Matrix]:
    """mu (score + l1 |B|_1) + h_s and its gradient."""
    stage = Stage(loss == "likelihood", 0.03, 0.3, 0.9, 1, 1e-3, (0.99, 0.999), 0.0)
    gradient, work = np.empty((5, 5)), np.empty((3, 5, 5))
    height = barrier(weights, stage.s, work[0])
    return height + penalised_score(weights, COVARIANCE, stage, gradient, work), gradient


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(5))
def test_gradient_agrees_with_finite_differences(loss: Loss, seed: int) -> None:
    def objective(weights: Matrix) -> float:
        return objective_at(weights, loss)[0]

    weights = random_weights(seed, 5, 0.4)
    _, gradient = objective_at(weights, loss)
    np.testing.assert_allclose(gradient, numeric_gradient(objective, weights), rtol=1e-5, atol=1e-5)


def test_objective_is_the_published_formula() -> None:
    weights = random_weights(3, 5, 0.4)
    residual = np.eye(5) - weights
    total = np.trace(residual.T @ COVARIANCE @ residual)
    barrier = -np.linalg.slogdet(0.9 * np.eye(5) - weights**2)[1] + 5 * np.log(0.9)
    penalty = 0.03 * np.abs(weights).sum()
    squares, _ = objective_at(weights, "least-squares")
    likelihood, _ = objective_at(weights)
    assert squares == pytest.approx(0.3 * (0.5 * total + penalty) + barrier)
    score = 2.5 * np.log(total) - np.linalg.slogdet(residual)[1]
    assert likelihood == pytest.approx(0.3 * (score + penalty) + barrier)


def test_barrier_is_infinite_out_of_the_domain() -> None:
    assert barrier(random_weights(0, 5, 2.0), 1.0, np.empty((5, 5))) == np.inf


@pytest.mark.parametrize("loss", LOSSES)
def test_recovers_a_known_graph_and_leaves_the_covariance_alone(loss: Loss) -> None:
    covariance = COVARIANCE.copy()
    fit = dagma(covariance, DAGMASettings(loss=loss))
    np.testing.assert_array_equal(covariance, COVARIANCE)
    assert fit.converged
    assert fit.steps < 180_000
    assert not np.diagonal(fit.weights).any()
    np.testing.assert_array_equal(threshold_to_dag(fit.weights) != 0, KNOWN_WEIGHTS != 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weak_penalty_hardly_shrinks_the_weights(loss: Loss) -> None:
    fit = dagma(COVARIANCE, DAGMASettings(loss=loss, l1=1e-3))
    np.testing.assert_allclose(threshold_to_dag(fit.weights), KNOWN_WEIGHTS, atol=0.02)


def test_ends_in_the_domain_even_after_steps_too_long_for_it() -> None:
    fit = dagma(COVARIANCE, DAGMASettings(learning_rate=0.2, **SHORT))
    inverse = np.linalg.inv(np.eye(5) - fit.weights**2)
    assert inverse.min() > -1e-12


def test_zero_tolerance_runs_every_step() -> None:
    fit = dagma(COVARIANCE, DAGMASettings(mu=(1.0, 0.1), s=(1.0, 1.0), tolerance=0.0, **SHORT))
    assert (fit.steps, fit.converged) == (5_000, False)


@pytest.mark.parametrize("loss", LOSSES)
def test_relabelling_the_nodes_relabels_the_weights(loss: Loss) -> None:
    order = np.array([3, 0, 4, 2, 1])
    moved = dagma(COVARIANCE[np.ix_(order, order)], DAGMASettings(loss=loss, **SHORT))
    straight = dagma(COVARIANCE, DAGMASettings(loss=loss, **SHORT))
    np.testing.assert_allclose(moved.weights, straight.weights[np.ix_(order, order)], atol=5e-3)


def test_two_runs_agree_exactly() -> None:
    first, second = (
        dagma(COVARIANCE, DAGMASettings(**SHORT)),
        dagma(COVARIANCE, DAGMASettings(**SHORT)),
    )
    np.testing.assert_array_equal(first.weights, second.weights)
    assert first[1:] == second[1:]


def test_refuses_bad_arguments() -> None:
    with pytest.raises(ValueError, match="singular"):
        dagma(np.ones((3, 3)))
    with pytest.raises(ValueError, match="NaN"):
        dagma(np.diag([1.0, np.nan]))
    with pytest.raises(ValueError, match="loss"):
        dagma(COVARIANCE, DAGMASettings(loss="squares"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="equal length"):
        dagma(COVARIANCE, DAGMASettings(mu=(1.0,)))
    with pytest.raises(ValueError, match="betas"):
        dagma(COVARIANCE, DAGMASettings(betas=(1.0, 0.999)))
