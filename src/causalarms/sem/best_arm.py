"""The best of 2^N interventions without enumerating them, with a certificate.

The expected reward is multilinear in the regimes. Branch and bound decides the nodes against the
topological order (arm_tree.py) with bounds from a linear relaxation (arm_bounds.py), ranges that
are tightened by small searches of their own (arm_ranges.py) and an incumbent from coordinate ascent
(arm_ascent.py). Constraints prune the same tree.

Values that differ by less than 1e-12 of the sum of their absolute terms are equal, and among equals
the lexicographically first intervention is returned, as by full enumeration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.sem.arm_ascent import TIE
from causalarms.sem.arm_constraints import Allowed, unconstrained
from causalarms.sem.arm_problem import FREE, Arm, FloatArray, IntArray, Problem, pose
from causalarms.sem.arm_solve import reaches, solve

BUDGET = 5_000_000  # tree nodes: some seconds


class BestArm(NamedTuple):
    """An intervention and what is proven about it."""

    intervention: Arm  # (N,)
    value: float  # expected reward minus costs
    gap: float  # no other intervention is better by more than this
    nodes: int  # tree nodes looked at
    exact: bool  # the gap is zero: it is the best


class Question(NamedTuple):
    """Whose best intervention is asked for."""

    weights: FloatArray  # (2, N, N)
    noise_mean: FloatArray  # (2, N)
    order: IntArray
    reward: int

    def problem(self, allowed: Allowed, keep_all: bool) -> Problem:
        cost, forced, limit, clauses, _ = allowed
        return pose(*self, cost, forced, limit, clauses, keep_all)


def best_arm(
    weights: npt.ArrayLike,  # (2, N, N)
    noise_mean: npt.ArrayLike,  # (N,) or (2, N)
    order: npt.ArrayLike,  # common to both regimes
    reward: int,
    *,
    allowed: Allowed | None = None,
    budget: int = BUDGET,
) -> BestArm:
    """The best intervention, or after `budget` tree nodes the best found and the proven gap."""
    question = _question(weights, noise_mean, order, reward)
    return _best(question, allowed or unconstrained(len(question.order)), budget)


def top_arms(
    weights: npt.ArrayLike,
    noise_mean: npt.ArrayLike,
    order: npt.ArrayLike,
    reward: int,
    m: int,
    *,
    allowed: Allowed | None = None,
    distinct: bool = False,
    budget: int = BUDGET,
) -> list[BestArm]:
    """The m best interventions, best first; fewer where fewer are allowed.

    The gap of the j-th is what the j-th best of all may be better by. With `distinct`, those that
    intervene where it has no effect on the reward are left out.
    """
    if m < 1:
        raise ModelError(f"m must be at least 1, not {m}")
    question = _question(weights, noise_mean, order, reward)
    allowed = allowed or unconstrained(len(question.order))
    problem = question.problem(allowed, keep_all=not distinct)
    solved = solve(problem, allowed.start[problem.nodes], m, distinct, budget)
    if solved.tied and not distinct:
        return _one_after_another(question, allowed, m, budget)
    return [
        _record(problem, arm, float(value), solved.bound, solved.nodes, len(question.order))
        for arm, value in zip(solved.pool.arms, solved.pool.values, strict=True)
        if value > -np.inf
    ]


def _question(
    weights: npt.ArrayLike, noise_mean: npt.ArrayLike, order: npt.ArrayLike, reward: int
) -> Question:
    """Fresh arrays of one type each, so that the kernels are compiled once."""
    w = np.array(weights, dtype=np.float64, order="C")
    mean = np.empty(w.shape[:2])
    mean[:] = noise_mean
    if not (np.isfinite(w).all() and np.isfinite(mean).all()):
        raise ModelError("weights and noise means must be finite")
    return Question(w, mean, np.array(order, dtype=np.int64), int(reward))


def _best(question: Question, allowed: Allowed, budget: int) -> BestArm:
    problem = question.problem(allowed, keep_all=False)
    solved = solve(problem, allowed.start[problem.nodes], 1, True, budget)
    arm, value, nodes = solved.pool.arms[0], float(solved.pool.values[0]), solved.nodes
    found = _record(problem, arm, value, solved.bound, nodes, len(question.order))
    return _first_of_equals(question, allowed, found, solved.tie, budget) if solved.tied else found


def _record(
    problem: Problem, arm: Arm, value: float, bound: float, nodes: int, n_nodes: int
) -> BestArm:
    intervention = np.zeros(n_nodes, dtype=np.uint8)
    intervention[problem.nodes] = arm
    gap = max(0.0, bound - value)
    return BestArm(intervention, value, gap, nodes, gap == 0.0)


def _first_of_equals(
    question: Question, allowed: Allowed, found: BestArm, tie: float, budget: int
) -> BestArm:
    """Node by node: can it be natural, given the earlier ones, without losing value?"""
    a, nodes = found.intervention, found.nodes
    target = found.value - tie
    for node in range(len(a)):
        before = {i: int(a[i]) for i in range(node)}
        narrowed = allowed.narrowed(before | {node: 0}) if a[node] == 1 else None
        if narrowed is None or nodes >= budget:
            continue
        problem = question.problem(narrowed, keep_all=False)
        arm, used = reaches(problem, target, tie, budget - nodes)
        nodes += used
        if arm is not None:
            a = np.zeros(len(a), dtype=np.uint8)
            a[problem.nodes] = arm
    return found._replace(intervention=a, nodes=nodes)


def _one_after_another(question: Question, allowed: Allowed, m: int, budget: int) -> list[BestArm]:
    """Without its best, a set of interventions falls into parts by the first node that differs.

    (Murty 1968.) Each part's own best is found apart, so any number of ties does no harm.
    """
    found: list[BestArm] = []
    parts = [(_best(question, allowed, budget), allowed)]
    nodes = parts[0][0].nodes
    while parts and len(found) < m:
        most = max(best.value for best, _ in parts)
        equals = [part for part in parts if part[0].value >= most - TIE * abs(most)]
        chosen = min(equals, key=lambda part: part[0].intervention.tolist())
        highest = max(best.value + best.gap for best, _ in parts)
        best, part = chosen
        gap = max(0.0, highest - best.value) if any(not b.exact for b, _ in parts) else 0.0
        found.append(best._replace(gap=gap, exact=gap == 0.0))
        parts = [other for other in parts if other is not chosen]
        a = best.intervention
        for node in np.flatnonzero(part.forced == FREE):
            same = {i: int(a[i]) for i in range(node)}
            rest = part.narrowed(same | {int(node): int(1 - a[node])})
            if rest is not None:
                parts.append((_best(question, rest, max(budget - nodes, 1)), rest))
                nodes += parts[-1][0].nodes
    return [best._replace(nodes=nodes) for best in found]
