"""Draws, probabilities and maxima given an order, from the tables of candidate parents.

Parents of mechanisms for which nodes outside the tables matter are drawn by Gibbs steps
(`step_parents`). These use the sweep operator, by which a regressor enters a regression or leaves
it in O(N^2). In the normal equations M swept by the regressors P, the effect of every other node's
entering and of every member's leaving is read off its diagonal entry and its entry of the target's
column t:
    squares afterwards   M_tt - M_jt^2 / M_jj
    log determinant      + log |M_jj|
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import kernel
from causalarms.posterior.chains.tables import CandidateTables, locate_all
from causalarms.posterior.mechanism import Noise, equations_of, fit_score, noise_of, score_by_size
from causalarms.posterior.orders import draw_parents
from causalarms.posterior.prior import EdgeMask, KernelPrior
from causalarms.statistics.normal_equations import sweep

MIN_GAIN = 1e-6  # nats; steps that gain less may go in circles because of rounding


class Located(NamedTuple):
    """An order and the places of its tables; valid until the tables change."""

    place: IntArray  # (N,)
    start: IntArray  # (R, N) of the table of every mechanism
    before: IntArray  # (R, N) the free nodes before it, as a set


class Uniforms(NamedTuple):
    """The random numbers that parents are drawn from."""

    tables: FloatArray  # (R, N)
    flips: FloatArray  # (R, N, N) of nodes outside the tables
    steps: FloatArray  # (R, N, sweeps, N)


def located(tables: CandidateTables, order: IntArray) -> Located:
    """Find the tables of an order (N,); missing ones are made."""
    start, before = np.zeros((2, *tables.n_free.shape), dtype=np.int64)
    place = np.argsort(order)
    locate_all(tables, place, start, before)
    return Located(place, start, before)


@kernel
def log_weight(tables: CandidateTables, at: Located) -> float:
    """Unnormalised log probability of the order."""
    total = 0.0
    for node in range(len(at.place)):
        for regime in range(tables.prior.regimes[node]):
            where = at.start[regime, node] + at.before[regime, node]
            total += tables.within[regime, node, where]
        for j in range(len(at.place)):
            if at.place[j] < at.place[node]:
                total += tables.tail[j, node]
    return total


@kernel
def edges_given(tables: CandidateTables, at: Located, found: FloatArray) -> None:
    """Probability of every edge given the order, (R, N, N).

    The sets without j within S are the sets within S less j: P(j | S) = 1 - e^(a(S - j) - a(S)).
    """
    n = len(at.place)
    found[:] = 0.0
    for node in range(n):
        for regime in range(tables.prior.regimes[node]):
            for j in range(n):
                if at.place[j] < at.place[node]:
                    odds = tables.log_odds[regime, j, node]
                    found[regime, j, node] = 1.0 / (1.0 + math.exp(-odds))
            start, before = at.start[regime, node], at.before[regime, node]
            within = tables.within[regime, node]
            for a in range(tables.n_free[regime, node]):
                if before >> a & 1:
                    without = within[start + (before ^ (1 << a))] - within[start + before]
                    j = tables.members[regime, node, a]
                    found[regime, j, node] = -math.expm1(min(without, 0.0))


@kernel
def log_probability_within(tables: CandidateTables, at: Located, kept: BoolArray) -> float:
    """Log probability, given the order, that no edge lies outside `kept` (R, N, N)."""
    n = len(at.place)
    total = 0.0
    for regime in range(len(kept)):
        for node in range(n):
            if regime >= tables.prior.regimes[node]:
                continue
            start, before = at.start[regime, node], at.before[regime, node]
            inside = before
            for a in range(tables.n_free[regime, node]):
                if not kept[regime, tables.members[regime, node, a], node]:
                    inside &= ~(1 << a)
            within = tables.within[regime, node]
            total += within[start + inside] - within[start + before]
            for j in range(n):
                # log odds of free nodes are -inf, so that they add nothing here
                if at.place[j] < at.place[node] and not kept[regime, j, node]:
                    odds = tables.log_odds[regime, j, node]
                    total -= max(odds, 0.0) + math.log1p(math.exp(-abs(odds)))
    return total


@kernel
def best_parents_given(tables: CandidateTables, at: Located) -> tuple[BoolArray, float]:
    """The most probable parents of every mechanism, and the sum of their scores."""
    n = len(at.place)
    adjacency = np.zeros((len(tables.n_free), n, n), dtype=np.bool_)
    total = 0.0
    for regime in range(len(tables.n_free)):
        for node in range(n):
            if regime >= tables.prior.regimes[node]:
                continue
            start, before = at.start[regime, node], at.before[regime, node]
            scores = tables.scores[regime, node]
            best, best_score, subset = 0, -np.inf, before
            while True:
                if scores[start + subset] >= best_score:
                    best, best_score = subset, scores[start + subset]
                if subset == 0:
                    break
                subset = (subset - 1) & before
            total += best_score
            for j in range(n):
                likely = tables.log_odds[regime, j, node] > 0.0
                adjacency[regime, j, node] = likely and at.place[j] < at.place[node]
            for a in range(tables.n_free[regime, node]):
                if best >> a & 1:
                    adjacency[regime, tables.members[regime, node, a], node] = True
    return adjacency, total


@kernel
def draw_parents_given(
    tables: CandidateTables,
    at: Located,
    edges: EdgeMask,
    uniforms: Uniforms,
    adjacency: BoolArray,  # (R, N, N) out
    chances: FloatArray,  # (R, N, N) out, of vague mechanisms only
) -> None:
    """Parents from the tables, then by Gibbs steps if nodes outside the table matter."""
    place, n = at.place, len(at.place)
    possible = np.empty(n, dtype=np.bool_)
    adjacency[:] = False
    for node in range(n):
        for regime in range(tables.prior.regimes[node]):
            parents = adjacency[regime, :, node]
            start, before = at.start[regime, node], at.before[regime, node]
            n_free = tables.n_free[regime, node]
            for j in range(n):
                if place[j] < place[node]:
                    odds = tables.log_odds[regime, j, node]
                    parents[j] = uniforms.flips[regime, j, node] * (1.0 + math.exp(-odds)) < 1.0
            chosen = draw_parents(
                tables.scores[regime, node, start : start + (1 << n_free)],
                tables.within[regime, node, start + before],
                before,
                uniforms.tables[regime, node],
            )
            for a in range(n_free):
                if chosen >> a & 1:
                    parents[tables.members[regime, node, a]] = True
            if tables.vague[regime, node]:
                for j in range(n):
                    possible[j] = place[j] < place[node] and edges.allowed[regime, j, node]
                    possible[j] = possible[j] and not edges.required[regime, j, node]
                step_parents(
                    tables.gram[regime, node],
                    regime,
                    node,
                    tables.prior,
                    possible,
                    uniforms.steps[regime, node],
                    parents,
                    chances[regime, :, node],
                )


@kernel
def step_parents(
    gram: FloatArray,
    regime: int,
    node: int,
    prior: KernelPrior,
    possible: BoolArray,  # (N,)
    uniforms: FloatArray,  # (rounds, N)
    inside: BoolArray,  # (N,) changed in place
    chances: FloatArray,  # (N,) out: mean probability over the later half of the rounds
) -> None:
    """Gibbs sampling of the parents of a mechanism (George and McCulloch, 1993), without tables.

    Each node that may be a parent is drawn in turn, given the others: the swept equations give its
    exact odds in O(1), and in O(N^2) it enters or leaves. After a few rounds it no longer matters
    that the first draw, from the tables, had few candidates.
    """
    n, n_rounds = len(possible), len(uniforms)
    noise = noise_of(gram, regime, node, prior)
    by_size = score_by_size(gram, regime, node, prior, prior.scales[0])
    matrix = equations_of_all(gram, regime, node, prior, inside)
    size = inside.sum()
    chances[:] = 0.0
    for t in range(n_rounds):
        for j in range(n):
            if not possible[j]:
                if inside[j]:
                    chances[j] = 1.0
                continue
            gain = toggle_gain(matrix, j, not inside[j], size, by_size, noise)
            chance = 1.0 / (1.0 + math.exp(gain if inside[j] else -gain))
            if t >= n_rounds // 2:
                chances[j] += chance / (n_rounds - n_rounds // 2)
            enters = uniforms[t, j] < chance
            if enters != inside[j]:
                sweep(matrix, j)
                inside[j] = enters
                size += 1 if enters else -1


@kernel
def parent_log_odds(
    gram: FloatArray,
    regime: int,
    node: int,
    prior: KernelPrior,
    possible: BoolArray,  # (N,) may be parents
    required: BoolArray,  # (N,) are parents, and not among the possible
    log_odds: FloatArray,  # (N,) out
) -> None:
    """Log odds of every node being a parent, next to the best set of parents among the possible.

    The best set is the better of two, reached from none and from all. Odds compare it with the
    best set on the other side among the other top and the sets one step or one exchange away.
    Nodes that are not possible get them too, as if they alone were.
    """
    n = len(possible)
    noise = noise_of(gram, regime, node, prior)
    by_size = score_by_size(gram, regime, node, prior, prior.scales[0])
    inside = required.copy()
    matrix = equations_of_all(gram, regime, node, prior, inside)
    other_inside, other, ahead = inside.copy(), matrix.copy(), 0.0
    for j in range(n):
        if possible[j]:
            toggle_gains(other, other_inside, by_size, noise, log_odds)
            if log_odds[j] > -np.inf:
                ahead -= log_odds[j]
                sweep(other, j)
                other_inside[j] = True
    ahead -= climb(other, other_inside, possible, by_size, noise, log_odds)
    ahead += climb(matrix, inside, possible, by_size, noise, log_odds)
    if ahead < 0.0:
        matrix, inside, other_inside, ahead = other, other_inside, inside, -ahead
        toggle_gains(matrix, inside, by_size, noise, log_odds)
    for j in range(n):
        if inside[j]:
            log_odds[j] = -log_odds[j]
        if inside[j] != other_inside[j]:
            log_odds[j] = min(log_odds[j], ahead) if inside[j] else max(log_odds[j], -ahead)
    after = np.empty(n)
    for j in range(n):
        if not inside[j] or required[j]:
            continue
        exchanged = matrix.copy()
        sweep(exchanged, j)
        inside[j] = False
        toggle_gains(exchanged, inside, by_size, noise, after)
        inside[j] = True
        loss = after[j]
        for k in range(n):
            if k != j and not inside[k]:
                log_odds[k] = max(log_odds[k], after[k] - loss)
                if possible[k]:
                    log_odds[j] = min(log_odds[j], loss - after[k])


@kernel
def climb(
    matrix: FloatArray,
    inside: BoolArray,
    possible: BoolArray,
    by_size: FloatArray,
    noise: Noise,
    gains: FloatArray,
) -> float:
    """Let the node with the largest gain enter or leave until none gains; returns the total."""
    n, total = len(possible), 0.0
    # rounding could make steps go in circles; a climb needs about one step per parent
    for _ in range(3 * n):
        toggle_gains(matrix, inside, by_size, noise, gains)
        best, gain = -1, MIN_GAIN
        for j in range(n):
            if possible[j] and gains[j] > gain:
                best, gain = j, gains[j]
        if best < 0:
            break
        sweep(matrix, best)
        inside[best] = not inside[best]
        total += gain
    return total


@kernel
def toggle_gains(
    matrix: FloatArray,
    inside: BoolArray,
    by_size: FloatArray,
    noise: Noise,
    gains: FloatArray,  # (N,) out
) -> None:
    """`toggle_gain` of every node."""
    size = inside.sum()
    for j in range(len(inside)):
        gains[j] = toggle_gain(matrix, j, not inside[j], size, by_size, noise)


@kernel
def toggle_gain(
    matrix: FloatArray,
    j: int,
    enters: bool,
    size: int,  # number of parents at present
    by_size: FloatArray,
    noise: Noise,
) -> float:
    """By how much the score rises if node j enters, or leaves."""
    target = len(matrix) - 1
    pivot, squares = matrix[j, j], matrix[target, target]
    if (pivot > 0.0) != enters or (enters and size == len(by_size) - 1):
        return -np.inf  # the pivot is lost to rounding: nothing is known of this node
    return (
        by_size[size + 1 if enters else size - 1]
        - by_size[size]
        - 0.5 * math.log(abs(pivot))
        + fit_score(squares - matrix[j, target] ** 2 / pivot, noise)
        - fit_score(squares, noise)
    )


@kernel
def equations_of_all(
    gram: FloatArray, regime: int, node: int, prior: KernelPrior, inside: BoolArray
) -> FloatArray:
    """Normal equations of all nodes, the constant and the target, swept by what is inside."""
    n = len(gram) - 1
    matrix = equations_of(gram, regime, node, np.arange(n + 1), prior, prior.scales[0])
    if math.isnan(prior.noise_mean[regime, node]):
        sweep(matrix, n)
    for j in range(n):
        if inside[j] and matrix[j, j] > 0.0:  # else it is a combination of others, up to rounding
            sweep(matrix, j)
    return matrix
