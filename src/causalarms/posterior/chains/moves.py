"""Markov chains over orders: Gibbs moves of one node at a time, and where chains start.

A move draws an interval of positions, then one of the nodes in it, and then the node's position
within the interval from its conditional distribution. The interval does not depend on the order,
so that the posterior over orders is the stationary distribution exactly. Moving a node changes its
own contribution and those of the nodes it passes, by one table look-up each. An interval of two
positions is a swap of neighbours.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import kernel
from causalarms.posterior.chains.given_order import equations_of_all
from causalarms.posterior.chains.tables import CandidateTables, term
from causalarms.posterior.prior import KernelPrior
from causalarms.statistics.normal_equations import sweep


class Chain(NamedTuple):
    """The state of a chain, changed in place."""

    order: IntArray  # (N,)
    place: IntArray  # (N,) its inverse
    terms: FloatArray  # (N,) what nodes contribute at present, without the tail
    room: FloatArray  # (3, N) to work


@kernel
def sweep_chains(
    tables: CandidateTables,
    orders: IntArray,  # (chains, N) changed in place
    uniforms: FloatArray,  # (chains, sweeps, N, 4)
    widest: IntArray,  # numbers of positions of an interval, one of which is drawn
    every: int,
    kept: IntArray,  # (chains, sweeps // every, N) out
) -> float:
    """N moves per sweep; keeps the order after each `every` sweeps. Returns the fraction moved."""
    n_chains, n_sweeps, n = uniforms.shape[:3]
    place = np.empty(n, dtype=np.int64)
    terms, room = np.empty(n), np.empty((3, n))
    moved = 0
    for c in range(n_chains):
        order = orders[c]
        places_of(order, place)
        for node in range(n):
            terms[node] = term(tables, node, place)
        chain = Chain(order, place, terms, room)
        for i_sweep in range(n_sweeps):
            for draw in uniforms[c, i_sweep]:
                width = widest[int(draw[0] * len(widest))]
                # Drawn without looking at the order: that makes the move a Gibbs step, which needs
                # no acceptance.
                low = int(draw[1] * (n - width + 1))
                home = low + int(draw[2] * width)
                moved += relocate(tables, chain, low, low + width - 1, home, draw[3])
            if (i_sweep + 1) % every == 0:
                kept[c, i_sweep // every] = order
    return moved / max(n_chains * n_sweeps * n, 1)


@kernel
def order_by_spread(
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    required: BoolArray,  # (R, N, N)
    errors: FloatArray,  # (N,) added to the log variances
) -> IntArray:
    """The order a chain starts from: next comes the node with the least variance given the earlier.

    That is the true order if all noise has the same variance (Chen, Drton and Wang, 2019), and a
    good start otherwise. Chains have different `errors`, so that they start apart. The order ends
    with -1 if required edges leave no order.
    """
    n = gram.shape[1]
    order = np.full(n, -1)
    placed = np.zeros(n, dtype=np.bool_)
    systems = np.empty((len(gram), n, n + 2, n + 2))
    nothing = np.zeros(n, dtype=np.bool_)
    for node in range(n):
        for regime in range(prior.regimes[node]):
            systems[regime, node] = equations_of_all(
                gram[regime, node], regime, node, prior, nothing
            )
    for position in range(n):
        best, least = -1, np.inf
        for node in range(n):
            possible = not placed[node]
            for regime in range(prior.regimes[node]):
                for j in range(n):
                    if required[regime, j, node] and not placed[j]:
                        possible = False
            if not possible:
                continue
            squares, freedom = 1.0, 1.0
            for regime in range(prior.regimes[node]):
                squares += max(systems[regime, node, n + 1, n + 1], 0.0)
                freedom += max(gram[regime, node, n, n] - position, 0.0)
            value = math.log(squares / freedom) + errors[node]
            if best < 0 or value < least:
                best, least = node, value
        if best < 0:
            break
        order[position], placed[best] = best, True
        for node in range(n):
            for regime in range(prior.regimes[node]):
                if not placed[node]:
                    sweep(systems[regime, node], best)
    return order


@kernel
def relocate(
    tables: CandidateTables,
    chain: Chain,
    low: int,
    high: int,
    home: int,  # present position of the node
    uniform: float,
) -> bool:
    """Draw a new position in [low, high]; returns whether the node moved."""
    order, place, terms = chain.order, chain.place, chain.terms
    node = order[home]
    weight, passed, own = chain.room[0], chain.room[1], chain.room[2]
    weight[home], own[home] = 0.0, terms[node]
    for step in (-1, 1):  # from home outwards: each position needs only what changed from the last
        others, tail, position = 0.0, 0.0, home
        while low <= position + step <= high:
            position += step
            other = order[position]
            place[node], place[other] = position, position - step
            gained = tables.tail[node, other] - tables.tail[other, node]
            tail -= step * gained
            passed[position] = (
                term(tables, other, place) if tables.linked[node, other] else terms[other]
            )
            own[position] = (
                term(tables, node, place) if tables.linked[other, node] else own[position - step]
            )
            others += passed[position] - terms[other]
            weight[position] = others + own[position] - terms[node] + tail
        while position != home:
            place[order[position]] = position
            position -= step
        place[node] = home
    top = -np.inf
    for position in range(low, high + 1):
        top = max(top, weight[position])
    total = 0.0
    for position in range(low, high + 1):
        weight[position] = math.exp(weight[position] - top)
        total += weight[position]
    chosen, reached = home, 0.0
    for position in range(low, high + 1):
        reached += weight[position]
        if reached > uniform * total:
            chosen = position
            break
    if chosen == home:
        return False
    step = 1 if chosen > home else -1
    position = home
    while position != chosen:
        other = order[position + step]
        order[position], place[other] = other, position
        terms[other] = passed[position + step]
        position += step
    order[chosen], place[node], terms[node] = node, chosen, own[chosen]
    return True


@kernel
def places_of(order: IntArray, place: IntArray) -> None:
    """Write the inverse of the order."""
    for position in range(len(order)):
        place[order[position]] = position
