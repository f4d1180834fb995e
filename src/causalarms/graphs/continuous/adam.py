"""One step of Adam (Kingma and Ba 2015, Algorithm 1) on a weight matrix."""

from math import sqrt

from causalarms.graphs.continuous.small_matrices import Matrix
from causalarms.kernels import kernel

# Added to the root of the second moment; the value of Kingma and Ba 2015.
EPSILON = 1e-8


@kernel
def adam_direction(
    gradient: Matrix,
    moments: Matrix,
    direction: Matrix,
    step: int,
    first_beta: float,
    second_beta: float,
) -> None:
    """Update both ``moments`` and write the bias-corrected ``direction`` of step ``step >= 1``."""
    size = gradient.shape[0]
    first_scale = 1.0 / (1.0 - first_beta**step)
    second_scale = 1.0 / (1.0 - second_beta**step)
    for row in range(size):
        for column in range(size):
            slope = gradient[row, column]
            first = first_beta * moments[0, row, column] + (1.0 - first_beta) * slope
            second = second_beta * moments[1, row, column] + (1.0 - second_beta) * slope**2
            moments[0, row, column] = first
            moments[1, row, column] = second
            direction[row, column] = first * first_scale / (sqrt(second * second_scale) + EPSILON)


@kernel
def move(weights: Matrix, direction: Matrix, length: float) -> None:
    """Subtract ``length * direction`` from ``weights`` in place."""
    size = weights.shape[0]
    for row in range(size):
        for column in range(size):
            weights[row, column] -= length * direction[row, column]
