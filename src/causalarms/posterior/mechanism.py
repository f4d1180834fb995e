"""The score of every parent set of a mechanism, from its Gram matrix.

The score of a parent set is its log marginal likelihood plus log prior (the formula: `exact.py`);
`score_mechanisms` computes those of all sets of all mechanisms in one compiled call.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import inlined, kernel
from causalarms.posterior.prior import EdgeMask, KernelPrior, intercept_precision_of
from causalarms.posterior.sharing import Cells
from causalarms.posterior.subset_sums import subset_log_sums
from causalarms.statistics.normal_equations import normal_equations

NEXT_TO_NOTHING = 40.0  # nats below the largest of a few terms: less than its rounding
LARGEST_ODDS = 500.0  # nats between sizes of the noise, whose exponentials are multiplied
LARGEST_SQUARES = 1e300  # which are divided by each other
LOWEST_SCORE = -1e250  # nats; keeps scores and their sums finite if a known variance is tiny


class ScoreTables(NamedTuple):
    """Scores of every parent set and their sums, changed in place.

    `scores` are sums over the variants of a parent set: V = H 2^K, every scale of the prior with
    every subset of the factors that may act on the node, scales outermost. With one scale and no
    factors both are the same array.
    """

    variants: FloatArray  # (Z', N, V, 2^(N-1)), of the cells of regimes, which are the first
    with_free: FloatArray  # (Z - Z', N, V', 2^(N-1)), of the cells of free factors
    scores: FloatArray  # (Z, N, 2^(N-1))
    within: FloatArray  # (Z, N, 2^(N-1)) log sums over the subsets of a set
    possible: FloatArray  # (N, 2^(N-1)) log prior of all sets within a set, Z(S) of `sharing.py`
    past: FloatArray  # (N, 2^(N-1)) log evidence of former mechanisms for the order
    local: FloatArray  # (N, 2^(N-1)) all hypotheses and the past together
    mantissa: FloatArray  # (2^(N-1),) room to work
    exponent: npt.NDArray[np.int32]  # (2^(N-1),) room to work


@kernel
def score_mechanisms(
    gram: FloatArray,  # (R, M, M+1, M+1)
    changed: BoolArray,  # (Z, N) cells
    edges: EdgeMask,
    prior: KernelPrior,
    out: ScoreTables,
) -> None:
    """Score the changed cells, and sum their scores over subsets."""
    scores, within, cells = out.scores, out.within, prior.cells
    for node in range(len(out.local)):  # columns of factors have no parents
        any_changed = False
        for cell in range(cells.end[-1, node]):
            any_changed |= changed[cell, node]
            if changed[cell, node]:
                source, regime = cells.source[cell, node], cells.regime[cell, node]
                own = regime if source == node else 0  # a node with a free factor has one regime
                score_parent_sets(
                    gram[regime, source],
                    cell,
                    node,
                    edges.allowed[own, :, node],
                    edges.required[own, :, node],
                    prior,
                    variants_of(out, cell, node),
                )
                if out.variants.shape[2] > 1:
                    sum_variants(variants_of(out, cell, node), scores[cell, node])
                subset_log_sums(scores[cell, node], within[cell, node], out.mantissa, out.exponent)
        if any_changed:
            sum_hypotheses(within, out.possible, cells, node, out.local[node])
            out.local[node] += out.past[node]


@kernel
def variants_of(tables: ScoreTables, cell: int, node: int) -> FloatArray:
    """Scores of a cell by variant and parent set."""
    n = len(tables.variants)
    return tables.variants[cell, node] if cell < n else tables.with_free[cell - n, node]


@kernel
def open_in(prior: KernelPrior, node: int, free: int) -> IntArray:
    """Factors that shift a node in some variants, in a cell with this free factor."""
    return prior.open_with_free[node] if free else prior.open[node]


@kernel
def sum_hypotheses(
    within: FloatArray,  # (Z, N, 2^(N-1))
    possible: FloatArray,  # (N, 2^(N-1))
    cells: Cells,
    node: int,
    local: FloatArray,  # (2^(N-1),) out
) -> None:
    """The log sum over the hypotheses of a node, by the set before it."""
    # All cells of a hypothesis share one set of predecessors, so their sums multiply (add, as
    # logs).
    local[:] = cells.log_prior[0, node]
    for cell in range(cells.end[0, node]):
        local += within[cell, node]
    for h in range(1, len(cells.log_prior)):
        if cells.log_prior[h, node] == -np.inf:
            continue
        for before in range(len(local)):
            other = log_hypothesis(within, possible, cells, h, node, before)
            top = max(local[before], other)
            if top > -np.inf:
                low = min(local[before], other)
                local[before] = top + math.log1p(math.exp(low - top))


@kernel
def log_hypothesis(
    within: FloatArray, possible: FloatArray, cells: Cells, h: int, node: int, before: int
) -> float:
    """Log of one term of the sum over hypotheses; the arguments are those of `sum_hypotheses`."""
    total = cells.log_prior[h, node]
    if total == -np.inf:
        return total
    for cell in range(cells.first[h, node], cells.end[h, node]):
        total += within[cell, node, before]
    return total - log_more(possible, cells, h, node, before)


@kernel
def log_more(possible: FloatArray, cells: Cells, h: int, node: int, before: int) -> float:
    """d log Z(S): what the prior of the parents of a hypothesis' further cells sums to."""
    more = cells.end[h, node] - cells.first[h, node] - cells.end[0, node]
    # without a required parent no set is possible, and Z(S) is zero
    if more == 0 or possible[node, before] == -np.inf:
        return 0.0
    return more * possible[node, before]


