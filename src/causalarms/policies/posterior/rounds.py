"""The rounds told to `posterior`, as far as it learns from them.

Complete rounds are sums (`Moments`), incomplete ones are held to be filled (`IncompleteRounds`),
the last ones are kept as they are (`RecentRounds`), and those with a probable typing error are set
aside (`OutlierFilter`). Sums are relative to an origin, the median of the first rounds: the prior
of the intercepts lies around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention
from causalarms.changes.view import View
from causalarms.policies.base import LeftOut
from causalarms.posterior.base import Draws
from causalarms.posterior.missing import add_rounds
from causalarms.sem.regimes import Counts
from causalarms.statistics.dataset import RecentRounds
from causalarms.statistics.moments import Moments, gram_matrix
from causalarms.statistics.units import Units, estimated_units

FIRST_ROUNDS = 8  # random ones, from which units are estimated; `quantile` lost more with 4
FEWEST_VALUES = 4  # of a node, that show its spread if some are missing
LATEST_ROUND = 24  # after which units are estimated, however many values are missing

MAX_INCOMPLETE = 200  # rounds that are filled again; at as many, the older half is filled for good
REFILL_GROWTH = 1.1  # times as many rounds as when the held ones were filled
DRAWS_TO_FILL = 16  # of the system, from which values are expected

FAR = 5.0  # times the third farthest distance; 3 leaves out honest rounds, 10 misses errors
FEWEST_TO_JUDGE = 6  # values of a node from which on one may be far
JUDGED_TOGETHER = 30  # first rounds
COMPANY = 3  # so many strange values are no errors
SURPRISING_SCORE = 8.0  # standard normal; never reached by chance
COMPANY_ROUNDS = 20  # within which that many must come
CLEARED_ROUNDS = 50  # in which a mechanism that was suspected wrongly is not suspected
MAX_SET_ASIDE = 100  # rounds that may be taken back; older ones stay out


class Round(NamedTuple):
    """One as it was told."""

    number: int
    regimes: Intervention
    values: FloatArray


class ToldRounds:
    """`wary`: of typing errors."""

    def __init__(self, regimes: Counts, *, wary: bool) -> None:
        self.regimes = regimes
        self.n_nodes = len(regimes)
        self.outliers = OutlierFilter(regimes) if wary else None
        self.origin: FloatArray = np.zeros(self.n_nodes)  # all but the recent is relative to it
        self._start_again()
        self.began: IntArray = np.zeros_like(self.moments.counts)  # when the first since was made

    def _start_again(self) -> None:
        self.moments = Moments(self.n_nodes, regimes=self.regimes)
        self.gaps = IncompleteRounds(int(self.regimes.max()), self.n_nodes)
        self.recent = RecentRounds(self.n_nodes)

    @property
    def counts(self) -> IntArray:
        """Of how many rounds each mechanism knows something, (R, N)."""
        return self.moments.counts + self.gaps.counts

    @property
    def evidence(self) -> Moments:
        """Moments of all rounds, of incomplete ones as far as they go."""
        if not self.gaps.counts.any():
            return self.moments
        both = Moments(self.n_nodes, regimes=self.regimes)
        both.gram[:] = self.moments.gram + self.gaps.gram
        both.counts[:] = self.counts
        return both

    def stale(self, regimes: Intervention, made: int) -> BoolArray:
        """Nodes whose mechanism is known to have changed since a round was made, (N,)."""
        return self.began[regimes, np.arange(self.n_nodes)] > made

    def take_in(
        self,
        told: Round,
        made: int,
        stale: BoolArray,
        *,
        changed: bool,  # there were alarms before
        view: View | None,
        predictors: BoolArray,
    ) -> int:
        """A round, unless it is set aside, and those that no longer are; how many have gaps."""
        rounds = [told]
        if self.outliers is not None and told.number <= JUDGED_TOGETHER:
            again = None if changed else self.outliers.early(told)
            if again is not None:
                self._start_again()
                rounds = again
            elif any(out.round == told.number for out in self.outliers.left_out):
                rounds = []
        elif self.outliers is not None:
            scores = np.full(self.n_nodes, np.nan)
            if view is not None:
                scores = view.prediction(told.regimes, told.values).scores
            rounds = self.outliers.later(told, scores, predictors)
        return self._learn(rounds, told.number, made, stale)

    def take_back(self, regime: int, node: int, *, after: int, last: int, made: int) -> int:
        """Rounds set aside because of a mechanism that has changed; how many have gaps.

        `last` is the round told last, and `made` when that was made.
        """
        if self.outliers is None:
            return 0
        back = self.outliers.take_back(regime, node, after=after, company=1)
        return self._learn(back, last, made, np.zeros(self.n_nodes, dtype=bool))

    def _learn(self, rounds: Sequence[Round], last: int, made: int, stale: BoolArray) -> int:
        """`stale` mechanisms learn nothing from the round told last; how many have gaps."""
        n_gaps = 0
        for number, regimes, values in rounds:
            is_last = number == last
            old = stale if is_last else np.zeros(self.n_nodes, dtype=bool)
            if np.isnan(values).any():
                values = np.where(old, np.nan, values)
                self.gaps.add(number, regimes, values)
                n_gaps += 1
            else:
                self._add(regimes, values - self.origin, old)
            self.recent.add(number, regimes, values, made if is_last else None)
        return n_gaps

    def _add(self, a: Intervention, x: FloatArray, stale: BoolArray) -> None:
        """The round for all mechanisms it was played with but the stale ones."""
        if not stale.any():
            self.moments.add(x, a)
            return
        nodes = np.flatnonzero(stale)
        grams, counts = self.moments.gram[a[nodes], nodes], self.moments.counts[a[nodes], nodes]
        self.moments.add(x, a)
        self.moments.gram[a[nodes], nodes] = grams
        self.moments.counts[a[nodes], nodes] = counts

    def center(self, n_told: int) -> None:
        """The first rounds, all of which are recent, relative to their median."""
        values, regimes = self.recent.values(n_told), self.recent.regimes(n_told)
        self.origin = middle_of(values)
        self.moments = Moments(self.n_nodes, regimes=self.regimes)
        for row, regime in zip(values - self.origin, regimes, strict=True):
            if not np.isnan(row).any():
                self.moments.add(row, regime)

    def forget(self, regime: int, node: int, *, after: int) -> None:
        """Only rounds after that one count for a mechanism from now on."""
        kept = self.recent.samples(regime, node, after=after) - self.origin
        kept = kept[~np.isnan(kept).any(axis=1)]
        self.began[regime, node] = self.recent.began(regime, node, after=after)
        self.moments.gram[regime, node] = gram_matrix(np.ascontiguousarray(kept.T))
        self.moments.counts[regime, node] = len(kept)
        self.gaps.forget(regime, node, after)


class IncompleteRounds:
    """Rounds in which values are missing, held to be filled again by what is known later.

    The last ones are held; older ones keep what they said when they were last filled. Filling all
    that are held costs the same however many rounds were played, and is due whenever a tenth more
    rounds are known than at the last time. `gram` (R, N, N+1, N+1) is what they say, in weighted
    rows; `counts` (R, N) from how many.
    """

    def __init__(self, n_regimes: int, n_nodes: int) -> None:
        self.gram = np.zeros((n_regimes, n_nodes, n_nodes + 1, n_nodes + 1))
        self.counts = np.zeros((n_regimes, n_nodes), dtype=np.int64)
        self._for_good = np.zeros_like(self.gram)  # part of `gram` of rounds no longer held
        self._values = np.zeros((0, n_nodes))  # as told
        self._regimes = np.zeros((0, n_nodes), dtype=np.uint8)
        self._rounds = np.zeros(0, dtype=np.int64)
        self._filled_at = 0  # the round

    def __len__(self) -> int:
        return len(self._rounds)

    def add(self, round_: int, regimes: Intervention, values: FloatArray) -> None:
        """One round more, which says nothing before it is filled."""
        self._values = np.concatenate([self._values, values[None]])
        self._regimes = np.concatenate([self._regimes, regimes[None]])
        self._rounds = np.append(self._rounds, round_)
        measured = np.flatnonzero(~np.isnan(values))
        self.counts[regimes[measured], measured] += 1

    def due(self, round_: int) -> bool:
        """Whether all are to be filled again, and not only the last."""
        return len(self) > 0 and (
            len(self) >= MAX_INCOMPLETE or round_ >= REFILL_GROWTH * self._filled_at
        )

    def fill_last(self, draws: Draws, starts: IntArray, origin: FloatArray) -> None:
        """The round that was added last, by draws relative to the origin, as `gram` is."""
        self._add(self.gram, slice(len(self) - 1, None), draws, starts, origin, origin)

    def fill(
        self,
        round_: int,
        draws: Draws,
        starts: IntArray,  # (R, N), the round after which each mechanism began again
        zero: FloatArray,  # (N,), which the draws are relative to
        origin: FloatArray,  # (N,), which `gram` is to be relative to
    ) -> None:
        """All that are held, again."""
        self._filled_at = round_
        if len(self) >= MAX_INCOMPLETE:
            old = slice(None, MAX_INCOMPLETE // 2)
            self._add(self._for_good, old, draws, starts, zero, origin)
            self._values, self._regimes = (
                self._values[MAX_INCOMPLETE // 2 :],
                self._regimes[MAX_INCOMPLETE // 2 :],
            )
            self._rounds = self._rounds[MAX_INCOMPLETE // 2 :]
        self.gram = self._for_good.copy()
        self._add(self.gram, slice(None), draws, starts, zero, origin)

    def _add(
        self,
        gram: FloatArray,
        which: slice,
        draws: Draws,
        starts: IntArray,
        zero: FloatArray,
        origin: FloatArray,
    ) -> None:
        regimes = self._regimes[which]
        taught = self._rounds[which, None] > starts[regimes, np.arange(regimes.shape[1])]
        add_rounds(gram, self._values[which] - zero, zero - origin, regimes, taught, draws)

    def forget(self, regime: int, node: int, start: int) -> None:
        """Only rounds after `start` count for a mechanism; they do once they are filled again."""
        self.gram[regime, node] = 0.0
        self._for_good[regime, node] = 0.0
        later = (self._rounds > start) & (self._regimes[:, node] == regime)
        self.counts[regime, node] = int((later & ~np.isnan(self._values[:, node])).sum())
        self._filled_at = 0

    def state(self) -> dict[str, Any]:
        return {
            "gram": self.gram.copy(),
            "for_good": self._for_good.copy(),
            "counts": self.counts.copy(),
            "values": self._values.copy(),
            "regimes": self._regimes.copy(),
            "rounds": self._rounds.copy(),
            "filled_at": self._filled_at,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.gram, self._for_good = np.array(state["gram"]), np.array(state["for_good"])
        self.counts = np.array(state["counts"])
        self._values, self._regimes = np.array(state["values"]), np.array(state["regimes"])
        self._rounds, self._filled_at = np.array(state["rounds"]), int(state["filled_at"])


class OutlierFilter:
    """Rounds with a probable typing error: set aside, and taken back when others like them come.

    One value of 1000 among values of ten ruins regressions for hundreds of rounds, that of its
    node and those of all nodes it may cause, so that the whole round is left out. A value is
    suspected if
        it is far: `FAR` times as far from the median of its node as the third farthest value,
        itself included. Two strange values are errors, three are how things are, and a node that
        never varied may do anything. The first rounds are judged again with each of them; few
        values say little, so that they must be farther;
        it is surprising: its recursive residual (`changes/predictive.py`), as a standard normal
        score, is beyond `SURPRISING_SCORE`. With normal noise that never happens.
    If a mechanism is suspected three times within a few rounds it is no error but a change, or not
    linear: these rounds are taken back, and the mechanism is left alone for a while. All of it
    follows from the rounds told; `first` and held rounds are remembered as they were told.
    """

    def __init__(self, regimes: IntArray) -> None:
        n, most = len(regimes), int(regimes.max())
        self._n_regimes = regimes
        self._first = np.zeros((JUDGED_TOGETHER, n))
        self._first_regimes: Intervention = np.zeros((JUDGED_TOGETHER, n), dtype=np.uint8)
        self._center = np.zeros(n)  # median of the first rounds
        self._farthest = np.zeros((COMPANY, n))  # distances from it, largest first
        self._rounds: IntArray = np.zeros(MAX_SET_ASIDE, dtype=np.int64)  # 0: empty; oldest first
        self._nodes: IntArray = np.zeros(MAX_SET_ASIDE, dtype=np.int64)
        self._values = np.zeros((MAX_SET_ASIDE, n))
        self._regimes: Intervention = np.zeros((MAX_SET_ASIDE, n), dtype=np.uint8)
        self._cleared: IntArray = np.zeros((most, n), dtype=np.int64)  # round of; 0: never

    @property
    def left_out(self) -> list[LeftOut]:
        return [
            LeftOut(int(t), int(node), float(x[node]))
            for t, node, x in zip(self._rounds, self._nodes, self._values, strict=True)
            if t > 0
        ]

    def early(self, told: Round) -> list[Round] | None:
        """One of the first rounds: all to learn from so far, if that is not just one more."""
        n = told.number
        self._first[n - 1], self._first_regimes[n - 1] = told.values, told.regimes
        values = self._first[:n]
        self._center = middle_of(values)
        distance = np.nan_to_num(np.abs(values - self._center))  # what is missing is not far
        top = np.sort(distance, axis=0)[::-1][:COMPANY]
        self._farthest[: len(top)] = top
        far = np.zeros(values.shape, dtype=bool)
        if n >= FEWEST_TO_JUDGE:
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

        Scores are nan if nothing is predicted; predictors as [node, predictor].
        """
        distance = np.nan_to_num(np.abs(told.values - self._center))
        self._farthest = np.sort(np.vstack([self._farthest, distance]), axis=0)[:0:-1]
        suspected = (distance > FAR * self._farthest[-1]) & (self._farthest[-1] > 0)
        suspected |= np.abs(np.nan_to_num(scores)) > SURPRISING_SCORE
        cleared = self._cleared[told.regimes, np.arange(len(distance))]
        suspected &= (cleared == 0) | (told.number - cleared > CLEARED_ROUNDS)
        if not suspected.any():
            return [told]
        # what an error makes of its descendants is not their fault
        sources = suspected & ~(predictors & suspected).any(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            strange = np.nan_to_num(distance / self._farthest[-1])
        node = int(np.argmax(np.where(sources if sources.any() else suspected, 1 + strange, 0)))
        self._hold(told, node)
        return self.take_back(int(told.regimes[node]), node, after=told.number - COMPANY_ROUNDS)

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
        if len(held) == MAX_SET_ASIDE:
            self._drop(np.arange(MAX_SET_ASIDE) == 0)
        k = min(len(held), MAX_SET_ASIDE - 1)
        self._rounds[k], self._nodes[k] = told.number, node
        self._values[k], self._regimes[k] = told.values, told.regimes

    def _drop(self, which: BoolArray) -> None:
        for held in (self._rounds, self._nodes, self._values, self._regimes):
            kept = held[~which].copy()
            held[: len(kept)], held[len(kept) :] = kept, 0

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, f"_{name}").copy() for name in STATE}

    def restore(self, state: dict[str, Any]) -> None:
        for name in STATE:
            setattr(self, f"_{name}", np.array(state[name]))


