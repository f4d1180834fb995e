"""Weights, intercept and noise of a mechanism given its parents: drawn, or as expected."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import kernel
from causalarms.posterior.mechanism import equations_of, noise_of, noise_rate
from causalarms.posterior.prior import KernelPrior, intercept_precision_of
from causalarms.statistics.normal_equations import cholesky, regressors_of, solve_transposed, whiten

MAX_SPREADS = 10.0  # noise of a node next to factors: a multiple of the node's spread


class PointEstimate(NamedTuple):
    """Posterior means of weights and intercepts given a graph; 1/noise_std^2 is that of 1/s^2."""

    weights: FloatArray  # (R, N, N)
    intercept: FloatArray  # (R, N)
    noise_std: FloatArray  # (R, N)


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
    precision = prior.scales[scale]
    equations = equations_of(gram, cell, node, regressors, prior, precision)
    n_weights = len(regressors) - math.isnan(prior.noise_mean[cell, node])
    cholesky(equations, n_weights, precision, intercept_precision_of(prior, cell, node, precision))
    return equations


@kernel
def whitened_equations(
    gram: FloatArray,  # (N+1, N+1)
    cell: int,
    node: int,
    parents: BoolArray,  # (N,)
    scale: int,  # of the prior, which one
    prior: KernelPrior,
) -> tuple[IntArray, FloatArray, FloatArray, float]:
    """Regressors, factored equations, z with L z = right-hand side, and the squares left."""
    regressors = regressors_of(parents, math.isnan(prior.noise_mean[cell, node]))
    equations = factored_equations(gram, cell, node, regressors, prior, scale)
    z = np.empty(len(regressors))
    squares = whiten(equations, z)
    return regressors, equations, z, squares


@kernel
def store_weights(
    solution: FloatArray,  # by regressor
    regressors: IntArray,
    noise_mean: float,  # nan: the last regressor is the intercept
    weights: FloatArray,  # (N,) out
) -> float:
    """Write the weights, by node, and return the intercept."""
    with_intercept = math.isnan(noise_mean)
    n_weights = len(regressors) - with_intercept
    weights[:] = 0.0
    for a in range(n_weights):
        weights[regressors[a]] = solution[a]
    return solution[n_weights] if with_intercept else noise_mean


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
    regressors, equations, z, squares = whitened_equations(gram, cell, node, parents, scale, prior)
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
    return store_weights(z, regressors, prior.noise_mean[cell, node], weights), std


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
    known_variance = prior.known_variance[cell, node]
    regressors, equations, z, squares = whitened_equations(gram, cell, node, parents, scale, prior)
    solve_transposed(equations, z)
    intercept = store_weights(z, regressors, prior.noise_mean[cell, node], weights)
    if not math.isnan(known_variance):
        return intercept, math.sqrt(known_variance)
    rate = noise_rate(squares, noise_of(gram, cell, node, prior), 0.5)
    precision = (prior.noise_shape + 0.5 * gram[-1, -1]) / (rate + 0.5 * squares)
    return intercept, 1.0 / math.sqrt(precision)


class RandomNumbers(NamedTuple):
    """The random numbers of n draws of weights, intercepts and noise."""

    gammas: FloatArray  # (n, R, N), standard ones of noise_shape + n/2
    normals: FloatArray  # (n, R, N', N+1), of nodes that are measured
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


def point_estimate(gram: FloatArray, prior: KernelPrior, adjacency: BoolArray) -> PointEstimate:
    """Posterior means given the graphs (R, N, N) and moments (R, N, N+1, N+1)."""
    return PointEstimate(*_estimate_all(gram, prior, np.ascontiguousarray(adjacency)))


@kernel
def _estimate_all(
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    adjacency: BoolArray,  # (R, N, N)
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The fields of `PointEstimate`, at the first scale of the prior."""
    most, size = adjacency.shape[0], adjacency.shape[1]
    weights = np.zeros((most, size, size))
    intercept, noise_std = np.zeros((2, most, size))
    first = most - most  # zero, but not a literal: kernels are compiled again for those
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
                first,
                prior,
                weights[regime, :, node],
            )
    return weights, intercept, noise_std
