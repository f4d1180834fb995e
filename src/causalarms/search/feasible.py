"""Levels that keep all rules: the first, all of them, or one at random.

Depth-first search over the factors with forward checking: when all factors of a box but one are
inside, the last one loses the levels inside it. Dead ends are seen as soon as a factor has no level
left, or more factors must leave level 0 than may.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causalarms.kernels import kernel
from causalarms.search.factors import Levels
from causalarms.search.rules import IntArray, Rules

MAX_STEPS = 2_000_000  # some seconds


class Listed(NamedTuple):
    """What a search for levels saw."""

    rows: Levels  # (found, F), lexicographic
    n_found: int
    complete: bool  # everything was seen


def first_allowed(rules: Rules, max_steps: int = MAX_STEPS) -> tuple[Levels | None, bool]:
    """Levels that keep the rules and leave level 0 rarely; whether None is proven."""
    if rules.n_boxes == 0:
        if not rules.domain.any(axis=1).all():
            return None, True
        start = rules.domain.argmax(axis=1).astype(np.uint8)
        return (start, True) if int((start != 0).sum()) <= rules.limit else (None, True)
    boxed = np.bincount(rules.box_factor, minlength=len(rules.domain))
    # what few levels or many boxes restrict comes first, what no box speaks of last
    sequence = np.lexsort((rules.domain.sum(axis=1), -boxed))
    listed = listing(rules, sequence, _natural_first(rules), 1, 1, max_steps)
    found = listed.rows[0] if listed.n_found else None
    return found, found is not None or listed.complete


def all_allowed(rules: Rules, most: int, max_steps: int) -> Levels | None:
    """All levels that keep the rules, lexicographic; None where more than `most` or too hard."""
    sequence, preference = np.arange(len(rules.domain)), _natural_first(rules)
    counted = listing(rules, sequence, preference, 0, most + 1, max_steps)
    if not counted.complete or counted.n_found > most:
        return None
    n_found = counted.n_found
    return listing(rules, sequence, preference, n_found, n_found + 1, max_steps).rows


def some_allowed(rules: Rules, rng: np.random.Generator, max_steps: int) -> Levels | None:
    """Levels found in a random order: not uniform, but anything allowed can come out."""
    n_factors, n_levels = rules.domain.shape
    preference = rng.permuted(np.tile(np.arange(n_levels), (n_factors, 1)), axis=1)
    listed = listing(rules, rng.permutation(n_factors), preference, 1, 1, max_steps)
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