@kernel
def score_parent_sets(
    gram: FloatArray,  # (M+1, M+1) of N nodes, C columns of factors, and the constant
    cell: int,
    node: int,
    allowed: BoolArray,  # (M,) possible parents
    required: BoolArray,  # (M,) certain parents
    prior: KernelPrior,
    variants: FloatArray,  # (V, 2^(N-1)) out, by the bits of the other nodes; -inf if impossible
) -> None:
    """Scores of all parent sets of one mechanism, for every scale and set of acting factors."""
    m = len(gram) - 1
    n = m - len(prior.factors)
    with_intercept = math.isnan(prior.noise_mean[cell, node])
    free = prior.cells.free[cell, node]
    variants[:] = -np.inf
    n_sets = 1 << len(open_in(prior, node, free))
    regressors = np.empty(m + 1, dtype=np.int64)
    for number in range(n_sets):
        acting, log_prior = acting_factors(prior, node, number, free)
        if log_prior == -np.inf:
            continue
        forced, mask, n_columns = 0, 0, 0
        if with_intercept:
            regressors[0], forced = m, 1
        for column in range(n, m):
            if shifts(prior, node, column - n, acting, free):
                regressors[forced] = column
                forced += 1
                n_columns += 1
        for j in range(n):
            if required[j]:
                regressors[forced] = j
                mask |= 1 << (j - (j > node))
                forced += 1
        size = forced
        for j in range(n):
            if allowed[j] and not required[j] and j != node:
                regressors[size] = j
                size += 1
        n_free = size - forced
        bits = np.empty(n_free, dtype=np.int64)
        for a in range(n_free):
            j = regressors[forced + a]
            bits[a] = 1 << (j - (j > node))
        for scale in range(len(prior.scales)):
            precision = prior.scales[scale]
            equations = equations_of(gram, cell, node, regressors[:size], prior, precision)
            by_size = score_by_size(gram, cell, node, prior, precision)
            # every scale is as likely as the others
            by_size += 0.5 * n_columns * math.log(precision) - math.log(len(prior.scales))
            by_size += log_prior
            score_supersets(
                equations,
                forced,
                by_size[forced - with_intercept - n_columns :],
                precision,
                bits,
                mask,
                noise_of(gram, cell, node, prior),
                variants[scale * n_sets + number],
            )


@kernel
def equations_of(
    gram: FloatArray,  # (M+1, M+1)
    cell: int,
    node: int,
    regressors: IntArray,  # nodes, and M for the intercept
    prior: KernelPrior,
    precision: float,  # of weights
) -> FloatArray:
    """Normal equations of a mechanism with these regressors, the target last."""
    noise_mean = prior.noise_mean[cell, node]
    return normal_equations(
        gram,
        node,
        regressors,
        0.0 if math.isnan(noise_mean) else noise_mean,
        precision,
        intercept_precision_of(prior, cell, node, precision),
    )


