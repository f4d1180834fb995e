"""What policies show to their detectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.changes.predictive import predictive_scores
from causalarms.changes.view import MODEL, PREDICTION, MechanismRounds, Model, Prediction, View
from causalarms.graphs.units import Units
from causalarms.models.weights import MechanismWeights
from causalarms.policies.noise_units import moments_in
from causalarms.sem.regimes import Counts
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.moments import Moments

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Intervention = npt.NDArray[np.uint8]


class _ModelView(View):
    """Weights of a graph that was learned; None while there is none."""

    def __init__(self, regimes: Counts, weights: MechanismWeights | None) -> None:
        super().__init__(regimes)
        self._weights = weights

    @property
    def offers(self) -> tuple[str, ...]:
        return () if self._weights is None else (MODEL,)

    def model(self) -> Model:
        weights = self._weights
        if weights is None:
            raise self._lacks(MODEL)
        return Model(weights.weights, weights.intercept, weights.noise_std)


class DatasetView(_ModelView):
    """Of a policy that keeps all rounds."""

    def __init__(self, weights: MechanismWeights | None, units: Units, data: Dataset) -> None:
        super().__init__(data.n_regimes, weights)
        self._units = units
        self._data = data

    def scaled(self, values: FloatArray) -> FloatArray:
        return self._units.apply(values)

    def rounds_of(self, regime: int, node: int, most: int) -> MechanismRounds:
        rows = self._data.recent_rows_of(regime, node, most)
        return MechanismRounds(rows + 1, self.scaled(self._data.values[rows]))

    def rounds_under(self, intervention: Intervention, most: int) -> FloatArray:
        """Since the last change of any of its mechanisms."""
        nodes = np.arange(len(intervention))
        start = int(self._data.starts[intervention, nodes].max())
        rows = np.flatnonzero((self._data.regimes[start:] == intervention).all(axis=1))
        return self.scaled(self._data.values[start + rows[max(len(rows) - most, 0) :]])


class CommittedView(_ModelView):
    """Of a policy that keeps only the last rounds of one intervention."""

    def __init__(
        self,
        regimes: Counts,
        weights: MechanismWeights | None,
        origin: FloatArray,
        committed: Intervention,
        recent: FloatArray,  # (n, N), relative to the origin
    ) -> None:
        super().__init__(regimes, weights)
        self._origin = origin
        self._committed = committed
        self._recent = recent

    def scaled(self, values: FloatArray) -> FloatArray:
        return values - self._origin

    def rounds_of(self, regime: int, node: int, most: int) -> MechanismRounds:
        return MechanismRounds(np.zeros(0, dtype=np.int64), np.zeros((0, len(self.regimes))))

    def rounds_under(self, intervention: Intervention, most: int) -> FloatArray:
        same = np.array_equal(intervention, self._committed)
        return self._recent if same else self._recent[:0]


class PredictiveView(View):
    """Of a policy that predicts each round from the moments of all rounds before it."""

    def __init__(
        self,
        units: Units,
        origin: FloatArray,
        moments: Moments,
        predictors: BoolArray,  # (N, N) as [node, predictor]
        tested: BoolArray,  # (N,)
        noise_mean: FloatArray,  # (R, N), nan where unknown, as below
        noise_std: FloatArray,
        *,
        in_units: bool,  # predict in them, not as measured
    ) -> None:
        super().__init__(moments.n_regimes)
        self._in_units = in_units
        self._units = units
        self._origin = origin
        self._moments = moments
        self._predictors = predictors
        self._tested = tested
        self._noise_mean = noise_mean
        self._noise_std = noise_std

    @property
    def offers(self) -> tuple[str, ...]:
        return (PREDICTION,)

    def scaled(self, values: FloatArray) -> FloatArray:
        return self._units.apply(values - self._origin)

    def prediction(self, intervention: Intervention, values: FloatArray) -> Prediction:
        if self._in_units:
            scale = self._units.scale
            scores, stds, leverages, degrees = predictive_scores(
                moments_in(self._units, self._moments).gram,
                self._predictors,
                self._tested,
                intervention,
                self.scaled(values),
                self._noise_mean / scale,
                (self._noise_std / scale) ** 2,
            )
            return Prediction(scores, stds, self._predictors, leverages, degrees)
        scores, stds, leverages, degrees = predictive_scores(
            self._moments.gram,
            self._predictors,
            self._tested,
            intervention,
            values - self._origin,
            self._noise_mean,
            self._noise_std**2,
        )
        stds = stds / self._units.scale
        return Prediction(scores, stds, self._predictors, leverages, degrees)
