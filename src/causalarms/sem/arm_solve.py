"""The stages of the search: cheap ranges first, tighter ones only where the tree grows large.

Small systems are done after one small tree. Otherwise the ranges are tightened with ten times the
effort of the stage before, which usually shrinks the tree by more than that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causalarms.kernels import kernel
from causalarms.sem.arm_ascent import kicked_climb, tie_width
from causalarms.sem.arm_bounds import Ranges
from causalarms.sem.arm_problem import Arm, Problem
from causalarms.sem.arm_ranges import find_ranges, highest
from causalarms.sem.arm_tree import Grown, Pool, grow, offer

FIRST_NODES = 300
# effort per range and nodes of the tree, stage by stage; the last tree takes what is left
STAGES = ((100, 20_000), (1000, 500_000), (10_000, 2**62))
LAST_NODES = 5_000  # kept for a best-first tree, whose bound is better than a depth-first one's
FEW = 30  # effort per range in a search that stops at the first good intervention


class Solved(NamedTuple):
    """The pool, and a bound on every intervention outside it (-inf: proven)."""

    pool: Pool
    bound: float
    nodes: int
    tie: float
    tied: bool


def solve(problem: Problem, start: Arm, m: int, distinct: bool, budget: int) -> Solved:
    """The m best interventions; `start` is one that is allowed."""
    n = len(problem.nodes)
    reserve = min(budget // 5, LAST_NODES)
    pool, ranges, tie, grown = first_stage(
        problem, start, m, distinct, min(FIRST_NODES, budget - reserve)
    )
    nodes, bound = grown.nodes, grown.open
    for stage, (effort, tree_nodes) in enumerate(STAGES):
        if bound == -np.inf or nodes >= budget - reserve:
            break
        if stage == 0 and m == 1:
            arm, value = kicked_climb(problem, pool.arms[0], 4 * n)
            offer(problem, pool, arm, value, tie)
        if 2 * effort * ranges.low.size < budget - reserve - nodes:
            nodes += find_ranges(problem, ranges, effort)
        allowed = min(tree_nodes, budget - reserve - nodes)
        grown = grow(problem, ranges, pool, distinct, tie, -np.inf, allowed)
        nodes += grown.nodes
        bound = min(bound, grown.open)
    if bound > -np.inf:
        room = np.empty((max(reserve, 2), n))
        top, used = highest(problem, ranges, problem.root, n - 1, 0.0, problem.limit, room)
        bound, nodes = min(bound, top), nodes + used
    return Solved(pool, bound, nodes, tie, grown.tied)


@kernel
def first_stage(
    problem: Problem, start: Arm, m: int, distinct: bool, tree_nodes: int
) -> tuple[Pool, Ranges, float, Grown]:
    """All that small systems need in one call: climb, ranges without effort, a small tree."""
    n = len(problem.nodes)
    arm, value = kicked_climb(problem, start, 2 * n)
    tie = tie_width(problem, arm)
    pool = Pool(np.zeros((m, n), np.uint8), np.full(m, -np.inf))
    if m == 1 or not distinct:  # the climb may intervene where it has no effect
        offer(problem, pool, arm, value, tie)
    rows = problem.limit + 1 if problem.limited else 1
    ranges = Ranges(np.full((rows, n), -np.inf), np.full((rows, n), np.inf))
    find_ranges(problem, ranges, 0)
    grown = grow(problem, ranges, pool, distinct, tie, -np.inf, tree_nodes)
    return pool, ranges, tie, grown


def reaches(problem: Problem, target: float, tie: float, budget: int) -> tuple[Arm | None, int]:
    """An intervention of at least `target`, None where there is none; the number of tree nodes."""
    n = len(problem.nodes)
    rows = problem.limit + 1 if problem.limited else 1
    ranges = Ranges(np.full((rows, n), -np.inf), np.full((rows, n), np.inf))
    nodes = find_ranges(problem, ranges, FEW)
    pool = Pool(np.zeros((1, n), dtype=np.uint8), np.full(1, -np.inf))
    nodes += grow(problem, ranges, pool, True, tie, target, budget).nodes
    return (pool.arms[0] if pool.values[0] >= target else None), nodes
