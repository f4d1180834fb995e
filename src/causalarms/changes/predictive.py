"""How surprising a round is to each mechanism, as a standard normal score.

x_i given its parents and other nodes before it, predicted by least squares from the mechanism's
earlier samples: (x_i - w . z) / (s sqrt(1 + z^T A^-1 z)) is a Student t variable with n - p degrees
of freedom (a recursive residual; Brown, Durbin and Evans 1975). Read as a normal score it is
N(0, 1) and independent of all earlier ones, whatever interventions were chosen, whatever the
weights are and however few samples they were estimated from. That is why false alarms can be
promised with estimated parameters. It needs all parents and no descendant among the regressors:
all nodes that come before i, likely parents or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, Intervention
from causalarms.changes.detector import PREDICTION, Prediction, View
from causalarms.kernels import kernel
from causalarms.statistics.dataset import Moments
from causalarms.statistics.normal_equations import (
    cholesky,
    normal_equations,
    regressors_of,
    solve_lower,
    whiten,
)
from causalarms.statistics.units import Units

MIN_DEGREES = 4  # of freedom; normal scores of fewer are off by more than 2 %
RIDGE = 1e-8  # keeps collinear regressors from dividing by zero


@kernel
def normal_score(t: float, degrees: float) -> float:
    """The normal score of a Student t value (Wallace 1959).

    >>> round(normal_score(2.0, 1e6), 3), round(normal_score(3.0, 10.0), 2)  # exact: 2, 2.47
    (2.0, 2.47)
    """
    # Wallace's approximation: within 2 % from four degrees of freedom on, and without a quantile
    # function in the loop.
    bend = (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0)
    return math.copysign(bend * math.sqrt(degrees * math.log1p(t * t / degrees)), t)


@kernel
def predictive_score(
    gram: FloatArray,  # (N+1, N+1) of the mechanism's earlier samples
    node: int,
    predictors: BoolArray,  # (N,) nodes to regress on
    values: FloatArray,  # (N,) of the new round
    noise_mean: float,  # nan: intercept
    known_variance: float,  # nan: estimated
) -> tuple[float, float]:
    """Normal score of the node's value, nan where there are too few samples for that.

    Then the standard deviation it is predicted with.
    """
    with_intercept = math.isnan(noise_mean)
    regressors = regressors_of(predictors, with_intercept)
    size = len(regressors)
    degrees = gram[-1, -1] - size
    # no score at all is better than one that promises too much: false alarms are counted
    if degrees < MIN_DEGREES:
        return math.nan, 1.0
    mean = 0.0 if with_intercept else noise_mean
    equations = normal_equations(gram, node, regressors, mean, RIDGE, RIDGE)
    cholesky(equations, size, RIDGE, RIDGE)
    z = np.empty(size)
    squares = whiten(equations, z)
    prediction, leverage = mean, 0.0
    row = np.empty(size)
    for a in range(size):
        row[a] = 1.0 if regressors[a] == len(values) else values[regressors[a]]
    solve_lower(equations, row)
    for a in range(size):
        prediction += row[a] * z[a]
        leverage += row[a] ** 2
    error = values[node] - prediction
    if not math.isnan(known_variance):
        std = math.sqrt(known_variance * (1.0 + leverage))
        return error / std, std
    # The regressors explained every sample exactly, up to rounding: there is no scale to judge by.
    if not squares > 0.0:
        return math.nan, 1.0
    std = math.sqrt(squares / degrees * (1.0 + leverage))
    return normal_score(error / std, degrees), std


@kernel
def predictive_scores(
    gram: FloatArray,  # (R, N, N+1, N+1)
    predictors: BoolArray,  # (N, N) as [node, predictor]
    tested: BoolArray,  # (N,)
    regimes: npt.NDArray[np.uint8],  # (N,) of the new round
    values: FloatArray,  # (N,)
    noise_mean: FloatArray,  # (R, N)
    known_variance: FloatArray,  # (R, N)
) -> tuple[FloatArray, FloatArray]:
    """Of the mechanisms a round was played with, (N,) each: scores (nan: not tested) and scales."""
    n = len(values)
    scores, stds = np.full(n, np.nan), np.ones(n)
    for node in range(n):
        if tested[node]:
            regime = regimes[node]
            scores[node], stds[node] = predictive_score(
                gram[regime, node],
                node,
                predictors[node],
                values,
                noise_mean[regime, node],
                known_variance[regime, node],
            )
    return scores, stds


@dataclass(eq=False)
class PredictiveView(View):
    """Each round as predicted from the moments of all rounds before it, in units of the noise."""

    units: Units
    origin: FloatArray  # (N,), which the moments are relative to
    moments: Moments
    predictors: BoolArray  # (N, N) as [node, predictor]
    tested: BoolArray  # (N,)
    noise_mean: FloatArray  # (R, N), nan if unknown, as below
    noise_std: FloatArray

    def __post_init__(self) -> None:
        super().__init__(self.moments.n_regimes)

    @property
    def offers(self) -> tuple[str, ...]:
        return (PREDICTION,)

    def scaled(self, values: FloatArray) -> FloatArray:
        return self.units.apply(values - self.origin)

    def prediction(self, intervention: Intervention, values: FloatArray) -> Prediction:
        scores, stds = predictive_scores(
            self.moments.in_units(self.units).gram,
            self.predictors,
            self.tested,
            intervention,
            self.scaled(values),
            self.noise_mean / self.units.scale,
            (self.noise_std / self.units.scale) ** 2,
        )
        return Prediction(scores, stds, self.predictors)
