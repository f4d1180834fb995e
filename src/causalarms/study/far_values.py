"""Values that may be typing errors: far outside everything seen, or left out by the policy.

A value is far if it lies `FAR_SPREADS` spreads from the median of the node's other values, and few
of them are near it. The spread is a high quantile of distances from the median, so that neither
units nor offsets matter and far values seen before do not widen it. A change of the system, or an
intervention played for the first time, is answered a few times only: then others are near. Besides
the results just before and after it, the first ones of the study are looked at: they are the most
varied, and a policy that has settled on one intervention does not make all others look strange. For
the same reason a value of a setting that was hardly played must be far from the others also if no
setting counts more than a few times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray
from causalarms.policies.base import Policy
from causalarms.study.ledger import Ledger
from causalarms.study.records import SuspectValue

FAR_SPREADS = 5.0  # benchmarks/bad_values.py far: with tails of t_3 one honest value in 1500 is far
SPREAD_QUANTILE = 0.9  # of values whose distance from the median makes the spread
MIN_OTHERS = 5  # other values, below which nothing can be said
FEW_OTHERS = 10  # other values that show the spread to a factor of two
EARLY_OTHERS = 30  # up to which policies judge early rounds, and the limit is not above theirs
NEAR_SPREADS = 2.0  # within which another value is near
MIN_NEIGHBOURS = 3  # so many others near it make a value ordinary
ROUNDING = 1e-9  # of the median: a spread below is none
PER_SETTING = 3  # results of one setting that count, if there are enough others
MAX_WARNINGS = 5  # at a time
BLOCK = 25  # results that are compared with nearly the same ones
WINDOW = 100  # results of the beginning, before and after, whatever the number of rounds


class Seen(NamedTuple):
    """The range of what was seen, without what was far itself."""

    low: float
    high: float


NOT_SEEN = Seen(math.nan, math.nan)


def suspect(trial: int, node: str, value: float, seen: Seen, *, learned: bool) -> SuspectValue:
    """A value that is far outside of what was `seen`, or not `learned` from, or both."""
    why = "a probable typing error"
    if not math.isnan(seen.low):
        why = f"far outside the {seen.low:g} to {seen.high:g} of the other results"
    command = f"causalarms study correct FILE {trial} {node}=VALUE"
    if learned:
        message = (
            f"trial {trial}: {node!r} is {value:g}, {why}; it is recorded as told. If it is a "
            f"typing error, correct it: study.correct({trial}, {{{node!r}: ...}}) or {command}"
        )
    else:
        message = (
            f"trial {trial}: {node!r} = {value:g} left out as a probable typing error, until "
            f"others like it come or it is corrected: {command}"
        )
    return SuspectValue(trial, node, value, *seen, learned, why, command, message)


def suspects(ledger: Ledger, left_out: Iterable[SuspectValue]) -> list[SuspectValue]:
    """Every value to be looked at, by trial: far outside the others, or left out by the policy."""
    not_learned = list(left_out)
    found = {(far.trial, far.node): far for far in as_learned(far_values(ledger), not_learned)}
    for out in not_learned:
        known = found.get((out.trial, out.node), out)
        seen = Seen(known.low, known.high)
        found[out.trial, out.node] = suspect(out.trial, out.node, out.value, seen, learned=False)
    return [found[key] for key in sorted(found)]


def as_learned(found: Iterable[SuspectValue], out: Iterable[SuspectValue]) -> list[SuspectValue]:
    """The same values, of which those of trials that are left `out` are not learned from."""
    trials = {value.trial for value in out}
    return [
        suspect(f.trial, f.node, f.value, Seen(f.low, f.high), learned=f.trial not in trials)
        for f in found
    ]


def left_out(ledger: Ledger, policy: Policy) -> list[SuspectValue]:
    """Values from whose trials the policy does not learn for now, in the user's sign."""
    if not policy.left_out:
        return []
    learned, nodes, found = ledger.learnable(policy.learns_from_gaps), ledger.settings.nodes, []
    for round_, node, _ in policy.left_out:
        record = learned[round_ - 1]
        value = None if record.values is None else record.values[node]
        assert value is not None  # only what was told can be suspected
        found.append(suspect(record.number, nodes[node], value, NOT_SEEN, learned=False))
    return found


