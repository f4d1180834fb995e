"""Sub-graph change detection: a Gaussian likelihood ratio per mechanism (Sec. V).

The whitened variable y_i = x_i - w . x_P (eq. whiten_x) of a mechanism that still holds is
N(nu_i, sigma_i^2). Psi(s), the gain of fitting mean and variance to the samples after s
(eq. psi_s_2), is maximised over split points that leave between `min_window` and `max_window`
samples. The literal maximum diverges where one sample is left (its variance is 0), hence the
minimum; the maximum bounds the work per round.

`MechanismGLR.paper(zeta)` uses the paper's threshold F^-1_chi2(2)(1 - zeta) / 2 = -ln(zeta).
It ignores the maximum over s and the repetition over rounds: false alarms are far more frequent
than zeta (docs/research/changes.md has the measured rates).
`MechanismGLR.authors()` is their program: the last 20 samples, 2 nats per sample, after round 200.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray
from causalarms.changes.detector import ANY, MODEL, Alarm, Detector, Model, View
from causalarms.checks import fraction, integer, number
from causalarms.errors import SettingError
from causalarms.kernels import kernel
from causalarms.sem.regimes import existing
from causalarms.state import HasState, arrays

LONGEST_WINDOW = 100_000  # all of it is looked at in every round


class MechanismGLR(HasState, Detector):
    """Alarm where max over s of Psi(s) reaches `threshold` + `per_sample` * samples after s.

    `n_regimes` is the most that a node has.
    """

    needs = (MODEL,)
    learned = arrays("_residuals", "_rounds", "_counts")

    def __init__(
        self,
        n_nodes: int,
        *,
        threshold: float,
        per_sample: float = 0.0,
        min_window: int = 5,
        max_window: int = 60,
        start_after: int = 0,
        n_regimes: int = 2,
    ) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)
        max_window = integer("max_window", max_window, minimum=0, maximum=LONGEST_WINDOW)
        self.min_window = integer("min_window", min_window, minimum=0)
        if not 2 <= min_window <= max_window:
            raise SettingError(
                f"windows need 2 <= min_window <= max_window, not {min_window} and {max_window}"
            )
        self.threshold = number("threshold", threshold)
        self.per_sample = number("per_sample", per_sample)
        self.window = max_window
        self.start_after = integer("start_after", start_after, minimum=0)
        shape = (self.n_regimes, self.n_nodes)
        self._residuals = np.zeros((*shape, max_window))  # rings, by sample number
        self._rounds = np.zeros((*shape, max_window), dtype=np.int64)
        self._counts = np.zeros(shape, dtype=np.int64)

    @classmethod
    def paper(cls, n_nodes: int, *, zeta: float = 0.01, **settings: Any) -> MechanismGLR:
        """The threshold of Sec. V for a nominal false-alarm probability zeta."""
        return cls(n_nodes, threshold=-float(np.log(fraction("zeta", zeta))), **settings)

    @classmethod
    def authors(cls, n_nodes: int, *, n_regimes: int = 2) -> MechanismGLR:
        """The fixed window of the authors' program."""
        return cls(
            n_nodes,
            threshold=0.0,
            per_sample=2.0,
            min_window=20,
            max_window=20,
            start_after=200,
            n_regimes=n_regimes,
        )

    def watch(
        self, round_: int, intervention: npt.NDArray[np.uint8], values: FloatArray, view: View
    ) -> list[Alarm]:
        _, noise_mean, noise_std = view.model()
        whitened = view.whitened(intervention, values)
        return self.observe(round_, intervention, whitened, noise_mean, noise_std)

    def observe(
        self,
        round_: int,
        regimes: npt.NDArray[np.uint8],  # (N,)
        residuals: FloatArray,  # (N,)
        noise_mean: FloatArray,  # (R, N)
        noise_std: FloatArray,  # (R, N)
    ) -> list[Alarm]:
        """Add a round's whitened values; alarms of the mechanisms that took part in it."""
        statistic, window = _observe(
            Rings(self._residuals, self._rounds, self._counts),
            round_,
            regimes,
            residuals,
            noise_mean,
            noise_std,
            self.min_window,
            self.per_sample,
        )
        # Values are collected all the same: right after that round there is a window to look at.
        if round_ <= self.start_after:
            return []
        alarms = []
        for node in np.flatnonzero(statistic >= self.threshold):
            regime, samples = int(regimes[node]), int(window[node])
            ring = self._rounds[regime, node]
            first = int(ring[(self._counts[regime, node] - samples) % self.window])
            limit = self.threshold + self.per_sample * samples
            value = float(statistic[node] + self.per_sample * samples)
            alarms.append(Alarm(round_, regime, int(node), first - 1, value, limit))
        return alarms

    def model_changed(self, view: View) -> None:
        """Recent samples are whitened by the new weights."""
        weights = view.model().weights
        for regime, node in np.argwhere(existing(view.regimes)).tolist():
            rounds, samples = view.rounds_of(regime, node, self.window)
            whitened = samples[:, node] - samples @ weights[regime, :, node]
            self.rebuild(regime, node, rounds, whitened)

    def rebuild(self, regime: int, node: int, rounds: npt.ArrayLike, residuals: FloatArray) -> None:
        """Replace a mechanism's whitened values, e.g. after its weights were estimated again."""
        numbers = np.asarray(rounds, dtype=np.int64)[-self.window :]
        self._counts[regime, node] = len(numbers)
        self._residuals[regime, node, : len(numbers)] = residuals[-self.window :]
        self._rounds[regime, node, : len(numbers)] = numbers

    def forget(self, regime: int, node: int) -> None:
        self._counts[regime, node] = 0


