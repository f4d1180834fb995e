"""`ChangeEvidence`: alarms at a rate the user states, for all mechanisms together.

Every mechanism's rounds come as scores that are N(0, 1) and independent until it changes
(`predictive.py`). Against each of a few alternatives (scores that are wider, shifted, or follow one
of the predictors: a changed weight) the Shiryaev-Roberts sum R <- (1 + R) L adds up the likelihood
ratios of all possible change points; their average over alternatives minus the number of scores is
a martingale until the change, so that the mean time to a false alarm at R = A is E[R at the alarm]:
A at least, and more by the average overshoot, which hardly depends on A. A stated system-wide rate
is divided among the mechanisms a round is played with. The cost of a round does not depend on the
past.

Scores are normal if the noise is. With noise="any" only their ranks among earlier scores count
(`ranks.py`): each says between which two numbers a normal score lies, and the likelihood ratio is
that of lying there. Where a node is regressed on one of its effects, noise that is not Gaussian
makes residuals depend on the predictors, and ratios are a little above one on average for ever.
Each is therefore divided by what it has been on average, if that is more than one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.changes.alarm import Alarm
from causalarms.changes.detector import Detector
from causalarms.changes.ranks import PastScores
from causalarms.changes.view import PREDICTION, Prediction, View
from causalarms.checks import choice, number
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
# E[R at the alarm] / A: 2.2 to 5.4 (`benchmarks/change_detection.py evidence`); the middle of that
OVERSHOOT = 3.4
OVERSHOOT_OF_RANKS = 2.5  # 1.9 to 4.0 with uniform ranks; keeps 0.1 in whole runs of several laws
GAUSSIAN, ANY = NOISE = ("gaussian", "any")
LARGEST_RATIO = 600.0  # nats of one round: exp of more overflows
LARGEST = 1e300  # an R beyond it is as good
SMALLEST = 1e-30  # a probability
# of the average ratio: ratios of one it starts with, and the most that a score adds to it
USUAL_FIRST, USUAL_MOST = 200.0, 5.0


class Evidence(NamedTuple):
    """Against every alternative, of one mechanism or, with (R, N) in front, of all of them."""

    sums: FloatArray  # (alternatives,) R of Shiryaev and Roberts
    # the last time the likelihood ratio since some round was largest for starting again
    gains: FloatArray  # (alternatives,)
    starts: IntArray  # (alternatives,)
    usual: FloatArray  # (2, alternatives) sum and number of ratios so far, or (2, 0)


class ScoredRound(NamedTuple):
    """What a round says of every node."""

    low: FloatArray  # (N,) the score is between these, or both; nan: not tested
    high: FloatArray  # (N,)
    predictors: npt.NDArray[np.bool_]  # (N, N) as [node, predictor]
    values: FloatArray  # (N,)
    stds: FloatArray  # (N,)


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
    n_regimes                      the most that a node has
    """

    needs = (PREDICTION,)

    def __init__(
        self,
        n_nodes: int,
        *,
        false_alarms_per_1000_rounds: float = 0.1,
        noise: str = GAUSSIAN,
        n_regimes: int = 2,
    ) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)
        rate = number(
            "false_alarms_per_1000_rounds", false_alarms_per_1000_rounds, above=0.0, most=100.0
        )
        self.level = alarm_level(rate, self.n_nodes, noise=choice("noise", noise, NOISE))
        n_alternatives = len(ALTERNATIVES) + len(WEIGHT_CHANGES) * self.n_nodes
        shape = (self.n_regimes, self.n_nodes, n_alternatives)
        self._past = PastScores(self.n_nodes) if noise == ANY else None
        self._evidence = Evidence(
            sums=np.zeros(shape),
            gains=np.zeros(shape),
            starts=np.zeros(shape, dtype=np.int64),
            usual=np.zeros((*shape[:2], 2, n_alternatives if noise == ANY else 0)),
        )

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
        scored = ScoredRound(low, high, prediction.predictors, values, prediction.stds)
        totals = add_scores(self._evidence, round_, regimes, scored)
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
        likeliest = int(np.argmax(self._evidence.gains[regime, node]))
        return int(self._evidence.starts[regime, node, likeliest])

    def forget(self, regime: int, node: int) -> None:
        """No evidence is held against a mechanism that is learned again."""
        if self._past is not None:
            self._past.forget(regime, node, since=self._likeliest_start(regime, node))
        for held in (self._evidence.sums, self._evidence.gains, self._evidence.starts):
            held[regime, node] = 0

    def entries(self, n_told: int) -> dict[str, Entry]:
        return {} if self._past is None else self._past.entries()

    def state(self) -> dict[str, Any]:
        state = {name: held.copy() for name, held in self._evidence._asdict().items()}
        if self._past is None:
            del state["usual"]
            return state
        return state | self._past.state()

    def restore(self, state: dict[str, Any]) -> None:
        for name, held in self._evidence._asdict().items():
            if name in state:
                held[:] = state[name]
        if self._past is not None:
            self._past.restore(state)


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
def _add(evidence: Evidence, k: int, round_: int, ratio: float) -> float:
    """One more score for alternative k; its sum afterwards."""
    sums, gains, starts, usual = evidence.sums, evidence.gains, evidence.starts, evidence.usual
    ratio = min(ratio, LARGEST_RATIO)
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
    evidence: Evidence,  # of one mechanism
    round_: int,
    low: float,  # the score is between these, or both
    high: float,
    predictors: npt.NDArray[np.bool_],  # (N,)
    values: FloatArray,  # (N,)
    std: float,
) -> float:
    """The mechanism's R afterwards: half of it by the kind of scores, half by predictor."""
    n_kinds, n_changes = len(ALTERNATIVES), len(WEIGHT_CHANGES)
    kinds = changes = 0.0
    for k in range(n_kinds):
        ratio = log_ratio(low, high, ALTERNATIVES[k, 0], ALTERNATIVES[k, 1])
        kinds += _add(evidence, k, round_, ratio)
    n_predictors = 0
    for j in range(len(predictors)):
        if predictors[j]:
            n_predictors += 1
            for c in range(n_changes):
                shift = WEIGHT_CHANGES[c] * values[j] / std
                shift = min(max(shift, -LARGEST_SHIFT), LARGEST_SHIFT)
                if low == high:
                    ratio = shift * low - 0.5 * shift**2
                else:
                    ratio = log_ratio(low, high, shift, 1.0)
                changes += _add(evidence, n_kinds + n_changes * j + c, round_, ratio)
    if n_predictors == 0:
        return kinds / n_kinds
    return 0.5 * kinds / n_kinds + 0.5 * changes / (n_changes * n_predictors)


@kernel
def add_scores(
    evidence: Evidence,  # of all mechanisms
    round_: int,
    regimes: npt.NDArray[np.uint8],  # (N,)
    scored: ScoredRound,
) -> FloatArray:
    """R of every mechanism the round was played with, (N,); 0 if it was not tested."""
    totals = np.zeros(len(regimes))
    for node in range(len(regimes)):
        if not math.isnan(scored.low[node]):
            m = regimes[node]
            own = Evidence(
                evidence.sums[m, node],
                evidence.gains[m, node],
                evidence.starts[m, node],
                evidence.usual[m, node],
            )
            totals[node] = add_score(
                own,
                round_,
                scored.low[node],
                scored.high[node],
                scored.predictors[node],
                scored.values,
                scored.stds[node],
            )
    return totals
