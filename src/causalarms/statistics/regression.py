"""Least squares of one node on others from Gram moments (the MMSE estimate of Sec. III).

Removing a regressor is a rank-one downdate in O(p^2): with H = (X^T X)^-1,
H' = H - h_j h_j^T / h_jj, w' = w - h_j w_j / h_jj, RSS' = RSS + w_j^2 / h_jj.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

SINGULAR = 1e-10  # share of a regressor's square left unexplained by the ones before it


class SingularError(DataError):
    """A regressor is a linear combination of earlier ones (or zero): `column` says which."""

    def __init__(self, column: int) -> None:
        super().__init__(f"column {column} is a linear combination of the other regressors")
        self.column = column


@dataclass(frozen=True, slots=True)
class Regression:
    """Weights of `columns` and what is needed to know how sure they are.

    `columns` index the Gram matrix: nodes, and N for the constant where an intercept is fitted.
    """

    columns: IntArray  # (p,)
    weights: FloatArray  # (p,)
    inverse: FloatArray  # (p, p), (X^T X)^-1
    rss: float
    n_samples: int

    @property
    def degrees_of_freedom(self) -> int:
        return self.n_samples - len(self.columns)

    @property
    def residual_std(self) -> float:
        """Estimate of the noise standard deviation; nan without a spare sample."""
        if self.degrees_of_freedom < 1:
            return float("nan")
        return float(np.sqrt(max(self.rss, 0.0) / self.degrees_of_freedom))

    def covariance(self, noise_std: float | None = None) -> FloatArray:
        """Phi = sigma^2 (X^T X)^-1 of the weights (Lemma 1), sigma estimated unless given."""
        sigma = self.residual_std if noise_std is None else noise_std
        return sigma**2 * self.inverse

    def without(self, column: int) -> Regression:
        """The regression on the other columns."""
        columns, weights, inverse, growth = downdate(
            self.columns, self.weights, self.inverse, column
        )
        return Regression(columns, weights, inverse, self.rss + growth, self.n_samples)


@kernel
def downdate(
    columns: IntArray, weights: FloatArray, inverse: FloatArray, column: int
) -> tuple[IntArray, FloatArray, FloatArray, float]:
    """Columns, weights and inverse without one column, and by how much the RSS grows."""
    p = len(columns)
    j = 0
    while columns[j] != column:
        j += 1
    kept = np.empty(p - 1, np.int64)
    kept[:j] = np.arange(j)
    kept[j:] = np.arange(j + 1, p)
    h_jj, w_j = inverse[j, j], weights[j]
    reduced = np.empty((p - 1, p - 1))
    for a in range(p - 1):
        for b in range(p - 1):
            product = inverse[kept[a], j] * inverse[j, kept[b]]
            reduced[a, b] = inverse[kept[a], kept[b]] - product / h_jj
    return (
        columns[kept],
        weights[kept] - inverse[kept, j] * (w_j / h_jj),
        reduced,
        w_j**2 / h_jj,
    )


def regress(
    gram: FloatArray,  # (N+1, N+1)
    target: int,
    parents: npt.ArrayLike,
    noise_mean: float | None,
) -> Regression:
    """Regress node `target` on `parents`: x_i - nu_i without intercept, or with one (nu None)."""
    constant = len(gram) - 1
    columns = np.asarray(parents, dtype=np.int64)
    offset = 0.0
    if noise_mean is None:
        columns = np.append(columns, constant)
    else:
        offset = noise_mean
    n_samples = round(float(gram[constant, constant]))
    cross = gram[columns, target] - offset * gram[columns, constant]
    square = gram[target, target] - offset * (2 * gram[target, constant] - offset * n_samples)
    inverse = invert(gram[np.ix_(columns, columns)], columns)
    weights = inverse @ cross
    return Regression(columns, weights, inverse, float(square - weights @ cross), n_samples)


def invert(matrix: FloatArray, columns: IntArray) -> FloatArray:
    """Inverse of a Gram matrix in unit scale; SingularError names the first dependent column."""
    inverse, failed = sweep(matrix)
    if failed >= 0:
        raise SingularError(int(columns[failed]))
    return inverse


@kernel
def sweep(matrix: FloatArray) -> tuple[FloatArray, int]:
    """Inverse of a symmetric positive definite matrix, and the first singular column or -1.

    The pivot of a column scaled to unit length is the share of it that the columns before it leave
    unexplained. A loop, because a threaded LAPACK takes longer to start than this to finish.
    """
    p = len(matrix)
    scale = np.empty(p)
    for i in range(p):
        if not matrix[i, i] > 0:
            return np.empty((0, 0)), i
        scale[i] = np.sqrt(matrix[i, i])
    work = np.empty((p, p))
    for i in range(p):
        for j in range(p):
            work[i, j] = matrix[i, j] / (scale[i] * scale[j])
    for k in range(p):
        pivot = work[k, k]
        if not pivot > SINGULAR:
            return np.empty((0, 0)), k
        for i in range(p):
            if i != k:
                factor = work[i, k] / pivot
                for j in range(p):
                    if j != k:
                        work[i, j] -= factor * work[k, j]
        for i in range(p):
            work[i, k] /= pivot
            work[k, i] = work[i, k]
        work[k, k] = -1.0 / pivot
    for i in range(p):
        for j in range(p):
            work[i, j] /= -(scale[i] * scale[j])
    return work, -1
