"""Scores of a linear SEM that need the data only through the sample covariance S.

With R = S (I - B), residual variance i is column i of I - B times column i of R.
"""

from math import log

import numpy as np

from causalarms.graphs.continuous.small_matrices import Matrix, invert
from causalarms.kernels import kernel


@kernel
def _residuals(weights: Matrix, covariance: Matrix, residual: Matrix, product: Matrix) -> Matrix:
    """Write I - B and R, return the residual variances."""
    size = weights.shape[0]
    for row in range(size):
        for column in range(size):
            residual[row, column] = -weights[row, column]
        residual[row, row] += 1.0
    np.dot(covariance, residual, product)
    variances = np.zeros(size)
    for row in range(size):
        for column in range(size):
            variances[column] += residual[row, column] * product[row, column]
    return variances


@kernel
def negative_log_likelihood(
    weights: Matrix, covariance: Matrix, equal_variances: bool, gradient: Matrix, work: Matrix
) -> float:
    """Write the gradient of the profile score per sample, return its value.

    Ng et al. 2020, without its constant terms; ``work`` holds two matrices.
    """
    size = weights.shape[0]
    residual, product = work[0], work[1]
    variances = _residuals(weights, covariance, residual, product)
    if equal_variances:
        total = float(variances.sum())
        value = 0.5 * size * log(total)
        variances[:] = total / size
    else:
        value = 0.5 * float(np.log(variances).sum())
    value -= invert(residual, np.empty(size, np.int64))
    for row in range(size):
        for column in range(size):
            gradient[row, column] = residual[column, row] - product[row, column] / variances[column]
    return float(value)


@kernel
def least_squares(weights: Matrix, covariance: Matrix, gradient: Matrix, work: Matrix) -> float:
    """Write the gradient of half the sum of the residual variances, return its value."""
    variances = _residuals(weights, covariance, work[0], work[1])
    gradient[:] = -work[1]
    return 0.5 * float(variances.sum())
