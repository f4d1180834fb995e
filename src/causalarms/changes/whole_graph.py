"""Has anything changed? A Gaussian likelihood ratio of all nodes at once, for the baselines.

The last `window` observations under one intervention, fitted by their own mean and covariance,
against the learned model. It tells that something changed, not what (Sec. V), so the whole graph
is learned again. The covariance of `window` samples of N nodes is singular unless window > N.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.checks import number, whole
from causalarms.errors import ModelError

FloatArray = npt.NDArray[np.float64]

LONGEST_WINDOW = 100_000  # all of it is looked at in every round


class WholeGraphRatio:
    """Alarm where the log likelihood ratio exceeds `threshold` per sample and node."""

    def __init__(self, n_nodes: int, *, window: int = 20, threshold: float = 20.0) -> None:
        window = whole("window", window, least=1, most=LONGEST_WINDOW)
        if window <= n_nodes:
            raise ModelError(
                f"a window of {window} samples has a singular covariance for {n_nodes} nodes; "
                f"use at least {n_nodes + 1}"
            )
        self.window = window
        self.threshold = number("threshold", threshold)

    def statistic(self, recent: FloatArray, mean: FloatArray, covariance: FloatArray) -> float:
        """Nats per sample and node gained by fitting `recent` (window, N) freely."""
        center = recent.mean(axis=0)
        fitted = np.cov(recent, rowvar=False, bias=True)
        try:
            inverse = np.linalg.inv(covariance)
        except np.linalg.LinAlgError:  # a model without noise: nothing can be said of a ratio
            return -math.inf
        shift = center - mean
        gain = (
            np.linalg.slogdet(covariance)[1]
            - np.linalg.slogdet(fitted)[1]
            - len(mean)
            + np.trace(inverse @ fitted)
            + shift @ inverse @ shift
        )
        return float(gain / (2 * len(mean)))
