"""Scores by their rank among earlier ones: standard normal whatever law the noise has.

Until something changes, scores of all mechanisms are taken to come from about one law, which nobody
knows. The rank of a new score among M earlier ones is then uniform on 0 .. M and independent of
all earlier ranks (sequential ranks). A rank r is read as a standard normal score that is known to
lie between the quantiles r / (M + 1) and (r + 1) / (M + 1). The outermost cells reach to infinity:
a single score is never worth more than about log M nats, and few scores are worth little.

Only for Gaussian noise is the law the same however well a mechanism is known. The error of the
prediction is the noise and the error of the weights together. Of uniform noise it goes beyond where
noise ends, and more so where samples are few or values unusual, as they are after a change. So a
score is compared with what earlier ones would have been with errors as large as its own
(`expected_ranks`), and its rank is the number that is expected below it.

Scores of the mechanism itself count more than others, the more the more there are: where a node is
regressed on one of its effects, noise that is not Gaussian gives its scores a law of their own.

The scores of the last few rounds are not compared with: those of a change would hide it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from causalarms.changes.view import Prediction
from causalarms.kernels import kernel
from causalarms.state_entries import FLOATS, Entry

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Regimes = npt.NDArray[np.uint8]

KEPT = 6000  # scores to compare with, of all nodes together
YOUNGEST = 20  # rounds whose scores are not compared with yet
MOST_EXCESS = 6.0  # kurtosis beyond 3: that of exponential noise
OTHERS = 600.0  # scores of the mechanism itself that weigh as much as all of the pool
LEAST_LEVERAGE, MOST_LEVERAGE = 1e-4, 1e12
LARGEST_SCORE = 1e6
# the standard normal distribution function from -REACH to REACH, 0 and 1 beyond
REACH = 4.0
NORMAL = ndtr(np.linspace(-REACH, REACH, 2049))
NORMAL = (NORMAL - NORMAL[0]) / (NORMAL[-1] - NORMAL[0])
NORMAL = np.append(NORMAL, 1.0)  # what follows the last one


class PastScores:
    """A ring of rounds with a score per node, nan where a mechanism was not tested."""

    def __init__(self, n_nodes: int) -> None:
        size = YOUNGEST + -(-KEPT // n_nodes)
        self._scores = np.full((size, n_nodes), np.nan)
        self._regimes: Regimes = np.zeros((size, n_nodes), dtype=np.uint8)
        self._rounds: IntArray = np.zeros(size, dtype=np.int64)  # 0: empty

    def cells(
        self, round_: int, regimes: Regimes, prediction: Prediction
    ) -> tuple[FloatArray, FloatArray]:
        """Normal scores between which each score lies, (N,) each; nan where it is nan."""
        last = round_ - YOUNGEST
        past, owners = old_enough(self._scores, self._regimes, self._rounds, last)
        below = expected_ranks(
            past, owners, regimes, prediction.scores, prediction.leverages, prediction.degrees
        )
        total = len(past) + 1.0
        return ndtri(below / total), ndtri((below + 1.0) / total)

    def add(self, round_: int, regimes: Regimes, scores: FloatArray) -> None:
        row = round_ % len(self._rounds)
        self._scores[row], self._regimes[row], self._rounds[row] = scores, regimes, round_

    def forget(self, regime: int, node: int, *, since: int) -> None:
        """Drop a mechanism's scores from a round on: they were not of the law of the others."""
        rows = (self._rounds >= since) & (self._regimes[:, node] == regime)
        self._scores[rows, node] = np.nan

    def state(self) -> dict[str, Any]:
        return {
            "scores": self._scores.copy(),
            "regimes": self._regimes.copy(),
            "rounds": self._rounds.copy(),
        }

    def entries(self) -> dict[str, Entry]:
        most = np.finfo(float).max
        return {
            "scores": Entry(FLOATS, self._scores.shape, -most, most, finite=False, nan=True),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._scores[:] = state["scores"]
        self._regimes[:] = state["regimes"]
        self._rounds[:] = state["rounds"]


@kernel
def old_enough(
    past: FloatArray, regimes: Regimes, rounds: IntArray, last: int
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
    """Beyond that of a normal law, from 0 to MOST_EXCESS."""
    squares = fourths = 0.0
    for score in scores:
        squares += score**2
        fourths += score**4
    if squares == 0.0:
        return 0.0
    return min(max(len(scores) * fourths / squares**2 - 3.0, 0.0), MOST_EXCESS)


@kernel
def expected_ranks(
    past: FloatArray,  # (M,)
    owners: IntArray,  # (M,), mechanisms as regime * N + node
    regimes: Regimes,  # (N,)
    scores: FloatArray,  # (N,)
    leverages: FloatArray,  # (N,)
    degrees: FloatArray,  # (N,), of freedom
) -> FloatArray:
    """How many past scores are expected below each, nan of nan.

    A past score u would have been (u (1 + a) + b) / sqrt(1 + h) if weights and scale had been as
    poorly known as those of the new score. b has variance h, the leverage. a has the variance by
    which noise of this kurtosis makes an estimated scale less certain than Gaussian noise does.
    """
    below = np.zeros(len(scores))
    excess = excess_kurtosis(past)
    more = len(past) / OTHERS  # weight of a score of the same mechanism
    steps = 0.5 * (len(NORMAL) - 2) / REACH
    for i in range(len(scores)):
        if scores[i] != scores[i]:
            below[i] = np.nan
            continue
        leverage = min(max(leverages[i], LEAST_LEVERAGE), MOST_LEVERAGE)
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
            below[i] += weight * (NORMAL[k] + (place - k) * (NORMAL[k + 1] - NORMAL[k]))
        if total > 0.0:
            below[i] = below[i] / total * len(past)  # in this order never above len(past)
    return below
