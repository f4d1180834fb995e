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
from causalarms.sem.arm_tree import Pool, grow, offer

# effort per range and nodes of the tree, stage by stage; the last tree takes what is left
RANGE_EFFORT = (0, 100, 1000, 10_000)
TREE_NODES = (300, 20_000, 500_000, 2**62)
LAST_NODES = 5_000  # kept for a best-first tree, whose bound is better than a depth-first one's


class Solved(NamedTuple):
    """The pool, a bound on every intervention outside it (-inf: proven), and how it was found."""

    pool: Pool
    bound: float
    nodes: int
    tie: float
    tied: bool


@kernel
def solve(problem: Problem, start: Arm, m: int, distinct: bool, budget: int) -> Solved:
    """The m best interventions; `start` is one that is allowed."""
    n = len(problem.nodes)
    arm, value = kicked_climb(problem, start, 2 * n)
    tie = tie_width(problem, arm)
    pool = Pool(np.zeros((m, n), np.uint8), np.full(m, -np.inf))
    if m == 1 or not distinct:
        offer(problem, pool, arm, value, tie)
    rows = problem.limit + 1 if problem.limited else 1
    ranges = Ranges(np.full((rows, n), -np.inf), np.full((rows, n), np.inf))
    nodes, bound, tied = 0, np.inf, False
    reserve = min(budget // 5, LAST_NODES)
    for stage in range(len(RANGE_EFFORT)):
        if stage == 1 and m == 1:
            better, value = kicked_climb(problem, pool.arms[0], 4 * n)
            offer(problem, pool, better, value, tie)
        effort = RANGE_EFFORT[stage]
        if 2 * n * rows * effort < budget - reserve - nodes:
            nodes += find_ranges(problem, ranges, effort)
        allowed = min(TREE_NODES[stage], budget - reserve - nodes)
        grown = grow(problem, ranges, pool, distinct, tie, -np.inf, allowed)
        nodes += grown.nodes
        tied = grown.tied
        bound = min(bound, grown.open)
        if bound == -np.inf or nodes >= budget - reserve:
            break
    if bound > -np.inf:
        room = np.empty((reserve + 2, n))
        least, used = highest(problem, ranges, problem.root, n - 1, 0.0, problem.limit, room)
        bound, nodes = min(bound, least), nodes + used
    return Solved(pool, bound, nodes, tie, tied)


@kernel
def reaches(problem: Problem, target: float, tie: float, budget: int) -> tuple[Arm, bool, int]:
    """An intervention of at least `target`, whether there is one, and the number of tree nodes."""
    n = len(problem.nodes)
    rows = problem.limit + 1 if problem.limited else 1
    ranges = Ranges(np.full((rows, n), -np.inf), np.full((rows, n), np.inf))
    nodes = find_ranges(problem, ranges, 30)
    pool = Pool(np.zeros((1, n), np.uint8), np.full(1, -np.inf))
    grown = grow(problem, ranges, pool, True, tie, target, budget)
    return pool.arms[0], pool.values[0] >= target, nodes + grown.nodes
