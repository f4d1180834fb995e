"""Weights and noise drawn given a graph that is taken as certain: every mechanism by itself.

The draws are t-distributed, wide where a mechanism has few rounds; one that was never played is
drawn from the prior.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.posterior.base import Draws
from causalarms.posterior.prior import MechanismPrior
from causalarms.posterior.refresh import draw_weights
from causalarms.posterior.settings import kernel_prior
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
    told = kernel_prior(counts, prior or MechanismPrior(), noise_mean, None)
    shapes = told.noise_shape + 0.5 * gram[:, :, -1, -1]
    gammas = rng.standard_gamma(shapes, (n, n_regimes, size))
    normals = rng.standard_normal((n, n_regimes, size, size + 1))
    edges = np.repeat(adjacency[None], n, axis=0)
    weights, intercept, noise_std = draw_weights(
        np.ascontiguousarray(gram), told, edges, gammas, normals
    )
    return Draws(
        np.repeat(order[None], n, axis=0),
        edges,
        weights,
        intercept,
        noise_std,
    )
