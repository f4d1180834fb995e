"""Sums, maxima and draws over all orders of the nodes, by dynamic programming over sets of nodes.

`local[i, S]` is what node i contributes if exactly S comes before it, all regimes together: the
log of the product of their sums over parent sets within S. A set without i is written without
its bit (`without`), so that the tables have 2^(N-1) columns. Edge probabilities and draws combine
the sums over the orders of the nodes before (`forward_sums`) and after (`backward_sums`) a node.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import kernel
from causalarms.posterior.mechanism import ScoreTables, acting_factors, superset_log_sums
from causalarms.posterior.prior import KernelPrior
from causalarms.posterior.weights import draw_weights

NEGLIGIBLE = -60.0  # nats below the sum: all 2^19 parent sets together stay below 1e-20


@kernel
def forward_sums(local: FloatArray) -> FloatArray:
    """F(S): log sum over the orders of the nodes of S, which come first, (2^N,)."""
    n = len(local)
    sums = np.empty(1 << n)
    terms = np.empty(n)
    sums[0] = 0.0
    for mask in range(1, 1 << n):
        top, m = -np.inf, 0
        for i in range(n):
            if mask >> i & 1:
                terms[m] = sums[mask ^ (1 << i)] + local[i, without(mask, i)]
                top = max(top, terms[m])
                m += 1
        sums[mask] = _log_sum(terms, m, top)
    return sums


@kernel
def backward_sums(local: FloatArray) -> FloatArray:
    """Log sum over the orders of the nodes that come after S, (2^N,)."""
    n = len(local)
    sums = np.empty(1 << n)
    terms = np.empty(n)
    sums[(1 << n) - 1] = 0.0
    for mask in range((1 << n) - 2, -1, -1):
        top, m = -np.inf, 0
        for i in range(n):
            if not mask >> i & 1:
                terms[m] = sums[mask | (1 << i)] + local[i, without(mask, i)]
                top = max(top, terms[m])
                m += 1
        sums[mask] = _log_sum(terms, m, top)
    return sums


@kernel
def restricted_log_sum(
    within: FloatArray, past: FloatArray, kept: IntArray, regimes: IntArray
) -> float:
    """Log sum over orders and over parent sets that are part of `kept` (R, N), sets without i.

    `within` (R, N, 2^(N-1)) holds the sums over the subsets of every set, `past` (N, 2^(N-1)) what
    former mechanisms add.
    """
    n = within.shape[1]
    sums = np.empty(1 << n)
    terms = np.empty(n)
    sums[0] = 0.0
    for mask in range(1, 1 << n):
        top, m = -np.inf, 0
        for i in range(n):
            if mask >> i & 1:
                before = without(mask, i)
                term = sums[mask ^ (1 << i)]
                for regime in range(regimes[i]):
                    term += within[regime, i, before & kept[regime, i]]
                terms[m] = term + past[i, before]
                top = max(top, terms[m])
                m += 1
        sums[mask] = _log_sum(terms, m, top)
    return float(sums[-1])


@kernel
def edge_probabilities(
    tables: ScoreTables,
    prior: KernelPrior,
    forward: FloatArray,  # (2^N,)
    backward: FloatArray,  # (2^N,)
) -> FloatArray:
    """Exact probability of every edge, (R, M, M) as [regime, parent, child].

    The probability of parent set P of a mechanism is exp(score) times the sum, over the sets S
    that contain P and come before the node, of what all other mechanisms contribute.
    """
    scores, within = tables.scores, tables.within
    n, n_sets, regimes = scores.shape[1], scores.shape[2], prior.regimes
    probability = np.zeros((len(prior.codes), len(regimes), len(regimes)))
    by_variant = np.zeros(tables.variants.shape[2])  # probability of each
    others = np.empty(n_sets)
    total = forward[-1]
    for regime in range(len(scores)):
        for node in range(n):
            if regime >= regimes[node]:
                continue
            for before in range(n_sets):
                # what comes before the node, what comes after it, and the other regimes of the node
                # itself
                others[before] = forward[with_gap(before, node)]
            for r in range(regimes[node]):
                if r != regime:
                    others += within[r, node]
            for before in range(n_sets):
                after = backward[with_gap(before, node) | (1 << node)]
                others[before] = others[before] + tables.past[node, before] + after - total
            superset_log_sums(others, others, tables.mantissa, tables.exponent)
            for parents in range(n_sets):
                # below exp(-745) it is zero, and adds nothing to any edge
                chance = math.exp(scores[regime, node, parents] + others[parents])
                if chance == 0.0:
                    continue
                for j in range(n - 1):
                    if parents >> j & 1:
                        probability[regime, j + (j >= node), node] += chance
                of_variants = tables.variants[regime, node, :, parents]
                for v in range(len(by_variant)):
                    by_variant[v] += chance * math.exp(
                        of_variants[v] - scores[regime, node, parents]
                    )
            for v in range(len(by_variant)):
                acting = acting_factors(prior, node, v)[0]
                for column in range(len(prior.factors)):
                    if prior.factors[column] & acting:
                        probability[regime, n + column, node] += by_variant[v]
            by_variant[:] = 0.0
    # sums of rounded terms may exceed one by a few units of the last digit
    return np.minimum(probability, 1.0)


@kernel
def best_order(local: FloatArray) -> IntArray:
    """The order with the largest sum of local terms; the smallest last node wins a tie."""
    n = len(local)
    best = np.empty(1 << n)
    last = np.empty(1 << n, dtype=np.int8)
    best[0] = 0.0
    for mask in range(1, 1 << n):
        best[mask], last[mask] = -np.inf, -1
        for i in range(n):
            if mask >> i & 1:
                value = best[mask ^ (1 << i)] + local[i, without(mask, i)]
                # the second condition: if required edges rule out every order, some order is still
                # returned
                if value > best[mask] or last[mask] < 0:
                    best[mask], last[mask] = value, i
    order = np.empty(n, dtype=np.int64)
    mask = (1 << n) - 1
    for position in range(n - 1, -1, -1):
        order[position] = last[mask]
        mask ^= 1 << order[position]
    return order


@kernel
def best_parents(
    tables: ScoreTables, prior: KernelPrior, order: IntArray
) -> tuple[BoolArray, float]:
    """The best parents of every mechanism among the nodes before it; smaller sets win ties."""
    n, scores, regimes = len(order), tables.scores, prior.regimes
    adjacency = np.zeros((len(prior.codes), len(regimes), len(regimes)), dtype=np.bool_)
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
            variant = int(np.argmax(tables.variants[regime, node, :, best]))
            _add_columns(prior, node, variant, adjacency[regime, :, node])
        earlier |= 1 << node
    return adjacency, total


class RandomNumbers(NamedTuple):
    """The random numbers of n draws."""

    uniforms: FloatArray  # (n, N, 1 + 2 R): who comes last, parents and variant in each regime
    gammas: FloatArray  # (n, R, N)
    normals: FloatArray  # (n, R, N, N+1)


@kernel
def draw_all(
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    tables: ScoreTables,
    forward: FloatArray,  # (2^N,)
    random: RandomNumbers,
) -> tuple[IntArray, BoolArray, FloatArray, FloatArray, FloatArray]:
    """Draws of order, parents, weights, intercepts and noise: the fields of `Draws`."""
    n, most, size = random.gammas.shape
    order = np.empty((n, size), dtype=np.int64)
    adjacency = np.empty((n, most, size, size), dtype=np.bool_)
    scales = np.zeros((n, most, size), dtype=np.int64)
    n_columns = len(prior.factors)
    for t in range(n):
        # what is set comes before what is measured
        order[t, :n_columns] = np.arange(size - n_columns, size)
        draw_graph(
            tables, forward, prior, random.uniforms[t], order[t, n_columns:], adjacency[t],
            scales[t],
        )  # fmt: skip
    weights, intercept, noise_std = draw_weights(
        gram, prior, adjacency, scales, random.gammas, random.normals
    )
    return order, adjacency, weights, intercept, noise_std


@kernel
def draw_graph(
    tables: ScoreTables,
    forward: FloatArray,  # (2^N,)
    prior: KernelPrior,
    uniforms: FloatArray,  # (N, 1 + 2 R): who comes last, parents and variant in each regime
    order: npt.NDArray[np.int64],  # (N,) out
    adjacency: npt.NDArray[np.bool_],  # (R, M, M) out
    scales: IntArray,  # (R, M) out
) -> None:
    """One exact draw of an order, from its last node to its first, and of parents given it."""
    n = len(order)
    adjacency[:] = False
    mask = (1 << n) - 1
    most = uniforms.shape[1] // 2
    for position in range(n - 1, -1, -1):
        node = _draw_last(tables.local, forward, mask, uniforms[position, 0])
        order[position] = node
        before = without(mask, node)
        for regime in range(prior.regimes[node]):
            parents = draw_parents(
                tables.scores[regime, node],
                tables.within[regime, node, before],
                before,
                uniforms[position, 1 + regime],
            )
            for j in range(n - 1):
                if parents >> j & 1:
                    adjacency[regime, j + (j >= node), node] = True
            variant = _draw_variant(
                tables.variants[regime, node, :, parents],
                tables.scores[regime, node, parents],
                uniforms[position, 1 + most + regime],
            )
            _add_columns(prior, node, variant, adjacency[regime, :, node])
            scales[regime, node] = variant >> prior.open.shape[1]
        mask ^= 1 << node


@kernel
def _draw_variant(scores: FloatArray, total: float, uniform: float) -> int:
    """One of the variants of a parent set, from its probabilities exp(scores - total)."""
    chosen, reached = 0, 0.0
    for v in range(len(scores)):
        if scores[v] > -np.inf:
            chosen = v
            reached += math.exp(scores[v] - total)
            if reached > uniform:
                break
    return chosen


@kernel
def _add_columns(prior: KernelPrior, node: int, variant: int, parents: BoolArray) -> None:
    """Mark the columns of the factors that act in this variant; `parents` (M,)."""
    n = len(parents) - len(prior.factors)
    acting = acting_factors(prior, node, variant)[0]
    for column in range(len(prior.factors)):
        if prior.factors[column] & acting:
            parents[n + column] = True


@kernel
def draw_parents(scores: FloatArray, total: float, before: int, uniform: float) -> int:
    """One set within `before`, from its probabilities exp(scores - total)."""
    chosen, best, reached = 0, -np.inf, 0.0
    subset = before
    while True:
        value = scores[subset] - total
        if value > NEGLIGIBLE:
            reached += math.exp(value)
            if reached > uniform:
                return subset
        if value > best:
            chosen, best = subset, value
        if subset == 0:
            return chosen  # rounding left the sum below uniform: the most probable one
        subset = (subset - 1) & before  # the next smaller subset of `before`


@kernel
def _draw_last(local: FloatArray, forward: FloatArray, mask: int, uniform: float) -> int:
    chosen, reached = -1, 0.0
    for i in range(len(local)):
        if mask >> i & 1:
            value = forward[mask ^ (1 << i)] + local[i, without(mask, i)] - forward[mask]
            if value == -np.inf:
                continue
            chosen = i  # the last possible one stays, should rounding leave the sum below uniform
            reached += math.exp(value)
            if reached > uniform:
                break
    return chosen


@kernel
def without(mask: int, node: int) -> int:
    """The set `mask` without the bit of `node`; the higher bits move down by one.

    >>> bin(without(0b1011, 2))
    '0b111'
    """
    return ((mask >> (node + 1)) << node) | (mask & ((1 << node) - 1))


@kernel
def with_gap(mask: int, node: int) -> int:
    """The inverse of `without` for a set that lacks the node."""
    return ((mask >> node) << (node + 1)) | (mask & ((1 << node) - 1))


@kernel
def _log_sum(terms: FloatArray, m: int, top: float) -> float:
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(m):
        total += math.exp(terms[k] - top)
    return top + math.log(total)