def far_values(ledger: Ledger, numbers: Iterable[int] | None = None) -> list[SuspectValue]:
    """The far values of some trials, or of all; the cost of one does not grow with the study."""
    found = []
    places = _places(ledger, numbers)
    # Most results are ordinary, which a rough bound for many of them at once can tell.
    if len(places) > BLOCK:
        places = _worth_a_look(_rows(ledger, 0, len(ledger.order)), places)
    for place, own, others in _results(ledger, places):
        for i in _may_be_far(own, others):
            column = others[:, i]
            known, value = ~np.isnan(column), float(own[i])
            seen = far_from(value, column[known])
            if seen is not None:
                settings = _settings(ledger, place)[known]
                few = _balanced(column[known], settings)
                rare = len(few) >= FEW_OTHERS and (settings == 0).sum() < PER_SETTING
                balanced = far_from(value, few)
                if balanced is not None:
                    seen = Seen(min(seen.low, balanced.low), max(seen.high, balanced.high))
                elif rare:
                    seen = None
            if seen is not None:
                trial, node = ledger.order[place], ledger.settings.nodes[i]
                found.append(suspect(trial, node, value, seen, learned=True))
    return found


def in_words(found: Sequence[SuspectValue]) -> list[str]:
    """A warning for each, but not for hundreds."""
    more = len(found) - MAX_WARNINGS
    rest = [f"and {more} values more: causalarms study show FILE"] if more > 0 else []
    return [far.message for far in found[:MAX_WARNINGS]] + rest


