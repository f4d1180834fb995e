"""Regressions of one node on others from Gram moments: assembled, factored, solved, swept.

A = X^T X + prior precision = L L^T and L z = X^T y; the mean is L^-T z, a draw
L^-T (z + s normal). The sweep operator takes regressors in and out in O(N^2) each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.errors import DataError
from causalarms.kernels import kernel


@kernel
def regressors_of(parents: BoolArray, with_intercept: bool) -> IntArray:
    """The parents, and N for the intercept, last."""
    n = len(parents)
    found = np.empty(n + 1, dtype=np.int64)
    size = 0
    for j in range(n):
        if parents[j]:
            found[size] = j
            size += 1
    if with_intercept:
        found[size] = n
        size += 1
    return found[:size]


@kernel
def normal_equations(
    gram: FloatArray,  # (N+1, N+1), the constant last
    node: int,
    regressors: IntArray,  # nodes, or N for the intercept
    noise_mean: float,
    weight_precision: float,
    intercept_precision: float,
) -> FloatArray:
    """Cross products of the regressors and, last, the target x_i - nu_i; prior precision added."""
    n, size = len(gram) - 1, len(regressors)
    system = np.empty((size + 1, size + 1))
    for a in range(size):
        j = regressors[a]
        for b in range(size):
            system[a, b] = gram[j, regressors[b]]
        system[a, a] += intercept_precision if j == n else weight_precision
        system[a, size] = gram[j, node] - noise_mean * gram[j, n]
        system[size, a] = system[a, size]
    system[size, size] = (
        gram[node, node] - 2.0 * noise_mean * gram[node, n] + noise_mean**2 * gram[n, n]
    )
    return system


@kernel
def cholesky(
    equations: FloatArray,
    n_weights: int,
    weight_precision: float,
    intercept_precision: float,
    rounding: float = 0.0,
) -> None:
    """L into the lower triangle of all but the last row, the right-hand side.

    No pivot is below the prior precision, but that of huge values may be by rounding, which leaves
    at least the fraction `rounding` of a regressor's square.
    """
    for a in range(len(equations) - 1):
        square = equations[a, a]
        for b in range(a + 1):
            value = equations[a, b]
            for c in range(b):
                value -= equations[a, c] * equations[b, c]
            if a == b:
                # the constant is the last regressor: one count separates the two precisions
                least = weight_precision if a < n_weights else intercept_precision
                equations[a, a] = math.sqrt(max(value, least, rounding * square))
            else:
                equations[a, b] = value / equations[b, b]


@kernel
def solve_lower(equations: FloatArray, z: FloatArray) -> None:
    """L solution = z, in place."""
    for a in range(len(z)):
        value = z[a]
        for c in range(a):
            value -= equations[a, c] * z[c]
        z[a] = value / equations[a, a]


@kernel
def whiten(equations: FloatArray, z: FloatArray) -> float:
    """L z = right-hand side. Returns the squares that are left."""
    size = len(z)
    z[:] = equations[size, :size]
    solve_lower(equations, z)
    squares = equations[size, size]
    for a in range(size):
        squares -= z[a] ** 2
    # rounding may leave less than nothing if the regressors explain everything
    return max(squares, 0.0)


@kernel
def solve_transposed(equations: FloatArray, z: FloatArray) -> None:
    """L^T solution = z, in place."""
    for a in range(len(z) - 1, -1, -1):
        for c in range(a + 1, len(z)):
            z[a] -= equations[c, a] * z[c]
        z[a] /= equations[a, a]


@kernel
def invert_factored(equations: FloatArray, inverse: FloatArray) -> None:
    """(L L^T)^-1 of the first rows, as many as `inverse` has, from L in the lower triangle."""
    p = len(inverse)
    lower = np.empty((p, p))  # L^-1
    for column in range(p):
        for row in range(column, p):
            value = 1.0 if row == column else 0.0
            for c in range(column, row):
                value -= equations[row, c] * lower[c, column]
            lower[row, column] = value / equations[row, row]
    for a in range(p):
        for b in range(a + 1):
            value = 0.0
            for c in range(a, p):
                value += lower[c, a] * lower[c, b]
            inverse[a, b] = value
            inverse[b, a] = value


@kernel
def sweep(matrix: FloatArray, k: int) -> None:
    """Regressor k enters, or leaves if it is in: pivots of those inside are negative."""
    pivot = matrix[k, k]
    enters = pivot > 0.0
    row = matrix[k].copy()
    for i in range(len(matrix)):
        factor = row[i] / pivot
        for j in range(len(matrix)):
            matrix[i, j] -= factor * row[j]
        matrix[i, k] = factor if enters else -factor
    matrix[k] = matrix[:, k]
    matrix[k, k] = -1.0 / pivot


# -- least squares (the MMSE estimate of Sec. III) -------------------------------------------------
#
# Removing a regressor is a rank-one downdate in O(p^2): with H = (X^T X)^-1, H' = H - h_j h_j^T /
# h_jj, w' = w - h_j w_j / h_jj, RSS' = RSS + w_j^2 / h_jj.

SINGULAR = 1e-10  # fraction of a regressor's square left unexplained by the ones before it


class SingularError(DataError):
    """A regressor is a linear combination of earlier ones (or zero): `column` says which."""

    def __init__(self, column: int) -> None:
        super().__init__(f"column {column} is a linear combination of the other regressors")
        self.column = column


@dataclass(frozen=True, slots=True)
class Regression:
    """Weights of `columns` and what is needed to know how sure they are.

    `columns` index the Gram matrix: nodes, and N for the constant if an intercept is fitted.
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
    inverse, failed = inverse_by_sweeping(matrix)
    if failed >= 0:
        raise SingularError(int(columns[failed]))
    return inverse


@kernel
def inverse_by_sweeping(matrix: FloatArray) -> tuple[FloatArray, int]:
    """Inverse of a symmetric positive definite matrix, and the first singular column or -1.

    The pivot of a column scaled to unit length is the fraction of it that the columns before it
    leave unexplained. A loop, because a threaded LAPACK takes longer to start than this to finish.
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
        # In unit scale a pivot is 1 - R^2 of the column on those before it, whatever the units.
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
    return (columns[kept], weights[kept] - inverse[kept, j] * (w_j / h_jj), reduced, w_j**2 / h_jj)
