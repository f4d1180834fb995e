"""Good interventions quickly: coordinate ascent from many starts, the incumbent of the search.

One backward sweep improves all factors that act on one node, one after another, at the cost of one
expected reward: the flow from a node to the reward depends on later regimes only, its mean on
earlier ones only. Factors that act on several nodes are tried one level at a time.

Starts and kicks come from a fixed sequence, so the same problem gives the same answer.
"""

from __future__ import annotations

import numpy as np

from causalarms.arrays import FloatArray, IntArray
from causalarms.kernels import inlined, inner
from causalarms.search.factors import Levels
from causalarms.search.problem import SHARED, Problem, System, Tables, option_at, permitted

TIE = 1e-12  # of the sum of the absolute terms: rounding is about N times 1e-16 of it
MAX_KICKED_FACTORS = 15
MAX_REPAIRS = 8  # changes of other factors after one that breaks a box


@inner
def value_of(problem: Problem, levels: Levels, mean: FloatArray) -> float:
    """Expected reward minus costs; writes the means."""
    system, tables, root, cost = problem.system, problem.tables, problem.root, problem.cost
    return _value(system, tables, root, cost, levels, mean) - problem.rest_cost


@inner
def _value(
    system: System,
    tables: Tables,
    root: FloatArray,
    cost: FloatArray,
    levels: Levels,
    mean: FloatArray,
) -> float:
    base, diff, value = system.base, system.diff, 0.0
    for k in range(len(mean)):
        o = option_at(tables, k, levels)
        total = system.base_mean[k]
        if o == system.first[k]:
            for j in range(k):
                total += base[k, j] * mean[j]
        else:
            total += system.diff_mean[o]
            for j in range(k):
                total += (base[k, j] + diff[o, j]) * mean[j]
        mean[k] = total
        value += root[k] * total
    for d in range(len(levels)):
        value -= cost[d, levels[d]]
    return value


@inner
def tie_width(problem: Problem, levels: Levels) -> float:
    """Values closer than this count as equal: TIE times sum_k |flow_k| (sum of |terms| of k)."""
    system, tables, cost = problem.system, problem.tables, problem.cost
    base, diff, flow = system.base, system.diff, problem.root.copy()
    n, scale = len(flow), abs(problem.rest_cost)
    mean = np.empty(n)
    _value(system, tables, problem.root, cost, levels, mean)
    for k in range(n - 1, -1, -1):
        o = option_at(tables, k, levels)
        terms = abs(system.base_mean[k]) + abs(system.diff_mean[o])
        for j in range(k):
            weight = base[k, j] + diff[o, j]
            terms += abs(weight * mean[j])
            flow[j] += weight * flow[k]
        scale += abs(flow[k]) * terms
    for d in range(len(levels)):
        scale += np.abs(cost[d]).max()
    return TIE * scale


@inlined
def changes(count: IntArray, levels: Levels) -> int:
    """How many factors count towards the limit."""
    total = 0
    for d in range(len(levels)):
        total += count[d, levels[d]]
    return total


@inner
def may_set(problem: Problem, levels: Levels, d: int, level: int, n_changes: int) -> bool:
    """Whether one factor may change its level, all others as they are."""
    if not problem.domain[d, level]:
        return False
    before = levels[d]
    if n_changes + problem.counts[d, level] - problem.counts[d, before] > problem.limit:
        return False
    if not problem.in_box[d]:
        return True
    levels[d] = level
    allowed = permitted(problem, levels, d, len(levels))
    levels[d] = before
    return allowed


@inner
def climb(problem: Problem, levels: Levels, mean: FloatArray, flow: FloatArray) -> float:
    """Sweep until no change of one factor that is allowed helps; `levels` are and stay allowed."""
    system, tables, root = problem.system, problem.tables, problem.root
    base, diff, first, option = system.base, system.diff, system.first, tables.option
    cost, count, domain, private = problem.cost, problem.counts, problem.domain, problem.private
    n, n_levels, n_depths = len(mean), domain.shape[1], len(levels)
    bound = system.limited or len(problem.box_start) > 1  # not everything may be set
    value = _value(system, tables, root, cost, levels, mean)
    n_changes, n_private = 0, 0
    while True:
        n_changes = changes(count, levels)
        # backwards: flow[k], what a unit at k adds to the reward, depends on later levels only,
        # and these are already improved; the means of earlier positions are still right
        flow[:] = root
        for k in range(n - 1, -1, -1):
            d = private[k]
            if d != SHARED:
                now, reference = levels[d], first[k]
                table, stride = tables.base[k], tables.act_stride[tables.act_start[k]]
                chosen, most, present = now, 0.0, option[table + now * stride]
                gain_now = -cost[d, now]
                if present != reference:
                    gain_now += flow[k] * _added(system, k, present, mean)
                for level in range(n_levels):
                    if level == now or not domain[d, level]:
                        continue
                    o = option[table + level * stride]
                    gain = -cost[d, level] - gain_now
                    if o != reference:
                        gain += flow[k] * _added(system, k, o, mean)
                    if gain > most and (not bound or may_set(problem, levels, d, level, n_changes)):
                        chosen, most = level, gain
                if chosen != now:
                    n_changes += count[d, chosen] - count[d, now]
                    levels[d] = chosen
            flow_k = flow[k]
            if flow_k != 0.0:
                o = option_at(tables, k, levels)
                if o == first[k]:
                    for j in range(k):
                        flow[j] += flow_k * base[k, j]
                else:
                    for j in range(k):
                        flow[j] += flow_k * (base[k, j] + diff[o, j])
        swept = _value(system, tables, root, cost, levels, mean)
        # in the first sweep n_private is 0; afterwards this is skipped if every factor is private
        if n_private < n_depths:
            n_private = 0
            for d in range(n_depths):
                if problem.home[d] >= 0 and private[problem.home[d]] == d:
                    n_private += 1
                else:
                    swept = _try_levels(problem, levels, d, swept, mean)
        # a gain of rounding errors would never end
        if not swept > value + 1e-12 * abs(value):
            return swept - problem.rest_cost
        value = swept


