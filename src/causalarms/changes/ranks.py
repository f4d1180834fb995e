"""Scores by their rank among earlier ones: standard normal whatever law the noise has.

Until something changes, scores of all mechanisms are taken to come from one law, which nobody
knows. The rank of a new score among M earlier ones is then uniform on 0 .. M and independent of
all earlier ranks (sequential ranks). A rank r is read as a standard normal score that is known to
lie between the quantiles r / (M + 1) and (r + 1) / (M + 1). The outermost cells reach to infinity:
a single score is never worth more than about log M nats, and few scores are worth little.

The scores of the last few rounds are not compared with: those of a change would hide it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from causalarms.kernels import kernel
from causalarms.state_entries import FLOATS, Entry

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Regimes = npt.NDArray[np.uint8]

KEPT = 6000  # scores to compare with, of all nodes together
YOUNGEST = 20  # rounds whose scores are not compared with yet


class PastScores:
    """A ring of rounds with a score per node, nan where a mechanism was not tested."""

    def __init__(self, n_nodes: int) -> None:
        size = YOUNGEST + -(-KEPT // n_nodes)
        self._scores = np.full((size, n_nodes), np.nan)
        self._regimes: Regimes = np.zeros((size, n_nodes), dtype=np.uint8)
        self._rounds: IntArray = np.zeros(size, dtype=np.int64)  # 0: empty

    def cells(self, round_: int, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Normal scores between which each of these lies, (N,) each; nan where it is nan."""
        below, total = ranks(self._scores, self._rounds, round_ - YOUNGEST, scores)
        return ndtri(below / (total + 1.0)), ndtri((below + 1.0) / (total + 1.0))

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
def ranks(
    past: FloatArray,  # (rounds, N)
    rounds: IntArray,
    last: int,  # round to compare with
    scores: FloatArray,  # (N,)
) -> tuple[FloatArray, int]:
    """How many of the past scores are below each (nan of nan), and how many there are."""
    n = len(scores)
    below, total = np.zeros(n), 0
    for row in range(len(rounds)):
        if 0 < rounds[row] <= last:
            for j in range(n):
                value = past[row, j]
                if value == value:
                    total += 1
                    for i in range(n):
                        if value < scores[i]:
                            below[i] += 1.0
    for i in range(n):
        if scores[i] != scores[i]:
            below[i] = np.nan
    return below, total
