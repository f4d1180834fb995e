"""Rounds with a probable typing error: set aside, and taken back when others like them come.

One value of 1000 among values of ten ruins regressions for hundreds of rounds, that of its node and
those of all nodes it may cause, so that the whole round is left out. A value is suspected where
    it is far: `FAR` times as far from the median of its node as the third farthest value, itself
    included. Two strange values are errors, three are how things are, and a node that never
    varied may do anything. The first rounds are judged anew with each of them; few values say
    little, so that they must be farther;
    it is surprising: its recursive residual (`changes/predictive.py`), as a standard normal score,
    is beyond `SURPRISING`. With normal noise that never happens.
Where a mechanism is suspected three times within a few rounds it is no error but a change, or not
linear: these rounds are taken back, and the mechanism is left alone for a while. All of it follows
from the rounds told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.policies.first_rounds import middle_of
from causalarms.policies.incomplete_rounds import with_gaps
from causalarms.state_entries import INTEGERS, Entry

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Intervention = npt.NDArray[np.uint8]

KEPT, LEFT_OUT = TYPING_ERRORS = ("kept", "left out")
FAR = 5.0
FEWEST = 6  # values of a node from which on one may be far
FIRST = 30  # rounds that are judged together
COMPANY = 3
SURPRISING = 8.0
WITHIN = 20  # rounds
LEFT_ALONE = 50  # rounds, after being suspected wrongly
HELD = 100  # rounds that may be taken back; older ones stay out


class LeftOut(NamedTuple):
    """A value that is probably a typing error. Nothing is learned from its round."""

    round: int
    node: int
    value: float


class Round(NamedTuple):
    """One as it was told."""

    number: int
    regimes: Intervention
    values: FloatArray


class Suspects:
    """Judges round after round; `first` and `held` rounds are remembered as they were told."""

    def __init__(self, regimes: IntArray) -> None:
        n, most = len(regimes), int(regimes.max())
        self._n_regimes = regimes
        self._first = np.zeros((FIRST, n))
        self._first_regimes: Intervention = np.zeros((FIRST, n), dtype=np.uint8)
        self._center = np.zeros(n)  # median of the first rounds
        self._farthest = np.zeros((COMPANY, n))  # distances from it, largest first
        self._rounds: IntArray = np.zeros(HELD, dtype=np.int64)  # 0: empty; oldest first
        self._nodes: IntArray = np.zeros(HELD, dtype=np.int64)
        self._values = np.zeros((HELD, n))
        self._regimes: Intervention = np.zeros((HELD, n), dtype=np.uint8)
        self._cleared: IntArray = np.zeros((most, n), dtype=np.int64)  # round of; 0: never

    @property
    def left_out(self) -> list[LeftOut]:
        return [
            LeftOut(int(t), int(node), float(x[node]))
            for t, node, x in zip(self._rounds, self._nodes, self._values, strict=True)
            if t > 0
        ]

    def early(self, told: Round) -> list[Round] | None:
        """One of the first rounds: all to learn from so far, where that is not just one more."""
        n = told.number
        self._first[n - 1], self._first_regimes[n - 1] = told.values, told.regimes
        values = self._first[:n]
        self._center = middle_of(values)
        distance = np.nan_to_num(np.abs(values - self._center))  # what is missing is not far
        top = np.sort(distance, axis=0)[::-1][:COMPANY]
        self._farthest[: len(top)] = top
        far = np.zeros(values.shape, dtype=bool)
        if n >= FEWEST:
            far = (distance > FAR * (1.0 + (10.0 / n) ** 2) * top[-1]) & (top[-1] > 0)
        suspected = np.flatnonzero(far.any(axis=1))
        before = self._rounds[self._rounds > 0] - 1
        self._drop(self._rounds > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            strangest = np.argmax(np.where(far, distance / top[-1], 0.0), axis=1)
        for row in suspected.tolist():
            self._hold(self._early_round(row), int(strangest[row]))
        if np.array_equal(before, suspected):
            return None
        return [self._early_round(row) for row in range(n) if row not in suspected]

    def _early_round(self, row: int) -> Round:
        return Round(row + 1, self._first_regimes[row], self._first[row])

    def later(self, told: Round, scores: FloatArray, predictors: BoolArray) -> list[Round]:
        """What to learn from now: nothing, this round, or this one and some that were set aside.

        Scores are nan where nothing is predicted; predictors as [node, predictor].
        """
        distance = np.nan_to_num(np.abs(told.values - self._center))
        self._farthest = np.sort(np.vstack([self._farthest, distance]), axis=0)[:0:-1]
        suspected = (distance > FAR * self._farthest[-1]) & (self._farthest[-1] > 0)
        suspected |= np.abs(np.nan_to_num(scores)) > SURPRISING
        cleared = self._cleared[told.regimes, np.arange(len(distance))]
        suspected &= (cleared == 0) | (told.number - cleared > LEFT_ALONE)
        if not suspected.any():
            return [told]
        # what an error makes of its descendants is not their fault
        sources = suspected & ~(predictors & suspected).any(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            strange = np.nan_to_num(distance / self._farthest[-1])
        node = int(np.argmax(np.where(sources if sources.any() else suspected, 1 + strange, 0)))
        self._hold(told, node)
        return self.take_back(int(told.regimes[node]), node, after=told.number - WITHIN)

    def take_back(
        self, regime: int, node: int, *, after: int, company: int = COMPANY
    ) -> list[Round]:
        """The rounds a mechanism was suspected in, if so many; it is then left alone."""
        same = (self._rounds > max(after, 0)) & (self._nodes == node)
        same &= self._regimes[:, node] == regime
        if same.sum() < company:
            return []
        back = [
            Round(int(self._rounds[k]), self._regimes[k].copy(), self._values[k].copy())
            for k in np.flatnonzero(same)
        ]
        self._cleared[regime, node] = self._rounds.max()
        self._drop(same)
        return back

    def _hold(self, told: Round, node: int) -> None:
        held = np.flatnonzero(self._rounds > 0)
        if len(held) == HELD:
            self._drop(np.arange(HELD) == 0)
        k = min(len(held), HELD - 1)
        self._rounds[k], self._nodes[k] = told.number, node
        self._values[k], self._regimes[k] = told.values, told.regimes

    def _drop(self, which: BoolArray) -> None:
        for held in (self._rounds, self._nodes, self._values, self._regimes):
            kept = held[~which].copy()
            held[: len(kept)], held[len(kept) :] = kept, 0

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, f"_{name}").copy() for name in STATE}

    def entries(self, *, gaps: bool) -> dict[str, Entry]:
        """`gaps`: values may be missing."""
        own = {"nodes": Entry(INTEGERS, (HELD,), 0, len(self._n_regimes) - 1)}
        if gaps:
            own |= {
                name: with_gaps(getattr(self, f"_{name}").shape) for name in ("first", "values")
            }
        return own

    def restore(self, state: dict[str, Any]) -> None:
        for name in STATE:
            setattr(self, f"_{name}", np.array(state[name]))
        held = self._rounds > 0
        if self._values[~held].any() or np.isnan(self._values[~held]).any():
            raise DataError("there are values of rounds that are not set aside")

    def check_recent(self, n_told: int, rounds: IntArray, values: FloatArray) -> None:
        """DataError where rounds held here lack other values than the same among these."""
        if np.nan_to_num(self._first[n_told:], nan=1.0).any():
            raise DataError("there are values of first rounds that were not told")
        early = (rounds > 0) & (rounds <= FIRST)
        known = [(self._first[rounds[early] - 1], values[early])]
        both = np.flatnonzero((self._rounds > 0) & (self._rounds <= FIRST))
        known.append((self._first[self._rounds[both] - 1], self._values[both]))
        if any((np.isnan(mine) != np.isnan(other)).any() for mine, other in known):
            raise DataError("rounds lack other values than they did when they were told")


STATE = (
    "first", "first_regimes", "center", "farthest", "rounds", "nodes", "values", "regimes",
    "cleared",
)  # fmt: skip
