"""The loops over mechanisms: one compiled call for scores, for draws and for estimates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.graph_draws import draw_graph
from causalarms.posterior.mechanism_weights import draw_mechanism, mean_mechanism
from causalarms.posterior.parent_scores import score_parent_sets
from causalarms.posterior.prior import EdgeMask, KernelPrior
from causalarms.posterior.subset_sums import subset_log_sums

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


class ScoreTables(NamedTuple):
    """What the exact posterior knows of every parent set, changed in place."""

    scores: FloatArray  # (R, N, 2^(N-1))
    within: FloatArray  # (R, N, 2^(N-1)) log sums over the subsets of a set
    past: FloatArray  # (N, 2^(N-1)) what former mechanisms say of the order
    local: FloatArray  # (N, 2^(N-1)) all regimes and the past together
    mantissa: FloatArray  # (2^(N-1),) room to work
    exponent: npt.NDArray[np.int32]  # (2^(N-1),) room to work


class RandomNumbers(NamedTuple):
    """What n draws are made from."""

    uniforms: FloatArray  # (n, N, 1 + R or more): who comes last, parents in each regime
    gammas: FloatArray  # (n, R, N)
    normals: FloatArray  # (n, R, N, N+1)


@kernel
def score_mechanisms(
    gram: FloatArray,  # (R, N, N+1, N+1)
    changed: BoolArray,  # (R, N)
    edges: EdgeMask,
    prior: KernelPrior,
    out: ScoreTables,
) -> None:
    """Scores of the changed mechanisms and their sums over subsets."""
    scores, within, local = out.scores, out.within, out.local
    for node in range(changed.shape[1]):
        any_changed = False
        for regime in range(prior.regimes[node]):
            any_changed |= changed[regime, node]
            if changed[regime, node]:
                score_parent_sets(
                    gram[regime, node],
                    regime,
                    node,
                    edges.allowed[regime, :, node],
                    edges.required[regime, :, node],
                    prior,
                    scores[regime, node],
                )
                subset_log_sums(
                    scores[regime, node], within[regime, node], out.mantissa, out.exponent
                )
        if any_changed:
            local[node] = within[0, node]
            for regime in range(1, prior.regimes[node]):
                local[node] += within[regime, node]
            local[node] += out.past[node]


@kernel
def draw_all(
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    tables: ScoreTables,
    forward: FloatArray,  # (2^N,)
    random: RandomNumbers,
) -> tuple[IntArray, BoolArray, FloatArray, FloatArray, FloatArray]:
    """The fields of `Draws`."""
    n, most, size = random.gammas.shape
    order = np.empty((n, size), dtype=np.int64)
    adjacency = np.empty((n, most, size, size), dtype=np.bool_)
    for t in range(n):
        draw_graph(
            tables.scores, tables.within, tables.local, forward, prior.regimes,
            random.uniforms[t], order[t], adjacency[t],
        )  # fmt: skip
    weights, intercept, noise_std = draw_weights(
        gram, prior, adjacency, random.gammas, random.normals
    )
    return order, adjacency, weights, intercept, noise_std


@kernel
def draw_weights(
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    adjacency: BoolArray,  # (n, R, N, N)
    gammas: FloatArray,  # (n, R, N)
    normals: FloatArray,  # (n, R, N, N+1)
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights (n, R, N, N), intercepts and noise (n, R, N) given the graphs."""
    n, most, size = gammas.shape
    weights = np.zeros((n, most, size, size))
    intercept = np.zeros((n, most, size))
    noise_std = np.zeros((n, most, size))
    for t in range(n):
        for regime in range(most):
            for node in range(size):
                if regime >= prior.regimes[node]:
                    continue
                intercept[t, regime, node], noise_std[t, regime, node] = draw_mechanism(
                    gram[regime, node],
                    regime,
                    node,
                    adjacency[t, regime, :, node],
                    prior,
                    gammas[t, regime, node],
                    normals[t, regime, node],
                    weights[t, regime, :, node],
                )
    return weights, intercept, noise_std


@kernel
def estimate_all(
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    adjacency: BoolArray,  # (R, N, N)
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
            intercept[regime, node], noise_std[regime, node] = mean_mechanism(
                gram[regime, node],
                regime,
                node,
                adjacency[regime, :, node],
                prior,
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