@inlined
def _added(system: System, k: int, o: int, mean: FloatArray) -> float:
    """What option o adds to the mean of position k."""
    diff, added = system.diff, system.diff_mean[o]
    for j in range(k):
        added += diff[o, j] * mean[j]
    return added


@inner
def _try_levels(problem: Problem, levels: Levels, d: int, value: float, mean: FloatArray) -> float:
    """The best level of one factor, whatever it acts on; `value` is without the rest's cost."""
    system, tables, root, cost = problem.system, problem.tables, problem.root, problem.cost
    for level in range(problem.domain.shape[1]):
        before = levels[d]
        n_changes = changes(problem.counts, levels)
        if level == before or not may_set(problem, levels, d, level, n_changes):
            continue
        levels[d] = level
        tried = _value(system, tables, root, cost, levels, mean)
        if tried > value:
            value = tried
        else:
            levels[d] = before
    return _value(system, tables, root, cost, levels, mean)


@inlined
def next_random(random: IntArray, below: int) -> int:
    """A linear congruential generator whose numbers fit 64 bits, with and without a compiler."""
    random[0] = (random[0] * 1664525 + 1013904223) & 0xFFFFFFFF
    return (random[0] * below) >> 32


@inlined
def kick(problem: Problem, levels: Levels, times: int, random: IntArray) -> None:
    """Change some factors at random, and others if that is needed to stay allowed."""
    n_depths, n_levels = problem.domain.shape
    bound = problem.system.limited or len(problem.box_start) > 1
    n_changes = changes(problem.counts, levels)
    for _ in range(times):
        d = next_random(random, n_depths)
        # int: 255 + 1 would wrap around in a byte
        level = int(levels[d]) + 1
        if n_levels > 2:
            level += next_random(random, n_levels - 1)
        if level >= n_levels:
            level -= n_levels
        if not problem.domain[d, level]:
            continue
        if not bound:
            levels[d] = level
        elif may_set(problem, levels, d, level, n_changes):
            n_changes += problem.counts[d, level] - problem.counts[d, levels[d]]
            levels[d] = level
        else:
            # tight rules refuse most single changes: without repairs no kick would lead away
            before = levels.copy()
            levels[d] = level
            if _repair(problem, levels, d, random):
                n_changes = changes(problem.counts, levels)
            else:
                levels[:] = before


@inner
def _repair(problem: Problem, levels: Levels, kept: int, random: IntArray) -> bool:
    """Change other factors until everything is allowed again."""
    n_depths, n_levels = problem.domain.shape
    for _ in range(MAX_REPAIRS):
        culprit = -1
        if changes(problem.counts, levels) > problem.limit:
            at = next_random(random, n_depths)
            for step in range(n_depths):
                d = (at + step) % n_depths
                if d != kept and problem.domain[d, 0] and problem.counts[d, levels[d]] == 1:
                    levels[d] = 0
                    break
            else:
                return False
        for box in range(len(problem.box_start) - 1):
            inside = True
            for at in range(problem.box_start[box], problem.box_start[box + 1]):
                inside &= problem.box_levels[at, levels[problem.box_depth[at]]]
            if inside:
                size = problem.box_start[box + 1] - problem.box_start[box]
                culprit = problem.box_start[box] + next_random(random, size)
                break
        if culprit < 0:
            if changes(problem.counts, levels) <= problem.limit:
                return True
            continue
        d = problem.box_depth[culprit]
        level = next_random(random, n_levels)
        if d != kept and problem.domain[d, level]:
            levels[d] = level
    return False


@inner
def tidy(problem: Problem, levels: Levels) -> float:
    """Factors back to their first level if they have no effect; returns the value."""
    domain, cost, root = problem.domain, problem.cost, problem.root
    mean, again = np.empty(len(root)), True
    value = value_of(problem, levels, mean)
    reward = root @ mean
    while again:
        again = False
        for d in range(len(levels)):
            before, lowest = levels[d], 0
            while not domain[d, lowest]:
                lowest += 1
            if before == lowest or cost[d, before] < cost[d, lowest]:
                continue
            if may_set(problem, levels, d, lowest, changes(problem.counts, levels)):
                levels[d] = lowest
                tried = value_of(problem, levels, mean)
                # exactly equal: the smallest effect is an effect, and the same bits come out
                if root @ mean == reward:
                    value, again = tried, True
                else:
                    levels[d] = before
    return value


@inner
def kicked_climb(
    problem: Problem, start: Levels, restarts: int, kicks: int, random: IntArray
) -> tuple[Levels, float]:
    """The best of climbs from the start, from random starts, and from kicks of the best so far."""
    n, n_depths = len(problem.root), len(start)
    best, levels = start.copy(), start.copy()
    mean, flow = np.empty(n), np.empty(n)
    value = climb(problem, best, mean, flow)
    if n_depths == 0:
        return best, value
    for turn in range(restarts + kicks):
        times = 2 * n_depths
        if turn >= restarts:
            levels[:] = best
            times = 1 + turn % min(n_depths, MAX_KICKED_FACTORS)
        kick(problem, levels, times, random)
        climbed = climb(problem, levels, mean, flow)
        if climbed > value:
            value = climbed
            best[:] = levels
    return best, value
