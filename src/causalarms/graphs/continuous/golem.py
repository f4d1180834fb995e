"""GOLEM: soft-acyclic likelihood fit of a linear SEM from its sample covariance.

Sec. VI-A of Peng, Zhang, Mitra; Ng et al. 2020.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from causalarms.checks import flag, integer, number
from causalarms.errors import DataError
from causalarms.graphs.continuous import (
    MOST_STEPS,
    GradientFit,
    Matrix,
    adam_direction,
    checked_covariance,
    exponentiate,
    move,
    negative_log_likelihood,
)
from causalarms.kernels import kernel

# Adam's usual rates, which the published program keeps (Kingma and Ba 2015).
FIRST_BETA = 0.9
SECOND_BETA = 0.999
# Steps over which the weights are averaged for the stopping rule: Adam's chatter of one learning
# rate around zero weights cancels in the average.
WINDOW = 1000
# Two settled windows at a tolerance of 5e-4 gave the graph of all 100 000 steps on 800 of 800
# random systems of 6 to 14 nodes; 3e-3 cut short a slow drift across the threshold in 1 of 400.
SETTLED_WINDOWS = 2
WORK_MATRICES = 8


class GOLEMSettings(NamedTuple):
    """The objective and its descent; the defaults are the published ones."""

    equal_variances: bool = True  # GOLEM-EV; False: GOLEM-NV, which starts where GOLEM-EV ends
    l1: float = 0.02  # weight of the sum of absolute weights
    acyclicity: float = 5.0  # weight of tr exp(B∘B) - N
    learning_rate: float = 1e-3
    steps: int = 100_000  # at most
    tolerance: float = 5e-4  # change between windows of steps that is no change; 0: all steps

    def checked(self) -> GOLEMSettings:
        """The settings in the types that kernels are compiled for; an error names the wrong one."""
        return GOLEMSettings(
            flag("equal_variances", self.equal_variances),
            number("l1", self.l1, minimum=0.0),
            number("acyclicity", self.acyclicity, minimum=0.0),
            number("learning_rate", self.learning_rate, above=0.0),
            integer("steps", self.steps, minimum=1, maximum=MOST_STEPS),
            number("tolerance", self.tolerance, minimum=0.0),
        )


def golem(covariance: ArrayLike, settings: GOLEMSettings | None = None) -> GradientFit:
    """Fit weights from the covariance of centred data (Ng et al. 2020).

    The descent stops early once the mean weights of successive windows of steps differ by less
    than the tolerance, several times in a row.
    """
    matrix = checked_covariance(covariance)
    settings = (settings or GOLEMSettings()).checked()
    weights = np.zeros_like(matrix)
    if not settings.equal_variances:  # as the published program starts
        weights = golem(matrix, settings._replace(equal_variances=True)).weights
    taken, converged = _descend(weights, matrix, settings)
    if not np.isfinite(weights).all():
        raise DataError("the descent diverged: lower learning_rate or acyclicity")
    return GradientFit(weights, taken, converged, golem_objective(weights, matrix, settings)[0])


def golem_objective(
    weights: Matrix, covariance: Matrix, settings: GOLEMSettings
) -> tuple[float, Matrix]:
    """The objective of Ng et al. 2020 and its gradient (zero on the diagonal)."""
    gradient, work = np.empty_like(weights), np.empty((WORK_MATRICES, *weights.shape))
    return _evaluate(weights, covariance, settings, gradient, work), gradient


@kernel
def _descend(weights: Matrix, covariance: Matrix, settings: GOLEMSettings) -> tuple[int, bool]:
    """Run Adam in place from ``weights``; return the steps taken and whether they settled."""
    moments = np.zeros((2, *weights.shape))
    average = np.zeros_like(weights)
    earlier = np.full_like(weights, inf)
    taken = 0
    settled = 0
    while taken < settings.steps:
        count = min(WINDOW, settings.steps - taken)
        _descend_window(weights, moments, average, taken + 1, count, covariance, settings)
        taken += count
        settled = settled + 1 if np.abs(average - earlier).max() < settings.tolerance else 0
        if settled == SETTLED_WINDOWS:
            return taken, True
        earlier[:] = average
    return taken, False


@kernel
def _descend_window(
    weights: Matrix,
    moments: Matrix,
    average: Matrix,
    first_step: int,
    count: int,
    covariance: Matrix,
    settings: GOLEMSettings,
) -> None:
    """Take ``count`` steps in place, and write the average of the weights after each."""
    size = weights.shape[0]
    work = np.empty((WORK_MATRICES, size, size))
    gradient = np.empty((size, size))
    direction = np.empty((size, size))
    average[:] = 0.0
    for step in range(first_step, first_step + count):
        _evaluate(weights, covariance, settings, gradient, work)
        adam_direction(gradient, moments, direction, step, FIRST_BETA, SECOND_BETA)
        move(weights, direction, settings.learning_rate)
        move(average, weights, -1.0 / count)


@kernel
def _evaluate(
    weights: Matrix, covariance: Matrix, settings: GOLEMSettings, gradient: Matrix, work: Matrix
) -> float:
    """Write the gradient of the objective, return its value."""
    value = negative_log_likelihood(weights, covariance, settings.equal_variances, gradient, work)
    return value + _add_penalties(weights, settings.l1, settings.acyclicity, gradient, work)


@kernel
def _add_penalties(
    weights: Matrix, l1: float, acyclicity: float, gradient: Matrix, work: Matrix
) -> float:
    """Add the gradient of l1 |B|_1 + acyclicity (tr exp(B∘B) - N), return the value."""
    size = weights.shape[0]
    powers, exponential = work[2:6], work[6]
    np.multiply(weights, weights, powers[0])
    exponentiate(powers, exponential, work[7])
    value = 0.0
    for row in range(size):
        for column in range(size):
            weight = weights[row, column]
            value += l1 * abs(weight)
            gradient[row, column] += (
                l1 * np.sign(weight) + 2.0 * acyclicity * weight * exponential[column, row]
            )
        value += acyclicity * (exponential[row, row] - 1.0)
        gradient[row, row] = 0.0
    return value
