"""The regression of every named parent set, and what one more round does to it.

With A = X^T X + prior precision, mean w and a round (x, y): h = x^T A^-1 x and e = y - w^T x give
    w' = w + A^-1 x e / (1 + h),    A'^-1 = A^-1 - A^-1 x x^T A^-1 / (1 + h),
    p(y) = Student t in e of `freedom` degrees with squared scale variance (1 + h).
A round played b times with the same x and the average of its results has 1 / b in place of the 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import inner, kernel
from causalarms.posterior.orders import with_gap
from causalarms.statistics.normal_equations import (
    cholesky,
    normal_equations,
    solve_transposed,
    whiten,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Regressions(NamedTuple):
    """Of M sets, each with up to P regressors; regressor N is the constant."""

    size: IntArray  # (M,)
    regressor: IntArray  # (M, P)
    inverse: FloatArray  # (M, P, P) of A
    mean: FloatArray  # (M, P)
    variance: FloatArray  # (M,) of the noise, as believed
    freedom: FloatArray  # (M,) inf where the variance is known
    target_mean: FloatArray  # (R, N) known noise means, 0 where there is an intercept


@kernel
def regressions_of(
    parents: IntArray,  # (M,)
    first: IntArray,  # (R, N)
    end: IntArray,  # (R, N)
    gram: FloatArray,  # (R, N, N+1, N+1)
    noise_mean: FloatArray,  # (R, N), nan: intercept
    known_variance: FloatArray,  # (R, N), nan: inverse gamma
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """The fields of `Regressions`."""
    most, n = first.shape
    n_sets = len(parents)
    widest = 1  # and the constant
    for m in range(n_sets):
        widest = max(widest, 1 + _count_bits(parents[m]))
    size = np.zeros(n_sets, dtype=np.int64)
    regressor = np.zeros((n_sets, widest), dtype=np.int64)
    inverse = np.zeros((n_sets, widest, widest))
    mean = np.zeros((n_sets, widest))
    variance = np.empty(n_sets)
    freedom = np.empty(n_sets)
    target_mean = np.zeros((most, n))
    lower = np.empty((widest, widest))
    for regime in range(most):
        for node in range(n):
            with_intercept = math.isnan(noise_mean[regime, node])
            if not with_intercept:
                target_mean[regime, node] = noise_mean[regime, node]
            for m in range(first[regime, node], end[regime, node]):
                chosen, p = with_gap(parents[m], node), 0
                for j in range(n):
                    if chosen >> j & 1:
                        regressor[m, p] = j
                        p += 1
                n_weights = p
                if with_intercept:
                    regressor[m, p] = n
                    p += 1
                size[m] = p
                equations = normal_equations(
                    gram[regime, node],
                    node,
                    regressor[m, :p],
                    target_mean[regime, node],
                    weight_precision,
                    intercept_precision,
                )
                cholesky(equations, n_weights, weight_precision, intercept_precision)
                squares = whiten(equations, n_weights, 0.0, 0.0, 0, mean[m, :p])
                solve_transposed(equations, mean[m, :p])
                _invert(equations, lower, inverse[m, :p, :p])
                shape = noise_shape + 0.5 * gram[regime, node, n, n]
                variance[m] = (noise_shape + 0.5 * squares) / shape
                freedom[m] = 2.0 * shape
                if not math.isnan(known_variance[regime, node]):
                    variance[m], freedom[m] = known_variance[regime, node], np.inf
    return size, regressor, inverse, mean, variance, freedom, target_mean


@inner
def _count_bits(bits: int) -> int:
    count = 0
    while bits > 0:
        bits &= bits - 1
        count += 1
    return count


@kernel
def _invert(equations: FloatArray, lower: FloatArray, inverse: FloatArray) -> None:
    """(L L^T)^-1 from L in the lower triangle."""
    p = len(inverse)
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
def surprise(
    regressions: Regressions,
    m: int,
    x: FloatArray,  # (N+1,), the constant last
    target: float,
    noise: float,  # 1 / how often it is played
    direction: FloatArray,  # (P,) out: A^-1 x
) -> tuple[float, float, float]:
    """h, e and the log density of e but for what all sets of the mechanism have in common."""
    h, e = 0.0, target
    for a in range(regressions.size[m]):
        value = 0.0
        for b in range(regressions.size[m]):
            value += regressions.inverse[m, a, b] * x[regressions.regressor[m, b]]
        direction[a] = value
        h += value * x[regressions.regressor[m, a]]
        e -= regressions.mean[m, a] * x[regressions.regressor[m, a]]
    spread = regressions.variance[m] * (noise + h)
    freedom = regressions.freedom[m]
    if freedom == np.inf:
        return h, e, -0.5 * (math.log(spread) + e * e / spread)
    return (
        h,
        e,
        -0.5 * (math.log(spread) + (freedom + 1.0) * math.log(1.0 + e * e / (spread * freedom))),
    )


@kernel
def take_in(regressions: Regressions, m: int, h: float, e: float, direction: FloatArray) -> None:
    """One more round, after `surprise` said what it is."""
    size = regressions.size[m]
    for a in range(size):
        regressions.mean[m, a] += direction[a] * e / (1.0 + h)
        for b in range(size):
            regressions.inverse[m, a, b] -= direction[a] * direction[b] / (1.0 + h)
    freedom = regressions.freedom[m]
    if freedom < np.inf:
        squares = regressions.variance[m] * freedom + e * e / (1.0 + h)
        regressions.variance[m] = squares / (freedom + 1.0)
        regressions.freedom[m] = freedom + 1.0


@kernel
def copied(regressions: Regressions) -> Regressions:
    """So that rounds can be taken in and forgotten again."""
    return Regressions(
        regressions.size,
        regressions.regressor,
        regressions.inverse.copy(),
        regressions.mean.copy(),
        regressions.variance.copy(),
        regressions.freedom.copy(),
        regressions.target_mean,
    )
