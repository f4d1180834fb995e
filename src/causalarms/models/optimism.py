"""The optimistic reward of interventions: the largest that weights within their ellipsoids allow.

max over theta_i in {theta : (theta - centre_i)^T shape_i^-1 (theta - centre_i) <= radius^2} of the
expected reward (Varici et al. 2023, Alg. 1). The reward is linear in the weights of one node while
the others stay, so the best of one node has a closed form: centre + radius shape mu / |mu|_shape,
mu the means of its parents, its sign that of the node's effect on the reward. Nodes are improved in
turn until nothing changes. Jointly the problem is not concave: three starts are taken, and what is
found is a local maximum, never above the index: that of all 2^N starts within 0.1 % for
97 % of the interventions of six nodes and 87 % of those of eight, over early and late rounds.

One sweep is a pass backward for the effects and a pass forward for the means: a node's effect
depends on later nodes only, which the sweep has not reached yet.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray
from causalarms.kernels import kernel
from causalarms.statistics.normal_equations import (
    cholesky,
    normal_equations,
    regressors_of,
    solve_lower,
    solve_transposed,
    whiten,
)

SWEEPS = 30  # 3 to 6 are usual
SETTLED = 1e-9  # relative gain of a sweep


def usual_starts(n_nodes: int) -> FloatArray:
    """From the centres; with every node's mean pushed up; down."""
    return np.repeat(np.array([[0.0], [1.0], [-1.0]]), n_nodes, axis=1)


class Ellipsoids(NamedTuple):
    """What is believed of the weights of every mechanism."""

    centre: FloatArray  # (R, N, N) as [regime, parent, node]
    shape: FloatArray  # (R, N, N, N) V^-1 on the parents, as [regime, node]


@kernel
def ridge_ellipsoids(
    gram: FloatArray,  # (R, N, N+1, N+1)
    graph: npt.NDArray[np.bool_],  # (R, N, N)
    noise_mean: FloatArray,  # (R, N)
    precision: float,
    rounding: float,
) -> Ellipsoids:
    """Around the ridge estimates."""
    n = graph.shape[1]
    centre, shape = np.zeros(graph.shape), np.zeros((len(graph), n, n, n))
    for regime in range(len(graph)):
        for node in range(n):
            parents = regressors_of(graph[regime, :, node], False)
            p = len(parents)
            equations = normal_equations(
                gram[regime, node], node, parents, noise_mean[regime, node], precision, 0.0
            )
            cholesky(equations, p, precision, 0.0, rounding)
            z = np.empty(p)
            whiten(equations, z)
            solve_transposed(equations, z)
            for a in range(p):
                centre[regime, parents[a], node] = z[a]
            for b in range(p):  # column b of V^-1
                z[:] = 0.0
                z[b] = 1.0
                solve_lower(equations, z)
                solve_transposed(equations, z)
                for a in range(p):
                    shape[regime, node, parents[a], parents[b]] = z[a]
    return Ellipsoids(centre, shape)


@kernel
def optimistic_rewards(
    ellipsoids: Ellipsoids,
    graph: npt.NDArray[np.bool_],  # (R, N, N)
    radius: float,
    noise_mean: FloatArray,  # (R, N)
    order: npt.NDArray[np.int64],
    arms: npt.NDArray[np.uint8],  # (n, N)
    reward: int,
    starts: FloatArray,  # (s, N) whether nodes are pushed up (1), down (-1) or not (0) at first
) -> tuple[FloatArray, FloatArray]:
    """The reward at the centres and the optimistic one, (n,) each."""
    centre, shape = ellipsoids.centre, ellipsoids.shape
    n_arms, n = arms.shape
    parents, counts = np.zeros(graph.shape, dtype=np.int64), np.zeros(graph.shape[:2], np.int64)
    for regime in range(len(graph)):
        for node in range(n):
            found = regressors_of(graph[regime, :, node], False)
            counts[regime, node] = len(found)
            parents[regime, node, : len(found)] = found
    means, best = np.empty(n_arms), np.empty(n_arms)
    theta = np.zeros((n, n))  # [node, parent]
    mu, effect, toward = np.zeros(n), np.zeros(n), np.zeros(n)
    for arm in range(n_arms):
        best[arm] = -np.inf
        for start in range(len(starts)):
            for node in range(n):
                theta[node] = centre[arms[arm, node], :, node]
            effect[:] = starts[start]
            value = 0.0
            for sweep in range(SWEEPS):
                for node in order:
                    regime = arms[arm, node]
                    of_node = parents[regime, node, : counts[regime, node]]
                    if effect[node] != 0.0:
                        _push(
                            centre[regime, :, node], shape[regime, node], radius, mu, of_node,
                            effect[node] > 0.0, toward, theta[node],
                        )  # fmt: skip
                    mu[node] = noise_mean[regime, node]
                    for j in of_node:
                        mu[node] += theta[node, j] * mu[j]
                if start == 0 and sweep == 0:
                    means[arm] = mu[reward]
                # The first sweep starts from a guess of the effects and may lower the value: it
                # never ends the search.
                if sweep and not mu[reward] - value > SETTLED * (1.0 + abs(value)):
                    break
                value = mu[reward]
                effect[:] = 0.0
                effect[reward] = 1.0
                for node in order[::-1]:
                    if effect[node] != 0.0:
                        regime = arms[arm, node]
                        for j in parents[regime, node, : counts[regime, node]]:
                            effect[j] += theta[node, j] * effect[node]
            if mu[reward] > best[arm]:
                best[arm] = mu[reward]
    return means, best


@kernel
def _push(
    centre: FloatArray,
    shape: FloatArray,
    radius: float,
    mu: FloatArray,
    parents: npt.NDArray[np.int64],
    up: bool,
    toward: FloatArray,
    theta: FloatArray,
) -> None:
    """Weights of one node that make its mean as large, or as small, as its ellipsoid allows."""
    square = 0.0
    for j in parents:
        toward[j] = 0.0
        for k in parents:
            toward[j] += shape[j, k] * mu[k]
        square += mu[j] * toward[j]
    if square > 0.0:
        step = radius / math.sqrt(square) if up else -radius / math.sqrt(square)
        for j in parents:
            theta[j] = centre[j] + step * toward[j]
