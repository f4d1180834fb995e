"""The search for the best intervention as arrays over positions in the topological order.

Mean of position k in option o (a regime that it can have) = base_mean_k + base_k . means
+ diff_mean_o + diff_o . means, where only earlier positions enter; the first option of a position
is its reference, with diff 0. The reward is root . means minus the costs of the levels.

Factors are decided in the order in which the positions from the last to the first need them: the
factor at depth d is one that acts on the last position not yet settled, its home. What cannot
matter is left out and rests at its first level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import inlined, inner, kernel
from causalarms.search.factors import Levels
from causalarms.search.feasible import Rules

ONE, TWO, MANY = 1, 2, 3  # kinds of positions; TWO: two options by a factor that acts nowhere else
SHARED = -1  # in `private`


class System(NamedTuple):
    """What the bounds need: n positions, T options.

    Kernels are called with every array of a tuple apart, so the innermost get small tuples.
    """

    base: FloatArray  # (n, n) weights of the reference, [child, parent]
    base_mean: FloatArray  # (n,)
    kind: IntArray  # (n,)
    first: IntArray  # (n+1,) position k has the options first[k] .. first[k+1]-1
    diff: FloatArray  # (T, n) weights minus those of the reference
    diff_mean: FloatArray  # (T,)
    limited: bool  # whether the limit on changes excludes anything


class Tables(NamedTuple):
    """Which option of a position the levels of the factors give."""

    act_start: IntArray  # (n+1,) undecided factors that act on a position, by depth
    act_depth: IntArray
    act_stride: IntArray
    base: IntArray  # (n,) where the position's table begins, given the decided factors
    option: IntArray  # -1 if a regime cannot occur


class Problem(NamedTuple):
    """Everything the search needs: n positions of N nodes, T options, D factors of F to decide."""

    system: System
    tables: Tables
    root: FloatArray  # (n,) 1 at the reward
    private: IntArray  # (n,) depth of the one factor on it that acts nowhere else, or SHARED
    option_cost: FloatArray  # (T,) least cost of the levels for it, of factors at home there
    option_count: IntArray  # (T,) how many factors at home there must leave level 0 for it
    factor: IntArray  # (D,) the factor decided at each depth
    domain: BoolArray  # (D, L)
    cost: FloatArray  # (D, L)
    counts: IntArray  # (D, L) 1 if the level counts towards the limit
    home: IntArray  # (D,) last position it acts on, -1 if it acts on none
    last: IntArray  # (D+1,) last position that is not settled before this depth
    limit: int
    box_start: IntArray  # forbidden combinations, by depth
    box_depth: IntArray
    box_levels: BoolArray
    in_box: BoolArray  # (D,)
    by_label: IntArray  # (D,) depths in the order of the factors' numbers
    rest: Levels  # (F,) levels of the factors that are not decided here
    rest_cost: float


class Posed(NamedTuple):
    """Whose best intervention is asked for, and under which rules."""

    weights: FloatArray  # (R, N, N)
    mean: FloatArray  # (R, N)
    order: IntArray
    reward: int
    rules: Rules
    keep_all: bool  # also what has no effect on the reward


@kernel
def pose(posed: Posed) -> Problem:
    """Keep the nodes that reach the reward in some regime, and the factors that matter."""
    weights, mean, order, reward, rules, keep_all = posed
    n_all, n_levels = len(order), rules.domain.shape[1]
    n_factors = len(rules.domain)
    size = np.zeros(n_factors, np.int64)
    lowest = np.zeros(n_factors, np.int64)
    for f in range(n_factors):
        for level in range(n_levels - 1, -1, -1):
            if rules.domain[f, level]:
                size[f] += 1
                lowest[f] = level
    # regimes that no level gives must not keep a parent alive
    possible = _possible(rules, weights.shape[0], n_all)
    keep = np.full(n_all, keep_all)
    keep[reward] = True
    for at in range(n_all - 1, -1, -1):
        child = order[at]
        if keep[child]:
            for earlier in range(at):
                parent = order[earlier]
                for regime in range(len(weights)):
                    if possible[child, regime] and weights[regime, parent, child] != 0.0:
                        keep[parent] = True
                        break
    n = keep.sum()
    nodes, position = np.empty(n, np.int64), np.full(n_all, -1)
    at = 0
    for node in order:
        if keep[node]:
            nodes[at], position[node] = node, at
            at += 1

    # boxes that can occur at all, without the factors that are always inside
    n_boxes = len(rules.box_start) - 1
    boxed = np.zeros(n_factors, np.bool_)
    active, matters = np.ones(n_boxes, np.bool_), np.zeros(len(rules.box_factor), np.bool_)
    for box in range(n_boxes):
        for at in range(rules.box_start[box], rules.box_start[box + 1]):
            f, inside = rules.box_factor[at], 0
            for level in range(n_levels):
                inside += 1 if rules.box_levels[at, level] and rules.domain[f, level] else 0
            active[box] &= inside > 0
            matters[at] = inside < size[f]
        if active[box]:
            for at in range(rules.box_start[box], rules.box_start[box + 1]):
                boxed[rules.box_factor[at]] |= matters[at]

    # factors to decide, in the order of depths
    depth_of = np.full(n_factors, -1)
    factor, home = np.empty(n_factors, np.int64), np.full(n_factors, -1)
    last = np.full(n_factors + 1, -1)
    acts = np.zeros(n_factors, np.int64)  # on how many kept nodes
    n_free = np.zeros(n, np.int64)  # undecided factors of a position
    depth = 0
    for k in range(n - 1, -1, -1):
        for at in range(rules.act_start[nodes[k]], rules.act_start[nodes[k] + 1]):
            f = rules.act_factor[at]
            if size[f] > 1:
                acts[f] += 1
                n_free[k] += 1
                if depth_of[f] < 0:
                    factor[depth], home[depth], depth_of[f], last[depth] = f, k, depth, k
                    depth += 1
    rest, rest_cost, rest_count = np.zeros(n_factors, np.uint8), 0.0, 0
    limit, n_leaving = rules.limit, 0
    for f in range(n_factors):
        if depth_of[f] < 0:
            cheapest = lowest[f]
            for level in range(lowest[f], n_levels):
                if rules.domain[f, level] and rules.cost[f, level] < rules.cost[f, cheapest]:
                    cheapest = level
            pays_to_leave = lowest[f] == 0 and cheapest > 0
            if size[f] > 1 and (boxed[f] or keep_all or pays_to_leave):
                factor[depth], depth_of[f] = f, depth
                depth += 1
            else:
                rest[f] = cheapest
                rest_cost += rules.cost[f, cheapest]
                rest_count += 1 if cheapest > 0 else 0
        if depth_of[f] >= 0:
            if lowest[f] == 0:
                n_leaving += 1
            else:
                rest_count += 1  # whatever its level, it counts
    # what rests off level 0, or can never be at it, has used its part of the limit
    limit -= rest_count
    n_depths = depth
    factor, home, last = (
        factor[:n_depths].copy(),
        home[:n_depths].copy(),
        last[: n_depths + 1].copy(),
    )

    # options of the positions
    first, n_options = np.zeros(n + 1, np.int64), 0
    for k in range(n):
        first[k] = n_options
        for regime in range(len(weights)):
            n_options += 1 if possible[nodes[k], regime] else 0
    first[n] = n_options
    base, root, base_mean = np.zeros((n, n)), np.zeros(n), np.empty(n)
    root[position[reward]] = 1.0
    diff, diff_mean = np.zeros((n_options, n)), np.zeros(n_options)
    kind, private = np.full(n, ONE), np.full(n, SHARED)
    act_start, n_acting = np.zeros(n + 1, np.int64), n_free.sum()
    act_depth, act_stride = np.empty(n_acting, np.int64), np.empty(n_acting, np.int64)
    table_base = np.empty(n, np.int64)
    table_size = 0
    for node in nodes:
        table_size += rules.table_start[node + 1] - rules.table_start[node]
    option = np.full(table_size, -1)
    option_of = np.empty(len(weights), np.int64)
    filled, acting = 0, 0
    for k in range(n):
        node = nodes[k]
        reference, table_base[k] = rules.table_start[node], filled
        for at in range(rules.act_start[node], rules.act_start[node + 1]):
            f, stride = rules.act_factor[at], rules.act_stride[at]
            reference += lowest[f] * stride
            if size[f] > 1:
                act_depth[acting], act_stride[acting] = depth_of[f], stride
                acting += 1
            else:
                table_base[k] += lowest[f] * stride
        act_start[k + 1] = acting
        natural = rules.table[reference]
        base_mean[k] = mean[natural, node]
        option_of[:] = -1
        option_of[natural] = first[k]
        o = first[k] + 1
        for regime in range(len(weights)):
            if possible[node, regime] and regime != natural:
                option_of[regime] = o
                diff_mean[o] = mean[regime, node] - mean[natural, node]
                for j in range(k):
                    diff[o, j] = weights[regime, nodes[j], node] - weights[natural, nodes[j], node]
                o += 1
        for j in range(k):
            base[k, j] = weights[natural, nodes[j], node]
        for at in range(rules.table_start[node], rules.table_start[node + 1]):
            option[filled] = option_of[rules.table[at]]
            filled += 1
        if first[k + 1] - first[k] > 1:
            kind[k] = MANY
            if n_free[k] == 1 and acts[factor[act_depth[act_start[k]]]] == 1:
                private[k] = act_depth[act_start[k]]
                if first[k + 1] - first[k] == 2:
                    kind[k] = TWO

    # levels; of a factor that acts on one position alone, costs are counted from the reference's
    domain, cost = np.zeros((n_depths, n_levels), np.bool_), np.zeros((n_depths, n_levels))
    count = np.zeros((n_depths, n_levels), np.int64)
    for d in range(n_depths):
        f = factor[d]
        for level in range(n_levels):
            domain[d, level] = rules.domain[f, level]
            cost[d, level] = rules.cost[f, level]
            count[d, level] = 1 if level > 0 and lowest[f] == 0 else 0
        shift = cost[d, lowest[f]]
        k = home[d]
        for level in range(n_levels):
            if domain[d, level] and cost[d, level] < shift:
                if k < 0:
                    shift = cost[d, level]
                elif private[k] == d:
                    at = table_base[k] + level * act_stride[act_start[k]]
                    if option[at] == first[k]:
                        shift = cost[d, level]
        cost[d] -= shift
        rest_cost += shift
    option_cost, option_count = np.zeros(n_options), np.zeros(n_options, np.int64)

    literals, kept_boxes = 0, 0
    for box in range(n_boxes):
        kept_boxes += 1 if active[box] else 0
        for at in range(rules.box_start[box], rules.box_start[box + 1]):
            literals += 1 if active[box] and matters[at] else 0
    box_start, box_depth = np.zeros(kept_boxes + 1, np.int64), np.empty(literals, np.int64)
    box_levels, in_box = np.zeros((literals, n_levels), np.bool_), np.zeros(n_depths, np.bool_)
    literals, kept_boxes = 0, 0
    for box in range(n_boxes):
        if active[box]:
            for at in range(rules.box_start[box], rules.box_start[box + 1]):
                if matters[at]:
                    box_depth[literals] = depth_of[rules.box_factor[at]]
                    box_levels[literals] = rules.box_levels[at]
                    in_box[box_depth[literals]] = True
                    literals += 1
            kept_boxes += 1
            box_start[kept_boxes] = literals
    by_label, at = np.empty(n_depths, np.int64), 0
    for f in range(n_factors):
        if depth_of[f] >= 0:
            by_label[at] = depth_of[f]
            at += 1
    problem = Problem(
        System(base, base_mean, kind, first, diff, diff_mean, limit < n_leaving),
        Tables(act_start, act_depth, act_stride, table_base, option),
        root, private, option_cost, option_count, factor, domain, cost, count, home, last,
        min(limit, n_leaving), box_start, box_depth, box_levels, in_box, by_label, rest, rest_cost,
    )  # fmt: skip
    undecided = np.full(n_depths, -1)
    for k in range(n):
        weigh_options(problem, k, undecided, option_cost, option_count)
    return problem


@inner
def _possible(rules: Rules, n_regimes: int, n_nodes: int) -> BoolArray:
    """Which regimes a node can have, by the domains of its factors alone."""
    possible = np.zeros((n_nodes, n_regimes), np.bool_)
    for node in range(n_nodes):
        table = rules.table_start[node]
        start, end = rules.act_start[node], rules.act_start[node + 1]
        for at in range(table, rules.table_start[node + 1]):
            inside, left = True, at - table
            for acting in range(start, end):
                stride = rules.act_stride[acting]
                inside &= rules.domain[rules.act_factor[acting], left // stride]
                left %= stride
            if inside:
                possible[node, rules.table[at]] = True
    return possible


@inner
def weigh_options(
    problem: Problem, k: int, level: IntArray, option_cost: FloatArray, option_count: IntArray
) -> None:
    """What each option of position k costs and counts at least, given the levels set (-1: not).

    Only factors at home there and not yet set pay. An option that cannot occur costs infinity.
    """
    first, tables = problem.system.first, problem.tables
    for o in range(first[k], first[k + 1]):
        option_cost[o], option_count[o] = np.inf, 2**30
    start, end = tables.act_start[k], tables.act_start[k + 1]
    if end == start:
        option_cost[first[k]], option_count[first[k]] = 0.0, 0
        return
    n_levels = problem.domain.shape[1]
    combination = np.zeros(end - start, np.int64)
    while True:
        at, cost, count, inside = tables.base[k], 0.0, 0, True
        for place in range(end - start):
            d, tried = tables.act_depth[start + place], combination[place]
            inside &= problem.domain[d, tried] and (level[d] < 0 or level[d] == tried)
            at += tried * tables.act_stride[start + place]
            if level[d] < 0 and problem.home[d] == k:
                cost += problem.cost[d, tried]
                count += problem.counts[d, tried]
        if inside:
            o = tables.option[at]
            option_cost[o] = min(option_cost[o], cost)
            option_count[o] = min(option_count[o], count)
        place = end - start - 1
        while place >= 0:
            combination[place] += 1
            if combination[place] < n_levels:
                break
            combination[place] = 0
            place -= 1
        if place < 0:
            return


@inlined
def option_at(tables: Tables, k: int, levels: Levels) -> int:
    """The option of position k under these levels, by depth."""
    at = tables.base[k]
    for acting in range(tables.act_start[k], tables.act_start[k + 1]):
        at += levels[tables.act_depth[acting]] * tables.act_stride[acting]
    return tables.option[at]


@inner
def permitted(problem: Problem, levels: Levels, d: int, decided: int) -> bool:
    """No box that holds depth d is broken by the depths before `decided`."""
    for box in range(len(problem.box_start) - 1):
        speaks, inside = False, True
        for at in range(problem.box_start[box], problem.box_start[box + 1]):
            depth = problem.box_depth[at]
            speaks |= depth == d
            if depth >= decided or not problem.box_levels[at, levels[depth]]:
                inside = False
                break
        if speaks and inside:
            return False
    return True


@inner
def comes_first(problem: Problem, levels: Levels, other: Levels) -> int:
    """1 if lexicographically before the other, -1 if after, 0 if equal."""
    for d in problem.by_label:
        if levels[d] != other[d]:
            return 1 if levels[d] < other[d] else -1
    return 0
