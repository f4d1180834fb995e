"""The rounds that `posterior` was told, in the form in which it learns from them.

Complete rounds are summed up (`Moments`). Incomplete rounds are completed in several ways
(`IncompleteRounds`), the last rounds are kept as they are (`RecentRounds`), and rounds with a
probable typing error are set aside (`OutlierFilter`). Sums are relative to an origin, the median of
the first rounds, because the prior of the intercepts is centred there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention
from causalarms.changes.detector import View
from causalarms.limits import MIN_VALUES_TO_LEARN
from causalarms.policies.base import LeftOut
from causalarms.posterior.base import Draws
from causalarms.posterior.missing import add_rounds, complete_rounds
from causalarms.rng import stream
from causalarms.sem.regimes import Counts
from causalarms.state import Declared, HasState, arrays
from causalarms.statistics.dataset import Moments, RecentRounds, gram_matrix
from causalarms.statistics.units import Units, estimated_units

DESIGNED_ROUNDS = 4  # balanced over the levels of all factors, before any is chosen
UNITS_AGAIN = (8, 16, 32)  # rounds after which units are estimated again, from all so far
MIN_VALUES_FOR_UNITS = 3  # of each node, if values are missing
LATEST_ROUND_FOR_UNITS = 24  # then units are estimated, however many values are missing

MAX_INCOMPLETE = 300  # held rounds; then the older half stays as it was completed last
RANGES_BEYOND = 2.0  # of the measured values, beyond which no missing value is drawn

FAR_RATIO = 5.0  # times the third farthest distance; 3 leaves out good rounds, 10 misses errors
MIN_ROUNDS_TO_JUDGE = 6  # fewer values do not show which of them is far
EARLY_ROUNDS = 30  # rounds that are all judged again with each of them
VALUES_FOR_A_PATTERN = 3  # this many strange values of a mechanism are not errors
PATTERN_ROUNDS = 20  # within which they must come
SURPRISING_SCORE = 8.0  # standard normal; never reached by chance
CLEARED_ROUNDS = 50  # in which a mechanism that was wrongly suspected is not suspected again
MAX_SET_ASIDE = 100  # rounds that may be taken back; older ones stay out


class Round(NamedTuple):
    """A round as it was told."""

    number: int
    regimes: Intervention
    values: FloatArray


class ToldRounds(HasState):
    """All rounds told so far.

    regimes        how many regimes each node has, (N,)
    n_measured     how many nodes are measured; the rest are columns of factors
    set_aside_errors   whether rounds with a probable typing error are left out
    """

    learned: ClassVar[Declared] = {
        **arrays("origin", "began", "range"),
        "moments": Moments, "recent": HasState, "gaps": HasState, "outliers": HasState,
    }  # fmt: skip

    def __init__(self, regimes: Counts, n_measured: int, *, set_aside_errors: bool) -> None:
        self.regimes = regimes
        self.n_nodes, self.n_measured = len(regimes), n_measured
        self.outliers = OutlierFilter(regimes, n_measured) if set_aside_errors else None
        self.origin: FloatArray = np.zeros(self.n_nodes)  # all but the recent is relative to it
        self._start_again()
        # (R, N), when the first round since the mechanism's last change was made
        self.began: IntArray = np.zeros_like(self.moments.counts)

    def _start_again(self) -> None:
        self.moments = Moments(self.n_nodes, regimes=self.regimes)
        self.gaps = IncompleteRounds(int(self.regimes.max()), self.n_nodes)
        self.recent = RecentRounds(self.n_nodes)
        # (2, N) the smallest and the largest measured value of every node
        self.range = np.tile([[np.inf], [-np.inf]], self.n_nodes)

    @property
    def counts(self) -> IntArray:
        """In how many rounds that a mechanism learns from its node was measured, (R, N)."""
        return self.moments.counts + self.gaps.counts

    @property
    def evidence(self) -> Moments:
        """Moments of all rounds, averaged over the completions."""
        return self._with(self.gaps.gram.mean(axis=0)) if len(self.gaps.gram) else self.moments

    def completed(self, m: int) -> Moments:
        """Moments of all rounds in the completion m."""
        return self._with(self.gaps.gram[m])

    def _with(self, gram: FloatArray) -> Moments:
        both = Moments(self.n_nodes, regimes=self.regimes)
        both.gram[:] = self.moments.gram + gram
        both.counts[:] = np.rint(both.gram[:, :, -1, -1])
        return both

    def guess_gaps(self, n: int, number: int) -> None:
        """Complete rounds in n ways by values that were measured in any other round.

        This is where chains start: far apart, since the values fit no system.
        """
        if len(self.gaps.gram) != n:
            self.gaps.begin(n)
        for m in range(n):
            rng = stream(0, "guesses", number, m)
            self.gaps.guess(m, self.recent.values(number), self.origin, rng)
            self._sum_up(m)

    def complete_gaps(self, m: int, draws: Draws, rng: np.random.Generator) -> None:
        """Draw all missing values of the completion m, given a draw of values from the origin."""
        low, high = self.range
        bounds = np.stack([low, high]) + RANGES_BEYOND * (high - low) * np.array([[-1.0], [1.0]])
        bounds = np.where(np.isfinite(bounds), bounds, self.origin) - self.origin
        self.gaps.complete(m, draws, rng, self.origin, bounds)
        self._sum_up(m)

    @property
    def known(self) -> BoolArray:
        """Nodes with values to learn from, (N,); others would be filled in with inventions."""
        if not len(self.gaps):
            return np.ones(self.n_nodes, dtype=bool)
        often = self.counts.sum(axis=0) >= MIN_VALUES_TO_LEARN
        return np.asarray(often | (self.range[0] < self.range[1]))

    def _sum_up(self, m: int) -> None:
        self.gaps.sum_up(m, self.origin, self.known)

    def judges_by_prediction(self, number: int) -> bool:
        """Whether round `number` is judged by its prediction, and not by its distance alone."""
        return self.outliers is not None and number > EARLY_ROUNDS

    def stale(self, regimes: Intervention, made: int) -> BoolArray:
        """Nodes whose mechanism is known to have changed since a round was made, (N,)."""
        return self.began[regimes, np.arange(self.n_nodes)] > made

    def take_in(
        self,
        told: Round,
        made: int,
        stale: BoolArray,
        *,
        changed: bool,
        view: View | None,
        predictors: BoolArray,
    ) -> None:
        """Learn a round, unless it is set aside, and rounds that no longer are.

        made         when the round was made (the number of rounds told then)
        stale        nodes whose mechanism has changed since, (N,)
        changed      whether there were alarms before
        view         predicts the round; None: no prediction yet
        predictors   which nodes predict which, (N, N) as [node, predictor]
        """
        rounds = [told]
        if self.outliers is not None and told.number <= EARLY_ROUNDS:
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
        self._learn(rounds, told.number, made, stale)

    def take_back(self, regime: int, node: int, *, after: int, last: int, made: int) -> None:
        """Learn rounds that were set aside because of a mechanism that has changed since `after`.

        `last` is the round told last, and `made` when that was made.
        """
        if self.outliers is not None:
            back = self.outliers.take_back(regime, node, after=after, minimum=1)
            self._learn(back, last, made, np.zeros(self.n_nodes, dtype=bool))

    def _learn(self, rounds: Sequence[Round], last: int, made: int, stale: BoolArray) -> None:
        """`stale` mechanisms learn nothing from the last round."""
        for number, regimes, values in rounds:
            is_last = number == last
            old = stale if is_last else np.zeros(self.n_nodes, dtype=bool)
            self.range = np.stack([np.fmin(self.range[0], values), np.fmax(self.range[1], values)])
            if np.isnan(values).any():
                self.gaps.add(Round(number, regimes, values), ~old, self.origin)
            else:
                self._add(regimes, values - self.origin, old)
            self.recent.add(number, regimes, values, made if is_last else None)

    def _add(self, a: Intervention, x: FloatArray, stale: BoolArray) -> None:
        """Add the round to all mechanisms it was played with, except the stale ones."""
        if not stale.any():
            self.moments.add(x, a)
            return
        # adding and putting back is exact; subtracting the round again would leave rounding errors
        nodes = np.flatnonzero(stale)
        grams, counts = self.moments.gram[a[nodes], nodes], self.moments.counts[a[nodes], nodes]
        self.moments.add(x, a)
        self.moments.gram[a[nodes], nodes] = grams
        self.moments.counts[a[nodes], nodes] = counts

    def center(self, n_told: int) -> None:
        """Make the first rounds, all of which are still recent, relative to their median.

        The median, because one typing error among eight rounds would move a mean far off. Only
        the first rounds: with another origin all sums would have to be made again.
        """
        values, regimes = self.recent.values(n_told), self.recent.regimes(n_told)
        self.origin = middle_of(values)
        self.origin[self.n_measured :] = 0.0  # columns are numbers of their own
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


class IncompleteRounds(HasState):
    """Rounds with missing values, completed in M ways (`posterior/missing.py`).

    The last ones are held and completed again and again; older ones stay as they were completed
    last, so that a round costs the same however many were played. `gram` (M, R, N, N+1, N+1) holds
    the moments of all of them in every completion, and `counts` (R, N) in how many rounds of a
    mechanism its node was measured. M is zero before there are any.
    """

    learned = arrays(
        "gram", "counts", "_older", "_completed", "_values", "_regimes", "_taught", "_rounds"
    )

    def __init__(self, n_regimes: int, n_nodes: int) -> None:
        self.gram = np.zeros((0, n_regimes, n_nodes, n_nodes + 1, n_nodes + 1))
        self.counts = np.zeros((n_regimes, n_nodes), dtype=np.int64)
        self._older = np.zeros_like(self.gram)  # the part of `gram` of rounds no longer held
        self._completed = np.zeros((0, 0, n_nodes))  # (M, n, N), nan before the first time
        self._values = np.zeros((0, n_nodes))  # as told
        self._regimes: Intervention = np.zeros((0, n_nodes), dtype=np.uint8)
        self._taught: BoolArray = np.zeros((0, n_nodes), dtype=bool)  # whose mechanisms learn
        self._rounds: IntArray = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._rounds)

    def add(self, told: Round, taught: BoolArray, zero: FloatArray) -> None:
        """Hold one more round; it is in `counts` at once, and in `gram` once it is completed.

        `taught` (N,) says whose mechanisms learn from it; moments are relative to `zero`.
        """
        if len(self) == MAX_INCOMPLETE:
            self._let_go(MAX_INCOMPLETE // 2, zero)
        number, regimes, values = told
        self._values = np.concatenate([self._values, values[None]])
        self._regimes = np.concatenate([self._regimes, regimes[None]])
        self._taught = np.concatenate([self._taught, taught[None]])
        self._rounds = np.append(self._rounds, number)
        rows = np.broadcast_to(values, (len(self.gram), 1, len(values)))
        self._completed = np.concatenate([self._completed, rows], axis=1)
        measured = np.flatnonzero(~np.isnan(values) & taught)
        self.counts[regimes[measured], measured] += 1

    def _let_go(self, n: int, zero: FloatArray) -> None:
        """The first n held rounds stay as they are."""
        for m in range(len(self.gram)):
            add_rounds(
                self._older[m], self._completed[m, :n] - zero, self._regimes[:n], self._taught[:n]
            )
        self._completed = self._completed[:, n:]
        self._values, self._regimes = self._values[n:], self._regimes[n:]
        self._taught, self._rounds = self._taught[n:], self._rounds[n:]

    def begin(self, n: int) -> None:
        """Have n completions, of rounds of which none is completed yet."""
        self.gram = np.zeros((n, *self.gram.shape[1:]))
        self._older = np.zeros_like(self.gram)
        self._completed = np.tile(self._values, (n, 1, 1))

    def guess(
        self, m: int, measured: FloatArray, fallback: FloatArray, rng: np.random.Generator
    ) -> None:
        """Fill what is missing by values measured in other rounds, (n, N) with nan."""
        for node in np.flatnonzero(np.isnan(self._values).any(axis=0)).tolist():
            found = measured[~np.isnan(measured[:, node]), node]
            found = found if len(found) else fallback[[node]]
            gaps = np.isnan(self._values[:, node])
            self._completed[m, gaps, node] = rng.choice(found, int(gaps.sum()))

    def complete(
        self, m: int, draws: Draws, rng: np.random.Generator, zero: FloatArray, bounds: FloatArray
    ) -> None:
        """Draw the missing values again; draws and bounds are relative to `zero`."""
        values = self._values - zero
        completed = complete_rounds(values, self._regimes, self._taught, draws, rng, bounds)
        self._completed[m] = completed + zero

    def sum_up(self, m: int, zero: FloatArray, known: BoolArray) -> None:
        """The moments of completion m relative to `zero`; only `known` nodes (N,) learn."""
        self.gram[m] = self._older[m]
        add_rounds(self.gram[m], self._completed[m] - zero, self._regimes, self._taught & known)

    def forget(self, regime: int, node: int, start: int) -> None:
        """Only rounds after `start` count for a mechanism, once they are completed again."""
        # rounds that are no longer held cannot be told apart, and may be from before the change
        self._older[:, regime, node] = 0.0
        self.gram[:, regime, node] = 0.0
        follows = self._regimes[:, node] == regime
        self._taught[:, node] &= ~follows | (self._rounds > start)
        counted = follows & self._taught[:, node] & ~np.isnan(self._values[:, node])
        self.counts[regime, node] = int(counted.sum())


class OutlierFilter(HasState):
    """Rounds with a probable typing error: set aside, and taken back if others like them follow.

    One value of 1000 among values of ten ruins regressions for hundreds of rounds: that of its
    node, and those of all nodes it may cause. So the whole round is left out. A value is suspected
    if it is far or surprising.

    Far: it is `FAR_RATIO` times as far from the median of its node as the third farthest value,
    itself included. So two strange values are errors and three are not, and a node that never
    varied is not judged. The first rounds are judged again with each of them; as few values show
    little, the ratio is larger for them.

    Surprising: its recursive residual (`changes/predictive.py`), as a standard normal score, is
    beyond `SURPRISING_SCORE`. With normal noise that never happens.

    A mechanism that is suspected three times within a few rounds has changed, or is not linear.
    These rounds are taken back, and the mechanism is not suspected for a while. All of this follows
    from the rounds told; the first rounds and those set aside are stored as they were told.
    """

    learned = arrays(
        "_first", "_first_regimes", "_center", "_farthest", "_rounds", "_nodes", "_values",
        "_regimes", "_cleared",
    )  # fmt: skip

    def __init__(self, regimes: IntArray, n_measured: int) -> None:
        n, most = len(regimes), int(regimes.max())
        self._n_measured = n_measured
        self._first = np.zeros((EARLY_ROUNDS, n))
        self._first_regimes: Intervention = np.zeros((EARLY_ROUNDS, n), dtype=np.uint8)
        self._center = np.zeros(n)  # median of the first rounds
        self._farthest = np.zeros((VALUES_FOR_A_PATTERN, n))  # distances from it, largest first
        self._rounds: IntArray = np.zeros(MAX_SET_ASIDE, dtype=np.int64)  # 0: empty; oldest first
        self._nodes: IntArray = np.zeros(MAX_SET_ASIDE, dtype=np.int64)
        self._values = np.zeros((MAX_SET_ASIDE, n))
        self._regimes: Intervention = np.zeros((MAX_SET_ASIDE, n), dtype=np.uint8)
        self._cleared: IntArray = np.zeros((most, n), dtype=np.int64)  # in which round; 0: never

    @property
    def left_out(self) -> list[LeftOut]:
        return [
            LeftOut(int(t), int(node), float(x[node]))
            for t, node, x in zip(self._rounds, self._nodes, self._values, strict=True)
            if t > 0
        ]

    def early(self, told: Round) -> list[Round] | None:
        """Judge all first rounds again with one more of them.

        Returns all rounds to learn from, if others are suspected than before; else None.
        """
        n = told.number
        self._first[n - 1], self._first_regimes[n - 1] = told.values, told.regimes
        values = self._first[:n]
        self._center = middle_of(values)
        distance = self._distance(values)
        top = np.sort(distance, axis=0)[::-1][:VALUES_FOR_A_PATTERN]
        self._farthest[: len(top)] = top
        far = np.zeros(values.shape, dtype=bool)
        if n >= MIN_ROUNDS_TO_JUDGE:
            # a third farthest value of few shows little: the ratio is 18.9 at 6 rounds and 10 at 10
            far = (distance > FAR_RATIO * (1.0 + (10.0 / n) ** 2) * top[-1]) & (top[-1] > 0)
        suspected = np.flatnonzero(far.any(axis=1))
        before = self._rounds[self._rounds > 0] - 1
        # All are judged again from the start: an early error makes good rounds look near or far.
        self._drop(self._rounds > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            strangest = np.argmax(np.where(far, distance / top[-1], 0.0), axis=1)
        for row in suspected.tolist():
            self._hold(self._early_round(row), int(strangest[row]))
        if np.array_equal(before, suspected):
            return None
        return [self._early_round(row) for row in range(n) if row not in suspected]

    def _distance(self, values: FloatArray) -> FloatArray:
        """From the median; what is missing is not far, nor what is set."""
        found = np.nan_to_num(np.abs(values - self._center))
        found[..., self._n_measured :] = 0.0
        return found

    def _early_round(self, row: int) -> Round:
        return Round(row + 1, self._first_regimes[row], self._first[row])

    def later(self, told: Round, scores: FloatArray, predictors: BoolArray) -> list[Round]:
        """What to learn from now: nothing, this round, or this one and some that were set aside.

        `scores` (N,) are nan if nothing is predicted; `predictors` is (N, N) as [node, predictor].
        """
        distance = self._distance(told.values)
        self._farthest = np.sort(np.vstack([self._farthest, distance]), axis=0)[:0:-1]
        suspected = (distance > FAR_RATIO * self._farthest[-1]) & (self._farthest[-1] > 0)
        suspected |= np.abs(np.nan_to_num(scores)) > SURPRISING_SCORE
        cleared = self._cleared[told.regimes, np.arange(len(distance))]
        suspected &= (cleared == 0) | (told.number - cleared > CLEARED_ROUNDS)
        if not suspected.any():
            return [told]
        # an error makes the predictions of all its descendants wrong: suspect the source alone
        sources = suspected & ~(predictors & suspected).any(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            strange = np.nan_to_num(distance / self._farthest[-1])
        node = int(np.argmax(np.where(sources if sources.any() else suspected, 1 + strange, 0)))
        self._hold(told, node)
        return self.take_back(int(told.regimes[node]), node, after=told.number - PATTERN_ROUNDS)

    def take_back(
        self, regime: int, node: int, *, after: int, minimum: int = VALUES_FOR_A_PATTERN
    ) -> list[Round]:
        """The rounds after `after` in which a mechanism was suspected, if at least `minimum`.

        It is then not suspected for `CLEARED_ROUNDS`.
        """
        same = (self._rounds > max(after, 0)) & (self._nodes == node)
        same &= self._regimes[:, node] == regime
        if same.sum() < minimum:
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


def show_units(values: FloatArray) -> bool:
    """Whether these rounds, (n, N) with nan for missing values, show the spread of every node."""
    if len(values) < DESIGNED_ROUNDS:
        return False
    return len(values) >= LATEST_ROUND_FOR_UNITS or bool(
        ((~np.isnan(values)).sum(axis=0) >= MIN_VALUES_FOR_UNITS).all()
    )


def units_shown_by(values: FloatArray, *, center: bool) -> Units:
    """Units estimated from the measured values of each node; a node without any keeps its unit."""
    if not np.isnan(values).any():
        return estimated_units(values, center=center)
    each = [estimated_units(_measured(column)[:, None], center=center) for column in values.T]
    return Units(
        shift=np.array([unit.shift[0] for unit in each]),
        scale=np.array([unit.scale[0] for unit in each]),
    )


def middle_of(values: FloatArray) -> FloatArray:
    """Median of every node, (N,); zero for a node that was never measured."""
    if not np.isnan(values).any():
        return np.asarray(np.median(values, axis=0))
    return np.array([np.median(_measured(column)) for column in values.T])


def _measured(column: FloatArray) -> FloatArray:
    found = column[~np.isnan(column)]
    return found if len(found) else np.zeros(1)
