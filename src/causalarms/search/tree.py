"""Depth-first branch and bound over levels, for the last nodes of the order first.

Each child at depth d sets the factor of that depth and holds the reward as a linear function of the
means of the positions that are then not settled. A child is cut when its bound lies below the worst
of the m best found by more than a tie. Children within a tie of it are followed for a while, so
that the lexicographically first of equals wins; if there are too many, the result is marked as
tied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import inlined, inner, kernel
from causalarms.search.ascent import changes, climb, may_set, tidy, value_of
from causalarms.search.bounds import Options, Ranges, best_price, gain_range, options_at_root, upper
from causalarms.search.factors import Levels
from causalarms.search.problem import (
    Problem,
    System,
    Tables,
    comes_first,
    option_at,
    permitted,
    weigh_options,
)

MAX_TIED = 2000  # children within a tie of the incumbent that are followed


class Pool(NamedTuple):
    """The best levels found, best first; -inf if there are fewer."""

    levels: Levels  # (m, D) by depth
    values: FloatArray  # (m,)


class Aim(NamedTuple):
    """How many settings are wanted, and which count as equal."""

    m: int
    distinct: bool  # only settings whose every change of a factor has an effect
    tie: float


class Grown(NamedTuple):
    """What is known after growing the tree."""

    nodes: int
    open: float  # nothing that was not seen is better (up to a tie); -inf: all was seen
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
    """Improve the pool; stop early at a value of at least `any_above`.

    With `distinct`, factors whose change has no effect keep their level.
    """
    system, tables = problem.system, problem.tables
    in_box, count, cost = problem.in_box, problem.counts, problem.cost
    n, m = len(problem.root), len(pool.values)
    aim = Aim(m, distinct, tie)
    n_depths, n_levels = problem.domain.shape
    root, root_constant = problem.root.copy(), -problem.rest_cost
    levels, climbed = np.zeros(n_depths, np.uint8), np.zeros(n_depths, np.uint8)
    root_constant = _settle(system, tables, root, root_constant, n - 1, problem.last[0], levels)
    if n_depths == 0:
        offer(problem, pool, levels, root_constant, tie)
        return Grown(0, -np.inf, False)
    c = np.empty((n_depths, n_levels, n))  # per child, over the positions that are not settled
    constant, bound = np.empty((n_depths, n_levels)), np.empty((n_depths, n_levels))
    turn, tried = np.zeros((n_depths, n_levels), np.int64), np.zeros(n_depths, np.int64)
    left, price = np.full(n_depths, problem.limit), np.empty(n_depths)
    work, mean, flow = np.empty(n), np.empty(n), np.empty(n)
    options = options_at_root(problem, True)
    open_levels = np.empty(n_levels, np.bool_)
    level_of = np.full(n_depths, -1)
    _, price[:] = best_price(
        system, ranges, options, root, problem.last[0], root_constant, problem.limit
    )
    nodes, n_tied, tied = 0, 0, False
    d, entering = 0, True
    while True:
        home, before, after = problem.home[d], problem.last[d], problem.last[d + 1]
        shared = home < 0 or problem.private[home] != d
        if entering:
            entering, tried[d] = False, 0
            c_d, so_far = root, root_constant
            if d > 0:
                c_d, so_far = c[d - 1, levels[d - 1]], constant[d - 1, levels[d - 1]]
            open_levels[:] = problem.domain[d]
            if not shared and not in_box[d]:
                _leave_out(problem, ranges, aim, d, c_d[home], left[d], open_levels)
            for level in range(n_levels):
                bound[d, level] = -np.inf
                left_after = left[d] - count[d, level]
                if not open_levels[level] or left_after < 0:
                    continue
                levels[d] = level
                if in_box[d] and not permitted(problem, levels, d, d + 1):
                    continue
                nodes += 1
                for j in range(before + 1):
                    work[j] = c_d[j]
                constant[d, level] = _settle(system, tables, work, so_far, before, after, levels)
                constant[d, level] -= cost[d, level]
                for j in range(after + 1):
                    c[d, level, j] = work[j]
                if shared:
                    level_of[d] = level
                    _weigh(problem, d, level_of, options)
                bound[d, level], mixed = upper(
                    system, ranges, options, work, after, constant[d, level], left_after, price[d]
                )
                # a step of the Lagrange multiplier: dearer if the mixture changes more than is left
                price[d] *= 1.1 if mixed > left_after else 1 / 1.1
            if shared:
                level_of[d] = -1
                _weigh(problem, d, level_of, options)
            # the most promising child first: a better incumbent cuts more of the others
            _sort(bound[d], turn[d])
        if tried[d] == n_levels:
            d -= 1
            if d < 0:
                return Grown(nodes, -np.inf, tied)
            if level_of[d] >= 0:
                level_of[d] = -1
                _weigh(problem, d, level_of, options)
            continue
        if nodes >= budget:
            return Grown(nodes, _largest_open(bound, turn, tried, d), tied)
        level = turn[d, tried[d]]
        tried[d] += 1
        cut = max(pool.values[m - 1], any_above)
        if bound[d, level] == -np.inf or bound[d, level] < cut - tie:
            tried[d] = n_levels  # the others are lower still
            continue
        if bound[d, level] <= cut + tie and any_above == -np.inf:
            # a tie matters for the lexicographic order only, and there may be 2^N of them
            n_tied += 1
            if n_tied > MAX_TIED:
                tied = True
                continue
        levels[d] = level
        if d < n_depths - 1:
            if shared:
                level_of[d] = level
                _weigh(problem, d, level_of, options)
            left[d + 1] = left[d] - count[d, level]
            d += 1
            entering = True
            continue
        value = constant[d, level]
        # a leaf that beats the incumbent is seldom the top of its hill
        improved = m == 1 and value > pool.values[0] + tie
        offer(problem, pool, levels, value, tie)
        if value >= any_above > -np.inf:
            return Grown(nodes, np.inf, tied)
        if improved and any_above == -np.inf:
            climbed[:] = levels
            offer(problem, pool, climbed, climb(problem, climbed, mean, flow), tie)


@inlined
def _settle(
    system: System,
    tables: Tables,
    c: FloatArray,
    constant: float,
    last: int,
    after: int,
    levels: Levels,
) -> float:
    """Put the means of the positions `last` down to `after` + 1 into the function c . means."""
    base, diff = system.base, system.diff
    for k in range(last, after, -1):
        own, o = c[k], option_at(tables, k, levels)
        if own == 0.0:
            continue
        constant += own * (system.base_mean[k] + system.diff_mean[o])
        for j in range(k):
            c[j] += own * (base[k, j] + diff[o, j])
    return constant


@inner
def _weigh(problem: Problem, d: int, level_of: IntArray, options: Options) -> None:
    """What the level of a shared factor means for the positions that are not settled after it."""
    act_start, act_depth = problem.tables.act_start, problem.tables.act_depth
    for k in range(problem.last[d + 1] + 1):
        for acting in range(act_start[k], act_start[k + 1]):
            if act_depth[acting] == d:
                weigh_options(problem, k, level_of, options.cost, options.counts)
                break


@inner
def _leave_out(
    problem: Problem,
    ranges: Ranges,
    aim: Aim,
    d: int,
    c: float,
    left: int,
    open_levels: BoolArray,
) -> None:
    """Close the levels that are never better than another one, whatever the earlier nodes do."""
    m, distinct, tie = aim
    limited, option, k = problem.system.limited, problem.tables.option, problem.home[d]
    reference, table = problem.system.first[k], problem.tables.base[k]
    stride = problem.tables.act_stride[problem.tables.act_start[k]]
    floor = -np.inf
    if m == 1 and not limited:
        for level in range(len(open_levels)):
            if open_levels[level]:
                o, cost = option[table + level * stride], problem.cost[d, level]
                least = -cost
                if o > reference:
                    least, _ = gain_range(limited, ranges, o, c, left, 0, cost)
                floor = max(floor, least)
    for level in range(len(open_levels)):
        if not open_levels[level]:
            continue
        o = option[table + level * stride]
        cost, count = problem.cost[d, level], problem.counts[d, level]
        if o == reference:
            if m == 1 and floor > 4.0 * tie - cost:
                open_levels[level] = False
            continue
        least, most = gain_range(limited, ranges, o, c, left, count, 0.0)
        if m == 1:
            open_levels[level] = most - cost > 0.0 and most - cost >= floor - 4.0 * tie
        elif distinct and cost >= 0.0:
            open_levels[level] = least != 0.0 or most != 0.0


@inner
def _sort(keys: FloatArray, order: IntArray) -> None:
    """Indices of the keys, largest first; among equals the smallest index first."""
    for at in range(len(keys)):
        place = at
        while place > 0 and keys[order[place - 1]] < keys[at]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = at


@inner
def _largest_open(bound: FloatArray, turn: IntArray, tried: IntArray, depth: int) -> float:
    largest = -np.inf
    for d in range(depth + 1):
        if tried[d] < bound.shape[1]:
            largest = max(largest, bound[d, turn[d, tried[d]]])
    return largest


@inner
def offer(problem: Problem, pool: Pool, levels: Levels, value: float, tie: float) -> None:
    """Put levels into the pool where they belong; once only."""
    m = len(pool.values)
    place = m
    for i in range(m):
        if pool.values[i] == -np.inf:
            place = min(place, i)
            break
        before = comes_first(problem, levels, pool.levels[i])
        if before == 0:
            return
        if value > pool.values[i] + tie or (value >= pool.values[i] - tie and before == 1):
            place = min(place, i)
    for i in range(m - 1, place, -1):
        pool.levels[i] = pool.levels[i - 1]
        pool.values[i] = pool.values[i - 1]
    if place < m:
        pool.levels[place] = levels
        pool.values[place] = value


@inner
def offer_neighbours(problem: Problem, pool: Pool, distinct: bool, tie: float) -> None:
    """Put everything that differs in one factor from one of the pool into the pool."""
    found, mean = 0, np.empty(len(problem.root))
    while found < len(pool.values) and pool.values[found] > -np.inf:
        found += 1
    known = pool.levels[:found].copy()
    for i in range(found):
        n_changes = changes(problem.counts, known[i])
        for d in range(problem.domain.shape[0]):
            for level in range(problem.domain.shape[1]):
                if level != known[i, d] and may_set(problem, known[i], d, level, n_changes):
                    levels = known[i].copy()
                    levels[d] = level
                    value = tidy(problem, levels) if distinct else value_of(problem, levels, mean)
                    offer(problem, pool, levels, value, tie)
