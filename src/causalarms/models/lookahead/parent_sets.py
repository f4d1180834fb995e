"""A few parent sets of every mechanism in each of a few orders, stratified by their probability.

Given an order mechanisms are independent, and a mechanism's parent sets are those within the nodes
before it. Evenly spaced points of their cumulated probability name the sets: a set of probability p
is named p times as often as there are points, to within one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.graph_draws import NEGLIGIBLE
from causalarms.posterior.orders import without

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class ParentSets(NamedTuple):
    """M different (mechanism, parents); O orders name up to S of each mechanism."""

    parents: IntArray  # (M,) bits of the other nodes
    first: IntArray  # (R, N) those of a mechanism stand together, from here
    end: IntArray  # (R, N) to before here
    which: IntArray  # (O, R, N, S)
    share: FloatArray  # (O, R, N, S) their probability given the order
    n_named: IntArray  # (O, R, N)


@kernel
def stratified_sets(
    scores: FloatArray,  # (R, N, 2^(N-1))
    within: FloatArray,  # (R, N, 2^(N-1))
    orders: IntArray,  # (O, N)
    regimes: IntArray,  # (N,)
    uniforms: FloatArray,  # (O, R, N) where the first point lies
    n_points: int,
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, IntArray]:
    """The fields of `ParentSets`."""
    n_orders, n = orders.shape
    most = len(scores)
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
    share = np.zeros((n_orders, most, n, n_points))
    count = np.zeros((n_orders, most, n), dtype=np.int64)
    named = np.empty(n_points, dtype=np.int64)
    total = 0
    for node in range(n):
        for regime in range(regimes[node]):
            first[regime, node] = total
            for o in range(n_orders):
                name_sets(
                    scores[regime, node],
                    within[regime, node, before[o, node]],
                    before[o, node],
                    uniforms[o, regime, node],
                    named,
                )
                for point in range(n_points):
                    if point > 0 and named[point] == named[point - 1]:
                        share[o, regime, node, count[o, regime, node] - 1] += 1.0 / n_points
                        continue
                    at = first[regime, node]
                    while at < total and parents[at] != named[point]:
                        at += 1
                    if at == total:
                        parents[at] = named[point]
                        total += 1
                    place = count[o, regime, node]
                    which[o, regime, node, place] = at
                    share[o, regime, node, place] = 1.0 / n_points
                    count[o, regime, node] = place + 1
            end[regime, node] = total
    return parents[:total].copy(), first, end, which, share, count


@kernel
def name_sets(
    scores: FloatArray,  # (2^(N-1),)
    total: float,  # log sum of those within `before`
    before: int,
    uniform: float,
    named: IntArray,  # (S,) out, equal ones side by side
) -> None:
    """The sets at the points (uniform + k) / S of the cumulated probability."""
    n_points = len(named)
    at, reached = 0, 0.0
    likeliest, best = 0, -np.inf
    subset = before
    while at < n_points:
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
    if at == 0:  # rounding lost everything
        named[0] = likeliest
        at = 1
    for point in range(at, n_points):
        named[point] = named[at - 1]
