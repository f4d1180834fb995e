"""How far an option can move the mean of its node: the ranges that the bounds rest on.

The ranges of a position need only those of earlier ones, so they are found from the first to the
last. Each end is itself a best-intervention problem over the earlier nodes. Solving it a little, by
best-first search with a small budget, tightens every later range (Russian doll search, Verfaillie
et al. 1996): looseness that is removed early is not compounded through the order.
"""

from __future__ import annotations

import numpy as np

from causalarms.kernels import inner, kernel
from causalarms.search.bounds import Options, Ranges, best_price, options_at_root, upper
from causalarms.search.problem import Problem, System
from causalarms.search.rules import FloatArray, IntArray


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
