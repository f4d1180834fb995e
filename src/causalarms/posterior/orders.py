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
from causalarms.posterior.mechanism import (
    ScoreTables,
    acting_factors,
    log_hypothesis,
    log_more,
    open_in,
    shifts,
    variants_of,
)
from causalarms.posterior.prior import KernelPrior
from causalarms.posterior.sharing import Cells
from causalarms.posterior.subset_sums import subset_maxima, superset_log_sums

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
def restricted_log_sum(tables: ScoreTables, prior: KernelPrior, kept: IntArray) -> float:
    """Log sum over orders and over parent sets that are part of `kept` (R, N), sets without i."""
    within, cells = tables.within, prior.cells
    n = within.shape[1]
    sums = np.empty(1 << n)
    terms = np.empty(n)
    by_hypothesis = np.empty(len(cells.log_prior))
    sums[0] = 0.0
    for mask in range(1, 1 << n):
        top, m = -np.inf, 0
        for i in range(n):
            if mask >> i & 1:
                before = without(mask, i)
                for h in range(len(by_hypothesis)):
                    total = cells.log_prior[h, i]
                    for cell in range(cells.first[h, i], cells.end[h, i]):
                        own = cells.regime[cell, i] if cells.source[cell, i] == i else 0
                        total += within[cell, i, before & kept[own, i]]
                    by_hypothesis[h] = total - log_more(tables.possible, cells, h, i, before)
                local = _log_sum(by_hypothesis, len(by_hypothesis), by_hypothesis.max())
                terms[m] = sums[mask ^ (1 << i)] + local + tables.past[i, before]
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
) -> tuple[FloatArray, FloatArray]:
    """Exact probability of every edge, (R, M, M) as [regime, parent, child], and of hypotheses.

    The probability of parent set P of a cell is exp(score) times the sum, over the sets S that
    contain P and come before the node, of what all other mechanisms contribute. Of a node with a
    free factor an edge counts as in the level in which it is likeliest. Hypotheses are (H, N).
    """
    cells, regimes = prior.cells, prior.regimes
    n, n_sets = tables.local.shape
    probability = np.zeros((len(prior.codes), len(regimes), len(regimes)))
    of_hypotheses = np.zeros(cells.log_prior.shape)
    of_cell, of_node = np.zeros((2, len(regimes)))  # probability of each edge into the node
    after, others = np.empty((2, n_sets))
    total = forward[-1]
    for node in range(n):
        for before in range(n_sets):
            after[before] = backward[with_gap(before, node) | (1 << node)]
        for h in range(len(cells.log_prior)):
            if cells.log_prior[h, node] == -np.inf:
                continue
            for before in range(n_sets):
                term = log_hypothesis(tables.within, tables.possible, cells, h, node, before)
                around = forward[with_gap(before, node)] + tables.past[node, before]
                of_hypotheses[h, node] += math.exp(term + around + after[before] - total)
            of_node[:] = 0.0
            for cell in range(cells.first[h, node], cells.end[h, node]):
                others_of_cell(tables, cells, (h, cell, node), forward, after, others)
                superset_log_sums(others, others, tables.mantissa, tables.exponent)
                edges_of_cell(tables, prior, cell, node, others, of_cell)
                if cells.source[cell, node] == node:
                    probability[cells.regime[cell, node], :, node] += of_cell
                else:
                    of_node[:] = np.maximum(of_node, of_cell)
            probability[0, :, node] += of_node
    # sums of rounded terms may exceed one by a few units of the last digit
    return np.minimum(probability, 1.0), np.minimum(of_hypotheses, 1.0)


@kernel
def others_of_cell(
    tables: ScoreTables,
    cells: Cells,
    which: tuple[int, int, int],  # hypothesis, cell and node
    forward: FloatArray,  # (2^N,)
    after: FloatArray,  # (2^(N-1),) backward sums, by the set before the node
    others: FloatArray,  # (2^(N-1),) out
) -> None:
    """Log of what all mechanisms but this cell contribute, by the set before the node."""
    h, cell, node = which
    total = forward[-1]
    for before in range(len(others)):
        # what comes before the node and after it, and the other mechanisms of the node itself
        other = forward[with_gap(before, node)] + cells.log_prior[h, node]
        other -= log_more(tables.possible, cells, h, node, before)
        for c in range(cells.first[h, node], cells.end[h, node]):
            if c != cell:
                other += tables.within[c, node, before]
        others[before] = other + tables.past[node, before] + after[before] - total


@kernel
def edges_of_cell(
    tables: ScoreTables,
    prior: KernelPrior,
    cell: int,
    node: int,
    others: FloatArray,  # (2^(N-1),) log sums over the sets that contain the parents
    found: FloatArray,  # (M,) out
) -> None:
    """Probability of every edge into the node in this cell."""
    n, n_sets = tables.local.shape
    variants = variants_of(tables, cell, node)
    by_variant = np.zeros(len(variants))  # probability of each
    found[:] = 0.0
    for parents in range(n_sets):
        score = tables.scores[cell, node, parents]
        # below exp(-745) it is zero, and adds nothing to any edge
        chance = math.exp(score + others[parents])
        if chance == 0.0:
            continue
        for j in range(n - 1):
            if parents >> j & 1:
                found[j + (j >= node)] += chance
        for v in range(len(by_variant)):
            by_variant[v] += chance * math.exp(variants[v, parents] - score)
    free = prior.cells.free[cell, node]
    for v in range(len(by_variant)):
        acting = acting_factors(prior, node, v, free)[0]
        for column in range(len(prior.factors)):
            # a free factor acts, by all of its own columns
            if prior.made_of[column] == free or shifts(prior, node, column, acting, free):
                found[n + column] += by_variant[v]


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
def best_terms(tables: ScoreTables, regimes: IntArray) -> FloatArray:
    """Local terms (N, 2^(N-1)) with the best parents within every set in place of their sum."""
    found = tables.past.copy()
    for node in range(len(found)):
        for regime in range(regimes[node]):
            subset_maxima(tables.scores[regime, node], tables.mantissa)
            found[node] += tables.mantissa
    return found


