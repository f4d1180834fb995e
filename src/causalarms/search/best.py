"""The best of all interventions without enumerating them, with a certificate.

The expected reward is multilinear in the regimes of the nodes. Branch and bound decides the factors
against the topological order (tree.py). Its bounds come from a linear relaxation, whose ranges are
tightened by small searches of their own (bounds.py), and its incumbent from coordinate ascent
(ascent.py). Constraints prune the same tree.

Values that differ by less than 1e-12 of the sum of their absolute terms are equal, and among equals
the lexicographically first levels are returned, as by full enumeration.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.checks import integer
from causalarms.errors import ModelError
from causalarms.kernels import kernel
from causalarms.limits import MAX_FEW
from causalarms.search.ascent import TIE, kicked_climb, tidy, tie_width
from causalarms.search.bounds import find_ranges, highest, options_at_root, unknown_ranges
from causalarms.search.constraints import Constraints, unconstrained
from causalarms.search.factors import Levels, regimes_given
from causalarms.search.feasible import keeps
from causalarms.search.problem import Posed, Problem, pose
from causalarms.search.tree import Pool, grow, offer, offer_neighbours

BUDGET = 5_000_000  # tree nodes: some seconds


class Best(NamedTuple):
    """An intervention and what is proven about it."""

    intervention: Levels  # (N,) regimes of the nodes
    levels: Levels  # (F,) of the factors
    value: float  # expected reward minus costs
    gap: float  # no other intervention is better by more than this
    nodes: int  # of the tree that were looked at; if few are allowed, all of them
    exact: bool  # the gap is zero: it is the best


def best_intervention(
    weights: npt.ArrayLike,  # (R, N, N)
    noise_mean: npt.ArrayLike,  # (N,) or (R, N)
    order: npt.ArrayLike,  # common to all regimes
    reward: int,
    *,
    constraints: Constraints | None = None,  # by default R regimes of every node, all allowed
    budget: int = BUDGET,
) -> Best:
    """The best intervention, or after `budget` tree nodes the best found and the proven gap."""
    posed, allowed = _posed(weights, noise_mean, order, reward, constraints)
    found = _best(posed, allowed, allowed.start, budget)
    return _answer(found, allowed, found.nodes)


def best_interventions(
    weights: npt.ArrayLike,
    noise_mean: npt.ArrayLike,
    order: npt.ArrayLike,
    reward: int,
    m: int,
    *,
    constraints: Constraints | None = None,
    distinct: bool = False,
    budget: int = BUDGET,
) -> list[Best]:
    """The m best interventions, best first; fewer if fewer are allowed.

    The gap of the j-th is what the j-th best of all may be better by. With `distinct`, those that
    change a factor that has no effect on the reward are left out.
    """
    integer("m", m, minimum=1)
    posed, allowed = _posed(weights, noise_mean, order, reward, constraints)
    solved = solve(posed._replace(keep_all=not distinct), allowed.start, m, distinct, budget)
    if solved.tied and not distinct:
        return _one_after_another(posed, allowed, m, budget)
    return [
        _answer(_found(levels, float(value), solved), allowed, solved.nodes)
        for levels, value in zip(solved.levels, solved.values, strict=True)
        if value > -np.inf
    ]


class Found(NamedTuple):
    """As `Best`, before the levels become regimes."""

    levels: Levels  # (F,)
    value: float
    gap: float
    nodes: int


def _answer(found: Found, allowed: Constraints, nodes: int) -> Best:
    regimes = allowed.factors.interventions(found.levels[None])[0]
    return Best(regimes, found.levels, found.value, found.gap, nodes, found.gap == 0.0)


def _posed(
    weights: npt.ArrayLike,
    noise_mean: npt.ArrayLike,
    order: npt.ArrayLike,
    reward: int,
    constraints: Constraints | None,
) -> tuple[Posed, Constraints]:
    """Fresh arrays of one type each, so that the kernels are compiled once."""
    w = np.array(weights, dtype=np.float64, order="C")
    if w.ndim != 3 or w.shape[1] != w.shape[2] or not w.size:
        raise ModelError(f"weights must have shape (regimes, N, N), not {w.shape}")
    n_regimes, n_nodes = w.shape[:2]
    mean = np.empty((n_regimes, n_nodes))
    mean[:] = noise_mean
    if not (np.isfinite(w).all() and np.isfinite(mean).all()):
        raise ModelError("weights and noise means must be finite")
    # kernels index without checks: shapes that do not fit must not reach them
    allowed = unconstrained((n_regimes,) * n_nodes) if constraints is None else constraints
    if allowed.n_nodes != n_nodes:
        raise ModelError(f"constraints on {allowed.n_nodes} nodes, but there are {n_nodes}")
    if max(allowed.factors.regimes) > n_regimes:
        raise ModelError(
            f"constraints are for {max(allowed.factors.regimes)} regimes, "
            f"but there are weights of {n_regimes}"
        )
    if not -n_nodes <= reward < n_nodes:
        raise ModelError(f"there is no node {reward} to be the reward of {n_nodes} nodes")
    order, reward = np.array(order, dtype=np.int64), int(reward) % n_nodes
    return Posed(w, mean, order, reward, allowed.rules, False), allowed


def _best(posed: Posed, allowed: Constraints, start: Levels, budget: int) -> Found:
    few = best_of_few(posed)
    if few is not None:
        levels, value, compared = few
        return Found(levels, value, 0.0, compared)
    solved = solve(posed, start, 1, True, budget)
    found = _found(solved.levels[0], float(solved.values[0]), solved)
    return _first_of_equals(posed, allowed, found, solved.tie, budget) if solved.tied else found


def _found(levels: Levels, value: float, solved: Solved) -> Found:
    return Found(levels, value, max(0.0, solved.bound - value), solved.nodes)


def _first_of_equals(
    posed: Posed, allowed: Constraints, found: Found, tie: float, budget: int
) -> Found:
    """Factor by factor: can its level be lower, given the earlier ones, without losing value?"""
    levels, nodes = found.levels, found.nodes
    target = found.value - tie
    for factor in range(len(levels)):
        while levels[factor] > 0 and nodes < budget:
            domain = _as_before(posed.rules.domain, levels, factor)
            domain[factor, levels[factor] :] = False
            narrowed = allowed.narrowed(domain)
            if narrowed is None:
                break
            lower, used = reaches(posed._replace(rules=narrowed[0]), target, tie, budget - nodes)
            nodes += used
            if lower is None:
                break
            levels = lower
    return found._replace(levels=levels, nodes=nodes)


def _as_before(domain: BoolArray, levels: Levels, factor: int) -> BoolArray:
    """The factors before this one keep their levels."""
    narrowed = domain.copy()
    narrowed[:factor] = False
    narrowed[np.arange(factor), levels[:factor]] = True
    return narrowed


def _one_after_another(posed: Posed, allowed: Constraints, m: int, budget: int) -> list[Best]:
    """Without its best, a set of settings falls into parts by the first factor that differs.

    (Murty 1968.) Each part's own best is found apart, so any number of ties does no harm.
    """
    found: list[Found] = []
    parts = [(_best(posed, allowed, allowed.start, budget), allowed.rules)]
    nodes = parts[0][0].nodes
    while parts and len(found) < m:
        most = max(best.value for best, _ in parts)
        equals = [part for part in parts if part[0].value >= most - TIE * abs(most)]
        chosen = min(equals, key=lambda part: part[0].levels.tolist())
        # an earlier part that was not searched to its end may hold something better than this best
        highest = max(best.value + best.gap for best, _ in parts)
        best, rules = chosen
        gap = max(0.0, highest - best.value) if any(other.gap > 0.0 for other, _ in parts) else 0.0
        found.append(best._replace(gap=gap))
        parts = [other for other in parts if other is not chosen]
        for factor in np.flatnonzero(rules.domain.sum(axis=1) > 1):
            domain = _as_before(rules.domain, best.levels, int(factor))
            domain[factor, best.levels[factor]] = False
            rest = allowed.narrowed(domain)
            if rest is not None:
                part = posed._replace(rules=rest[0])
                parts.append((_best(part, allowed, rest[1], max(budget - nodes, 1)), rest[0]))
                nodes += parts[-1][0].nodes
    return [_answer(one, allowed, nodes) for one in found]


# -- the stages of a search ------------------------------------------------------------------------
#
# Cheap ranges first, tighter ones only if the tree grows large. Small systems are done after one
# small tree. Otherwise the ranges are tightened with ten times the effort of the stage before,
# which usually shrinks the tree by more than that.

# stage by stage: effort per range, nodes of the tree (the last takes what is left), climbs from
# random starts, and per factor climbs from a kick of the best
STAGES = (
    (0, 300, 0, 1),
    (100, 20_000, 20, 3),
    (1000, 500_000, 100, 4),
    (10_000, 2**62, 2000, 80),
)
LAST_NODES = 5_000  # kept for a best-first tree, whose bound is better than a depth-first one's
REACH_EFFORT = 30  # per range in a search that stops at the first good intervention
SEED = 1  # of the starts and kicks


class Solved(NamedTuple):
    """The m best settings, best first, and a bound on all others (-inf: proven)."""

    levels: Levels  # (m, F)
    values: FloatArray  # (m,), -inf if there are fewer
    bound: float
    nodes: int
    tie: float
    tied: bool


@kernel
def solve(posed: Posed, start: Levels, m: int, distinct: bool, budget: int) -> Solved:
    """The m best settings; `start` (F,) is one that is allowed."""
    # one call for everything: the problem never becomes Python objects
    problem = pose(posed)
    n, n_depths = len(problem.root), len(problem.factor)
    # what the last best-first tree needs is set aside before the depth-first ones spend it
    reserve = min(budget // 5, LAST_NODES)
    random = np.array([SEED])
    pool = Pool(np.zeros((m, n_depths), np.uint8), np.full(m, -np.inf))
    ranges = unknown_ranges(problem)
    best, tie, nodes, bound, tied = start[problem.factor], -1.0, 0, np.inf, False
    for effort, tree_nodes, restarts, kicks in STAGES:
        if bound == -np.inf or (effort > 0 and nodes >= budget - reserve):
            break
        best, value = kicked_climb(problem, best, restarts, kicks * n_depths, random)
        # once, from the first climb: all stages must agree on what is equal
        if tie < 0.0:
            tie = tie_width(problem, best)
        if m > 1 and distinct:
            value = tidy(problem, best)
        offer(problem, pool, best, value, tie)
        if m > 1 and effort > 0:
            offer_neighbours(problem, pool, distinct, tie)
        # ranges that would use up the budget are not begun: the tree still needs some of it
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
    return Solved(all_levels(problem, pool.levels), pool.values, bound, nodes, tie, tied)


@kernel
def all_levels(problem: Problem, levels: Levels) -> Levels:
    """The levels of all factors, (m, F), from those by depth (m, D)."""
    every = np.empty((len(levels), len(problem.rest)), np.uint8)
    for row in range(len(levels)):
        every[row] = problem.rest
        for d in range(len(problem.factor)):
            every[row, problem.factor[d]] = levels[row, d]
    return every


def reaches(posed: Posed, target: float, tie: float, budget: int) -> tuple[Levels | None, int]:
    """Levels (F,) worth at least `target`, None if there are none; the number of tree nodes."""
    problem = pose(posed)
    ranges = unknown_ranges(problem)
    nodes = find_ranges(problem, ranges, REACH_EFFORT)
    pool = Pool(np.zeros((1, len(problem.factor)), dtype=np.uint8), np.full(1, -np.inf))
    nodes += grow(problem, ranges, pool, True, tie, target, budget).nodes
    return (all_levels(problem, pool.levels)[0] if pool.values[0] >= target else None), nodes


# -- few interventions -----------------------------------------------------------------------------
#
# Compared one by one in plain NumPy: nothing has to be compiled, so the first answer about a small
# system takes no time. Terms are added in the order of `ascent.value_of`. So values are the same
# to the last bit, unless a tree finds what the ascent missed and adds in another order.


def best_of_few(posed: Posed) -> tuple[Levels, float, int] | None:
    """The first of the best levels (F,), their value, and how many were compared.

    None if there are many, or if they cost something. What does not reach the reward rests.
    """
    weights, mean, order, reward, rules, _ = posed
    edges = np.logical_or.reduce(weights.astype(bool), axis=0)
    reaching = _reaching(edges, order, reward)
    sizes = rules.domain.sum(axis=1)
    # with boxes a factor without effect may still have to move for one that has an effect
    if rules.n_boxes == 0 and not all(reaching):
        rests = np.ones(len(sizes), dtype=bool)
        rests[rules.act_factor[np.repeat(reaching, np.diff(rules.act_start))]] = False
        sizes[rests] = 1
    if math.prod(sizes.tolist()) > MAX_FEW or rules.cost.any():
        return None
    lowest = rules.domain.argmax(axis=1)
    domain = rules.domain & (sizes[:, None] > 1)
    domain[np.arange(len(sizes)), lowest] = True
    rows = _products(domain)
    levels = rows[keeps(rules, rows)]
    acting = (rules.act_start, rules.act_factor, rules.act_stride)
    regimes, (reference,) = regimes_given(levels, *acting), regimes_given(lowest[None], *acting)

    nodes = np.arange(len(order))
    natural = mean[reference, nodes]  # (N,)
    base = weights[reference, :, nodes].T  # (N, N)
    weights = base + (weights - base)  # as the search rounds them
    means = np.zeros((len(order), len(levels)))  # (N, n)
    for at, node in enumerate(order):
        if reaching[node]:
            of_node = regimes[:, node]
            total = natural[node] + (mean[:, node] - natural[node])[of_node]
            for parent in order[:at]:
                if edges[parent, node]:
                    total += weights[of_node, parent, node] * means[parent]
            means[node] = total
    values = means[reward]
    top = int(values.argmax())
    chosen = regimes[top]
    shift = np.abs(natural) + np.abs(mean[chosen, nodes] - natural)
    tie = TIE * _scale(weights[chosen, :, nodes], shift, means[:, top], order, reward)
    first = int((values >= values[top] - tie).argmax())
    return levels[first].astype(np.uint8), float(values[first]), len(levels)


def _reaching(edges: BoolArray, order: IntArray, reward: int) -> list[bool]:
    """Which nodes have a path to the reward; sets of nodes are the bits of a number."""
    n_nodes, width = len(edges), (len(edges) + 7) // 8
    parents = np.packbits(edges, axis=0, bitorder="little").T.tobytes()
    reaching, everybody = 1 << reward, (1 << n_nodes) - 1
    for node in order[::-1].tolist():
        if reaching == everybody:
            break
        if reaching >> node & 1:
            reaching |= int.from_bytes(parents[node * width : (node + 1) * width], "little")
    return [bool(reaching >> node & 1) for node in range(n_nodes)]


def _products(domain: BoolArray) -> IntArray:
    """All combinations of levels, (n, F), in lexicographic order."""
    sizes = domain.sum(axis=1)
    number, repeats = np.arange(sizes.prod()), int(sizes.prod())
    rows = np.empty((repeats, len(domain)), dtype=np.int64)
    for factor, size in enumerate(sizes):
        repeats //= size
        rows[:, factor] = np.flatnonzero(domain[factor])[number // repeats % size]
    return rows


def _scale(
    weights: FloatArray,  # (N, N) as [child, parent]
    shift: FloatArray,  # (N,) absolute terms without a parent
    means: FloatArray,  # (N,)
    order: IntArray,
    reward: int,
) -> float:
    """The sum of the absolute terms of one reward."""
    terms = shift + np.abs(weights * means).sum(axis=1)
    flow = np.zeros(len(order))
    flow[reward] = 1.0
    for node in order[::-1]:
        if flow[node] != 0.0:
            flow += weights[node] * flow[node]
    return float(np.abs(flow) @ terms)
