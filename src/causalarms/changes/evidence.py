"""`ChangeEvidence`: a detector with a stated rate of false alarms, for all mechanisms together.

Every mechanism's rounds come as scores that are N(0, 1) and independent until it changes
(`predictive.py`). There are a few alternatives: scores that are wider, shifted, or follow one of
the predictors (a changed weight). Against each of them the Shiryaev-Roberts sum R <- (1 + R) L adds
up the likelihood ratios of all possible change points. Their average over the alternatives minus
the number of scores is a martingale until the change. So the mean time to a false alarm at R = A is
E[R at the alarm], which is A times an average overshoot that depends little on A. The stated rate
of the whole system is divided among the mechanisms a round is played with. The cost of a round does
not depend on the number of rounds before.

Scores are normal if the noise is. With noise="any" only their ranks among earlier scores count
(`PastScores`): each rank says between which two numbers a normal score lies, and the likelihood
ratio is that of lying there. If a node is regressed on one of its effects, noise that is not
Gaussian makes residuals depend on the predictors, and ratios stay a little above one on average.
Each ratio is therefore divided by its average so far, if that is above one.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray, Interventions
from causalarms.changes.detector import PREDICTION, Alarm, Detector, Prediction, View
from causalarms.checks import choice, number
from causalarms.kernels import kernel
from causalarms.state import HasState, arrays

# Enough that the outermost rank is worth log(6000) = 8.7 nats, and few enough to compare in every
# round.
POOL_SCORES = 6000  # scores to compare with, of all nodes together
YOUNGEST_ROUNDS = 20  # whose scores are not compared with yet: those of a change would hide it
MAX_EXCESS_KURTOSIS = 6.0  # that of exponential noise
OWN_SCORES = 600.0  # scores of the mechanism itself that weigh as much as all of the pool
# Keep a division finite: weights that are known have no leverage at all.
MIN_LEVERAGE, MAX_LEVERAGE = 1e-4, 1e12
LARGEST_SCORE = 1e6
# Beyond it the normal distribution has less than 1e-4 on both sides together, a fraction of a rank.
REACH = 4.0  # standard deviations: the table of the normal distribution ends there

# A factor of two to three between spreads and between shifts: a change between two of them loses
# little, and each further alternative would divide the evidence of the others. Here: mean and
# spread of the scores after a change.
ALTERNATIVES = np.array(
    [(0.0, 1.6), (0.0, 3.0), (0.0, 8.0), (0.0, 25.0)]
    + [(sign * shift, 1.0) for shift in (1.0, 2.0, 4.0) for sign in (1.0, -1.0)]
)
# changes of a weight, in units of the noise per unit of the predictor, clipped to a shift
WEIGHT_CHANGES = np.array([0.3, -0.3, 1.0, -1.0])
LARGEST_SHIFT = 5.0
# E[R at the alarm] / A: 2.2 to 5.4 (`benchmarks/change_detection.py evidence`); the middle of that
OVERSHOOT = 3.4
# 1.9 to 4.0 with uniform ranks; keeps the rate of 0.1 in runs with several distributions of noise
OVERSHOOT_OF_RANKS = 2.5
GAUSSIAN, ANY = NOISE = ("gaussian", "any")
MAX_LOG_RATIO = 600.0  # nats of one round: exp of more overflows
MAX_SUM = 1e300  # far above every alarm level, and finite
MIN_PROBABILITY = 1e-30  # keeps logarithms finite
# the average ratio starts with this many ratios of one, and a score adds at most this much to it
FIRST_RATIOS, MAX_RATIO_IN_AVERAGE = 200.0, 5.0


class Evidence(NamedTuple):
    """Evidence for every alternative, of one mechanism or, with (R, N) in front, of all."""

    sums: FloatArray  # (alternatives,) R of Shiryaev and Roberts
    # Page's CUSUM, which says when a change most likely began: log ratio since that round
    gains: FloatArray  # (alternatives,)
    starts: IntArray  # (alternatives,) the round
    usual: FloatArray  # (2, alternatives) sum and number of ratios so far, or (2, 0)


class ScoredRound(NamedTuple):
    """The scores of a round, and what they were predicted from."""

    low: FloatArray  # (N,) the score lies between low and high, or is both; nan: not tested
    high: FloatArray  # (N,)
    predictors: npt.NDArray[np.bool_]  # (N, N) as [node, predictor]
    values: FloatArray  # (N,)
    stds: FloatArray  # (N,)


class ChangeEvidence(Detector):
    """Shiryaev-Roberts sums of all mechanisms.

    n_nodes                        number of nodes
    false_alarms_per_1000_rounds   of the whole system while nothing changes
    noise                          "gaussian", or "any" distribution that is the same for all
                                   mechanisms up to its scale: alarms then come some rounds later,
                                   and rarely in early rounds
    n_regimes                      the largest number of regimes of a node
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
            "false_alarms_per_1000_rounds", false_alarms_per_1000_rounds, above=0.0, maximum=100.0
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
        """Start again with a mechanism that is learned again."""
        if self._past is not None:
            self._past.forget(regime, node, since=self._likeliest_start(regime, node))
        # `usual` stays: how far ratios are above one depends on the noise, which outlasts the
        # change.
        for held in (self._evidence.sums, self._evidence.gains, self._evidence.starts):
            held[regime, node] = 0

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