def far_from(value: float, others: Sequence[float] | FloatArray) -> Seen | None:
    """The range of the other values if this one is far outside, else None.

    >>> others = [9.1, 10.4, 8.7, 11.0, 9.9, 10.2, 9.5, 10.8, 9.0, 10.1, 9.7]
    >>> far_from(1000.0, others)
    Seen(low=8.7, high=11.0)
    >>> far_from(14.0, others)
    """
    seen = np.sort(np.asarray(others, dtype=float))
    if len(seen) < MIN_OTHERS:
        return None
    middle = float(seen[len(seen) // 2])
    distance = np.abs(seen - middle)
    spread = _spread(np.sort(distance), middle)
    # Few values say little of the spread: the limit is wider for them. What `OutlierFilter` leaves
    # out early is far here, too: nobody would be told of it otherwise.
    early, late = (FEW_OTHERS / (len(seen) + 1)) ** 2, FEW_OTHERS / len(seen)
    limit = FAR_SPREADS * spread * (1.0 + (early if len(seen) < EARLY_OTHERS else late))
    if not abs(value - middle) > limit > 0.0:
        return None
    # A change of the system gives several such values: then it is not a typing error.
    if (np.abs(seen - value) <= NEAR_SPREADS * spread).sum() >= MIN_NEIGHBOURS:
        return None
    ordinary = seen[distance <= limit]
    return Seen(float(ordinary[0]), float(ordinary[-1]))


def _spread(distance: FloatArray, middle: float) -> float:
    """The spread of distances that are in ascending order.

    If most values are the same, the others say it, and at least the value itself: 20, 20, 20 may
    be followed by 21 or 50, and 0, 0, 0 by anything.
    """
    least = ROUNDING * abs(middle)
    usual = _quantile(distance)
    if usual > least:
        return usual
    others = distance[distance > least]
    return max(_quantile(others) if len(others) >= MIN_NEIGHBOURS else 0.0, abs(middle))


def _quantile(ascending: FloatArray) -> float:
    return float(ascending[int(SPREAD_QUANTILE * (len(ascending) - 1))])


def _places(ledger: Ledger, numbers: Iterable[int] | None) -> Sequence[int]:
    """Places in the order of results; those told last are found at once."""
    if numbers is None:
        return range(len(ledger.order))
    wanted, found = set(numbers), []
    for place in range(len(ledger.order) - 1, -1, -1):
        if not wanted:
            break
        if ledger.order[place] in wanted:
            wanted.discard(ledger.order[place])
            found.append(place)
    return found[::-1]


def _results(ledger: Ledger, places: Sequence[int]) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Place, values and those to compare them with: of the beginning, just before, just after.

    nan if nothing was measured.
    """
    first = _rows(ledger, 0, WINDOW)
    begin = max(places[0] - WINDOW, 0) if places else 0
    around = _rows(ledger, begin, places[-1] + 1 + WINDOW) if places else first
    for place in places:
        start, own = max(place - WINDOW, 0), place - begin
        others = [first[:start], around[start - begin : own], around[own + 1 : own + 1 + WINDOW]]
        yield place, around[own], np.concatenate(others)


def _settings(ledger: Ledger, place: int) -> npt.NDArray[np.int64]:
    """A number for the setting of each value that `_results` compares with this place: 0 is its."""
    start = max(place - WINDOW, 0)
    order, trials = ledger.order, ledger.trials
    after = range(place + 1, min(place + 1 + WINDOW, len(order)))
    places = [*range(min(start, WINDOW)), *range(start, place), *after]
    numbers = {trials[order[place]].intervention: 0}
    settings = [trials[order[at]].intervention for at in places]
    return np.array([numbers.setdefault(setting, len(numbers)) for setting in settings])


def _balanced(others: FloatArray, settings: npt.NDArray[np.int64]) -> FloatArray:
    """The first few results of each setting."""
    kept = [np.flatnonzero(settings == setting)[:PER_SETTING] for setting in np.unique(settings)]
    return others[np.concatenate(kept)]


def _rows(ledger: Ledger, start: int, stop: int) -> FloatArray:
    missing = (None,) * ledger.settings.n_nodes
    found = [ledger.trials[n].values or missing for n in ledger.order[start:stop]]
    return np.array(found, dtype=float).reshape(-1, len(missing))


def _worth_a_look(rows: FloatArray, places: Sequence[int]) -> list[int]:
    """Places at which a value may be far; at all others none is.

    Neighbouring places are compared with nearly the same values. Sorted once for a block of places,
    these bound the median and the spread of each.
    """
    found: list[int] = []
    for at in range(0, len(places), BLOCK):
        block = np.array(places[at : at + BLOCK])
        start = np.maximum(block - WINDOW, 0)
        stop = np.minimum(block + WINDOW, len(rows) - 1)
        fewest = int((np.minimum(start, WINDOW) + stop - start).min())  # compared with a place
        first, around = rows[: min(int(start[-1]), WINDOW)], rows[int(start[0]) : int(stop[-1]) + 1]
        values = np.sort(np.concatenate([first, around]), axis=0)  # nan comes last
        count = (~np.isnan(values)).sum(axis=0)
        least = count - (len(values) - fewest)  # of the values compared with a place
        columns = np.arange(values.shape[1])
        known = least > 0
        low = values[np.where(known, least // 2, 0), columns]
        high = values[np.where(known, count - (least + 1) // 2, 0), columns]
        distance = np.sort(np.maximum(np.maximum(low - values, values - high), 0.0), axis=0)
        spread = distance[
            np.where(known, SPREAD_QUANTILE * (least - 1), 0).astype(np.int64), columns
        ]
        own = rows[block]
        away = np.maximum(np.abs(own - low), np.abs(own - high))
        far = np.where(known, away > FAR_SPREADS * spread, ~np.isnan(own))
        found += block[far.any(axis=1)].tolist()
    return found


def _may_be_far(own: FloatArray, others: FloatArray) -> npt.NDArray[np.int64]:
    """Nodes that may be far: the first condition of `far_from` for all nodes at once."""
    count = (~np.isnan(others)).sum(axis=0)
    nodes = np.flatnonzero((count >= MIN_OTHERS) & ~np.isnan(own))
    others, count, place = others[:, nodes], count[nodes], np.arange(len(nodes))
    middle = np.sort(others, axis=0)[count // 2, place]  # nan comes last
    distance = np.sort(np.abs(others - middle), axis=0)
    usual = distance[(SPREAD_QUANTILE * (count - 1)).astype(np.int64), place]
    return nodes[np.abs(own[nodes] - middle) > FAR_SPREADS * usual]
