"""The loops over mechanisms: one compiled call for scores, for draws and for estimates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.graph_draws import draw_graph
from causalarms.posterior.mechanism_weights import draw_mechanism, mean_mechanism
from causalarms.posterior.parent_scores import score_parent_sets
from causalarms.posterior.signed_scores import score_signed_parent_sets
from causalarms.posterior.subset_sums import subset_log_sums

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


class Settings(NamedTuple):
    """The prior as the kernels take it; nan stands for unknown."""

    noise_mean: FloatArray  # (R, N)
    known_variance: FloatArray  # (R, N)
    log_sizes: FloatArray  # (N,)
    weight_mean: float
    weight_precision: float
    intercept_precision: float
    noise_shape: float
    regimes: IntArray  # (N,) how many each node has


@kernel
def score_mechanisms(
    gram: FloatArray,  # (R, N, N+1, N+1)
    changed: BoolArray,  # (R, N)
    allowed: BoolArray,  # (R, N, N)
    required: BoolArray,
    noise_mean: FloatArray,
    known_variance: FloatArray,
    log_sizes: FloatArray,
    weight_mean: float,
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
    regimes: IntArray,
    scores: FloatArray,  # (R, N, 2^(N-1)) out
    past: FloatArray,  # (N, 2^(N-1))
    within: FloatArray,  # (R, N, 2^(N-1)) out
    local: FloatArray,  # (N, 2^(N-1)) out
    mantissa: FloatArray,
    exponent: npt.NDArray[np.int32],
) -> None:
    """Scores of the changed mechanisms and their sums over subsets."""
    n = changed.shape[1]
    for node in range(n):
        any_changed = False
        for regime in range(regimes[node]):
            any_changed |= changed[regime, node]
            if changed[regime, node]:
                if weight_mean == 0.0:
                    score_parent_sets(
                        gram[regime, node],
                        node,
                        allowed[regime, :, node],
                        required[regime, :, node],
                        noise_mean[regime, node],
                        log_sizes,
                        weight_precision,
                        intercept_precision,
                        noise_shape,
                        known_variance[regime, node],
                        scores[regime, node],
                    )
                else:
                    score_signed_parent_sets(
                        gram[regime, node],
                        node,
                        allowed[regime, :, node],
                        required[regime, :, node],
                        noise_mean[regime, node],
                        log_sizes,
                        weight_mean,
                        weight_precision,
                        intercept_precision,
                        noise_shape,
                        known_variance[regime, node],
                        scores[regime, node],
                    )
                subset_log_sums(scores[regime, node], within[regime, node], mantissa, exponent)
        if any_changed:
            local[node] = within[0, node]
            for regime in range(1, regimes[node]):
                local[node] += within[regime, node]
            local[node] += past[node]


@kernel
def draw_all(
    scores: FloatArray,
    within: FloatArray,
    local: FloatArray,
    forward: FloatArray,
    gram: FloatArray,
    noise_mean: FloatArray,
    known_variance: FloatArray,
    log_sizes: FloatArray,
    weight_mean: float,
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
    regimes: IntArray,
    uniforms: FloatArray,  # (n, N, 1 + 2 R)
    gammas: FloatArray,  # (n, R, N)
    normals: FloatArray,  # (n, R, N, N+1)
) -> tuple[IntArray, BoolArray, FloatArray, FloatArray, FloatArray]:
    n, most, size = gammas.shape
    order = np.empty((n, size), dtype=np.int64)
    adjacency = np.empty((n, most, size, size), dtype=np.bool_)
    weights = np.zeros((n, most, size, size))
    intercept = np.zeros((n, most, size))
    noise_std = np.zeros((n, most, size))
    for t in range(n):
        draw_graph(scores, within, local, forward, regimes, uniforms[t], order[t], adjacency[t])
        for regime in range(most):
            for node in range(size):
                if regime >= regimes[node]:
                    continue
                intercept[t, regime, node], noise_std[t, regime, node] = draw_mechanism(
                    gram[regime, node],
                    node,
                    adjacency[t, regime, :, node],
                    noise_mean[regime, node],
                    weight_mean,
                    weight_precision,
                    intercept_precision,
                    noise_shape,
                    known_variance[regime, node],
                    uniforms[t, node, 1 + most + regime],
                    gammas[t, regime, node],
                    normals[t, regime, node],
                    weights[t, regime, :, node],
                )
    return order, adjacency, weights, intercept, noise_std


@kernel
def estimate_all(
    gram: FloatArray,
    noise_mean: FloatArray,
    known_variance: FloatArray,
    log_sizes: FloatArray,
    weight_mean: float,
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
    regimes: IntArray,
    adjacency: BoolArray,  # (R, N, N)
) -> tuple[FloatArray, FloatArray, FloatArray]:
    most, size = adjacency.shape[0], adjacency.shape[1]
    weights = np.zeros((most, size, size))
    intercept = np.zeros((most, size))
    noise_std = np.zeros((most, size))
    for regime in range(most):
        for node in range(size):
            if regime >= regimes[node]:
                continue
            intercept[regime, node], noise_std[regime, node] = mean_mechanism(
                gram[regime, node],
                node,
                adjacency[regime, :, node],
                noise_mean[regime, node],
                weight_mean,
                weight_precision,
                intercept_precision,
                noise_shape,
                known_variance[regime, node],
                weights[regime, :, node],
            )
    return weights, intercept, noise_std


@kernel
def best_parents(scores: FloatArray, regimes: IntArray, order: IntArray) -> tuple[BoolArray, float]:
    """The best parents of every mechanism among the nodes before it; smaller sets win ties."""
    n = len(order)
    adjacency = np.zeros((len(scores), n, n), dtype=np.bool_)
    total = 0.0
    earlier = 0
    for node in order:
        low = earlier & ((1 << node) - 1)
        before = ((earlier >> (node + 1)) << node) | low
        for regime in range(regimes[node]):
            best, best_score = 0, -np.inf
            subset = before
            while True:
                if scores[regime, node, subset] >= best_score:
                    best, best_score = subset, scores[regime, node, subset]
                if subset == 0:
                    break
                subset = (subset - 1) & before
            total += best_score
            for j in range(n - 1):
                if best >> j & 1:
                    adjacency[regime, j + (j >= node), node] = True
        earlier |= 1 << node
    return adjacency, total