def alarm_level(
    false_alarms_per_1000_rounds: float, n_nodes: int, *, noise: str = GAUSSIAN
) -> float:
    """A, from the rate of false alarms of `n_nodes` mechanisms tested in every round."""
    overshoot = OVERSHOOT if noise == GAUSSIAN else OVERSHOOT_OF_RANKS
    return 1000.0 * n_nodes / (false_alarms_per_1000_rounds * overshoot)


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


@kernel
def add_score(
    evidence: Evidence,  # of one mechanism
    round_: int,
    low: float,  # the score lies between low and high, or is both
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
    # An average with fixed weights of martingales is a martingale: the rate holds for the mixture.
    return 0.5 * kinds / n_kinds + 0.5 * changes / (n_changes * n_predictors)


@kernel
def _add(evidence: Evidence, k: int, round_: int, ratio: float) -> float:
    """One more score for alternative k; its sum afterwards."""
    sums, gains, starts, usual = evidence.sums, evidence.gains, evidence.starts, evidence.usual
    ratio = min(ratio, MAX_LOG_RATIO)
    if usual.shape[1] > 0:
        average = (FIRST_RATIOS + usual[0, k]) / (FIRST_RATIOS + usual[1, k])
        usual[0, k] += min(math.exp(ratio), MAX_RATIO_IN_AVERAGE)
        usual[1, k] += 1.0
        ratio -= math.log(max(average, 1.0))
    # R <- (1 + R) L: the 1 is the change point at this round (Shiryaev 1963, Roberts 1966)
    sums[k] = min((1.0 + sums[k]) * math.exp(ratio), MAX_SUM)
    # Page's CUSUM begins again whenever no change is the better explanation.
    if gains[k] <= 0.0:
        gains[k], starts[k] = 0.0, round_
    gains[k] += ratio
    return float(sums[k])


@kernel
def log_ratio(low: float, high: float, mean: float, spread: float) -> float:
    """Log density of N(mean, spread^2) over N(0, 1), at a point or between two."""
    if low == high:
        return 0.5 * low**2 - 0.5 * ((low - mean) / spread) ** 2 - math.log(spread)
    other = normal_mass((low - mean) / spread, (high - mean) / spread)
    return math.log(max(other, MIN_PROBABILITY) / normal_mass(low, high))


@kernel
def normal_mass(low: float, high: float) -> float:
    """Probability of N(0, 1) between two numbers, exact in either tail."""
    if low > 0.0:
        low, high = -high, -low
    return 0.5 * (math.erfc(-high * math.sqrt(0.5)) - math.erfc(-low * math.sqrt(0.5)))


class PastScores(HasState):
    """Scores by their rank among earlier ones: standard normal whatever the noise's distribution.

    Until something changes, scores of all mechanisms are taken to have about the same distribution,
    which is unknown. The rank of a new score among M earlier ones is then uniform on 0 .. M and
    independent of all earlier ranks (sequential ranks). A rank r is read as a standard normal score
    between the quantiles r / (M + 1) and (r + 1) / (M + 1). The outermost cells reach to infinity:
    a single score is never worth more than about log M nats, and few scores are worth little.

    Only for Gaussian noise the distribution does not depend on how well a mechanism is known. The
    error of a prediction is the noise plus the error of the weights. With uniform noise it exceeds
    the range of the noise, and more so if samples are few or values unusual, as they are after a
    change. So a score is compared with what earlier ones would have been with errors as large as
    its own (`expected_ranks`), and its rank is the number that is expected below it.

    Scores of the mechanism itself weigh more than others, the more of them there are: if a node is
    regressed on one of its effects and the noise is not Gaussian, its scores have a distribution of
    their own.

    Rounds are held in a ring, with a score per node that is nan if its mechanism was not tested.
    """

    learned = arrays("_scores", "_regimes", "_rounds")

    def __init__(self, n_nodes: int) -> None:
        size = YOUNGEST_ROUNDS + -(-POOL_SCORES // n_nodes)
        self._scores = np.full((size, n_nodes), np.nan)
        self._regimes: Interventions = np.zeros((size, n_nodes), dtype=np.uint8)
        self._rounds: IntArray = np.zeros(size, dtype=np.int64)  # 0: empty

    def cells(
        self, round_: int, regimes: Interventions, prediction: Prediction
    ) -> tuple[FloatArray, FloatArray]:
        """Normal scores between which each score lies, (N,) each; nan for nan."""
        from scipy.special import ndtri

        last = round_ - YOUNGEST_ROUNDS
        past, owners = old_enough(self._scores, self._regimes, self._rounds, last)
        below = expected_ranks(
            past,
            owners,
            regimes,
            prediction.scores,
            prediction.leverages,
            prediction.degrees,
            normal_table(),
        )
        total = len(past) + 1.0
        return ndtri(below / total), ndtri((below + 1.0) / total)

    def add(self, round_: int, regimes: Interventions, scores: FloatArray) -> None:
        row = round_ % len(self._rounds)
        self._scores[row], self._regimes[row], self._rounds[row] = scores, regimes, round_

    def forget(self, regime: int, node: int, *, since: int) -> None:
        """Drop a mechanism's scores from a round on: they had another distribution."""
        rows = (self._rounds >= since) & (self._regimes[:, node] == regime)
        self._scores[rows, node] = np.nan


@kernel
def old_enough(
    past: FloatArray, regimes: Interventions, rounds: IntArray, last: int
) -> tuple[FloatArray, IntArray]:
    """All scores of rounds up to the last one that is compared with, and of which mechanism."""
    n = past.shape[1]
    found, owners = np.empty(past.size), np.empty(past.size, np.int64)
    total = 0
    for row in range(len(rounds)):
        if 0 < rounds[row] <= last:
            for node in range(n):
                if past[row, node] == past[row, node]:
                    found[total] = min(max(past[row, node], -LARGEST_SCORE), LARGEST_SCORE)
                    owners[total] = regimes[row, node] * n + node
                    total += 1
    return found[:total], owners[:total]


@kernel
def excess_kurtosis(scores: FloatArray) -> float:
    """Kurtosis beyond that of a normal distribution, from 0 to MAX_EXCESS_KURTOSIS."""
    squares = fourths = 0.0
    for score in scores:
        squares += score**2
        fourths += score**4
    if squares == 0.0:
        return 0.0
    return min(max(len(scores) * fourths / squares**2 - 3.0, 0.0), MAX_EXCESS_KURTOSIS)


@cache
def normal_table() -> FloatArray:
    """The standard normal distribution function from -REACH to REACH, 0 and 1 beyond."""
    from scipy.special import ndtr  # not by the module: studies that never learn import it too

    table = ndtr(np.linspace(-REACH, REACH, 2049))
    table = (table - table[0]) / (table[-1] - table[0])
    return np.append(table, 1.0)  # the interpolation at REACH reads one more


@kernel
def expected_ranks(
    past: FloatArray,  # (M,)
    owners: IntArray,  # (M,), mechanisms as regime * N + node
    regimes: Interventions,  # (N,)
    scores: FloatArray,  # (N,)
    leverages: FloatArray,  # (N,)
    degrees: FloatArray,  # (N,), of freedom
    normal: FloatArray,  # (2050,), as `normal_table` makes it
) -> FloatArray:
    """How many past scores are expected below each score, (N,); nan for nan.

    A past score u would have been (u (1 + a) + b) / sqrt(1 + h) if weights and scale had been as
    poorly known as those of the new score. b has variance h, the leverage. a has the variance by
    which noise of this kurtosis makes an estimated scale less certain than Gaussian noise does.
    """
    below = np.zeros(len(scores))
    excess = excess_kurtosis(past)
    more = len(past) / OWN_SCORES  # extra weight of a score of the same mechanism
    steps = 0.5 * (len(normal) - 2) / REACH
    for i in range(len(scores)):
        if scores[i] != scores[i]:
            below[i] = np.nan
            continue
        leverage = min(max(leverages[i], MIN_LEVERAGE), MAX_LEVERAGE)
        relative = 0.25 * excess / degrees[i]
        score = scores[i] * math.sqrt(1.0 + leverage)
        own = regimes[i] * len(scores) + i
        total = 0.0
        for m in range(len(past)):
            value = past[m]
            z = (score - value) / math.sqrt(leverage + relative * value * value)
            place = (min(max(z, -REACH), REACH) + REACH) * steps
            k = int(place)
            weight = 1.0 + more * (owners[m] == own)
            total += weight
            below[i] += weight * (normal[k] + (place - k) * (normal[k + 1] - normal[k]))
        if total > 0.0:
            below[i] = below[i] / total * len(past)  # in this order never above len(past)
    return below
