"""Weights and noise drawn given a graph that is taken as certain: every mechanism by itself.

The draws are t-distributed, wide where a mechanism has few rounds; one that was never played is
drawn from the prior.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.exact import Draws
from causalarms.posterior.mechanism_weights import draw_mechanism
from causalarms.posterior.prior import MechanismPrior
from causalarms.posterior.settings import kernel_settings
from causalarms.sem.regimes import Counts, regime_counts

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


def draws_given_graph(
    gram: FloatArray,  # (R, N, N+1, N+1), in units of about the noise
    adjacency: BoolArray,  # (R, N, N)
    order: IntArray,  # (N,)
    rng: np.random.Generator,
    n: int,
    *,
    noise_mean: FloatArray | None = None,  # (R, N), in the same units
    prior: MechanismPrior | None = None,
    regimes: Counts | None = None,  # (N,), None: all R
) -> Draws:
    """n draws of the system with these edges."""
    n_regimes, size = adjacency.shape[:2]
    counts = regime_counts(regimes, size, default=n_regimes)
    settings = kernel_settings(counts, prior or MechanismPrior(), noise_mean, None)
    shapes = settings.noise_shape + 0.5 * gram[:, :, -1, -1]
    gammas = rng.standard_gamma(shapes, (n, n_regimes, size))
    normals = rng.standard_normal((n, n_regimes, size, size + 1))
    edges = np.ascontiguousarray(adjacency)
    weights, intercept, noise_std = _draw_all(
        np.ascontiguousarray(gram),
        edges,
        settings.regimes,
        settings.noise_mean,
        settings.weight_precision,
        settings.intercept_precision,
        settings.noise_shape,
        gammas,
        normals,
    )
    return Draws(
        np.repeat(order[None], n, axis=0),
        np.repeat(edges[None], n, axis=0),
        weights,
        intercept,
        noise_std,
    )


@kernel
def _draw_all(
    gram: FloatArray,
    adjacency: BoolArray,
    regimes: IntArray,
    noise_mean: FloatArray,
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
    gammas: FloatArray,
    normals: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    n, n_regimes, size = gammas.shape
    weights = np.zeros((n, n_regimes, size, size))
    intercept = np.zeros((n, n_regimes, size))
    noise_std = np.zeros((n, n_regimes, size))
    for t in range(n):
        for regime in range(n_regimes):
            for node in range(size):
                if regime >= regimes[node]:
                    continue
                intercept[t, regime, node], noise_std[t, regime, node] = draw_mechanism(
                    gram[regime, node],
                    node,
                    adjacency[regime, :, node],
                    noise_mean[regime, node],
                    0.0,
                    weight_precision,
                    intercept_precision,
                    noise_shape,
                    np.nan,
                    0.0,
                    gammas[t, regime, node],
                    normals[t, regime, node],
                    weights[t, regime, :, node],
                )
    return weights, intercept, noise_std
