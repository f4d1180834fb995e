"""Weights, intercept and noise of a mechanism given its parents: normal-inverse-gamma, exact.

A = X^T X + prior precision = L L^T, L z = X^T y; the mean is L^-T z, a draw L^-T (z + s normal).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.graphs.posterior.parent_scores import normal_equations
from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]


@kernel
def draw_mechanism(
    gram: FloatArray,  # (N+1, N+1)
    node: int,
    parents: npt.NDArray[np.bool_],  # (N,)
    noise_mean: float,  # nan: intercept
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
    known_variance: float,  # nan: inverse gamma
    gamma: float,  # a standard gamma of noise_shape + n/2, or that number itself
    normals: FloatArray,  # (N+1,) standard normal, or 0 for the posterior mean
    weights: FloatArray,  # (N,) out
) -> tuple[float, float]:
    """Returns intercept and noise standard deviation."""
    n = len(weights)
    regressors = np.empty(n + 1, dtype=np.int64)
    size = 0
    for j in range(n):
        if parents[j]:
            regressors[size] = j
            size += 1
    if math.isnan(noise_mean):
        regressors[size] = n
        size += 1
    equations = normal_equations(
        gram,
        node,
        regressors[:size],
        0.0 if math.isnan(noise_mean) else noise_mean,
        weight_precision,
        intercept_precision,
    )
    # in place: the lower triangle becomes L, the last row z, the corner what is left of y^T y
    for a in range(size + 1):
        for b in range(a + 1):
            value = equations[a, b]
            for c in range(b):
                value -= equations[a, c] * equations[b, c]
            if a == size and b == size:
                equations[a, b] = max(value, 0.0)
            elif a == b:
                equations[a, b] = math.sqrt(value)
            else:
                equations[a, b] = value / equations[b, b]
    variance = known_variance
    if math.isnan(known_variance):
        variance = (noise_shape + 0.5 * equations[size, size]) / gamma
    std = math.sqrt(variance)
    solution = np.empty(size)
    for a in range(size - 1, -1, -1):
        value = equations[size, a] + std * normals[regressors[a]]
        for c in range(a + 1, size):
            value -= equations[c, a] * solution[c]
        solution[a] = value / equations[a, a]
    weights[:] = 0.0
    intercept = noise_mean
    for a in range(size):
        if regressors[a] == n:
            intercept = solution[a]
        else:
            weights[regressors[a]] = solution[a]
    return intercept, std
