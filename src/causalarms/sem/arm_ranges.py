"""How far an intervention on a node can move its mean: the ranges that the bounds rest on.

The range of a position needs only those of earlier ones, so they are found from the first to the
last. Each end is itself a best-intervention problem over the earlier nodes. Solving it a little, by
best-first search with a small budget, tightens every later range (Russian doll search, Verfaillie
et al. 1996): looseness that is removed early is not compounded through the order.
"""

from __future__ import annotations

import numpy as np

from causalarms.kernels import kernel
from causalarms.sem.arm_bounds import Ranges, best_price, upper
from causalarms.sem.arm_problem import FREE, FloatArray, IntArray, Problem


@kernel
def find_ranges(problem: Problem, known: Ranges, budget: int) -> int:
    """Tighten `known` in place; returns the number of tree nodes."""
    n = len(problem.nodes)
    free_of_cost = Problem(
        problem.nodes, problem.base, problem.diff, problem.base_mean, problem.diff_mean,
        np.zeros(n), problem.forced, problem.root, problem.limit, problem.limited,
        problem.clauses, problem.in_clause, problem.by_label,
    )  # fmt: skip
    open_c = np.empty((budget + 2, n))
    c, nodes = np.empty(n), 0
    for k in range(n):
        if problem.forced[k] != FREE:
            continue
        for row in range(len(known.low)):
            for j in range(k):
                c[j] = problem.diff[k, j]
            most, used = highest(free_of_cost, known, c, k - 1, problem.diff_mean[k], row, open_c)
            nodes += used
            for j in range(k):
                c[j] = -problem.diff[k, j]
            least, used = highest(free_of_cost, known, c, k - 1, -problem.diff_mean[k], row, open_c)
            nodes += used
            known.high[row, k] = min(known.high[row, k], most)
            known.low[row, k] = max(known.low[row, k], -least)
    return nodes


@kernel
def highest(
    problem: Problem,
    ranges: Ranges,
    c: FloatArray,
    last: int,
    constant: float,
    left: int,
    open_c: FloatArray,  # (budget + 2, n) room for the open nodes of the tree
) -> tuple[float, int]:
    """A bound on constant + c . means - costs from a best-first tree, and the tree's size."""
    if last < 0:
        return constant, 0
    room = len(open_c)
    constants, bounds = np.empty(room), np.empty(room)
    lasts, lefts = np.empty(room, np.int64), np.empty(room, np.int64)
    heap, n_heap = np.empty(room, np.int64), 1
    bounds[0], price = best_price(problem, ranges, c, last, constant, left)
    if room <= 2:
        return bounds[0], 0
    open_c[0, : last + 1] = c[: last + 1]
    constants[0], lasts[0], lefts[0], heap[0], size = constant, last, left, 0, 1
    best_leaf, work = -np.inf, np.empty(last + 1)
    while n_heap > 0:
        top = heap[0]
        if bounds[top] <= best_leaf or size + 2 > room:
            return max(bounds[top], best_leaf), size
        n_heap = _pop(heap, n_heap, bounds)
        k = lasts[top]
        ck = open_c[top, k]
        for a in range(2):
            if problem.forced[k] == 1 - a:
                continue
            spent = 1 if a == 1 and problem.forced[k] == FREE and problem.limited else 0
            useless = ck == 0.0 and problem.cost[k] >= 0.0
            if a == 1 and problem.forced[k] == FREE and (useless or lefts[top] < spent):
                continue
            constants[size] = (
                constants[top]
                + ck * (problem.base_mean[k] + a * problem.diff_mean[k])
                - a * problem.cost[k]
            )
            if k == 0:
                best_leaf = max(best_leaf, constants[size])
                continue
            for j in range(k):
                open_c[size, j] = open_c[top, j] + ck * (
                    problem.base[k, j] + a * problem.diff[k, j]
                )
                work[j] = open_c[size, j]
            lasts[size], lefts[size] = k - 1, lefts[top] - spent
            bound, _ = upper(problem, ranges, work, k - 1, constants[size], lefts[size], price)
            bounds[size] = min(bounds[top], bound)
            if bounds[size] > best_leaf:
                n_heap = _push(heap, n_heap, bounds, size)
                size += 1
    return best_leaf, size


@kernel
def _push(heap: IntArray, n_heap: int, keys: FloatArray, item: int) -> int:
    at = n_heap
    heap[at] = item
    while at > 0 and keys[heap[(at - 1) // 2]] < keys[heap[at]]:
        parent = (at - 1) // 2
        heap[at], heap[parent] = heap[parent], heap[at]
        at = parent
    return n_heap + 1


@kernel
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
