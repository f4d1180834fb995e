"""What a mechanism contributes to an order, from tables over a few candidate parents.

For mechanism m every other node is of one of three kinds:
    free       the sums over all 2^K sets of these are tabulated
    core       in the regression whenever it comes before the node
    rest       not in the regression
Given the nodes S before it, m contributes
    alpha(m, S) = log sum_{Q within free and S} exp s(m, Q + (core and S))
                  + sum_{j in S, core or rest} log(1 + exp(-|odds_j|))
with s the score of the exact posterior. The last sum accounts for core nodes that are not parents
and for rest nodes that are, as if each were independent, with log odds measured next to the best
parents (`candidates.py`). If every node is free this is the exact sum.

Tables depend on which core nodes come before. They are made when first needed and kept in a pool
per mechanism, at the slot that the set of these core nodes hashes to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import kernel
from causalarms.posterior.mechanism import equations_of, noise_of, score_by_size, score_supersets
from causalarms.posterior.prior import KernelPrior
from causalarms.posterior.subset_sums import subset_log_sums

EMPTY = -1  # a slot without a table
HASH_FACTOR = 0x9E3779B97F4A7C15 >> 2  # odd, bits of the golden ratio: spreads sets over slots


class CandidateTables(NamedTuple):
    """Everything the kernels need, changed in place."""

    gram: FloatArray  # (R, N, N+1, N+1)
    prior: KernelPrior
    members: IntArray  # (R, N, N-1) as [regime, node, ...]: the free ones, then the core
    n_free: IntArray  # (R, N)
    n_core: IntArray  # (R, N)
    needed: IntArray  # (R, N) which of the core are required, as a set
    log_odds: FloatArray  # (R, N, N) as [regime, parent, node], for those that are not free
    vague: BoolArray  # (R, N) nodes that are not free matter: parents are drawn by Gibbs steps
    tail: FloatArray  # (N, N) as [parent, node]: log(1 + exp(-|odds|)), all regimes
    linked: BoolArray  # (N, N) as [parent, node]: free or core in some regime
    tags: IntArray  # (R, N, slots) the core set a slot belongs to
    scores: FloatArray  # (R, N, pool)
    within: FloatArray  # (R, N, pool) log sums over subsets


def table_bytes(n_nodes: int, pool: int, slots: int, n_orders: int, n_regimes: int = 2) -> int:
    """Bytes of the tables, the moments, and the edge probabilities of all kept orders."""
    per_mechanism = 16 * pool + 8 * slots + 16 * n_nodes + 8 * (n_nodes + 1) ** 2
    return n_regimes * (n_nodes * per_mechanism + 8 * n_nodes**2 * n_orders)


@kernel
def term(tables: CandidateTables, node: int, place: IntArray) -> float:
    """What a node contributes without the tail; -inf if a required parent comes later."""
    total = 0.0
    for regime in range(tables.prior.regimes[node]):
        start, before, possible = locate(tables, regime, node, place)
        if not possible:
            return -np.inf
        total += tables.within[regime, node, start + before]
    return total


@kernel
def locate_all(tables: CandidateTables, place: IntArray, start: IntArray, before: IntArray) -> None:
    """`locate` of every mechanism, (R, N) each, for an order that is possible."""
    for node in range(len(place)):
        for regime in range(tables.prior.regimes[node]):
            start[regime, node], before[regime, node], _ = locate(tables, regime, node, place)


@kernel
def locate(
    tables: CandidateTables, regime: int, node: int, place: IntArray
) -> tuple[int, int, bool]:
    """Start of the table, and the free nodes before the node as a set; a missing table is made.

    The third is False if a required parent comes after the node.
    """
    members = tables.members[regime, node]
    n_free, n_core = tables.n_free[regime, node], tables.n_core[regime, node]
    own = place[node]
    before = core = own - own  # zero, but not a literal: kernels are compiled again for those
    for a in range(n_free):
        if place[members[a]] < own:
            before |= 1 << a
    for a in range(n_core):
        if place[members[n_free + a]] < own:
            core |= 1 << a
    needed = tables.needed[regime, node]
    if core & needed != needed:
        return 0, before, False
    slot = 0
    if n_core:
        mixed = core * HASH_FACTOR
        slot = ((mixed >> 40) ^ (mixed >> 20)) & ((tables.scores.shape[2] >> n_free) - 1)
    start = slot << n_free
    if tables.tags[regime, node, slot] != core:
        _fill(tables, regime, node, core, start)
        tables.tags[regime, node, slot] = core
    return start, before, True


@kernel
def _fill(tables: CandidateTables, regime: int, node: int, core: int, start: int) -> None:
    prior, gram = tables.prior, tables.gram[regime, node]
    members = tables.members[regime, node]
    n_free, n_core = tables.n_free[regime, node], tables.n_core[regime, node]
    with_intercept = math.isnan(prior.noise_mean[regime, node])
    regressors = np.empty(len(gram), dtype=np.int64)
    forced = 0
    if with_intercept:
        regressors[0], forced = len(gram) - 1, 1
    for a in range(n_core):
        if core >> a & 1:
            regressors[forced] = members[n_free + a]
            forced += 1
    for a in range(n_free):
        regressors[forced + a] = members[a]
    of_all = regressors[: forced + n_free]
    equations = equations_of(gram, regime, node, of_all, prior, prior.scales[0])
    by_size = score_by_size(gram, regime, node, prior, prior.scales[0])
    end = start + (1 << n_free)
    scores, within = tables.scores[regime, node, start:end], tables.within[regime, node, start:end]
    bits = 1 << np.arange(n_free)
    score_supersets(
        equations,
        forced,
        by_size[forced - with_intercept :],
        prior.scales[0],
        bits,
        0,
        noise_of(gram, regime, node, prior),
        scores,
    )
    subset_log_sums(scores, within, np.empty(1 << n_free), np.empty(1 << n_free, dtype=np.int32))
