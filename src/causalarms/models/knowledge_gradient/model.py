"""A small approximation of the posterior that can learn one more round in microseconds.

It consists of a few orders of the nodes, for each order a few parent sets of every mechanism, and
the regression of every parent set. Given an order, mechanisms are independent and the reward is
linear in each of them, so its expectation is the reward of the system of average weights: no draw
of weights is needed. The derivation is in docs/posterior.md#knowledge-gradient.

Parent sets are a stratified sample: evenly spaced points of their cumulated probability choose
them, so that a set of probability p is chosen p S times out of S points, to within one.

With A = X^T X + prior precision, mean w and a round (x, y): h = x^T A^-1 x and e = y - w^T x give
    w' = w + A^-1 x e / (1 + h),    A'^-1 = A^-1 - A^-1 x x^T A^-1 / (1 + h),
    p(y) = Student t in e of `freedom` degrees with squared scale variance (1 + h).
A round played b times with the same x and the average of its results has 1 / b in place of the 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causalarms.arrays import FloatArray, IntArray
from causalarms.kernels import inner, kernel
from causalarms.posterior.base import Posterior
from causalarms.posterior.mechanism import ScoreTables, noise_of, noise_rate
from causalarms.posterior.orders import NEGLIGIBLE, with_gap, without
from causalarms.posterior.prior import KernelPrior
from causalarms.posterior.weights import factored_equations
from causalarms.statistics.normal_equations import invert_factored, solve_transposed, whiten


class ParentSets(NamedTuple):
    """M different (mechanism, parents); O orders name up to S of each mechanism."""

    parents: IntArray  # (M,) bits of the other nodes
    first: IntArray  # (R, N) those of a mechanism stand together, from here
    end: IntArray  # (R, N) to before here
    which: IntArray  # (O, R, N, S)
    fraction: FloatArray  # (O, R, N, S) their probability given the order
    n_named: IntArray  # (O, R, N)


class Regressions(NamedTuple):
    """Of M sets, each with up to P regressors; regressor N is the constant."""

    size: IntArray  # (M,)
    regressor: IntArray  # (M, P)
    inverse: FloatArray  # (M, P, P) of A
    mean: FloatArray  # (M, P)
    variance: FloatArray  # (M,) of the noise, as believed
    freedom: FloatArray  # (M,) inf if the variance is known
    target_mean: FloatArray  # (R, N) known noise means, 0 if there is an intercept


class Model(NamedTuple):
    """O orders, equally likely; average weights (O, R, N, N) and intercepts (O, R, N) in each."""

    orders: IntArray  # (O, N)
    regimes: IntArray  # (N,)
    sets: ParentSets
    regressions: Regressions
    weights: FloatArray
    intercept: FloatArray


def model_of(
    posterior: Posterior, orders: IntArray, rng: np.random.Generator, n_points: int
) -> Model:
    """The model of given orders.

    posterior   must have scored all parent sets
    orders      (O, N), drawn from it
    n_points    parent sets per mechanism and order, S
    """
    tables, prior = posterior.tables, posterior.kernel_prior
    assert tables is not None, "the sampled posterior has no table of parent sets"
    uniforms = rng.random((len(orders), *tables.scores.shape[:2]))
    sets = ParentSets(*stratified_sets(tables, orders, prior.regimes, uniforms, n_points))
    found = regressions_of(sets, posterior.gram, prior, tables.variants)
    regressions = Regressions(*found)
    weights, intercept = averages(sets, sets.fraction, regressions)
    return Model(orders, prior.regimes, sets, regressions, weights, intercept)


@kernel
def stratified_sets(
    tables: ScoreTables,
    orders: IntArray,  # (O, N)
    regimes: IntArray,  # (N,)
    uniforms: FloatArray,  # (O, R, N) position of the first point
    n_points: int,
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, IntArray]:
    """The fields of `ParentSets`."""
    n_orders, n = orders.shape
    most = len(tables.scores)
    before = np.zeros((n_orders, n), dtype=np.int64)
    for o in range(n_orders):
        mask = 0
        for position in range(n):
            node = orders[o, position]
            before[o, node] = without(mask, node)
            mask |= 1 << node
    parents = np.empty(n_orders * most * n * n_points, dtype=np.int64)
    first = np.zeros((most, n), dtype=np.int64)
    end = np.zeros((most, n), dtype=np.int64)
    which = np.zeros((n_orders, most, n, n_points), dtype=np.int64)
    fraction = np.zeros((n_orders, most, n, n_points))
    count = np.zeros((n_orders, most, n), dtype=np.int64)
    named = np.empty(n_points, dtype=np.int64)
    total = 0
    for node in range(n):
        for regime in range(regimes[node]):
            first[regime, node] = total
            for o in range(n_orders):
                name_sets(
                    tables.scores[regime, node],
                    tables.within[regime, node, before[o, node]],
                    before[o, node],
                    uniforms[o, regime, node],
                    named,
                )
                for point in range(n_points):
                    if point > 0 and named[point] == named[point - 1]:
                        fraction[o, regime, node, count[o, regime, node] - 1] += 1.0 / n_points
                        continue
                    # Orders name the same sets again and again: each is regressed once. A linear
                    # search is enough, because a mechanism has a few dozen.
                    at = first[regime, node]
                    while at < total and parents[at] != named[point]:
                        at += 1
                    if at == total:
                        parents[at] = named[point]
                        total += 1
                    place = count[o, regime, node]
                    which[o, regime, node, place] = at
                    fraction[o, regime, node, place] = 1.0 / n_points
                    count[o, regime, node] = place + 1
            end[regime, node] = total
    return parents[:total].copy(), first, end, which, fraction, count


@kernel
def name_sets(
    scores: FloatArray,  # (2^(N-1),)
    total: float,  # log sum of those within `before`
    before: int,
    uniform: float,
    named: IntArray,  # (S,) out, equal ones next to each other
) -> None:
    """The sets at the points (uniform + k) / S of the cumulated probability."""
    n_points = len(named)
    at, reached = 0, 0.0
    likeliest, best = 0, -np.inf
    subset = before
    while at < n_points:  # (subset - 1) & before runs through all subsets
        value = scores[subset] - total
        if value > NEGLIGIBLE:
            reached += math.exp(value)
            while at < n_points and reached * n_points > uniform + at:
                named[at] = subset
                at += 1
        if value > best:
            likeliest, best = subset, value
        if subset == 0:
            break
        subset = (subset - 1) & before
    if at == 0:  # rounding left no set above `NEGLIGIBLE`
        named[0] = likeliest
        at = 1
    for point in range(at, n_points):
        named[point] = named[at - 1]


@kernel
def regressions_of(
    sets: ParentSets,
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    variants: FloatArray,  # (R, N, H, 2^(N-1)), scores by scale of the prior
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """The fields of `Regressions`; every set has its likeliest scale."""
    most, n = sets.first.shape
    n_sets = len(sets.parents)
    widest = 1  # and the constant
    for m in range(n_sets):
        widest = max(widest, 1 + _count_bits(sets.parents[m]))
    size = np.zeros(n_sets, dtype=np.int64)
    regressor = np.zeros((n_sets, widest), dtype=np.int64)
    inverse = np.zeros((n_sets, widest, widest))
    mean = np.zeros((n_sets, widest))
    variance = np.empty(n_sets)
    freedom = np.empty(n_sets)
    target_mean = np.zeros((most, n))
    for regime in range(most):
        for node in range(n):
            with_intercept = math.isnan(prior.noise_mean[regime, node])
            if not with_intercept:
                target_mean[regime, node] = prior.noise_mean[regime, node]
            for m in range(sets.first[regime, node], sets.end[regime, node]):
                chosen, p = with_gap(sets.parents[m], node), 0
                for j in range(n):
                    if chosen >> j & 1:
                        regressor[m, p] = j
                        p += 1
                if with_intercept:
                    regressor[m, p] = n
                    p += 1
                size[m] = p
                scale = int(np.argmax(variants[regime, node, :, sets.parents[m]]))
                equations = factored_equations(
                    gram[regime, node], regime, node, regressor[m, :p], prior, scale
                )
                squares = whiten(equations, mean[m, :p])
                solve_transposed(equations, mean[m, :p])
                invert_factored(equations, inverse[m, :p, :p])
                # Posterior of the noise: inverse gamma, so that predictions are Student t of 2 *
                # shape degrees.
                shape = prior.noise_shape + 0.5 * gram[regime, node, n, n]
                rate = noise_rate(squares, noise_of(gram[regime, node], regime, node, prior), 0.5)
                variance[m] = (rate + 0.5 * squares) / shape
                freedom[m] = 2.0 * shape
                if not math.isnan(prior.known_variance[regime, node]):
                    variance[m], freedom[m] = prior.known_variance[regime, node], np.inf
    return size, regressor, inverse, mean, variance, freedom, target_mean


@inner
def _count_bits(bits: int) -> int:
    count = 0
    while bits > 0:
        bits &= bits - 1
        count += 1
    return count


@kernel
def predictive_log_density(
    regressions: Regressions,
    m: int,
    x: FloatArray,  # (N+1,), the constant last
    target: float,
    noise: float,  # 1 / how often it is played
    direction: FloatArray,  # (P,) out: A^-1 x
) -> tuple[float, float, float]:
    """h, e and the log density of e but for what all sets of the mechanism have in common."""
    h, e = 0.0, target
    for a in range(regressions.size[m]):
        value = 0.0
        for b in range(regressions.size[m]):
            value += regressions.inverse[m, a, b] * x[regressions.regressor[m, b]]
        direction[a] = value
        h += value * x[regressions.regressor[m, a]]
        e -= regressions.mean[m, a] * x[regressions.regressor[m, a]]
    spread = regressions.variance[m] * (noise + h)
    # In logarithms: products of densities over mechanisms would underflow.
    freedom = regressions.freedom[m]
    if freedom == np.inf:
        return h, e, -0.5 * (math.log(spread) + e * e / spread)
    return (
        h,
        e,
        -0.5 * (math.log(spread) + (freedom + 1.0) * math.log(1.0 + e * e / (spread * freedom))),
    )


@kernel
def rank_one_update(
    regressions: Regressions, m: int, h: float, e: float, direction: FloatArray
) -> None:
    """One more round, with h, e and direction of `predictive_log_density`."""
    size = regressions.size[m]
    for a in range(size):
        regressions.mean[m, a] += direction[a] * e / (1.0 + h)
        for b in range(size):
            regressions.inverse[m, a, b] -= direction[a] * direction[b] / (1.0 + h)
    freedom = regressions.freedom[m]
    if freedom < np.inf:
        squares = regressions.variance[m] * freedom + e * e / (1.0 + h)
        regressions.variance[m] = squares / (freedom + 1.0)
        regressions.freedom[m] = freedom + 1.0


@kernel
def copied(regressions: Regressions) -> Regressions:
    """A copy that can learn rounds while the original stays as it is."""
    return Regressions(
        regressions.size,
        regressions.regressor,
        regressions.inverse.copy(),
        regressions.mean.copy(),
        regressions.variance.copy(),
        regressions.freedom.copy(),
        regressions.target_mean,
    )


@kernel
def averages(
    sets: ParentSets,
    fraction: FloatArray,  # (O, R, N, S)
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
                    part = fraction[o, regime, node, place]
                    for a in range(regressions.size[m]):
                        j = regressions.regressor[m, a]
                        if j == n:
                            intercept[o, regime, node] += part * regressions.mean[m, a]
                        else:
                            weights[o, regime, j, node] += part * regressions.mean[m, a]
    return weights, intercept
