"""`ChangeEvidence`: alarms at a rate the user states, for all mechanisms together.

Every mechanism's rounds come as scores that are N(0, 1) and independent until it changes
(`predictive.py`). Against each of a few alternatives (scores that are wider, shifted, or follow one
of the predictors: a changed weight) the Shiryaev-Roberts sum R <- (1 + R) L adds up the likelihood
ratios of all possible change points; their average over alternatives minus the number of scores is
a martingale until the change, so that the mean time to a false alarm at R = A is E[R at the alarm]:
A at least, and more by the average overshoot, which hardly depends on A. A stated system-wide rate
is divided among the mechanisms a round is played with. The cost of a round does not depend on the
past.

Scores are normal where the noise is. With noise="any" only their ranks among earlier scores count
(`ranks.py`): each says between which two numbers a normal score lies, and the likelihood ratio is
that of lying there. Where a node is regressed on one of its effects, noise that is not Gaussian
makes residuals depend on the predictors, and ratios are a little above one on average for ever.
Each is therefore divided by what it has been on average, where that is more than one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.changes.alarm import Alarm
from causalarms.changes.detector import Detector
from causalarms.changes.ranks import PastScores
from causalarms.changes.view import PREDICTION, Prediction, View
from causalarms.checks import choice, flag, number
from causalarms.kernels import kernel
from causalarms.state_entries import Entry

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# mean and spread of the scores after a change
ALTERNATIVES = np.array(
    [(0.0, 1.6), (0.0, 3.0), (0.0, 8.0), (0.0, 25.0)]
    + [(sign * shift, 1.0) for shift in (1.0, 2.0, 4.0) for sign in (1.0, -1.0)]
)
# changes of a weight, in units of the noise per unit of the predictor, clipped to a shift
WEIGHT_CHANGES = np.array([0.3, -0.3, 1.0, -1.0])
LARGEST_SHIFT = 5.0
# E[R at the alarm] / A: 2.2 to 5.4 by `python benchmarks/change_evidence.py`; the middle of that
OVERSHOOT = 3.4
OVERSHOOT_OF_RANKS = 2.5  # 1.9 to 4.0 with uniform ranks; keeps 0.1 in whole runs of several laws
GAUSSIAN, ANY = NOISE = ("gaussian", "any")
ANY_RATIO = 600.0  # nats; the evidence of one round is not limited
OUTLIER_RATIO = math.log(1000.0)  # nats; no single round raises an alarm
LARGEST = 1e300  # an R beyond it is as good
SMALLEST = 1e-30  # a probability
# of the average ratio: ratios of one it starts with, and the most that a score adds to it
USUAL_FIRST, USUAL_MOST = 200.0, 5.0


def alarm_level(
    false_alarms_per_1000_rounds: float, n_nodes: int, *, noise: str = GAUSSIAN
) -> float:
    """A, from the rate of false alarms of `n_nodes` mechanisms tested in every round."""
    overshoot = OVERSHOOT if noise == GAUSSIAN else OVERSHOOT_OF_RANKS
    return 1000.0 * n_nodes / (false_alarms_per_1000_rounds * overshoot)


class ChangeEvidence(Detector):
    """Shiryaev-Roberts sums of all mechanisms.

    false_alarms_per_1000_rounds   of the whole system while nothing changes
    noise                          "gaussian", or "any" law, the same for all mechanisms but for
                                   its scale: alarms are then later by some rounds, and early ones
                                   rare
    outliers                       the noise has tails: no single round raises an alarm, which is
                                   then later by some rounds; nothing more where noise is "any"
    n_regimes                      the most that a node has
    """

    needs = (PREDICTION,)

    def __init__(
        self,
        n_nodes: int,
        *,
        false_alarms_per_1000_rounds: float = 0.1,
        noise: str = GAUSSIAN,
        outliers: bool = False,
        n_regimes: int = 2,
    ) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)
        rate = number(
            "false_alarms_per_1000_rounds", false_alarms_per_1000_rounds, above=0.0, most=100.0
        )
        self.level = alarm_level(rate, self.n_nodes, noise=choice("noise", noise, NOISE))
        self.largest_ratio = OUTLIER_RATIO if flag("outliers", outliers) else ANY_RATIO
        n_alternatives = len(ALTERNATIVES) + len(WEIGHT_CHANGES) * self.n_nodes
        shape = (self.n_regimes, self.n_nodes, n_alternatives)
        self._sums = np.zeros(shape)
        # the last time the likelihood ratio since some round was largest for starting anew
        self._gains = np.zeros(shape)
        self._starts: IntArray = np.zeros(shape, dtype=np.int64)
        self._past = PastScores(self.n_nodes) if noise == ANY else None
        # sum and number of ratios so far, where they are averaged
        self._usual = np.zeros((*shape[:2], 2, n_alternatives if noise == ANY else 0))

    def watch(
        self,
        round_: int,
        intervention: npt.NDArray[np.uint8],
        values: FloatArray,
        view: View,
    ) -> list[Alarm]:
        prediction = view.prediction(intervention, values)
        return self.observe(round_, intervention, prediction, view.scaled(values))

    def observe(
        self,
        round_: int,
        regimes: npt.NDArray[np.uint8],
        prediction: Prediction,
        values: FloatArray,  # (N,)
    ) -> list[Alarm]:
        """Add a round; alarms of the mechanisms it was played with."""
        low = high = prediction.scores
        if self._past is not None:
            low, high = self._past.cells(round_, regimes, prediction)
            self._past.add(round_, regimes, prediction.scores)
        totals = add_scores(
            self._sums,
            self._gains,
            self._starts,
            self._usual,
            round_,
            regimes,
            low,
            high,
            prediction.predictors,
            values,
            prediction.stds,
            self.largest_ratio,
        )
        alarms = []
        for node in np.flatnonzero(totals >= self.level):
            regime = int(regimes[node])
            first = self._likeliest_start(regime, int(node))
            alarms.append(
                Alarm(
                    round_,
                    regime,
                    int(node),
                    first - 1,
                    math.log(totals[node]),
                    math.log(self.level),
                )
            )
        return alarms

    def _likeliest_start(self, regime: int, node: int) -> int:
        likeliest = int(np.argmax(self._gains[regime, node]))
        return int(self._starts[regime, node, likeliest])

    def forget(self, regime: int, node: int) -> None:
        """No evidence is held against a mechanism that is learned anew."""
        if self._past is not None:
            self._past.forget(regime, node, since=self._likeliest_start(regime, node))
        self._sums[regime, node] = 0.0
        self._gains[regime, node] = 0.0
        self._starts[regime, node] = 0

    def entries(self, n_told: int) -> dict[str, Entry]:
        return {} if self._past is None else self._past.entries()

    def state(self) -> dict[str, Any]:
        past = {} if self._past is None else self._past.state() | {"usual": self._usual.copy()}
        return {
            "sums": self._sums.copy(),
            "gains": self._gains.copy(),
            "starts": self._starts.copy(),
            **past,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._sums[:] = state["sums"]
        self._gains[:] = state["gains"]
        self._starts[:] = state["starts"]
        if self._past is not None:
            self._past.restore(state)
            self._usual[:] = state["usual"]


@kernel
def log_ratio(low: float, high: float, mean: float, spread: float) -> float:
    """Log density of N(mean, spread^2) over N(0, 1), at a point or between two."""
    if low == high:
        return 0.5 * low**2 - 0.5 * ((low - mean) / spread) ** 2 - math.log(spread)
    other = normal_mass((low - mean) / spread, (high - mean) / spread)
    return math.log(max(other, SMALLEST) / normal_mass(low, high))


@kernel
def normal_mass(low: float, high: float) -> float:
    """Probability of N(0, 1) between two numbers, exact in either tail."""
    if low > 0.0:
        low, high = -high, -low
    return 0.5 * (math.erfc(-high * math.sqrt(0.5)) - math.erfc(-low * math.sqrt(0.5)))


@kernel
def _add(
    sums: FloatArray,
    gains: FloatArray,
    starts: IntArray,
    usual: FloatArray,
    k: int,
    round_: int,
    ratio: float,
) -> float:
    """One more score for alternative k; its sum afterwards."""
    if usual.shape[1] > 0:
        average = (USUAL_FIRST + usual[0, k]) / (USUAL_FIRST + usual[1, k])
        usual[0, k] += min(math.exp(ratio), USUAL_MOST)
        usual[1, k] += 1.0
        ratio -= math.log(max(average, 1.0))
    sums[k] = min((1.0 + sums[k]) * math.exp(ratio), LARGEST)
    if gains[k] <= 0.0:
        gains[k], starts[k] = 0.0, round_
    gains[k] += ratio
    return float(sums[k])


@kernel
def add_score(
    sums: FloatArray,  # (alternatives,)
    gains: FloatArray,
    starts: IntArray,
    usual: FloatArray,  # (2, alternatives), or (2, 0)
    round_: int,
    low: float,  # the score is between these, or both
    high: float,
    predictors: npt.NDArray[np.bool_],  # (N,)
    values: FloatArray,  # (N,)
    std: float,
    largest_ratio: float,
) -> float:
    """The mechanism's R afterwards: half of it by the kind of scores, half by predictor."""
    n_kinds, n_changes = len(ALTERNATIVES), len(WEIGHT_CHANGES)
    kinds = changes = 0.0
    for k in range(n_kinds):
        ratio = log_ratio(low, high, ALTERNATIVES[k, 0], ALTERNATIVES[k, 1])
        kinds += _add(sums, gains, starts, usual, k, round_, min(ratio, largest_ratio))
    n_predictors = 0
    for j in range(len(predictors)):
        if predictors[j]:
            n_predictors += 1
            for c in range(n_changes):
                shift = WEIGHT_CHANGES[c] * values[j] / std
                shift = min(max(shift, -LARGEST_SHIFT), LARGEST_SHIFT)
                k = n_kinds + n_changes * j + c
                if low == high:
                    ratio = shift * low - 0.5 * shift**2
                else:
                    ratio = log_ratio(low, high, shift, 1.0)
                changes += _add(sums, gains, starts, usual, k, round_, min(ratio, largest_ratio))
    if n_predictors == 0:
        return kinds / n_kinds
    return 0.5 * kinds / n_kinds + 0.5 * changes / (n_changes * n_predictors)


@kernel
def add_scores(
    sums: FloatArray,  # (R, N, alternatives)
    gains: FloatArray,
    starts: IntArray,
    usual: FloatArray,  # (R, N, 2, alternatives), or (R, N, 2, 0)
    round_: int,
    regimes: npt.NDArray[np.uint8],
    low: FloatArray,
    high: FloatArray,
    predictors: npt.NDArray[np.bool_],
    values: FloatArray,
    stds: FloatArray,
    largest_ratio: float,
) -> FloatArray:
    totals = np.zeros(len(low))
    for node in range(len(low)):
        if not math.isnan(low[node]):
            m = regimes[node]
            totals[node] = add_score(
                sums[m, node],
                gains[m, node],
                starts[m, node],
                usual[m, node],
                round_,
                low[node],
                high[node],
                predictors[node],
                values,
                stds[node],
                largest_ratio,
            )
    return totals
