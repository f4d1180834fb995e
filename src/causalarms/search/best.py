"""The best of all interventions without enumerating them, with a certificate.

The expected reward is multilinear in the regimes of the nodes. Branch and bound decides the factors
against the topological order (tree.py) with bounds from a linear relaxation (bounds.py), ranges
that are tightened by small searches of their own (ranges.py) and an incumbent from coordinate
ascent (ascent.py). Constraints prune the same tree.

Values that differ by less than 1e-12 of the sum of their absolute terms are equal, and among equals
the lexicographically first levels are returned, as by full enumeration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.search.ascent import TIE
from causalarms.search.constraints import Constraints, unconstrained
from causalarms.search.factors import Levels
from causalarms.search.few import best_of_few
from causalarms.search.rules import BoolArray, FloatArray, IntArray, Rules
from causalarms.search.stages import Posed, Solved, reaches, solve

BUDGET = 5_000_000  # tree nodes: some seconds


class Best(NamedTuple):
    """An intervention and what is proven about it."""

    intervention: Levels  # (N,) regimes of the nodes
    levels: Levels  # (F,) of the factors
    value: float  # expected reward minus costs
    gap: float  # no other intervention is better by more than this
    nodes: int  # of the tree that were looked at; where few are allowed, all of them
    exact: bool  # the gap is zero: it is the best


class Found(NamedTuple):
    """As `Best`, before the levels become regimes."""

    levels: Levels  # (F,)
    value: float
    gap: float
    nodes: int


class Question(NamedTuple):
    """Whose best intervention is asked for, and under which constraints."""

    weights: FloatArray  # (R, N, N)
    mean: FloatArray  # (R, N)
    order: IntArray
    reward: int
    constraints: Constraints

    def under(self, rules: Rules, keep_all: bool) -> Posed:
        return Posed(self.weights, self.mean, self.order, self.reward, rules, keep_all)

    def answer(self, found: Found, nodes: int) -> Best:
        regimes = self.constraints.factors.interventions(found.levels[None])[0]
        return Best(regimes, found.levels, found.value, found.gap, nodes, found.gap == 0.0)


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
    question = _question(weights, noise_mean, order, reward, constraints)
    allowed = question.constraints
    found = _best(question, allowed.rules, allowed.start, budget)
    return question.answer(found, found.nodes)


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
    """The m best interventions, best first; fewer where fewer are allowed.

    The gap of the j-th is what the j-th best of all may be better by. With `distinct`, those that
    change a factor where it has no effect on the reward are left out.
    """
    if m < 1:
        raise ModelError(f"m must be at least 1, not {m}")
    question = _question(weights, noise_mean, order, reward, constraints)
    allowed = question.constraints
    posed = question.under(allowed.rules, keep_all=not distinct)
    solved = solve(posed, allowed.start, m, distinct, budget)
    if solved.tied and not distinct:
        return _one_after_another(question, m, budget)
    return [
        question.answer(_found(levels, float(value), solved), solved.nodes)
        for levels, value in zip(solved.levels, solved.values, strict=True)
        if value > -np.inf
    ]


def _question(
    weights: npt.ArrayLike,
    noise_mean: npt.ArrayLike,
    order: npt.ArrayLike,
    reward: int,
    constraints: Constraints | None,
) -> Question:
    """Fresh arrays of one type each, so that the kernels are compiled once."""
    w = np.array(weights, dtype=np.float64, order="C")
    if w.ndim != 3 or w.shape[1] != w.shape[2] or not w.size:
        raise ModelError(f"weights must have shape (regimes, N, N), not {w.shape}")
    mean = np.empty(w.shape[:2])
    mean[:] = noise_mean
    if not (np.isfinite(w).all() and np.isfinite(mean).all()):
        raise ModelError("weights and noise means must be finite")
    if constraints is None:
        constraints = unconstrained((w.shape[0],) * w.shape[1])
    if constraints.n_nodes != w.shape[1]:
        raise ModelError(f"constraints on {constraints.n_nodes} nodes, but there are {w.shape[1]}")
    if max(constraints.factors.regimes) > w.shape[0]:
        raise ModelError(
            f"constraints speak of {max(constraints.factors.regimes)} regimes, "
            f"but there are weights of {w.shape[0]}"
        )
    if not -w.shape[1] <= reward < w.shape[1]:
        raise ModelError(f"there is no node {reward} to be the reward of {w.shape[1]} nodes")
    position = int(reward) % w.shape[1]
    return Question(w, mean, np.array(order, dtype=np.int64), position, constraints)


def _best(question: Question, rules: Rules, start: Levels, budget: int) -> Found:
    posed = question.under(rules, keep_all=False)
    few = best_of_few(posed)
    if few is not None:
        levels, value, compared = few
        return Found(levels, value, 0.0, compared)
    solved = solve(posed, start, 1, True, budget)
    found = _found(solved.levels[0], float(solved.values[0]), solved)
    return _first_of_equals(question, rules, found, solved.tie, budget) if solved.tied else found


def _found(levels: Levels, value: float, solved: Solved) -> Found:
    return Found(levels, value, max(0.0, solved.bound - value), solved.nodes)


def _first_of_equals(
    question: Question, rules: Rules, found: Found, tie: float, budget: int
) -> Found:
    """Factor by factor: can its level be lower, given the earlier ones, without losing value?"""
    levels, nodes = found.levels, found.nodes
    target = found.value - tie
    for factor in range(len(levels)):
        while levels[factor] > 0 and nodes < budget:
            domain = _as_before(rules.domain, levels, factor)
            domain[factor, levels[factor] :] = False
            narrowed = question.constraints.narrowed(domain)
            if narrowed is None:
                break
            posed = question.under(narrowed[0], keep_all=False)
            lower, used = reaches(posed, target, tie, budget - nodes)
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


def _one_after_another(question: Question, m: int, budget: int) -> list[Best]:
    """Without its best, a set of settings falls into parts by the first factor that differs.

    (Murty 1968.) Each part's own best is found apart, so any number of ties does no harm.
    """
    allowed = question.constraints
    found: list[Found] = []
    parts = [(_best(question, allowed.rules, allowed.start, budget), allowed.rules)]
    nodes = parts[0][0].nodes
    while parts and len(found) < m:
        most = max(best.value for best, _ in parts)
        equals = [part for part in parts if part[0].value >= most - TIE * abs(most)]
        chosen = min(equals, key=lambda part: part[0].levels.tolist())
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
                parts.append((_best(question, *rest, max(budget - nodes, 1)), rest[0]))
                nodes += parts[-1][0].nodes
    return [question.answer(one, nodes) for one in found]
