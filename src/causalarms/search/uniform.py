"""One allowed setting of the factors at random, all with the same probability.

Without forbidden combinations the numbers of ways to go on are counted, so a draw is exact. With
them such draws are repeated until one is allowed, which is exact too; where that takes too long,
all allowed ones are listed; and where they are too many, random changes that keep the rules lead
away from a first one: every allowed setting that such changes reach is equally likely in the limit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.search import feasible
from causalarms.search.factors import Levels
from causalarms.search.rules import FloatArray, Rules

BATCH = 100
TRIES = 2000
CHANGES = 200  # per factor


def uniform(rules: Rules, rng: np.random.Generator, listed: Callable[[], Levels | None]) -> Levels:
    """Levels (F,); `listed` gives all allowed ones, or None where they are too many."""
    stay = stay_probabilities(rules)
    if rules.n_boxes == 0:
        return _within_limit(rules, stay, rng, 1)[0]
    for _ in range(TRIES // BATCH):
        rows = _within_limit(rules, stay, rng, BATCH)
        for row in rows:
            if _keeps_boxes(rules, row):
                return row
    every = listed()
    if every is not None:
        return every[rng.integers(len(every))]
    found = feasible.some_allowed(rules, rng, feasible.MAX_STEPS)
    if found is None:
        found, _ = feasible.first_allowed(rules)
        assert found is not None  # the constraints were checked
    n_changes = CHANGES * len(found)
    factors = rng.integers(len(found), size=(n_changes, 2))
    _wander(rules, found, factors, rng.random((n_changes, 3)))
    return found


def stay_probabilities(rules: Rules) -> FloatArray:
    """[f, q]: of all settings of factors f.. with at most q changes, the share with f at 0."""
    natural = rules.domain[:, 0] if rules.domain.size else np.zeros(0, dtype=bool)
    others = rules.domain.sum(axis=1) - natural
    n_factors, limit = len(natural), min(rules.limit, len(natural))
    share = np.zeros((n_factors, limit + 1))
    ways = [1] * (limit + 1)
    for f in range(n_factors - 1, -1, -1):
        staying = [int(natural[f]) * ways[q] for q in range(limit + 1)]
        leaving = [0, *(int(others[f]) * ways[q] for q in range(limit))]
        ways = [s + c for s, c in zip(staying, leaving, strict=True)]
        share[f] = [s / w if w else 0.0 for s, w in zip(staying, ways, strict=True)]
    return share


def _within_limit(rules: Rules, stay: FloatArray, rng: np.random.Generator, n: int) -> Levels:
    """Uniform among what the domain and the limit allow, (n, F)."""
    n_factors, columns = stay.shape
    rows = np.zeros((n, n_factors), dtype=np.uint8)
    left = np.full(n, columns - 1)
    for f in range(n_factors):
        change = rng.random(n) >= stay[f, left]
        levels = np.flatnonzero(rules.domain[f])
        levels = levels[levels > 0]
        if len(levels):
            rows[:, f] = np.where(change, levels[rng.integers(len(levels), size=n)], 0)
            left -= change
    return rows


@kernel
def _keeps_boxes(rules: Rules, levels: Levels) -> bool:
    for box in range(len(rules.box_start) - 1):
        inside = True
        for at in range(rules.box_start[box], rules.box_start[box + 1]):
            if not rules.box_levels[at, levels[rules.box_factor[at]]]:
                inside = False
                break
        if inside:
            return False
    return True


@kernel
def _wander(
    rules: Rules, levels: Levels, factors: npt.NDArray[np.int64], uniforms: FloatArray
) -> None:
    """Change one or two factors at a time, where that is allowed."""
    used = 0
    for level in levels:
        used += 1 if level > 0 else 0
    for step in range(len(factors)):
        f, g = factors[step]
        before_f, before_g = levels[f], levels[g]
        levels[f] = _some_level(rules, f, uniforms[step, 0])
        if uniforms[step, 2] < 0.5:
            levels[g] = _some_level(rules, g, uniforms[step, 1])
        now = used + int(levels[f] > 0) - int(before_f > 0)
        if f != g:
            now += int(levels[g] > 0) - int(before_g > 0)
        if now <= rules.limit and _keeps_boxes(rules, levels):
            used = now
        else:
            levels[f], levels[g] = before_f, before_g


@kernel
def _some_level(rules: Rules, f: int, u: float) -> int:
    n_levels, seen = 0, 0
    for level in range(rules.domain.shape[1]):
        n_levels += 1 if rules.domain[f, level] else 0
    wanted = min(int(u * n_levels), n_levels - 1)
    for level in range(rules.domain.shape[1]):
        if rules.domain[f, level]:
            if seen == wanted:
                return level
            seen += 1
    return 0
