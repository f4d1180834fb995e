"""What a detector may look at next to the round itself: what its policy knows.

A detector names the kinds of knowledge it `needs`, a policy those it `offers`. Policies compute
nothing that is not asked for. Numbers are in the units the policy computes in (`scaled`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention
from causalarms.errors import ModelError
from causalarms.models.linear import MechanismWeights
from causalarms.sem.regimes import Counts
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.units import Units

MODEL, PREDICTION = KINDS = ("model", "prediction")


class Model(NamedTuple):
    """A linear system as it is believed now."""

    weights: FloatArray  # (R, N, N) as [regime, parent, child]
    intercept: FloatArray  # (R, N), the means of the noise
    noise_std: FloatArray  # (R, N)

    def played(self, intervention: Intervention) -> FloatArray:
        """Weights of the mechanisms an intervention plays, (N, N) as [parent, child]."""
        nodes = np.arange(len(intervention))
        return np.ascontiguousarray(self.weights[intervention, :, nodes].T)


class Prediction(NamedTuple):
    """How surprising a round is to each of its mechanisms (`predictive.py`)."""

    scores: FloatArray  # (N,), N(0, 1) until it changes; nan where it cannot be tested
    stds: FloatArray  # (N,), with which values were predicted
    predictors: BoolArray  # (N, N) as [node, predictor]
    leverages: FloatArray  # (N,), variance by errors of the weights, in units of the noise's
    degrees: FloatArray  # (N,), of freedom of the noise's variance; inf where it is known

    @classmethod
    def by_known_weights(
        cls, scores: FloatArray, stds: FloatArray, predictors: BoolArray
    ) -> Prediction:
        """Of a system that nothing has to be learned about."""
        n = len(scores)
        return cls(scores, stds, predictors, np.zeros(n), np.full(n, np.inf))


class MechanismRounds(NamedTuple):
    """Rounds a mechanism was played in, the newest last."""

    numbers: IntArray  # (n,), counted from 1
    values: FloatArray  # (n, N), scaled


class View:
    """What a policy knows before it learns from the round that is watched.

    This one offers nothing. Policies override what they offer, and `offers` itself.
    """

    def __init__(self, regimes: Counts) -> None:
        self.regimes = regimes  # (N,), how many each node has

    @property
    def offers(self) -> tuple[str, ...]:
        """Kinds of knowledge there are at the moment."""
        return ()

    def scaled(self, values: FloatArray) -> FloatArray:
        """Values as told, (..., N), in the units of everything else here."""
        return values

    def model(self) -> Model:
        """`MODEL`: the system as it is believed now."""
        raise self._lacks(MODEL)

    def rounds_of(self, regime: int, node: int, most: int) -> MechanismRounds:
        """`MODEL`: the last rounds of a mechanism, as many as the policy still has."""
        raise self._lacks(MODEL)

    def rounds_under(self, intervention: Intervention, most: int) -> FloatArray:
        """`MODEL`: values of the last rounds under this very intervention, (n, N), in any order.

        The round that is watched is one of them.
        """
        raise self._lacks(MODEL)

    def prediction(self, intervention: Intervention, values: FloatArray) -> Prediction:
        """`PREDICTION`: of a round that is not learned from yet, values as told."""
        raise self._lacks(PREDICTION)

    def whitened(self, intervention: Intervention, values: FloatArray) -> FloatArray:
        """`MODEL`: y_i = x_i - w . x_P of every node (eq. whiten_x), (N,), from values as told."""
        scaled = self.scaled(values)
        return scaled - scaled @ self.model().played(intervention)

    def _lacks(self, kind: str) -> ModelError:
        return ModelError(f"a detector that looks at the {kind} must say so in `needs`")


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
