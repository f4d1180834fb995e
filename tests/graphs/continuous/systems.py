"""Small systems with known graphs, and a finite-difference gradient."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

# Two confounded pairs and a collider; node 2 is an ancestor of all others.
KNOWN_WEIGHTS: Matrix = np.array(
    [
        [0.0, 1.2, 0.0, 0.0, -0.8],
        [0.0, 0.0, 0.0, 0.0, 1.5],
        [-1.0, 0.7, 0.0, 1.4, 0.0],
        [0.0, -1.1, 0.0, 0.0, 0.9],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ]
)


def population_covariance(weights: Matrix) -> Matrix:
    """Covariance of x = B^T x + eps with independent noise of variance one."""
    mixing = np.linalg.inv(np.eye(len(weights)) - weights)
    product: Matrix = mixing.T @ mixing
    return product


def random_weights(seed: int, size: int, scale: float) -> Matrix:
    """Nonzero weights everywhere but on the diagonal, so that |B|_1 is smooth nearby."""
    random = np.random.default_rng(seed)
    signs = random.choice([-1.0, 1.0], (size, size))
    weights: Matrix = scale * signs * random.uniform(0.2, 1.0, (size, size))
    np.fill_diagonal(weights, 0.0)
    return weights


def numeric_gradient(objective: Callable[[Matrix], float], weights: Matrix) -> Matrix:
    """Central differences off the diagonal, zero on it."""
    gradient = np.zeros_like(weights)
    for row, column in zip(*np.nonzero(~np.eye(len(weights), dtype=bool)), strict=True):
        nudge = np.zeros_like(weights)
        nudge[row, column] = 1e-6
        difference = objective(weights + nudge) - objective(weights - nudge)
        gradient[row, column] = difference / 2e-6
    return gradient
