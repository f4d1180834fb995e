"""What no choice of the undecided levels can exceed.

Settling the positions from the last to the first keeps the reward a linear function c of the means
of the others. A position k adds c_k (x + z_o) - cost_o, where x is its mean in the reference option
and z_o what option o adds (0 for the reference); all are linear in earlier means. With every
c_k z_o - cost_o between a `least` and a `most`, the best option lies below a mixture of all options
plus a constant. Putting the mixture in place of the position keeps the function linear, so one
backward pass of the cost of one expected reward gives the bound. Unlike a sum over intervals of
means it keeps the cancellation between paths. For two options the mixture is the chord of
max(0, c_k z - cost). (For the hidden units max(0, .) of a neural network the same relaxation is
known as CROWN, Zhang et al. 2018.)

Positions that share a factor are bounded as if each had its own; the factor pays once, at home.

At most k changes: row q of the ranges holds for at most q changes of factors at home on earlier
positions, and each change pays a price that comes back `left` times (a Lagrange multiplier).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causalarms.arrays import FloatArray, IntArray
from causalarms.kernels import inlined, inner, kernel
from causalarms.search.problem import MANY, TWO, Problem, System


class Ranges(NamedTuple):
    """Of z, what an option adds to the mean; (rows, T), one row if unlimited."""

    low: FloatArray
    high: FloatArray


class Options(NamedTuple):
    """What is known of options at some place of the tree; room for the mixture of one position."""

    cost: FloatArray  # (T,) infinite if an option cannot occur
    counts: IntArray  # (T,)
    least: FloatArray  # (T,)
    most: FloatArray  # (T,)
    fraction: FloatArray  # (T,)


@kernel
def options_at_root(problem: Problem, costs: bool) -> Options:
    """Before anything is decided; with `costs` false, all options are free of cost."""
    n = len(problem.option_cost)
    cost = problem.option_cost.copy() if costs else np.zeros(n)
    return Options(cost, problem.option_count.copy(), np.empty(n), np.empty(n), np.empty(n))


@inlined
def gain_range(
    limited: bool, ranges: Ranges, o: int, c: float, left: int, count: int, cost: float
) -> tuple[float, float]:
    """Smallest and largest c z - cost of option o."""
    row = left if limited else 0
    above = max(left - count, 0) if limited else 0  # its changes are some of those left
    if c > 0.0:
        return c * ranges.low[row, o] - cost, c * ranges.high[above, o] - cost
    return c * ranges.high[row, o] - cost, c * ranges.low[above, o] - cost


@kernel
def upper(
    system: System,
    ranges: Ranges,
    options: Options,
    c: FloatArray,  # overwritten
    last: int,  # positions up to here are not settled
    constant: float,
    left: int,
    price: float,
) -> tuple[float, float]:
    """A bound on constant + c . means - costs, and how many changes its mixture makes."""
    total, mixed = constant + price * left, 0.0
    for k in range(last, -1, -1):
        kind, ck, o = system.kind[k], c[k], system.first[k]
        if kind == TWO:
            o += 1
            fraction, count = 0.0, options.counts[o]
            if left >= count or not system.limited:
                cost = options.cost[o] + price * count
                least, most = gain_range(system.limited, ranges, o, ck, left, count, cost)
                if most > 0.0:
                    if least >= 0.0:
                        fraction = 1.0
                        total -= cost
                    else:
                        fraction = most / (most - least)
                        total -= fraction * (cost + least)
                    mixed += fraction * count
            if ck != 0.0:
                if fraction == 0.0:
                    total += ck * system.base_mean[k]
                    for j in range(k):
                        c[j] += ck * system.base[k, j]
                else:
                    total += ck * (system.base_mean[k] + fraction * system.diff_mean[o])
                    for j in range(k):
                        c[j] += ck * (system.base[k, j] + fraction * system.diff[o, j])
            continue
        if kind == MANY:
            added, changes = mixture(system, ranges, options, k, ck, left, price)
            total += added
            mixed += changes
        else:
            total -= options.cost[o] + price * options.counts[o]
            mixed += options.counts[o]
        if total == -np.inf:
            return -np.inf, mixed
        if ck != 0.0:
            total += ck * system.base_mean[k]
            for j in range(k):
                c[j] += ck * system.base[k, j]
            if kind == MANY:
                for o in range(system.first[k] + 1, system.first[k + 1]):
                    part = ck * options.fraction[o]
                    if part != 0.0:
                        total += part * system.diff_mean[o]
                        for j in range(k):
                            c[j] += part * system.diff[o, j]
    return total, mixed


@inner
def mixture(
    system: System, ranges: Ranges, options: Options, k: int, ck: float, left: int, price: float
) -> tuple[float, float]:
    """Shares of the options of k, the constant to add, and how many changes the mixture makes.

    Whatever the fractions s, max_o g_o <= sum_o s_o g_o + max_o (most_o - s_o (most_o - least_o))
    - sum_o s_o least_o. The fractions make the terms of that maximum equal if they can.
    """
    start, end = system.first[k], system.first[k + 1]
    floor = -np.inf
    for o in range(start, end):
        options.fraction[o] = 0.0
        count = options.counts[o]
        if options.cost[o] == np.inf or (system.limited and count > left):
            options.least[o] = options.most[o] = -np.inf
            continue
        cost = options.cost[o] + price * count
        if o == start:
            least, most = -cost, -cost
        else:
            least, most = gain_range(system.limited, ranges, o, ck, left, count, cost)
        options.least[o], options.most[o] = least, max(least, most)
        floor = max(floor, least)
    if floor == -np.inf:
        return -np.inf, 0.0
    top, previous = floor, -np.inf
    while top > previous:  # the set of those above shrinks, so this ends
        previous = top
        inverse, weighted = 0.0, -1.0
        for o in range(start, end):
            if options.most[o] > top:
                width = options.most[o] - options.least[o]
                inverse += 1.0 / width
                weighted += options.most[o] / width
        if inverse > 0.0:
            top = max(top, weighted / inverse)
    total = 0.0
    for o in range(start, end):
        if options.most[o] > top:
            fraction = (options.most[o] - top) / (options.most[o] - options.least[o])
            options.fraction[o] = min(fraction, 1.0 - total)
            total += options.fraction[o]
    if total < 1.0:  # what is left goes to the option with the highest floor
        for o in range(start, end):
            if options.least[o] == floor:
                options.fraction[o] += 1.0 - total
                break
    over, inner, changes = -np.inf, 0.0, 0.0
    for o in range(start, end):
        if options.least[o] > -np.inf:
            s = options.fraction[o]
            over = max(over, options.most[o] - s * (options.most[o] - options.least[o]))
            inner += s * (options.least[o] + options.cost[o] + price * options.counts[o])
            changes += s * options.counts[o]
    return over - inner, changes


@inner
def best_price(
    system: System,
    ranges: Ranges,
    options: Options,
    c: FloatArray,
    last: int,
    constant: float,
    left: int,
) -> tuple[float, float]:
    """The least bound over prices on a grid, and its price."""
    work = c.copy()
    best, mixed = upper(system, ranges, options, work, last, constant, left, 0.0)
    chosen = 0.0
    # a price only helps if the free mixture breaks the limit
    if system.limited and mixed > left > 0:
        scale = abs(best) + abs(constant) + 1e-300
        for step in range(24):
            price = scale * 2.0 ** (-step)
            work[: last + 1] = c[: last + 1]
            bound, _ = upper(system, ranges, options, work, last, constant, left, price)
            if bound < best:
                best, chosen = bound, price
    return best, chosen


# -- ranges ----------------------------------------------------------------------------------------
#
# How far an option can move the mean of its node. The ranges of a position need only those of
# earlier ones, so they are found from the first to the last. Each end is itself a best-
# intervention problem over the earlier nodes. Solving it a little, by best-first search with a
# small budget, tightens every later range (Russian doll search, Verfaillie et al. 1996): looseness
# that is removed early is not compounded through the order.


@kernel
def unknown_ranges(problem: Problem) -> Ranges:
    rows = problem.limit + 1 if problem.system.limited else 1
    n = len(problem.system.diff_mean)
    return Ranges(np.full((rows, n), -np.inf), np.full((rows, n), np.inf))


@kernel
def find_ranges(problem: Problem, known: Ranges, budget: int) -> int:
    """Tighten `known` in place; returns the number of tree nodes."""
    system, options = problem.system, options_at_root(problem, False)
    first, diff, low, high = system.first, system.diff, known.low, known.high
    n = len(system.kind)
    open_c = np.empty((budget + 2, n))
    c, ends, nodes = np.empty(n), np.empty(2), 0
    for k in range(n):
        for o in range(first[k] + 1, first[k + 1]):
            for row in range(len(low)):
                for end in range(2):
                    sign = 1.0 if end == 0 else -1.0
                    for j in range(k):
                        c[j] = sign * diff[o, j]
                    constant = sign * system.diff_mean[o]
                    ends[end], used = highest(
                        system, known, options, c, k - 1, constant, row, open_c
                    )
                    nodes += used
                high[row, o] = min(high[row, o], ends[0])
                low[row, o] = max(low[row, o], -ends[1])
    return nodes


@inner
def highest(
    system: System,
    ranges: Ranges,
    options: Options,
    c: FloatArray,
    last: int,
    constant: float,
    left: int,
    open_c: FloatArray,  # (budget + 2, n) room for the open nodes of the tree
) -> tuple[float, int]:
    """A bound on constant + c . means - costs from a best-first tree, and the tree's size.

    The tree decides one position after another, as if none shared a factor.
    """
    if last < 0:
        return constant, 0
    room = len(open_c)
    constants, bounds = np.empty(room), np.empty(room)
    lasts, lefts = np.empty(room, np.int64), np.empty(room, np.int64)
    heap, n_heap = np.empty(room, np.int64), 1
    bounds[0], price = best_price(system, ranges, options, c, last, constant, left)
    if room <= 2:
        return bounds[0], 0
    open_c[0, : last + 1] = c[: last + 1]
    constants[0], lasts[0], lefts[0], heap[0], size = constant, last, left, 0, 1
    best_leaf, work = -np.inf, np.empty(last + 1)
    while n_heap > 0:
        top = heap[0]
        k = lasts[top]
        reference, end = system.first[k], system.first[k + 1]
        # the room is the budget: the best open node bounds all that is left
        if bounds[top] <= best_leaf or size + end - reference > room:
            return max(bounds[top], best_leaf), size
        n_heap = _pop(heap, n_heap, bounds)
        ck = open_c[top, k]
        for o in range(reference, end):
            count = options.counts[o]
            if o > reference:
                dearer = options.cost[o] >= options.cost[reference]
                useless = ck == 0.0 and dearer and count >= options.counts[reference]
                if useless or (system.limited and lefts[top] < count):
                    continue
            constants[size] = (
                constants[top] + ck * (system.base_mean[k] + system.diff_mean[o]) - options.cost[o]
            )
            if k == 0:
                best_leaf = max(best_leaf, constants[size])
                continue
            for j in range(k):
                open_c[size, j] = open_c[top, j] + ck * (system.base[k, j] + system.diff[o, j])
                work[j] = open_c[size, j]
            lasts[size] = k - 1
            lefts[size] = lefts[top] - (count if system.limited else 0)
            bound, _ = upper(
                system, ranges, options, work, k - 1, constants[size], lefts[size], price
            )
            bounds[size] = min(bounds[top], bound)
            if bounds[size] > best_leaf:
                n_heap = _push(heap, n_heap, bounds, size)
                size += 1
    return best_leaf, size


@inner
def _push(heap: IntArray, n_heap: int, keys: FloatArray, item: int) -> int:
    at = n_heap
    heap[at] = item
    while at > 0 and keys[heap[(at - 1) // 2]] < keys[heap[at]]:
        parent = (at - 1) // 2
        heap[at], heap[parent] = heap[parent], heap[at]
        at = parent
    return n_heap + 1


@inner
def _pop(heap: IntArray, n_heap: int, keys: FloatArray) -> int:
    n_heap -= 1
    heap[0] = heap[n_heap]
    at = 0
    while 2 * at + 1 < n_heap:
        child = 2 * at + 1
        if child + 1 < n_heap and keys[heap[child + 1]] > keys[heap[child]]:
            child += 1
        if keys[heap[child]] <= keys[heap[at]]:
            break
        heap[at], heap[child] = heap[child], heap[at]
        at = child
    return n_heap