@kernel
def acting_factors(prior: KernelPrior, node: int, variant: int, free: int) -> tuple[int, float]:
    """Which factors act on a node in this variant, as bits, and the log prior of that.

    free   the factor, as a bit, that gives the node its mechanisms: it does not shift it

    A bit of the variant's number says whether one of the node's open factors acts. Bits beyond
    these are scales of the prior, and say nothing.
    """
    acting, log_prior = prior.certain[node] & ~free, 0.0
    for place, factor in enumerate(open_in(prior, node, free)):
        acts = variant >> place & 1
        if factor < 0:
            if acts:
                return acting, -np.inf  # a node with fewer open factors has fewer variants
            continue
        if free >> factor & 1:
            if acts:
                return acting, -np.inf
            continue
        chance = prior.chances[factor, node]
        log_prior += math.log(chance if acts else 1.0 - chance)
        acting |= acts << factor
    return acting, log_prior


@kernel
def shifts(prior: KernelPrior, node: int, column: int, acting: int, free: int) -> bool:
    """Whether a column is a regressor of a node on which these factors act, as bits.

    In a cell of a free factor (a bit) its level is the same in all rounds. A pair of factors does
    nothing to a node on which one of the two cannot act.
    """
    made_of = prior.made_of[column]
    if not prior.factors[column] & acting or made_of & free:
        return False
    for factor in range(len(prior.chances)):
        if made_of >> factor & 1 and prior.chances[factor, node] == 0.0:
            return False
    return True


@kernel
def sum_variants(variants: FloatArray, scores: FloatArray) -> None:
    """scores[P] = log sum over v of exp(variants[v, P])."""
    for parents in range(len(scores)):
        top = -np.inf
        for v in range(len(variants)):
            top = max(top, variants[v, parents])
        total = 0.0
        if top > -np.inf:
            for v in range(len(variants)):
                total += math.exp(variants[v, parents] - top)
        scores[parents] = top + math.log(total) if total > 0.0 else -np.inf


# Sets are visited depth first: adding a parent eliminates its row from the normal equations of the
# candidates that may still follow (one right-looking Cholesky step). Half of the sets have no
# candidate left to follow, a quarter have one, and so on. So a set costs a constant number of
# operations on average, instead of O(p^3) from the start or O(p^2) for appending a row to a
# Cholesky factor.


@kernel
def score_supersets(
    equations: FloatArray,  # of the forced regressors, the free ones and the target; overwritten
    forced: int,
    by_size: FloatArray,  # by the number of free parents
    least: float,  # precision of the prior: no later pivot is below it, but for rounding
    bits: npt.NDArray[np.int64],  # of the free ones in `scores`
    mask: int,  # of the forced ones in `scores`
    noise: Noise,
    scores: FloatArray,
) -> None:
    """Scores of all sets that contain the forced regressors, depth first."""
    n_free = len(bits)
    log_det = 0.0
    for pivot in range(forced):
        # A pivot is what the regressors before it leave of this one, plus the prior's precision:
        # less than that precision is rounding.
        if pivot > 0:  # the first is a plain sum, and the intercept's may be below
            equations[pivot, pivot] = max(equations[pivot, pivot], least)
        log_det += math.log(equations[pivot, pivot])
        eliminate(equations, equations, pivot)
    stack = np.empty((n_free + 1, n_free + 1, n_free + 1))
    stack[0] = equations[forced:, forced:]
    following = np.zeros(n_free + 1, dtype=np.int64)  # next candidate to add at each depth
    log_dets = np.empty(n_free + 1)
    masks = np.empty(n_free + 1, dtype=np.int64)
    log_dets[0], masks[0] = log_det, mask
    depth = 0
    scores[mask] = by_size[0] - 0.5 * log_det + fit_score(stack[0, n_free, n_free], noise)
    while depth >= 0:
        added = following[depth]
        if added == n_free:
            depth -= 1
            continue
        following[depth] = added + 1
        # collinear parents: the pivot of the second is lost to rounding, and its logarithm would be
        # nan
        stack[depth, added, added] = max(stack[depth, added, added], least)
        eliminate(stack[depth], stack[depth + 1], added)
        log_det = log_dets[depth] + math.log(stack[depth, added, added])
        mask = masks[depth] | bits[added]
        depth += 1
        following[depth], log_dets[depth], masks[depth] = added + 1, log_det, mask
        scores[mask] = (
            by_size[depth] - 0.5 * log_det + fit_score(stack[depth, n_free, n_free], noise)
        )


class Noise(NamedTuple):
    """What the likelihood of a mechanism's samples depends on, besides the residual squares."""

    shape: float  # of the posterior: that of the prior and half a sample each
    rates: FloatArray  # (U,) of the prior, by size of the noise
    log_parts: FloatArray  # (U,) of what does not depend on the squares, with the size's prior
    known_variance: float  # nan: inverse gamma
    twice: int  # the shape, if that is an integer; else 0
    odds: FloatArray  # (U,) exp(log_parts), relative to the first


