"""Normal equations of one node on others: assembled, factored, solved, swept.

A = X^T X + prior precision = L L^T and L z = X^T y; the mean is L^-T z, a draw
L^-T (z + s normal). The sweep operator takes regressors in and out in O(N^2) each.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@kernel
def regressors_of(parents: BoolArray, with_intercept: bool) -> npt.NDArray[np.int64]:
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
    regressors: npt.NDArray[np.int64],  # nodes, or N for the intercept
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
    at least the share `rounding` of a regressor's square.
    """
    for a in range(len(equations) - 1):
        whole = equations[a, a]
        for b in range(a + 1):
            value = equations[a, b]
            for c in range(b):
                value -= equations[a, c] * equations[b, c]
            if a == b:
                least = weight_precision if a < n_weights else intercept_precision
                equations[a, a] = math.sqrt(max(value, least, rounding * whole))
            else:
                equations[a, b] = value / equations[b, b]


@kernel
def whiten(equations: FloatArray, z: FloatArray) -> float:
    """L z = right-hand side. Returns the squares that are left."""
    size = len(z)
    squares = equations[size, size]
    for a in range(size):
        value = equations[size, a]
        for c in range(a):
            value -= equations[a, c] * z[c]
        z[a] = value / equations[a, a]
        squares -= z[a] ** 2
    return max(squares, 0.0)


@kernel
def solve_transposed(equations: FloatArray, z: FloatArray) -> None:
    """L^T solution = z, in place."""
    for a in range(len(z) - 1, -1, -1):
        for c in range(a + 1, len(z)):
            z[a] -= equations[c, a] * z[c]
        z[a] /= equations[a, a]


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
