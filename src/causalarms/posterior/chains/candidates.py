"""The choice of free, core and rest nodes for each mechanism (`tables.py`).

Given an order, the best parents of a mechanism among the nodes before it are found step by step,
and with them the log odds of every node being a parent. Nodes after it are treated as if they came
before, so that the other direction of an edge has a good table too. Averaged over the orders of all
chains, the odds become probabilities q. If at most K nodes are plausible, the K with the largest q
are free. Otherwise fewer nodes are free, the least certain ones, and the others are core if
q > 1/2.
"""

from __future__ import annotations

import math

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import kernel
from causalarms.limits import MAX_CORE_NODES
from causalarms.posterior.chains.given_order import parent_log_odds
from causalarms.posterior.chains.moves import places_of
from causalarms.posterior.chains.tables import EMPTY, CandidateTables
from causalarms.posterior.prior import EdgeMask

MIN_PARENT_PROBABILITY = 1e-3  # a node above it may be a parent
MIN_PROBABILITY = 1e-12  # keeps odds finite
MAX_EXPECTED_ERRORS = 0.01  # wrong nodes in core and rest; a mechanism with more is vague


@kernel
def choose_candidates(
    tables: CandidateTables,
    chosen: BoolArray,  # (R, N) which mechanisms
    edges: EdgeMask,
    orders: IntArray,  # (chains, N)
    n_candidates: int,
    n_outside_core: int,
) -> None:
    """Choose the candidates of some mechanisms from the present orders of the chains."""
    n = chosen.shape[1]
    places = np.empty_like(orders)
    for chain in range(len(orders)):
        places_of(orders[chain], places[chain])
    for regime in range(len(chosen)):
        for node in range(n):
            if chosen[regime, node]:
                allowed = edges.allowed[regime, :, node]
                required = edges.required[regime, :, node]
                probability = _parent_probabilities(
                    tables, regime, node, allowed, required, places, n_candidates
                )
                _assign(
                    tables,
                    regime,
                    node,
                    allowed,
                    required,
                    probability,
                    n_candidates,
                    n_outside_core,
                )
                tables.tags[regime, node] = EMPTY
    for node in range(n):
        for j in range(n):
            tail = 0.0
            for regime in range(tables.prior.regimes[node]):
                tail += math.log1p(math.exp(-abs(tables.log_odds[regime, j, node])))
            tables.tail[j, node] = tail
        tables.linked[:, node] = False
        for regime in range(tables.prior.regimes[node]):
            for a in range(tables.n_free[regime, node] + tables.n_core[regime, node]):
                tables.linked[tables.members[regime, node, a], node] = True


@kernel
def _parent_probabilities(
    tables: CandidateTables,
    regime: int,
    node: int,
    allowed: BoolArray,
    required: BoolArray,
    places: IntArray,
    n_candidates: int,
) -> FloatArray:
    """Mean over the orders of the probability given that the node comes before, (N,)."""
    n = len(allowed)
    probability = np.zeros(n)
    # all of them are free: there is nothing to choose
    if allowed.sum() - required.sum() <= n_candidates:
        return probability
    log_odds = np.empty(n)
    possible = np.empty(n, dtype=np.bool_)
    for place in places:
        for j in range(n):
            possible[j] = allowed[j] and not required[j] and place[j] < place[node]
        parent_log_odds(
            tables.gram[regime, node], regime, node, tables.prior, possible, required, log_odds
        )
        for j in range(n):
            probability[j] += 1.0 / (1.0 + math.exp(-log_odds[j])) / len(places)
    return probability


@kernel
def _assign(
    tables: CandidateTables,
    regime: int,
    node: int,
    allowed: BoolArray,
    required: BoolArray,
    probability: FloatArray,
    n_candidates: int,
    n_outside_core: int,
) -> None:
    n = len(allowed)
    members, log_odds = tables.members[regime, node], tables.log_odds[regime, :, node]
    rank = np.full(n, np.inf)
    n_plausible, n_possible = 0, 0
    for j in range(n):
        if allowed[j] and not required[j]:
            n_possible += 1
            n_plausible += probability[j] > MIN_PARENT_PROBABILITY
            rank[j] = -probability[j]
    n_free = min(n_candidates, n_possible)
    if n_plausible > n_candidates:
        n_free = n_outside_core
        for j in range(n):
            if rank[j] < np.inf:
                rank[j] = abs(probability[j] - 0.5)
    ranked = np.argsort(rank, kind="mergesort")
    log_odds[:] = -np.inf  # also of the free: they are never outside the table
    for a in range(n_free):
        members[a] = ranked[a]
    n_core = 0
    for j in range(n):
        if required[j]:
            members[n_free + n_core] = j
            log_odds[j] = np.inf
            n_core += 1
    tables.needed[regime, node] = (1 << n_core) - 1
    doubt = 0.0
    for a in range(n_possible - 1, n_free - 1, -1):
        j = ranked[a]
        p = min(max(probability[j], MIN_PROBABILITY), 1.0 - MIN_PROBABILITY)
        log_odds[j] = math.log(p / (1.0 - p))
        doubt += min(p, 1.0 - p)
        if p > 0.5:
            if n_core < MAX_CORE_NODES:
                members[n_free + n_core] = j
                n_core += 1
            else:
                # No room in the core: it counts as likely in as out.
                log_odds[j] = 0.0
    tables.vague[regime, node] = doubt > MAX_EXPECTED_ERRORS
    tables.n_free[regime, node], tables.n_core[regime, node] = n_free, n_core
