"""Weights, intercept and noise of a mechanism given its parents: normal-inverse-gamma, exact.

Where weights lie around +mean or -mean, every pattern of signs has its own z and sum of squares
(`statistics/normal_equations.py`), and with them its probability.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.parent_scores import fit_score
from causalarms.statistics.normal_equations import (
    cholesky,
    normal_equations,
    regressors_of,
    solve_transposed,
    whiten,
)

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@kernel
def _pattern_shares(
    equations: FloatArray,
    n_weights: int,
    mean: float,
    pull: float,
    n_samples: float,
    noise_shape: float,
    known_variance: float,
) -> FloatArray:
    """Posterior probabilities of the patterns of signs; one pattern where the mean is zero."""
    z = np.empty(len(equations) - 1)
    shares = np.empty(1 << n_weights if mean > 0.0 else 1)
    for pattern in range(len(shares)):
        squares = whiten(equations, n_weights, mean, pull, pattern, z)
        shares[pattern] = fit_score(squares, n_samples, noise_shape, known_variance)
    shares = np.exp(shares - shares.max())
    return shares / shares.sum()


@kernel
def draw_mechanism(
    gram: FloatArray,  # (N+1, N+1)
    node: int,
    parents: BoolArray,  # (N,)
    noise_mean: float,  # nan: intercept
    weight_mean: float,
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
    known_variance: float,  # nan: inverse gamma
    uniform: float,  # chooses the signs
    gamma: float,  # a standard gamma of noise_shape + n/2
    normals: FloatArray,  # (N+1,)
    weights: FloatArray,  # (N,) out
) -> tuple[float, float]:
    """Returns intercept and noise standard deviation."""
    n_samples = gram[-1, -1]
    with_intercept = math.isnan(noise_mean)
    regressors = regressors_of(parents, with_intercept)
    n_weights, pull = len(regressors) - with_intercept, weight_mean * weight_precision
    equations = normal_equations(
        gram,
        node,
        regressors,
        0.0 if with_intercept else noise_mean,
        weight_precision,
        intercept_precision,
    )
    cholesky(equations, n_weights, weight_precision, intercept_precision)
    pattern = 0
    if weight_mean > 0.0:
        shares = _pattern_shares(
            equations, n_weights, weight_mean, pull, n_samples, noise_shape, known_variance
        )
        while pattern < len(shares) - 1 and uniform >= shares[pattern]:
            uniform -= shares[pattern]
            pattern += 1
    z = np.empty(len(regressors))
    squares = whiten(equations, n_weights, weight_mean, pull, pattern, z)
    variance = known_variance
    if math.isnan(known_variance):
        variance = (noise_shape + 0.5 * squares) / gamma
    std = math.sqrt(variance)
    for a in range(len(z)):
        z[a] += std * normals[regressors[a]]
    solve_transposed(equations, z)
    weights[:] = 0.0
    for a in range(n_weights):
        weights[regressors[a]] = z[a]
    return (z[n_weights] if with_intercept else noise_mean), std


@kernel
def mean_mechanism(
    gram: FloatArray,
    node: int,
    parents: BoolArray,
    noise_mean: float,
    weight_mean: float,
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
    known_variance: float,
    weights: FloatArray,  # (N,) out
) -> tuple[float, float]:
    """Posterior means of the weights; returns that of the intercept, and of 1/s^2 as an s."""
    n_samples = gram[-1, -1]
    with_intercept = math.isnan(noise_mean)
    regressors = regressors_of(parents, with_intercept)
    n_weights, pull = len(regressors) - with_intercept, weight_mean * weight_precision
    equations = normal_equations(
        gram,
        node,
        regressors,
        0.0 if with_intercept else noise_mean,
        weight_precision,
        intercept_precision,
    )
    cholesky(equations, n_weights, weight_precision, intercept_precision)
    shares = _pattern_shares(
        equations, n_weights, weight_mean, pull, n_samples, noise_shape, known_variance
    )
    z = np.empty(len(regressors))
    weights[:] = 0.0
    intercept = 0.0 if with_intercept else noise_mean
    precision = 0.0
    for pattern in range(len(shares)):
        squares = whiten(equations, n_weights, weight_mean, pull, pattern, z)
        solve_transposed(equations, z)
        for a in range(n_weights):
            weights[regressors[a]] += shares[pattern] * z[a]
        if with_intercept:
            intercept += shares[pattern] * z[n_weights]
        shape = noise_shape + 0.5 * n_samples
        precision += shares[pattern] * shape / (noise_shape + 0.5 * squares)
    if not math.isnan(known_variance):
        return intercept, math.sqrt(known_variance)
    return intercept, 1.0 / math.sqrt(precision)
