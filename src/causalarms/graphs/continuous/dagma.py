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
from causalarms.graphs.continuous import (
    MOST_STEPS,
    GradientFit,
    Matrix,
    adam_direction,
    checked_covariance,
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

    def checked(self) -> DAGMASettings:
        """The settings in the types that kernels are compiled for; an error names the wrong one."""
        mu, s, betas = self.mu, self.s, self.betas
        if len(mu) != len(s) or not len(mu):
            raise SettingError(f"mu and s must be of equal length, got {len(mu)} and {len(s)}")
        if not all(0 <= beta < 1 for beta in betas):
            raise SettingError(f"betas must lie in [0, 1), got {betas}")
        choice("loss", self.loss, get_args(Loss))
        return self._replace(
            l1=number("l1", self.l1, minimum=0.0),
            mu=[number("mu", weight, above=0.0) for weight in mu],
            s=[number("s", size, above=0.0) for size in s],
            steps=integer("steps", self.steps, minimum=1, maximum=MOST_STEPS),
            last_steps=integer("last_steps", self.last_steps, minimum=1, maximum=MOST_STEPS),
            learning_rate=number("learning_rate", self.learning_rate, above=0.0),
            betas=(float(betas[0]), float(betas[1])),
            tolerance=number("tolerance", self.tolerance, minimum=0.0),
        )


def dagma(covariance: ArrayLike, settings: DAGMASettings | None = None) -> GradientFit:
    """Fit weights from the covariance of centred data (Bello et al. 2022).

    ``converged`` and ``objective`` of the fit are those of the last stage.
    """
    matrix = checked_covariance(covariance)
    settings = (settings or DAGMASettings()).checked()
    weights = np.zeros_like(matrix)
    ending, total, objective = REACHED_LIMIT, 0, inf
    last = len(settings.mu) - 1
    for number_of_stage, (mu, s) in enumerate(zip(settings.mu, settings.s, strict=True)):
        steps = settings.last_steps if number_of_stage == last else settings.steps
        for restart in range(MOST_RESTARTS):
            trial = weights.copy()
            stage = Stage(
                settings.loss == "likelihood",
                settings.l1,
                mu,
                s + restart * S_INCREASE,
                steps,
                settings.learning_rate * RATE_FACTOR**restart,
                settings.betas,
                settings.tolerance,
            )
            ending, taken, objective = _descend_stage(trial, matrix, stage)
            total += taken
            if ending != LEFT_DOMAIN:
                break
        weights = trial
    if not (isfinite(objective) and np.isfinite(weights).all()):
        raise DataError("the descent diverged: lower learning_rate")
    return GradientFit(weights, total, ending == CONVERGED, objective)


class Stage(NamedTuple):
    """One weight of the barrier, and how it is descended."""

    likelihood: bool
    l1: float
    mu: float
    s: float
    steps: int
    learning_rate: float
    betas: tuple[float, float]
    tolerance: float


@kernel
def _descend_stage(weights: Matrix, covariance: Matrix, stage: Stage) -> tuple[int, int, float]:
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
        height = barrier(weights, s, work[0])
        while height == inf:
            if step == 1 or s <= RESTART_BELOW:
                return LEFT_DOMAIN, step, objective
            move(weights, direction, -rate)  # take the last step back
            rate *= RATE_FACTOR
            if rate <= SMALLEST_RATE:
                return REACHED_LIMIT, step, objective
            move(weights, direction, rate)
            height = barrier(weights, s, work[0])
        objective = height + penalised_score(weights, covariance, stage, gradient, work)
        if step % CHECK_EVERY == 0:
            if abs(previous - objective) < stage.tolerance * abs(previous) < inf:
                return CONVERGED, step, objective
            previous = objective
        adam_direction(gradient, moments, direction, step, stage.betas[0], stage.betas[1])
        move(weights, direction, rate)
    return REACHED_LIMIT, stage.steps, objective


@kernel
def barrier(weights: Matrix, s: float, inverse: Matrix) -> float:
    """Write inv(sI - B∘B), return h_s (Bello et al. 2022), inf out of its domain."""
    size = weights.shape[0]
    for row in range(size):
        for column in range(size):
            inverse[row, column] = -weights[row, column] * weights[row, column]
        inverse[row, row] += s
    return float(size * log(s) - invert_m_matrix(inverse))


@kernel
def penalised_score(
    weights: Matrix, covariance: Matrix, stage: Stage, gradient: Matrix, work: Matrix
) -> float:
    """Write the gradient of mu (score + l1 |B|_1) + h_s, return the value without h_s.

    ``work[0]`` must hold what ``barrier`` wrote.
    """
    size = weights.shape[0]
    inverse, l1, mu = work[0], stage.l1, stage.mu
    if stage.likelihood:
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
