"""What a learner is to those who use one: `fit`, and these arrays afterwards."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@runtime_checkable
class CanFit(Protocol):
    """A learner before it has learned anything."""

    def fit(
        self, X: Any, y: None = None, *, interventions: Any = None, noise_mean: Any = None
    ) -> Self: ...


class WeightLearner(CanFit, Protocol):
    """One that gives a whole system: what a policy needs."""

    weights_: FloatArray  # (R, N, N); nan in columns of mechanisms that are unknown
    intercept_: FloatArray  # (R, N), means of the noise
    noise_std_: FloatArray  # (R, N)


class Learner(WeightLearner, Protocol):
    """scikit-learn's contract, for rounds with interventions."""

    adjacency_: npt.NDArray[np.bool_]  # (R, N, N) as [regime, parent, child]
