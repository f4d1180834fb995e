"""Has anything changed? A Gaussian likelihood ratio of all nodes at once, for the baselines.

The last `window` observations under one intervention, fitted by their own mean and covariance,
against the learned model. It tells that something changed, not what (Sec. V), so the whole graph
is learned again. The covariance of `window` samples of N nodes is singular unless window > N.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.changes.alarm import ANY, Alarm
from causalarms.changes.detector import Detector
from causalarms.changes.view import MODEL, Model, View
from causalarms.checks import number, whole
from causalarms.errors import SettingError

FloatArray = npt.NDArray[np.float64]

LONGEST_WINDOW = 100_000  # all of it is looked at in every round


class WholeGraphRatio(Detector):
    """Alarm where the log likelihood ratio exceeds `threshold` per sample and node.

    It remembers nothing: recent rounds are the policy's.
    """

    needs = (MODEL,)

    def __init__(
        self, n_nodes: int, *, window: int = 20, threshold: float = 20.0, n_regimes: int = 2
    ) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)
        window = whole("window", window, least=1, most=LONGEST_WINDOW)
        if window <= n_nodes:
            raise SettingError(
                f"a window of {window} samples has a singular covariance for {n_nodes} nodes; "
                f"use at least {n_nodes + 1}"
            )
        self.window = window
        self.threshold = number("threshold", threshold)

    def watch(
        self,
        round_: int,
        intervention: npt.NDArray[np.uint8],
        values: FloatArray,
        view: View,
    ) -> list[Alarm]:
        recent = view.rounds_under(intervention, self.window)
        if len(recent) < self.window:
            return []
        try:
            mean, covariance = mean_and_covariance(view.model(), intervention)
        except np.linalg.LinAlgError:  # a cycle that amplifies itself: there is no such system
            return []
        statistic = self.statistic(recent, mean, covariance)
        if not statistic > self.threshold:
            return []
        return [Alarm(round_, ANY, ANY, round_ - self.window, statistic, self.threshold)]

    def forget(self, regime: int, node: int) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass

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


def mean_and_covariance(
    model: Model, intervention: npt.NDArray[np.uint8]
) -> tuple[FloatArray, FloatArray]:
    """Of all nodes under an intervention, (N,) and (N, N), if the model is right."""
    nodes = np.arange(len(intervention))
    flow = np.linalg.inv(np.eye(len(intervention)) - model.played(intervention))
    mean = model.intercept[intervention, nodes] @ flow
    scaled = model.noise_std[intervention, nodes][:, None] * flow
    return mean, scaled.T @ scaled
