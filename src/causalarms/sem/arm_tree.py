"""Depth-first branch and bound over regimes, from the last node of the order to the first.

Level p decides position p; level p's two children hold the reward as a linear function of the means
of the positions before p. A child is cut when its bound lies below the worst of the m best found by
more than a tie. Children within a tie of it are followed for a while, so that the lexicographically
first of equals wins; where there are too many, the result is marked as tied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causalarms.kernels import kernel
from causalarms.sem.arm_ascent import climb
from causalarms.sem.arm_bounds import Ranges, best_price, gain_range, upper
from causalarms.sem.arm_problem import (
    FREE,
    Arm,
    FloatArray,
    IntArray,
    Problem,
    comes_first,
    permitted,
)

MAX_TIED = 2000  # children within a tie of the incumbent that are followed


class Pool(NamedTuple):
    """The best interventions found, best first; -inf where there are fewer."""

    arms: Arm  # (m, n)
    values: FloatArray  # (m,)


class Grown(NamedTuple):
    """What is known after growing the tree."""

    nodes: int
    open: float  # no intervention that was not seen is better (up to a tie); -inf: all were seen
    tied: bool  # children were cut although they may tie


@kernel
def grow(
    problem: Problem,
    ranges: Ranges,
    pool: Pool,
    distinct: bool,
    tie: float,
    any_above: float,
    budget: int,
) -> Grown:
    """Improve the pool; stop early at an intervention of at least `any_above`.

    With `distinct`, nodes are not intervened on where that has no effect.
    """
    n, m = len(problem.nodes), len(pool.values)
    c = np.empty((n, 2, n))  # per level and child, over the positions before the level
    constant, bound = np.empty((n, 2)), np.empty((n, 2))
    first, tried = np.zeros(n, np.int64), np.zeros(n, np.int64)
    left, price = np.full(n, problem.limit), np.empty(n)
    work, mean, flow = np.empty(n), np.empty(n), np.empty(n)
    arm, climbed = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    _, price[:] = best_price(problem, ranges, problem.root, n - 1, 0.0, problem.limit)
    nodes, n_tied, tied = 0, 0, False
    p, entering = n - 1, True
    while True:
        if entering:
            entering, tried[p] = False, 0
            c_p, so_far = problem.root, 0.0
            if p < n - 1:
                c_p, so_far = c[p + 1, arm[p + 1]], constant[p + 1, arm[p + 1]]
            own = c_p[p]
            decided, better = _settled(problem, ranges, p, own, left[p], tie, distinct, m)
            for a in range(2):
                bound[p, a] = -np.inf
                arm[p] = a
                if decided and a != better:
                    continue
                if problem.in_clause[p] and not permitted(problem.clauses, arm, p):
                    continue
                nodes += 1
                constant[p, a] = (
                    so_far
                    + own * (problem.base_mean[p] + a * problem.diff_mean[p])
                    - a * problem.cost[p]
                )
                for j in range(p):
                    work[j] = c_p[j] + own * (problem.base[p, j] + a * problem.diff[p, j])
                    c[p, a, j] = work[j]
                spent = a if problem.forced[p] == FREE else 0
                bound[p, a], mixed = upper(
                    problem, ranges, work, p - 1, constant[p, a], left[p] - spent, price[p]
                )
                price[p] *= 1.1 if mixed > left[p] - spent else 1 / 1.1
            first[p] = 1 if bound[p, 1] > bound[p, 0] else 0
        if tried[p] == 2:
            p += 1
            if p == n:
                return Grown(nodes, -np.inf, tied)
            continue
        if nodes >= budget:
            return Grown(nodes, _largest_open(bound, first, tried, p), tied)
        a = first[p] if tried[p] == 0 else 1 - first[p]
        tried[p] += 1
        cut = max(pool.values[m - 1], any_above)
        if bound[p, a] == -np.inf or bound[p, a] < cut - tie:
            continue
        if bound[p, a] <= cut + tie and any_above == -np.inf:
            n_tied += 1
            if n_tied > MAX_TIED:
                tied = True
                continue
        arm[p] = a
        if p > 0:
            left[p - 1] = left[p] - (a if problem.forced[p] == FREE else 0)
            p -= 1
            entering = True
            continue
        value = constant[0, a]
        improved = m == 1 and value > pool.values[0] + tie
        offer(problem, pool, arm, value, tie)
        if value >= any_above > -np.inf:
            return Grown(nodes, np.inf, tied)
        if improved and any_above == -np.inf:
            climbed[:] = arm
            offer(problem, pool, climbed, climb(problem, climbed, mean, flow), tie)


@kernel
def _settled(
    problem: Problem,
    ranges: Ranges,
    p: int,
    c: float,
    left: int,
    tie: float,
    distinct: bool,
    m: int,
) -> tuple[bool, int]:
    """Whether one regime is the only one, or the better one whatever the earlier nodes do."""
    if problem.forced[p] != FREE:
        return True, problem.forced[p]
    if problem.limited and left == 0:
        return True, 0
    if problem.in_clause[p]:
        return False, 0
    if m > 1:
        least, most = gain_range(problem, ranges, p, c, left, 0.0)
        return distinct and least == 0.0 and most == 0.0 and problem.cost[p] >= 0.0, 0
    least, most = gain_range(problem, ranges, p, c, left, problem.cost[p])
    if most <= 0.0:
        return True, 0
    return least > 4.0 * tie and not problem.limited, 1


@kernel
def _largest_open(bound: FloatArray, first: IntArray, tried: IntArray, p: int) -> float:
    largest = -np.inf
    for level in range(p, len(first)):
        if tried[level] == 0:
            largest = max(largest, bound[level, 0], bound[level, 1])
        elif tried[level] == 1:
            largest = max(largest, bound[level, 1 - first[level]])
    return largest


@kernel
def offer(problem: Problem, pool: Pool, arm: Arm, value: float, tie: float) -> None:
    """Put an intervention into the pool where it belongs; once only."""
    m = len(pool.values)
    place = m
    for i in range(m):
        if pool.values[i] == -np.inf:
            place = min(place, i)
            break
        before = comes_first(problem, arm, pool.arms[i])
        if before == 0:
            return
        if value > pool.values[i] + tie or (value >= pool.values[i] - tie and before == 1):
            place = min(place, i)
    for i in range(m - 1, place, -1):
        pool.arms[i] = pool.arms[i - 1]
        pool.values[i] = pool.values[i - 1]
    if place < m:
        pool.arms[place] = arm
        pool.values[place] = value
