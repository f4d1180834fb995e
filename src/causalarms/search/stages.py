"""The stages of the search: cheap ranges first, tighter ones only where the tree grows large.

Small systems are done after one small tree. Otherwise the ranges are tightened with ten times the
effort of the stage before, which usually shrinks the tree by more than that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causalarms.kernels import kernel
from causalarms.search.ascent import kicked_climb, tidy, tie_width
from causalarms.search.bounds import options_at_root
from causalarms.search.factors import Levels
from causalarms.search.problem import Problem, pose
from causalarms.search.ranges import find_ranges, highest, unknown_ranges
from causalarms.search.rules import FloatArray, IntArray, Rules
from causalarms.search.tree import Pool, grow, offer, offer_neighbours

# stage by stage: effort per range, nodes of the tree (the last takes what is left), climbs from
# random starts, and per factor climbs from a kick of the best
STAGES = (
    (0, 300, 0, 1),
    (100, 20_000, 20, 3),
    (1000, 500_000, 100, 4),
    (10_000, 2**62, 2000, 80),
)
LAST_NODES = 5_000  # kept for a best-first tree, whose bound is better than a depth-first one's
FEW = 30  # effort per range in a search that stops at the first good intervention
SEED = 1  # of the starts and kicks


class Posed(NamedTuple):
    """What `pose` takes."""

    weights: FloatArray  # (R, N, N)
    mean: FloatArray  # (R, N)
    order: IntArray
    reward: int
    rules: Rules
    keep_all: bool


class Solved(NamedTuple):
    """The m best settings, best first, and a bound on all others (-inf: proven)."""

    levels: Levels  # (m, F)
    values: FloatArray  # (m,), -inf where there are fewer
    bound: float
    nodes: int
    tie: float
    tied: bool


def solve(posed: Posed, start: Levels, m: int, distinct: bool, budget: int) -> Solved:
    """The m best settings; `start` (F,) is one that is allowed."""
    return Solved(*_solve(posed, start, m, distinct, budget))


@kernel
def _solve(
    posed: Posed, start: Levels, m: int, distinct: bool, budget: int
) -> tuple[Levels, FloatArray, float, int, float, bool]:
    """One call for everything: the problem never becomes Python objects."""
    problem = pose(
        posed.weights, posed.mean, posed.order, posed.reward, posed.rules, posed.keep_all
    )
    n, n_depths = len(problem.root), len(problem.factor)
    reserve = min(budget // 5, LAST_NODES)
    random = np.array([SEED])
    pool = Pool(np.zeros((m, n_depths), np.uint8), np.full(m, -np.inf))
    ranges = unknown_ranges(problem)
    best, tie, nodes, bound, tied = start[problem.factor], -1.0, 0, np.inf, False
    for effort, tree_nodes, restarts, kicks in STAGES:
        if bound == -np.inf or (effort > 0 and nodes >= budget - reserve):
            break
        best, value = kicked_climb(problem, best, restarts, kicks * n_depths, random)
        if tie < 0.0:
            tie = tie_width(problem, best)
        if m > 1 and distinct:
            value = tidy(problem, best)
        offer(problem, pool, best, value, tie)
        if m > 1 and effort > 0:
            offer_neighbours(problem, pool, distinct, tie)
        if effort == 0 or 2 * effort * ranges.low.size < budget - reserve - nodes:
            nodes += find_ranges(problem, ranges, effort)
        allowed = min(tree_nodes, budget - reserve - nodes)
        more, unseen, tied = grow(problem, ranges, pool, distinct, tie, -np.inf, allowed)
        nodes += more
        bound = min(bound, unseen)
        best = pool.levels[0].copy()
    if bound > -np.inf:
        options, room = options_at_root(problem, True), np.empty((max(reserve, 2), n))
        top, more = highest(
            problem.system, ranges, options, problem.root, n - 1, -problem.rest_cost,
            problem.limit, room,
        )  # fmt: skip
        bound, nodes = min(bound, top), nodes + more
    return all_levels(problem, pool.levels), pool.values, bound, nodes, tie, tied


@kernel
def all_levels(problem: Problem, levels: Levels) -> Levels:
    """Of all factors, (m, F), from those by depth (m, D)."""
    every = np.empty((len(levels), len(problem.rest)), np.uint8)
    for row in range(len(levels)):
        every[row] = problem.rest
        for d in range(len(problem.factor)):
            every[row, problem.factor[d]] = levels[row, d]
    return every


def reaches(posed: Posed, target: float, tie: float, budget: int) -> tuple[Levels | None, int]:
    """Levels (F,) worth at least `target`, None where there are none; the number of tree nodes."""
    problem = pose(*posed)
    ranges = unknown_ranges(problem)
    nodes = find_ranges(problem, ranges, FEW)
    pool = Pool(np.zeros((1, len(problem.factor)), dtype=np.uint8), np.full(1, -np.inf))
    nodes += grow(problem, ranges, pool, True, tie, target, budget).nodes
    return (all_levels(problem, pool.levels)[0] if pool.values[0] >= target else None), nodes