class Rings(NamedTuple):
    """The last values of every mechanism, changed in place."""

    residuals: FloatArray  # (R, N, window)
    rounds: npt.NDArray[np.int64]  # (R, N, window)
    counts: npt.NDArray[np.int64]  # (R, N)


@kernel
def _observe(
    rings: Rings,
    round_: int,
    regimes: npt.NDArray[np.uint8],  # (N,)
    residuals: FloatArray,  # (N,)
    noise_mean: FloatArray,  # (R, N)
    noise_std: FloatArray,  # (R, N)
    min_window: int,
    per_sample: float,
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Per node the largest Psi(s) - per_sample * window, and that window."""
    rounds, counts = rings.rounds, rings.counts
    n_nodes, size = len(regimes), rounds.shape[2]
    statistic, window = np.full(n_nodes, -np.inf), np.zeros(n_nodes, np.int64)
    for node in range(n_nodes):
        regime = regimes[node]
        ring = rings.residuals[regime, node]
        ring[counts[regime, node] % size] = residuals[node]
        rounds[regime, node, counts[regime, node] % size] = round_
        counts[regime, node] += 1
        count = counts[regime, node]
        mean, variance = noise_mean[regime, node], noise_std[regime, node] ** 2
        total = square = 0.0
        for samples in range(1, min(count, size) + 1):
            deviation = ring[(count - samples) % size] - mean
            total += deviation
            square += deviation * deviation
            if samples < min_window:
                continue
            psi = gaussian_gain(samples, total, square, variance) - per_sample * samples
            if psi > statistic[node]:
                statistic[node], window[node] = psi, samples
    return statistic, window


@kernel
def gaussian_gain(samples: int, total: float, square: float, variance: float) -> float:
    """Psi (eq. psi_s_2) from the sum and the sum of squares of deviations from the known mean."""
    average = total / samples
    fitted = square / samples - average * average
    if not fitted > 0.0 or not variance > 0.0:
        return -np.inf
    # eq. psi_s_2: log likelihood with mean and variance fitted, minus that of N(nu, sigma^2)
    return 0.5 * samples * (np.log(variance / fitted) - 1.0) + 0.5 * square / variance


# Has anything changed? A Gaussian likelihood ratio of all nodes at once, for the baselines.
#
# The last `window` observations under one intervention, fitted by their own mean and covariance,
# against the learned model. It tells that something changed, not what (Sec. V), so the whole graph
# is learned again. The covariance of `window` samples of N nodes is singular unless window > N.


class WholeGraphRatio(HasState, Detector):
    """Alarm where the log likelihood ratio exceeds `threshold` per sample and node.

    It remembers nothing: recent rounds are the policy's.
    """

    needs = (MODEL,)

    def __init__(
        self, n_nodes: int, *, window: int = 20, threshold: float = 20.0, n_regimes: int = 2
    ) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)
        window = integer("window", window, minimum=1, maximum=LONGEST_WINDOW)
        if window <= n_nodes:
            raise SettingError(
                f"a window of {window} samples has a singular covariance for {n_nodes} nodes; "
                f"use at least {n_nodes + 1}"
            )
        self.window = window
        self.threshold = number("threshold", threshold)

    def watch(
        self, round_: int, intervention: npt.NDArray[np.uint8], values: FloatArray, view: View
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

    def statistic(self, recent: FloatArray, mean: FloatArray, covariance: FloatArray) -> float:
        """Nats per sample and node gained by fitting `recent` (window, N) freely."""
        center = recent.mean(axis=0)
        fitted = np.cov(recent, rowvar=False, bias=True)
        try:
            # The same factorisation as in `slogdet` below decides what is singular.
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
    """Mean (N,) and covariance (N, N) of all nodes under an intervention, if the model is right."""
    nodes = np.arange(len(intervention))
    # A general inverse and not the normal equations: the model may have a cycle, so that there is
    # no order to substitute in.
    flow = np.linalg.inv(np.eye(len(intervention)) - model.played(intervention))
    mean = model.intercept[intervention, nodes] @ flow
    scaled = model.noise_std[intervention, nodes][:, None] * flow
    return mean, scaled.T @ scaled
