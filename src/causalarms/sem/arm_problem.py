"""The search for the best intervention as arrays over positions in the topological order.

mean of k = base_mean_k + base_k . means + a_k (diff_mean_k + diff_k . means), a_k in {0, 1},
where only earlier positions enter; the reward is root . means - sum of cost_k a_k. Nodes that
cannot matter are left out and stay natural.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Regimes = npt.NDArray[np.int8]
Arm = npt.NDArray[np.uint8]

FREE = -1  # in `forced`: the search decides


class Clauses(NamedTuple):
    """Combinations of regimes: literal l says that node[l] is in regime[l]."""

    required: npt.NDArray[np.bool_]  # per clause: all of its literals or none, else never all
    start: IntArray  # clause c has the literals start[c] .. start[c+1]-1
    node: IntArray
    regime: Regimes


class Problem(NamedTuple):
    """Everything the search needs, n positions of the N nodes."""

    nodes: IntArray  # the node at each position
    base: FloatArray  # (n, n) natural weights, [child, parent]
    diff: FloatArray  # (n, n) intervened minus natural
    base_mean: FloatArray
    diff_mean: FloatArray
    cost: FloatArray
    forced: Regimes  # FREE, 0 or 1
    root: FloatArray  # 1 at the reward
    limit: int  # how many free nodes may be intervened on
    limited: bool  # whether that excludes anything
    clauses: Clauses  # over positions
    in_clause: npt.NDArray[np.bool_]
    by_label: IntArray  # positions by node number, for lexicographic comparison


@kernel
def pose(
    weights: FloatArray,  # (2, N, N)
    noise_mean: FloatArray,  # (2, N)
    order: IntArray,
    reward: int,
    cost: FloatArray,  # (N,)
    forced: Regimes,  # (N,)
    limit: int,
    clauses: Clauses,  # over nodes
    keep_all: bool,
) -> Problem:
    """Keep the nodes that reach the reward in some regime, or that a constraint speaks of."""
    n_all = len(order)
    keep = np.full(n_all, keep_all)
    keep[reward] = True
    for at in range(n_all - 1, -1, -1):
        child = order[at]
        if keep[child]:
            for earlier in range(at):
                parent = order[earlier]
                if weights[0, parent, child] != 0.0 or weights[1, parent, child] != 0.0:
                    keep[parent] = True
    for node in range(n_all):
        keep[node] |= forced[node] == 1 or cost[node] < 0.0
    for node in clauses.node:
        keep[node] = True

    n = keep.sum()
    nodes, position = np.empty(n, np.int64), np.full(n_all, -1)
    at = 0
    for node in order:
        if keep[node]:
            nodes[at], position[node] = node, at
            at += 1
    base, diff, root = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    base_mean, diff_mean, cost_at = np.empty(n), np.empty(n), np.empty(n)
    forced_at, n_free = np.empty(n, np.int8), 0
    for k in range(n):
        child = nodes[k]
        base_mean[k] = noise_mean[0, child]
        diff_mean[k] = noise_mean[1, child] - noise_mean[0, child]
        for j in range(k):
            base[k, j] = weights[0, nodes[j], child]
            diff[k, j] = weights[1, nodes[j], child] - weights[0, nodes[j], child]
        cost_at[k], forced_at[k] = cost[child], forced[child]
        n_free += forced[child] == FREE
    root[position[reward]] = 1.0
    by_label, at = np.empty(n, np.int64), 0
    for node in range(n_all):
        if keep[node]:
            by_label[at] = position[node]
            at += 1
    literals, in_clause = np.empty(len(clauses.node), np.int64), np.zeros(n, np.bool_)
    for literal in range(len(literals)):
        literals[literal] = position[clauses.node[literal]]
        in_clause[literals[literal]] = True
    return Problem(
        nodes, base, diff, base_mean, diff_mean, cost_at, forced_at, root,
        min(limit, n_free), limit < n_free,
        Clauses(clauses.required, clauses.start, literals, clauses.regime), in_clause, by_label,
    )  # fmt: skip


@kernel
def permitted(clauses: Clauses, arm: Arm, decided: int) -> bool:
    """No clause is broken by the positions from `decided` on."""
    for c in range(len(clauses.required)):
        first, end = clauses.start[c], clauses.start[c + 1]
        hits = misses = 0
        for literal in range(first, end):
            at = clauses.node[literal]
            if at >= decided:
                if arm[at] == clauses.regime[literal]:
                    hits += 1
                else:
                    misses += 1
        if clauses.required[c]:
            if hits > 0 and misses > 0:
                return False
        elif hits == end - first:
            return False
    return True


@kernel
def comes_first(problem: Problem, arm: Arm, other: Arm) -> int:
    """1 if lexicographically before the other, -1 if after, 0 if equal."""
    for at in problem.by_label:
        if arm[at] != other[at]:
            return 1 if arm[at] < other[at] else -1
    return 0
