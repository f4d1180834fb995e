"""A small stand-in for the posterior: some orders, and in each the average of every mechanism.

Given an order mechanisms are independent and the reward is linear in each of them, so its
expectation is the reward of the system of average weights: no draw of weights is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.models.lookahead.drawn_sets import drawn_sets
from causalarms.models.lookahead.parent_sets import ParentSets, stratified_sets
from causalarms.models.lookahead.regressions import Regressions, regressions_of
from causalarms.posterior.exact import ExactPosterior
from causalarms.posterior.sampled import SampledPosterior

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
AnyPosterior = ExactPosterior | SampledPosterior


class Model(NamedTuple):
    """O orders, equally likely; average weights (O, R, N, N) and intercepts (O, R, N) in each."""

    orders: IntArray  # (O, N)
    regimes: IntArray  # (N,)
    sets: ParentSets
    regressions: Regressions
    weights: FloatArray
    intercept: FloatArray


def model_of(
    posterior: AnyPosterior, orders: IntArray, rng: np.random.Generator, n_points: int
) -> Model:
    """Of orders that were drawn from the posterior."""
    settings = posterior.settings
    if isinstance(posterior, SampledPosterior):
        sets = drawn_sets(posterior, orders, rng, n_points)
    else:
        sets = stratified(posterior, orders, rng, n_points)
    regressions = Regressions(
        *regressions_of(
            sets.parents,
            sets.first,
            sets.end,
            posterior.gram,
            settings.noise_mean,
            settings.known_variance,
            settings.weight_precision,
            settings.intercept_precision,
            settings.noise_shape,
        )
    )
    weights, intercept = averages(sets, sets.share, regressions)
    return Model(orders, settings.regimes, sets, regressions, weights, intercept)


def drawn_orders(posterior: AnyPosterior, rng: np.random.Generator, n: int) -> IntArray:
    if isinstance(posterior, SampledPosterior):
        kept = posterior.orders.reshape(-1, posterior.n_nodes)
        return kept[rng.integers(len(kept), size=n)]
    return posterior.draw(rng, n).order


def stratified(
    posterior: ExactPosterior, orders: IntArray, rng: np.random.Generator, n_points: int
) -> ParentSets:
    uniforms = rng.random((len(orders), *posterior.scores.shape[:2]))
    return ParentSets(
        *stratified_sets(
            posterior.scores,
            posterior.within,
            orders,
            posterior.settings.regimes,
            uniforms,
            n_points,
        )
    )


@kernel
def averages(
    sets: ParentSets,
    shares: FloatArray,  # (O, R, N, S)
    regressions: Regressions,
) -> tuple[FloatArray, FloatArray]:
    """Weights (O, R, N, N) and intercepts (O, R, N), averaged over the parent sets."""
    n_orders, most, n = sets.n_named.shape
    weights = np.zeros((n_orders, most, n, n))
    intercept = np.zeros((n_orders, most, n))
    for o in range(n_orders):
        for regime in range(most):
            for node in range(n):
                intercept[o, regime, node] = regressions.target_mean[regime, node]
                for place in range(sets.n_named[o, regime, node]):
                    m = sets.which[o, regime, node, place]
                    share = shares[o, regime, node, place]
                    for a in range(regressions.size[m]):
                        j = regressions.regressor[m, a]
                        if j == n:
                            intercept[o, regime, node] += share * regressions.mean[m, a]
                        else:
                            weights[o, regime, j, node] += share * regressions.mean[m, a]
    return weights, intercept
