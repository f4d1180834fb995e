"""The optimistic reward of interventions: the largest that weights within their ellipsoids allow.

max over theta_i in {theta : (theta - centre_i)^T shape_i^-1 (theta - centre_i) <= radius^2} of the
expected reward (Varici et al. 2023, Alg. 1). The reward is linear in the weights of one node while
the others stay, so the best of one node has a closed form: centre + radius shape mu / |mu|_shape,
mu the means of its parents, its sign that of the node's effect on the reward. Nodes are improved in
turn until nothing changes. Jointly the problem is not concave: three starts are taken, and what is
found is a local maximum, never above the index and nearly always it.

One sweep is a pass backward for the effects and a pass forward for the means: a node's effect
depends on later nodes only, which the sweep has not reached yet.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.statistics.normal_equations import (
    cholesky,
    normal_equations,
    regressors_of,
    solve_transposed,
    whiten,
)

FloatArray = npt.NDArray[np.float64]

SWEEPS = 30  # 3 to 6 are usual
SETTLED = 1e-9  # relative gain of a sweep
STARTS = (0.0, 1.0, -1.0)  # the centres; every node's mean pushed up; down


@kernel
def ridge_ellipsoids(
    gram: FloatArray,  # (R, N, N+1, N+1)
    graph: npt.NDArray[np.bool_],  # (R, N, N)
    noise_mean: FloatArray,  # (R, N)
    precision: float,
    rounding: float,
) -> tuple[FloatArray, FloatArray]:
    """Ridge estimates [regime, parent, node], and V^-1 on the parents, [regime, node]."""
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
            whiten(equations, p, 0.0, 0.0, 0, z)
            solve_transposed(equations, z)
            for a in range(p):
                centre[regime, parents[a], node] = z[a]
            for b in range(p):  # column b of V^-1
                z[:] = 0.0
                for a in range(b, p):
                    value = 1.0 if a == b else 0.0
                    for c in range(b, a):
                        value -= equations[a, c] * z[c]
                    z[a] = value / equations[a, a]
                solve_transposed(equations, z)
                for a in range(p):
                    shape[regime, node, parents[a], parents[b]] = z[a]
    return centre, shape


@kernel
def optimistic_rewards(
    centre: FloatArray,  # (R, N, N)
    shape: FloatArray,  # (R, N, N, N)
    radius: float,
    noise_mean: FloatArray,  # (R, N)
    order: npt.NDArray[np.int64],
    arms: npt.NDArray[np.uint8],  # (n, N)
    reward: int,
) -> tuple[FloatArray, FloatArray]:
    """The reward at the centres and the optimistic one, (n,) each."""
    n_arms, n = arms.shape
    means, best = np.empty(n_arms), np.empty(n_arms)
    theta, mu, effect, toward = np.zeros((n, n)), np.zeros(n), np.zeros(n), np.zeros(n)
    for arm in range(n_arms):
        best[arm] = -np.inf
        for start in STARTS:
            for node in range(n):
                theta[:, node] = centre[arms[arm, node], :, node]
            effect[:] = start
            value = -np.inf
            for _ in range(SWEEPS):
                for position in range(n):
                    node = order[position]
                    regime = arms[arm, node]
                    if effect[node] != 0.0:
                        _push(
                            centre[regime, :, node], shape[regime, node], radius, mu,
                            order[:position], effect[node] > 0.0, toward, theta[:, node],
                        )  # fmt: skip
                    mu[node] = noise_mean[regime, node]
                    for earlier in range(position):
                        mu[node] += theta[order[earlier], node] * mu[order[earlier]]
                if start == 0.0 and value == -np.inf:
                    means[arm] = mu[reward]
                if not mu[reward] - value > SETTLED * (1.0 + abs(value)):
                    break
                value = mu[reward]
                effect[:] = 0.0
                effect[reward] = 1.0
                for position in range(n - 1, -1, -1):
                    node = order[position]
                    if effect[node] != 0.0:
                        for earlier in range(position):
                            effect[order[earlier]] += theta[order[earlier], node] * effect[node]
            if mu[reward] > best[arm]:
                best[arm] = mu[reward]
    return means, best


@kernel
def _push(
    centre: FloatArray,
    shape: FloatArray,
    radius: float,
    mu: FloatArray,
    before: npt.NDArray[np.int64],
    up: bool,
    toward: FloatArray,
    theta: FloatArray,
) -> None:
    """Weights of one node that make its mean as large, or as small, as its ellipsoid allows."""
    square = 0.0
    for j in before:
        toward[j] = 0.0
        for k in before:
            toward[j] += shape[j, k] * mu[k]
        square += mu[j] * toward[j]
    if square > 0.0:
        step = radius / math.sqrt(square) if up else -radius / math.sqrt(square)
        for j in before:
            theta[j] = centre[j] + step * toward[j]