@kernel
def best_parents(
    tables: ScoreTables, prior: KernelPrior, order: IntArray
) -> tuple[BoolArray, float]:
    """The best parents of every mechanism among the nodes before it; smaller sets win ties.

    Under hypothesis 0: a graph has one set of parents per regime.
    """
    n, scores, regimes = len(order), tables.scores, prior.regimes
    adjacency = np.zeros((len(prior.codes), len(regimes), len(regimes)), dtype=np.bool_)
    total = 0.0
    earlier = 0
    for node in order:
        before = without(earlier, node)
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
            _add_columns(prior, node, variant, 0, adjacency[regime, :, node])
        total += prior.cells.log_prior[0, node]
        earlier |= 1 << node
    return adjacency, total


class GraphNumbers(NamedTuple):
    """The random numbers of n draws of graphs."""

    uniforms: FloatArray  # (n, M, 1 + 2 R): who comes last, parents and variant in each regime
    choices: FloatArray  # (n, M): the hypothesis; read if there are several


@kernel
def draw_graphs(
    prior: KernelPrior,
    tables: ScoreTables,
    forward: FloatArray,  # (2^N,)
    random: GraphNumbers,
) -> tuple[IntArray, BoolArray, IntArray, IntArray]:
    """Exact draws of order (n, M), parents (n, R, M, M), scales and cells (n, R, M)."""
    n, size, most = len(random.uniforms), random.uniforms.shape[1], random.uniforms.shape[2] // 2
    order = np.empty((n, size), dtype=np.int64)
    adjacency = np.zeros((n, most, size, size), dtype=np.bool_)
    scales = np.zeros((n, most, size), dtype=np.int64)
    cells = np.full((n, most, size), -1)
    n_columns = len(prior.factors)
    for t in range(n):
        # what is set comes before what is measured
        order[t, :n_columns] = np.arange(size - n_columns, size)
        draw_graph(
            tables, forward, prior, (random.uniforms[t], random.choices[t]), order[t, n_columns:],
            adjacency[t], scales[t], cells[t],
        )  # fmt: skip
    return order, adjacency, scales, cells


@kernel
def draw_graph(
    tables: ScoreTables,
    forward: FloatArray,  # (2^N,)
    prior: KernelPrior,
    random: tuple[FloatArray, FloatArray],  # of this draw, as in `GraphNumbers`
    order: npt.NDArray[np.int64],  # (N,) out
    adjacency: npt.NDArray[np.bool_],  # (R, M, M) out
    scales: IntArray,  # (R, M) out
    drawn: IntArray,  # (R, M) out, the cell of every mechanism
) -> None:
    """One exact draw of an order, from its last node to its first, and of parents given it."""
    n, cells = len(order), prior.cells
    uniforms, choices = random
    mask = (1 << n) - 1
    most = uniforms.shape[1] // 2
    for position in range(n - 1, -1, -1):
        node = _draw_last(tables.local, forward, mask, uniforms[position, 0])
        order[position] = node
        before = without(mask, node)
        h = _draw_hypothesis(tables, cells, node, before, choices[position])
        first = cells.first[h, node]
        for cell in range(first, cells.end[h, node]):
            regime = cells.regime[cell, node]
            drawn[regime, node] = cell
            parents = draw_parents(
                tables.scores[cell, node],
                tables.within[cell, node, before],
                before,
                uniforms[position, 1 + regime],
            )
            for j in range(n - 1):
                if parents >> j & 1:
                    adjacency[regime, j + (j >= node), node] = True
            variant = _draw_variant(
                variants_of(tables, cell, node)[:, parents],
                tables.scores[cell, node, parents],
                uniforms[position, 1 + most + regime],
            )
            free = cells.free[cell, node]
            _add_columns(prior, node, variant, free, adjacency[regime, :, node])
            scales[regime, node] = variant >> len(open_in(prior, node, free))
        mask ^= 1 << node


@kernel
def _draw_hypothesis(
    tables: ScoreTables, cells: Cells, node: int, before: int, uniform: float
) -> int:
    """One of the hypotheses of a node given the set before it."""
    if len(cells.log_prior) == 1:
        return 0
    total = tables.local[node, before] - tables.past[node, before]
    reached = 0.0
    for h in range(len(cells.log_prior)):
        term = log_hypothesis(tables.within, tables.possible, cells, h, node, before)
        reached += math.exp(term - total)
        if reached > uniform:
            return h
    return 0


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
def _add_columns(
    prior: KernelPrior, node: int, variant: int, free: int, parents: BoolArray
) -> None:
    """Mark the columns of the factors that shift the node in this variant; `parents` (M,)."""
    n = len(parents) - len(prior.factors)
    acting = acting_factors(prior, node, variant, free)[0]
    for column in range(len(prior.factors)):
        if shifts(prior, node, column, acting, free):
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
