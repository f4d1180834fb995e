"""The rounds told to `posterior`, as far as it learns from them.

Complete rounds are sums (`Moments`), incomplete ones are held to be filled (`IncompleteRounds`),
the last ones are kept as they are (`RecentRounds`), and those with a probable typing error are set
aside (`Suspects`). Sums are relative to an origin, which the first rounds show.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from causalarms.policies.detector_views import PredictiveView
from causalarms.policies.first_rounds import middle_of
from causalarms.policies.incomplete_rounds import IncompleteRounds
from causalarms.policies.typing_errors import FIRST, Round, Suspects
from causalarms.sem.regimes import Counts
from causalarms.statistics.dataset import RecentRounds
from causalarms.statistics.moments import Moments, gram_matrix

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Intervention = npt.NDArray[np.uint8]


class ToldRounds:
    """`wary`: of typing errors."""

    def __init__(self, regimes: Counts, *, wary: bool) -> None:
        self.regimes = regimes
        self.n_nodes = len(regimes)
        self.suspects = Suspects(regimes) if wary else None
        self.origin: FloatArray = np.zeros(self.n_nodes)  # all but the recent is relative to it
        self._start_anew()
        self.began: IntArray = np.zeros_like(self.moments.counts)  # when the first since was made

    def _start_anew(self) -> None:
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
        view: PredictiveView | None,
        predictors: BoolArray,
    ) -> int:
        """A round, unless it is set aside, and those that no longer are; how many have gaps."""
        rounds = [told]
        if self.suspects is not None and told.number <= FIRST:
            anew = None if changed else self.suspects.early(told)
            if anew is not None:
                self._start_anew()
                rounds = anew
            elif any(out.round == told.number for out in self.suspects.left_out):
                rounds = []
        elif self.suspects is not None:
            scores = np.full(self.n_nodes, np.nan)
            if view is not None:
                scores = view.prediction(told.regimes, told.values).scores
            rounds = self.suspects.later(told, scores, predictors)
        return self._learn(rounds, told.number, made, stale)

    def take_back(self, regime: int, node: int, *, after: int, last: int, made: int) -> int:
        """Rounds set aside because of a mechanism that has changed; how many have gaps.

        `last` is the round told last, and `made` when that was made.
        """
        if self.suspects is None:
            return 0
        back = self.suspects.take_back(regime, node, after=after, company=1)
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
