"""Weights, intercept and noise of a mechanism given its parents: drawn, or as expected."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import kernel
from causalarms.posterior.mechanism import noise_of, noise_rate
from causalarms.posterior.prior import KernelPrior, intercept_precision_of
from causalarms.statistics.normal_equations import (
    cholesky,
    normal_equations,
    regressors_of,
    solve_transposed,
    whiten,
)

MAX_SPREADS = 10.0  # noise of a node next to factors: a multiple of the node's spread


@kernel
def factored_equations(
    gram: FloatArray,  # (N+1, N+1)
    cell: int,
    node: int,
    regressors: IntArray,  # nodes, and N for the intercept, last
    prior: KernelPrior,
    scale: int,  # which of the prior's
) -> FloatArray:
    """Normal equations of the mechanism with their Cholesky factor in the lower triangle."""
    noise_mean = prior.noise_mean[cell, node]
    with_intercept = math.isnan(noise_mean)
    of_intercept = intercept_precision_of(prior, cell, node, prior.scales[scale])
    equations = normal_equations(
        gram,
        node,
        regressors,
        0.0 if with_intercept else noise_mean,
        prior.scales[scale],
        of_intercept,
    )
    n_weights = len(regressors) - with_intercept
    cholesky(equations, n_weights, prior.scales[scale], of_intercept)
    return equations


@kernel
def draw_mechanism(
    gram: FloatArray,  # (N+1, N+1)
    which: tuple[int, int],  # cell and node
    parents: BoolArray,  # (N,)
    scale: int,  # of the prior, which one
    prior: KernelPrior,
    random: tuple[float, float],  # a standard gamma of noise_shape + n/2, and a uniform
    normals: FloatArray,  # (N+1,)
    weights: FloatArray,  # (N,) out
) -> tuple[float, float]:
    """Returns intercept and noise standard deviation."""
    cell, node = which
    noise_mean = prior.noise_mean[cell, node]
    with_intercept = math.isnan(noise_mean)
    regressors = regressors_of(parents, with_intercept)
    n_weights = len(regressors) - with_intercept
    equations = factored_equations(gram, cell, node, regressors, prior, scale)
    z = np.empty(len(regressors))
    squares = whiten(equations, z)
    variance = prior.known_variance[cell, node]
    if math.isnan(variance):
        # an inverse gamma variable is its scale divided by a standard gamma variable of its shape
        gamma, uniform = random
        rate = noise_rate(squares, noise_of(gram, cell, node, prior), uniform)
        variance = (rate + 0.5 * squares) / gamma
        if len(prior.factors):
            # Nodes are in units of their spread then, and the prior says next to nothing.
            variance = min(variance, MAX_SPREADS**2)
    std = math.sqrt(variance)
    for a in range(len(z)):
        # L^-T (z + s normal) has the posterior's covariance s^2 (L L^T)^-1. A normal per node, not
        # per parent: a parent more or less does not shift the others' random numbers.
        z[a] += std * normals[regressors[a]]
    solve_transposed(equations, z)
    weights[:] = 0.0
    for a in range(n_weights):
        weights[regressors[a]] = z[a]
    return (z[n_weights] if with_intercept else noise_mean), std


@kernel
def mean_mechanism(
    gram: FloatArray,  # (N+1, N+1)
    cell: int,
    node: int,
    parents: BoolArray,  # (N,)
    scale: int,  # of the prior, which one
    prior: KernelPrior,
    weights: FloatArray,  # (N,) out
) -> tuple[float, float]:
    """Posterior means of the weights; returns that of the intercept, and of 1/s^2 as an s."""
    noise_mean = prior.noise_mean[cell, node]
    known_variance = prior.known_variance[cell, node]
    with_intercept = math.isnan(noise_mean)
    regressors = regressors_of(parents, with_intercept)
    n_weights = len(regressors) - with_intercept
    equations = factored_equations(gram, cell, node, regressors, prior, scale)
    z = np.empty(len(regressors))
    squares = whiten(equations, z)
    solve_transposed(equations, z)
    weights[:] = 0.0
    for a in range(n_weights):
        weights[regressors[a]] = z[a]
    intercept = z[n_weights] if with_intercept else noise_mean
    if not math.isnan(known_variance):
        return intercept, math.sqrt(known_variance)
    rate = noise_rate(squares, noise_of(gram, cell, node, prior), 0.5)
    precision = (prior.noise_shape + 0.5 * gram[-1, -1]) / (rate + 0.5 * squares)
    return intercept, 1.0 / math.sqrt(precision)


class RandomNumbers(NamedTuple):
    """The random numbers of n draws of weights, intercepts and noise."""

    gammas: FloatArray  # (n, R, N), standard ones of noise_shape + n/2
    normals: FloatArray  # (n, R, N, N+1)
    uniforms: FloatArray  # (n, R, N)


@kernel
def draw_weights(
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    adjacency: BoolArray,  # (n, R, N, N)
    scales: IntArray,  # (n, R, N), which of the prior's
    cells: IntArray,  # (n, R, N), of every mechanism; -1: there is none
    random: RandomNumbers,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights (n, R, N, N), intercepts and noise (n, R, N) given the graphs."""
    n, most, size = random.gammas.shape
    n_measured = size - len(prior.factors)
    weights = np.zeros((n, most, size, size))
    intercept = np.zeros((n, most, size))
    noise_std = np.zeros((n, most, size))
    for t in range(n):
        for regime in range(most):
            for node in range(n_measured, size):
                if regime < prior.regimes[node]:
                    intercept[t, regime, node] = prior.codes[regime, node - size]
            for node in range(n_measured):
                cell = cells[t, regime, node]
                if cell < 0:
                    continue
                source = prior.cells.source[cell, node]
                intercept[t, regime, node], noise_std[t, regime, node] = draw_mechanism(
                    gram[prior.cells.regime[cell, node], source],
                    (cell, node),
                    adjacency[t, regime, :, node],
                    scales[t, regime, node],
                    prior,
                    (random.gammas[t, regime, node], random.uniforms[t, regime, node]),
                    random.normals[t, regime, node],
                    weights[t, regime, :, node],
                )
    return weights, intercept, noise_std


@kernel
def estimate_all(
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    adjacency: BoolArray,  # (R, N, N)
    scales: IntArray,  # (R, N), which of the prior's
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The fields of `PointEstimate`."""
    most, size = adjacency.shape[0], adjacency.shape[1]
    weights = np.zeros((most, size, size))
    intercept = np.zeros((most, size))
    noise_std = np.zeros((most, size))
    for regime in range(most):
        for node in range(size):
            if regime >= prior.regimes[node]:
                continue
            if node >= size - len(prior.factors):
                intercept[regime, node] = prior.codes[regime, node - size]
                continue
            intercept[regime, node], noise_std[regime, node] = mean_mechanism(
                gram[regime, node],
                regime,
                node,
                adjacency[regime, :, node],
                scales[regime, node],
                prior,
                weights[regime, :, node],
            )
    return weights, intercept, noise_std