@kernel
def noise_of(gram: FloatArray, cell: int, node: int, prior: KernelPrior) -> Noise:
    """The noise of the mechanism with this Gram matrix, (N+1, N+1)."""
    ratios, shape = prior.noise_ratios, prior.noise_shape + 0.5 * gram[-1, -1]
    parts = prior.noise_shape * np.log(ratios)
    is_integer = 2.0 * shape == math.floor(2.0 * shape)
    in_range = parts[-1] - parts[0] < LARGEST_ODDS
    return Noise(
        shape,
        prior.noise_shape * ratios,
        parts - math.log(len(ratios)),
        prior.known_variance[cell, node],
        int(2.0 * shape) if is_integer and in_range else 0,
        np.exp(parts - parts[0]),
    )


@kernel
def score_by_size(
    gram: FloatArray, cell: int, node: int, prior: KernelPrior, weight_precision: float
) -> FloatArray:
    """The part of a score that depends on the number of parents only, (N,)."""
    n_samples, noise_shape = gram[-1, -1], prior.noise_shape
    known_variance = prior.known_variance[cell, node]
    shape = noise_shape + 0.5 * n_samples
    n_parents = np.arange(len(prior.log_sizes))
    # Normalisation of the normal-inverse-gamma prior: half a log precision per weight, and for the
    # intercept
    score = prior.log_sizes + 0.5 * n_parents * math.log(weight_precision)
    if math.isnan(prior.noise_mean[cell, node]):
        score += 0.5 * math.log(intercept_precision_of(prior, cell, node, weight_precision))
    if math.isnan(known_variance):
        score += math.lgamma(shape) - math.lgamma(noise_shape)
        score += noise_shape * math.log(noise_shape) - 0.5 * n_samples * math.log(2.0 * math.pi)
    else:
        score -= 0.5 * n_samples * math.log(2.0 * math.pi * known_variance)
    return score


@inlined
def fit_score(squares: float, noise: Noise) -> float:
    """The part that depends on the remaining sum of squares."""
    squares = max(squares, 0.0)  # below 0 by rounding if the parents explain everything
    if not math.isnan(noise.known_variance):
        return max(-0.5 * squares / noise.known_variance, LOWEST_SCORE)
    top = _log_of_size(squares, noise, 0)
    if len(noise.rates) == 1:
        return top
    total = 1.0
    if noise.twice and squares < LARGEST_SQUARES:
        # powers of a square root by squaring: quicker than logarithms, to the same rounding
        least = noise.rates[0] + 0.5 * squares
        for u in range(1, len(noise.rates)):
            root = math.sqrt(least / (noise.rates[u] + 0.5 * squares))
            total += noise.odds[u] * _integer_power(root, noise.twice)
        return top + math.log(total)
    for u in range(1, len(noise.rates)):
        term = _log_of_size(squares, noise, u)
        if term > top:
            total, top = total * math.exp(top - term) + 1.0, term
        elif term > top - NEXT_TO_NOTHING:
            total += math.exp(term - top)
    return top + math.log(total)


@inlined
def _integer_power(base: float, exponent: int) -> float:
    """By repeated squaring."""
    found = 1.0
    while exponent:
        if exponent & 1:
            found *= base
        base *= base
        exponent >>= 1
    return found


@inlined
def _log_of_size(squares: float, noise: Noise, u: int) -> float:
    """Of samples that leave this sum of squares and noise of that size, jointly."""
    return noise.log_parts[u] - noise.shape * math.log(noise.rates[u] + 0.5 * squares)


@kernel
def noise_rate(squares: float, noise: Noise, uniform: float) -> float:
    """The rate of the noise's prior: that of one of the sizes, by their probabilities."""
    total, reached = fit_score(squares, noise), 0.0
    for u in range(len(noise.rates)):
        reached += math.exp(_log_of_size(squares, noise, u) - total)
        if reached > uniform:
            return noise.rates[u]
    return noise.rates[-1]


@kernel
def eliminate(source: FloatArray, target: FloatArray, pivot: int) -> None:
    """Upper triangle of the equations behind `pivot` once it is a regressor."""
    last = len(source) - 1
    for k in range(pivot + 1, last + 1):
        factor = source[pivot, k] / source[pivot, pivot]
        for m in range(k, last + 1):
            target[k, m] = source[k, m] - factor * source[pivot, m]
