"""The record both gradient methods return, and the checks on what they are given."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from causalarms.errors import DataError
from causalarms.graphs.continuous.small_matrices import Matrix

MOST_STEPS = 1_000_000  # ten times as many as published
LARGEST_RATE = 0.1  # of steps; larger ones diverge on any data
# A covariance whose eigenvalues span more than this is singular to working precision.
SMALLEST_EIGENVALUE_RATIO = 1e-12
SYMMETRY_TOLERANCE = 1e-9


class GradientFit(NamedTuple):
    """Weights ``[parent, child]`` where a descent stopped, before any thresholding."""

    weights: Matrix
    steps: int
    converged: bool
    objective: float


def checked_covariance(covariance: ArrayLike) -> Matrix:
    """Return a private contiguous copy of a positive definite covariance, or raise."""
    matrix = np.array(covariance, dtype=np.float64, order="C")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise DataError(f"covariance must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise DataError("covariance must be finite, got NaN or infinity")
    if np.abs(matrix - matrix.T).max() > SYMMETRY_TOLERANCE * np.abs(matrix).max():
        raise DataError("covariance must be symmetric")
    eigenvalues = np.linalg.eigvalsh(matrix)
    if eigenvalues[0] <= SMALLEST_EIGENVALUE_RATIO * eigenvalues[-1]:
        raise DataError(
            "covariance must be positive definite, got a singular matrix "
            f"(smallest eigenvalue {eigenvalues[0]:.3g})"
        )
    return matrix


def checked_weights(weights: ArrayLike, size: int) -> Matrix:
    """Return a private copy of starting weights with a zero diagonal, or raise."""
    matrix = np.array(weights, dtype=np.float64, order="C")
    if matrix.shape != (size, size):
        raise DataError(f"weights must have shape {(size, size)}, got {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise DataError("weights must be finite, got NaN or infinity")
    if np.diagonal(matrix).any():
        raise DataError("weights must have a zero diagonal")
    return matrix
