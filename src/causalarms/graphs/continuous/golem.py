"""GOLEM: soft-acyclic likelihood fit of a linear SEM from its sample covariance.

Sec. VI-A of Peng, Zhang, Mitra; Ng et al. 2020.
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from causalarms.checks import flag, integer, number
from causalarms.errors import DataError
from causalarms.graphs.continuous.numerics import (
    MOST_STEPS,
    GradientFit,
    Matrix,
    adam_direction,
    checked_covariance,
    checked_weights,
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


class Objective(NamedTuple):
    """What is minimised."""

    covariance: Matrix
    equal_variances: bool
    l1: float
    acyclicity: float


@kernel
def _evaluate(weights: Matrix, objective: Objective, gradient: Matrix, work: Matrix) -> float:
    value = negative_log_likelihood(
        weights, objective.covariance, objective.equal_variances, gradient, work
    )
    return value + _add_penalties(weights, objective.l1, objective.acyclicity, gradient, work)


@kernel
def _descend_window(
    weights: Matrix,
    moments: Matrix,
    average: Matrix,
    first_step: int,
    count: int,
    objective: Objective,
    learning_rate: float,
) -> float:
    """Take ``count`` steps in place; return the objective before the last of them."""
    size = weights.shape[0]
    work = np.empty((WORK_MATRICES, size, size))
    gradient = np.empty((size, size))
    direction = np.empty((size, size))
    value = inf
    average[:] = 0.0
    for step in range(first_step, first_step + count):
        value = _evaluate(weights, objective, gradient, work)
        adam_direction(gradient, moments, direction, step, FIRST_BETA, SECOND_BETA)
        move(weights, direction, learning_rate)
        move(average, weights, -1.0 / count)
    return value


@kernel
def _descend(
    weights: Matrix, objective: Objective, learning_rate: float, steps: int, tolerance: float
) -> tuple[int, bool]:
    """Run Adam in place from ``weights``; return the steps taken and whether they settled."""
    moments = np.zeros((2, *weights.shape))
    average = np.zeros_like(weights)
    earlier = np.full_like(weights, inf)
    taken = 0
    settled = 0
    while taken < steps:
        count = min(WINDOW, steps - taken)
        _descend_window(weights, moments, average, taken + 1, count, objective, learning_rate)
        taken += count
        settled = settled + 1 if np.abs(average - earlier).max() < tolerance else 0
        if settled == SETTLED_WINDOWS:
            return taken, True
        earlier[:] = average
    return taken, False


def golem_objective(
    weights: ArrayLike,
    covariance: ArrayLike,
    *,
    equal_variances: bool = True,
    l1: float = 0.02,
    acyclicity: float = 5.0,
) -> tuple[float, Matrix]:
    """Return the objective of Ng et al. 2020 and its gradient (zero on the diagonal)."""
    matrix = checked_covariance(covariance)
    at = checked_weights(weights, matrix.shape[0])
    gradient = np.empty_like(at)
    work = np.empty((WORK_MATRICES, *at.shape))
    objective = Objective(matrix, bool(equal_variances), float(l1), float(acyclicity))
    return _evaluate(at, objective, gradient, work), gradient


def check_golem(
    *,
    equal_variances: object,
    l1: object,
    acyclicity: object,
    learning_rate: object,
    steps: object,
    tolerance: object,
) -> None:
    """Refuse settings that cannot be used, by name."""
    flag("equal_variances", equal_variances)
    number("l1", l1, minimum=0.0)
    number("acyclicity", acyclicity, minimum=0.0)
    number("learning_rate", learning_rate, above=0.0)
    integer("steps", steps, minimum=1, maximum=MOST_STEPS)
    number("tolerance", tolerance, minimum=0.0)


def golem(
    covariance: ArrayLike,
    *,
    equal_variances: bool = True,
    l1: float = 0.02,
    acyclicity: float = 5.0,
    learning_rate: float = 1e-3,
    steps: int = 100_000,
    tolerance: float = 5e-4,
    initial: ArrayLike | None = None,
) -> GradientFit:
    """Fit weights from the covariance of centred data.

    Sec. VI-A of Peng, Zhang, Mitra; Ng et al. 2020. The descent stops early once the mean
    weights of successive windows of steps differ by less than ``tolerance``, several times in a
    row; ``tolerance=0`` runs every step. The published program starts from zero, and for
    ``equal_variances=False`` from the equal-variance weights, given here as ``initial``.
    """
    matrix = checked_covariance(covariance)
    check_golem(
        equal_variances=equal_variances, l1=l1, acyclicity=acyclicity,
        learning_rate=learning_rate, steps=steps, tolerance=tolerance,
    )  # fmt: skip
    l1, acyclicity = float(l1), float(acyclicity)  # kernels are compiled again for other types
    learning_rate, tolerance = float(learning_rate), float(tolerance)
    if initial is None:
        weights = np.zeros_like(matrix)
    else:
        weights = checked_weights(initial, matrix.shape[0])
    posed = Objective(matrix, bool(equal_variances), l1, acyclicity)
    taken, converged = _descend(weights, posed, learning_rate, steps, tolerance)
    if not np.isfinite(weights).all():
        raise DataError("the descent diverged: lower learning_rate or acyclicity")
    objective, _ = golem_objective(
        weights, matrix, equal_variances=equal_variances, l1=l1, acyclicity=acyclicity
    )
    return GradientFit(weights, taken, converged, objective)
