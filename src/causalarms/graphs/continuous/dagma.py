"""DAGMA: a linear SEM fitted along a central path of log-determinant acyclicity barriers.

Sec. VI-A of Peng, Zhang, Mitra; Bello et al. 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, log
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from causalarms.checks import choice, integer, number
from causalarms.errors import DataError, SettingError
from causalarms.graphs.continuous.numerics import (
    MOST_STEPS,
    GradientFit,
    Matrix,
    adam_direction,
    checked_covariance,
    checked_weights,
    invert_m_matrix,
    least_squares,
    move,
    negative_log_likelihood,
)
from causalarms.kernels import kernel

Loss = Literal["likelihood", "least-squares"]

# The recoveries and the spacing of checks are those of the program of Bello et al. 2022.
CHECK_EVERY = 1000
RATE_FACTOR = 0.5
SMALLEST_RATE = 1e-16
S_INCREASE = 0.1
# At or below this s a step out of the domain restarts the stage instead of being shortened.
RESTART_BELOW = 0.9
# Each restart raises s, so a stage always succeeds long before this many.
MOST_RESTARTS = 100

LEFT_DOMAIN, REACHED_LIMIT, CONVERGED = 0, 1, 2  # how the descent of a stage ended


class DAGMASettings(NamedTuple):
    """The loss, the central path and its descent; the defaults are the published ones."""

    loss: Loss = "likelihood"
    l1: float = 0.03  # weight of the sum of absolute weights
    mu: Sequence[float] = (1.0, 0.1, 0.01, 0.001, 1e-4)  # weight of the loss in each stage
    s: Sequence[float] = (1.0, 0.9, 0.8, 0.7, 0.6)  # size of the barrier's domain in each stage
    steps: int = 30_000  # of each stage but the last, at most
    last_steps: int = 60_000
    learning_rate: float = 3e-4
    betas: tuple[float, float] = (0.99, 0.999)  # decay rates of Adam
    tolerance: float = 1e-6  # relative change between checks that ends a stage; 0: runs every step


def dagma(covariance: ArrayLike, settings: DAGMASettings | None = None) -> GradientFit:
    """Fit weights from the covariance of centred data (Bello et al. 2022).

    ``converged`` and ``objective`` of the fit are those of the last stage.
    """
    matrix = checked_covariance(covariance)
    settings = settings or DAGMASettings()
    check_dagma(settings)
    mu, s, betas = settings.mu, settings.s, settings.betas
    likelihood = settings.loss == "likelihood"
    # kernels are compiled again for other types
    l1, tolerance = float(settings.l1), float(settings.tolerance)
    weights = np.zeros_like(matrix)
    ending, total, objective = REACHED_LIMIT, 0, inf
    for stage, (weight, start_s) in enumerate(zip(mu, s, strict=True)):
        limit = settings.last_steps if stage == len(mu) - 1 else settings.steps
        for restart in range(MOST_RESTARTS):
            trial = weights.copy()
            posed = Stage(
                float(weight),
                float(start_s + restart * S_INCREASE),
                limit,
                float(settings.learning_rate * RATE_FACTOR**restart),
            )
            ending, taken, objective = _descend_stage(
                trial, matrix, likelihood, l1, posed, betas, tolerance
            )
            total += taken
            if ending != LEFT_DOMAIN:
                break
        weights = trial
    if not (isfinite(objective) and np.isfinite(weights).all()):
        raise DataError("the descent diverged: lower learning_rate")
    return GradientFit(weights, total, ending == CONVERGED, objective)


def check_dagma(settings: DAGMASettings) -> None:
    """Refuse settings that cannot be used, by name."""
    mu, s, betas = settings.mu, settings.s, settings.betas
    if len(mu) != len(s) or not len(mu):
        raise SettingError(f"mu and s must be of equal length, got {len(mu)} and {len(s)}")
    for barrier_weight, offset in zip(mu, s, strict=True):
        number("mu", barrier_weight, above=0.0)
        number("s", offset, above=0.0)
    if not all(0 <= beta < 1 for beta in betas):
        raise SettingError(f"betas must lie in [0, 1), got {betas}")
    choice("loss", settings.loss, get_args(Loss))
    number("l1", settings.l1, minimum=0.0)
    number("learning_rate", settings.learning_rate, above=0.0)
    integer("steps", settings.steps, minimum=1, maximum=MOST_STEPS)
    integer("last_steps", settings.last_steps, minimum=1, maximum=MOST_STEPS)
    number("tolerance", settings.tolerance, minimum=0.0)


def dagma_objective(
    weights: ArrayLike,
    covariance: ArrayLike,
    *,
    loss: Loss = "likelihood",
    l1: float = 0.03,
    mu: float = 1.0,
    s: float = 1.0,
) -> tuple[float, Matrix]:
    """Return mu (score + l1 |B|_1) + h_s and its gradient; inf and NaN out of the domain.

    ``weights`` and ``covariance`` are (N, N); the other parameters are those of one stage of
    ``DAGMASettings``.
    """
    matrix = checked_covariance(covariance)
    at = checked_weights(weights, matrix.shape[0])
    work = np.empty((3, *at.shape))
    gradient = np.full(at.shape, np.nan)
    barrier = _barrier(at, s, work[0])
    if barrier == inf:
        return inf, gradient
    score = _penalised_score(at, matrix, loss == "likelihood", l1, mu, gradient, work)
    return barrier + score, gradient


class Stage(NamedTuple):
    """One weight of the barrier, and how it is descended."""

    mu: float
    s: float
    steps: int
    learning_rate: float


@kernel
def _descend_stage(
    weights: Matrix,
    covariance: Matrix,
    likelihood: bool,
    l1: float,
    stage: Stage,
    betas: tuple[float, float],
    tolerance: float,
) -> tuple[int, int, float]:
    """Minimise one stage in place; return how it ended, the steps taken and the objective."""
    size = weights.shape[0]
    work = np.empty((3, size, size))
    moments = np.zeros((2, size, size))
    gradient = np.zeros((size, size))
    direction = np.zeros((size, size))
    s, rate = stage.s, stage.learning_rate
    previous = inf
    objective = inf
    for step in range(1, stage.steps + 1):
        barrier = _barrier(weights, s, work[0])
        while barrier == inf:
            if step == 1 or s <= RESTART_BELOW:
                return LEFT_DOMAIN, step, objective
            move(weights, direction, -rate)  # take the last step back
            rate *= RATE_FACTOR
            if rate <= SMALLEST_RATE:
                return REACHED_LIMIT, step, objective
            move(weights, direction, rate)
            barrier = _barrier(weights, s, work[0])
        objective = barrier + _penalised_score(
            weights, covariance, likelihood, l1, stage.mu, gradient, work
        )
        if step % CHECK_EVERY == 0:
            if abs(previous - objective) < tolerance * abs(previous) < inf:
                return CONVERGED, step, objective
            previous = objective
        adam_direction(gradient, moments, direction, step, betas[0], betas[1])
        move(weights, direction, rate)
    return REACHED_LIMIT, stage.steps, objective


@kernel
def _barrier(weights: Matrix, s: float, inverse: Matrix) -> float:
    """Write inv(sI - B∘B), return h_s (Bello et al. 2022), inf out of its domain."""
    size = weights.shape[0]
    for row in range(size):
        for column in range(size):
            inverse[row, column] = -weights[row, column] * weights[row, column]
        inverse[row, row] += s
    return float(size * log(s) - invert_m_matrix(inverse))


@kernel
def _penalised_score(
    weights: Matrix,
    covariance: Matrix,
    likelihood: bool,
    l1: float,
    mu: float,
    gradient: Matrix,
    work: Matrix,
) -> float:
    """Write the gradient of mu (score + l1 |B|_1) + h_s, return the value without h_s.

    ``work[0]`` must hold what ``_barrier`` wrote.
    """
    size = weights.shape[0]
    inverse = work[0]
    if likelihood:
        value = negative_log_likelihood(weights, covariance, True, gradient, work[1:])
    else:
        value = least_squares(weights, covariance, gradient, work[1:])
    for row in range(size):
        for column in range(size):
            weight = weights[row, column]
            value += l1 * abs(weight)
            slope = gradient[row, column] + l1 * np.sign(weight)
            gradient[row, column] = mu * slope + 2.0 * weight * inverse[column, row]
        gradient[row, row] = 0.0
    return mu * value