STATE = (
    "first", "first_regimes", "center", "farthest", "rounds", "nodes", "values", "regimes",
    "cleared",
)  # fmt: skip


def show_units(values: FloatArray) -> bool:
    """Whether these rounds, (n, N), show the spread of every node; nan where missing."""
    if len(values) < FIRST_ROUNDS:
        return False
    return len(values) >= LATEST_ROUND or bool(
        ((~np.isnan(values)).sum(axis=0) >= FEWEST_VALUES).all()
    )


def units_shown_by(values: FloatArray, *, center: bool) -> Units:
    """Of what was measured of each node; a node that never was keeps its unit."""
    if not np.isnan(values).any():
        return estimated_units(values, center=center)
    each = [estimated_units(_measured(column)[:, None], center=center) for column in values.T]
    return Units(
        shift=np.array([unit.shift[0] for unit in each]),
        scale=np.array([unit.scale[0] for unit in each]),
    )


def middle_of(values: FloatArray) -> FloatArray:
    """Median of every node, (N,); of one that was never measured zero."""
    if not np.isnan(values).any():
        return np.asarray(np.median(values, axis=0))
    return np.array([np.median(_measured(column)) for column in values.T])


def _measured(column: FloatArray) -> FloatArray:
    found = column[~np.isnan(column)]
    return found if len(found) else np.zeros(1)
