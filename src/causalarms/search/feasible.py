"""Levels that keep all rules: the first, all of them, or one at random.

Rules are constraints as arrays, the form in which kernels read them. They are searched depth first
over the factors with forward checking: when all factors of a box but one are inside, the last one
loses the levels inside it. Dead ends are seen as soon as a factor has no level left, or more
factors must leave level 0 than may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import kernel
from causalarms.search.factors import Factors, Levels, starts

Box = Sequence[tuple[int, Iterable[int]]]  # factors, and for each the levels that are in it


class Rules(NamedTuple):
    """F factors with at most L levels on N nodes.

    A box is a forbidden combination: some factors, and levels of each; not all of these factors may
    be inside at once.
    """

    domain: BoolArray  # (F, L) levels that may be set
    cost: FloatArray  # (F, L)
    limit: int  # how many factors may leave level 0
    act_start: IntArray  # (N+1,) node i has the acting factors act_start[i] .. act_start[i+1]-1
    act_factor: IntArray
    act_stride: IntArray  # what one level is worth in the node's table
    table_start: IntArray  # (N+1,)
    table: IntArray  # regimes
    box_start: IntArray  # (B+1,)
    box_factor: IntArray
    box_levels: BoolArray  # (.., L) per factor of a box, the levels inside

    @property
    def n_boxes(self) -> int:
        return len(self.box_start) - 1


def rules_of(
    factors: Factors, domain: BoolArray, cost: FloatArray, limit: int, boxes: Sequence[Box]
) -> Rules:
    """The arrays of constraints that were checked."""
    inside = [(factor, levels) for box in boxes for factor, levels in box]
    box_levels = np.zeros((len(inside), domain.shape[1]), dtype=bool)
    for row, (_, levels) in enumerate(inside):
        box_levels[row, list(levels)] = True
    box_factor = np.array([factor for factor, _ in inside], dtype=np.int64)
    return Rules(domain, cost, limit, *factors.arrays, starts(boxes), box_factor, box_levels)


def keeps(rules: Rules, levels: npt.NDArray[np.integer]) -> BoolArray:
    """Which rows of levels (n, F) may be set."""
    factors = np.arange(len(rules.domain))
    kept = rules.domain[factors, levels].all(axis=1)
    kept &= (levels != 0).sum(axis=1) <= rules.limit
    for box in range(rules.n_boxes):
        span = range(rules.box_start[box], rules.box_start[box + 1])
        inside = [rules.box_levels[at, levels[:, rules.box_factor[at]]] for at in span]
        kept &= ~np.logical_and.reduce(inside)
    return kept


# -- the first, all of them, or some ---------------------------------------------------------------

MAX_STEPS = 2_000_000  # some seconds


class Listed(NamedTuple):
    """What a search for levels saw."""

    rows: Levels  # (found, F), lexicographic
    n_found: int
    complete: bool  # everything was seen


def first_allowed(rules: Rules) -> tuple[Levels | None, bool]:
    """Levels that keep the rules and leave level 0 rarely; whether None is proven."""
    if rules.n_boxes == 0:
        if not rules.domain.any(axis=1).all():
            return None, True
        start = rules.domain.argmax(axis=1).astype(np.uint8)
        return (start, True) if int((start != 0).sum()) <= rules.limit else (None, True)
    boxed = np.bincount(rules.box_factor, minlength=len(rules.domain))
    # what few levels or many boxes restrict comes first, what is in no box last
    sequence = np.lexsort((rules.domain.sum(axis=1), -boxed))
    listed = listing(rules, sequence, _natural_first(rules), 1, 1, MAX_STEPS)
    found = listed.rows[0] if listed.n_found else None
    return found, found is not None or listed.complete


def all_allowed(rules: Rules, most: int, max_steps: int) -> Levels | None:
    """All levels that keep the rules, lexicographic; None if more than `most` or too hard."""
    sequence, preference = np.arange(len(rules.domain)), _natural_first(rules)
    # counted first: rows are reserved only for as many as there are
    counted = listing(rules, sequence, preference, 0, most + 1, max_steps)
    if not counted.complete or counted.n_found > most:
        return None
    n_found = counted.n_found
    return listing(rules, sequence, preference, n_found, n_found + 1, max_steps).rows


def some_allowed(rules: Rules, rng: np.random.Generator) -> Levels | None:
    """Levels found in a random order: not uniform, but anything allowed can come out."""
    n_factors, n_levels = rules.domain.shape
    preference = rng.permuted(np.tile(np.arange(n_levels), (n_factors, 1)), axis=1)
    listed = listing(rules, rng.permutation(n_factors), preference, 1, 1, MAX_STEPS)
    return listed.rows[0] if listed.n_found else None


def _natural_first(rules: Rules) -> IntArray:
    n_factors, n_levels = rules.domain.shape
    return np.tile(np.arange(n_levels), (n_factors, 1))


def listing(
    rules: Rules, sequence: IntArray, preference: IntArray, keep: int, most: int, max_steps: int
) -> Listed:
    """Up to `most` rows are counted, the first `keep` of them kept."""
    rows = np.zeros((keep, len(rules.domain)), dtype=np.uint8)
    n_found, complete = _list(rules, sequence, preference, rows, most, max_steps)
    return Listed(rows[:n_found], n_found, complete)


@kernel
def _list(
    rules: Rules,
    sequence: IntArray,  # (F,) factors in the order of decisions
    preference: IntArray,  # (F, L) levels in the order of trial
    rows: Levels,
    most: int,
    max_steps: int,
) -> tuple[int, bool]:
    n_factors, n_levels = rules.domain.shape
    n_boxes = len(rules.box_start) - 1
    closed = np.zeros((n_factors, n_levels), np.int64)  # how many rules close a level
    for f in range(n_factors):
        for level in range(n_levels):
            if not rules.domain[f, level]:
                closed[f, level] = 1
    level_of = np.full(n_factors, -1)
    inside, outside = np.zeros(n_boxes, np.int64), np.zeros(n_boxes, np.int64)
    for box in range(n_boxes):
        if rules.box_start[box + 1] - rules.box_start[box] == 1:
            _close(rules, box, level_of, closed, 1)
    tried = np.zeros(n_factors + 1, np.int64)
    depth, steps, n_found, used = 0, 0, 0, 0
    if not _can_go_on(rules, level_of, closed, 0):
        return 0, True
    if n_factors == 0:
        return 1, True
    while True:
        f = sequence[depth]
        if level_of[f] >= 0:  # back from below
            used -= 1 if level_of[f] > 0 else 0
            _assign(rules, f, level_of, closed, inside, outside, -1)
        if tried[depth] == n_levels:
            if depth == 0:
                return n_found, True
            depth -= 1
            continue
        level = preference[f, tried[depth]]
        tried[depth] += 1
        if closed[f, level] > 0:
            continue
        steps += 1
        if steps > max_steps:
            return n_found, False
        level_of[f] = level
        used += 1 if level > 0 else 0
        _assign(rules, f, level_of, closed, inside, outside, 1)
        if not _can_go_on(rules, level_of, closed, used):
            continue
        if depth < n_factors - 1:
            depth += 1
            tried[depth] = 0
            continue
        if n_found < len(rows):
            for g in range(n_factors):
                rows[n_found, g] = level_of[g]
        n_found += 1
        if n_found == most:
            return n_found, False


@kernel
def _assign(
    rules: Rules,
    f: int,
    level_of: IntArray,
    closed: IntArray,
    inside: IntArray,
    outside: IntArray,
    sign: int,  # 1 to set the factor, -1 to take it back
) -> None:
    level = level_of[f]
    for at in range(len(rules.box_factor)):
        if rules.box_factor[at] != f:
            continue
        box = int(np.searchsorted(rules.box_start, at, side="right")) - 1
        size = rules.box_start[box + 1] - rules.box_start[box]
        if sign == 1:
            if rules.box_levels[at, level]:
                inside[box] += 1
                if inside[box] == size - 1 and outside[box] == 0:
                    _close(rules, box, level_of, closed, 1)
            else:
                outside[box] += 1
        elif rules.box_levels[at, level]:
            if inside[box] == size - 1 and outside[box] == 0:
                _close(rules, box, level_of, closed, -1)
            inside[box] -= 1
        else:
            outside[box] -= 1
    if sign == -1:
        level_of[f] = -1


@kernel
def _close(rules: Rules, box: int, level_of: IntArray, closed: IntArray, sign: int) -> None:
    """Close (or open again) the levels inside the box of its one factor that is not set."""
    for at in range(rules.box_start[box], rules.box_start[box + 1]):
        f = rules.box_factor[at]
        if level_of[f] < 0:
            for level in range(closed.shape[1]):
                if rules.box_levels[at, level]:
                    closed[f, level] += sign


@kernel
def _can_go_on(rules: Rules, level_of: IntArray, closed: IntArray, used: int) -> bool:
    """Every factor that is not set has a level left, and the limit can still be kept."""
    for f in range(len(level_of)):
        if level_of[f] >= 0:
            continue
        if closed[f, 0] > 0:
            used += 1
            left = 0
            for level in range(1, closed.shape[1]):
                left += closed[f, level] == 0
            if left == 0:
                return False
    return used <= rules.limit


# -- one at random ---------------------------------------------------------------------------------
#
# Without forbidden combinations the numbers of ways to go on are counted, so a draw is exact. With
# them such draws are repeated until one is allowed, which is exact too. If that takes too long,
# all allowed ones are listed. If they are too many, random changes that keep the rules lead away
# from a first one: every allowed setting that such changes reach is equally likely in the limit.

DRAWS_AT_ONCE = 100
MAX_DRAWS = 2000
CHANGES_PER_FACTOR = 200


def uniform(rules: Rules, rng: np.random.Generator, listed: Callable[[], Levels | None]) -> Levels:
    """Levels (F,); `listed` gives all allowed ones, or None if they are too many."""
    stay = stay_probabilities(rules)
    if rules.n_boxes == 0:
        return _within_limit(rules, stay, rng, 1)[0]
    for _ in range(MAX_DRAWS // DRAWS_AT_ONCE):
        rows = _within_limit(rules, stay, rng, DRAWS_AT_ONCE)
        for row in rows:
            if _keeps_boxes(rules, row):
                return row
    # none of MAX_DRAWS was allowed: a list is exact too, a chain of changes is not
    every = listed()
    if every is not None:
        return every[rng.integers(len(every))]
    found = some_allowed(rules, rng)
    if found is None:
        found, _ = first_allowed(rules)
        assert found is not None  # the constraints were checked
    n_changes = CHANGES_PER_FACTOR * len(found)
    factors = rng.integers(len(found), size=(n_changes, 2))
    _wander(rules, found, factors, rng.random((n_changes, 3)))
    return found


def stay_probabilities(rules: Rules) -> FloatArray:
    """[f, q]: of all settings of factors f.. with at most q changes, the fraction with f at 0."""
    natural = rules.domain[:, 0] if rules.domain.size else np.zeros(0, dtype=bool)
    others = rules.domain.sum(axis=1) - natural
    n_factors, limit = len(natural), min(rules.limit, len(natural))
    fraction = np.zeros((n_factors, limit + 1))
    # Python integers: the numbers of ways outgrow 64 bits at 64 factors
    ways = [1] * (limit + 1)
    for f in range(n_factors - 1, -1, -1):
        staying = [int(natural[f]) * ways[q] for q in range(limit + 1)]
        leaving = [0, *(int(others[f]) * ways[q] for q in range(limit))]
        ways = [s + c for s, c in zip(staying, leaving, strict=True)]
        fraction[f] = [s / w if w else 0.0 for s, w in zip(staying, ways, strict=True)]
    return fraction


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
def _wander(rules: Rules, levels: Levels, factors: IntArray, uniforms: FloatArray) -> None:
    """Change one or two factors at a time, if that is allowed."""
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
