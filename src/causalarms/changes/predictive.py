"""How surprising a round is to each mechanism, as a standard normal score.

x_i given the nodes before it, predicted from the mechanism's earlier samples with unknown weights
and variance, is a Student t variable: (x_i - w . z) / (s sqrt(1 + z^T A^-1 z)) with 2 noise_shape
+ n degrees of freedom. Read as a normal score it is N(0, 1) and independent of all earlier ones,
whatever interventions were chosen and however few samples the weights were estimated from. That is
why false alarms can be promised with estimated parameters. All nodes before i in an order serve as
regressors, so that no parent is missed.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.graphs.posterior.mechanism_weights import cholesky, regressors_of, whiten
from causalarms.graphs.posterior.parent_scores import normal_equations
from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@kernel
def normal_score(t: float, degrees: float) -> float:
    """The normal score of a Student t value (Wallace 1959).

    >>> round(normal_score(2.0, 1e6), 3), round(normal_score(3.0, 10.0), 2)  # exact: 2, 2.47
    (2.0, 2.48)
    """
    bend = (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0)
    return math.copysign(bend * math.sqrt(degrees * math.log1p(t * t / degrees)), t)


@kernel
def predictive_score(
    gram: FloatArray,  # (N+1, N+1) of the mechanism's earlier samples
    node: int,
    before: BoolArray,  # (N,) nodes to regress on
    values: FloatArray,  # (N,) of the new round
    noise_mean: float,  # nan: intercept
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
    known_variance: float,  # nan: inverse gamma
) -> float:
    """Normal score of the node's value."""
    n_samples = gram[-1, -1]
    with_intercept = math.isnan(noise_mean)
    regressors = regressors_of(before, with_intercept)
    size = len(regressors)
    mean = 0.0 if with_intercept else noise_mean
    equations = normal_equations(
        gram, node, regressors, mean, weight_precision, intercept_precision
    )
    cholesky(equations, size - with_intercept, weight_precision, intercept_precision)
    z = np.empty(size)
    squares = whiten(equations, size, 0.0, 0.0, 0, z)
    prediction, leverage = mean, 1.0
    row = np.empty(size)
    for a in range(size):  # L row = regressor values
        value = 1.0 if regressors[a] == len(values) else values[regressors[a]]
        for c in range(a):
            value -= equations[a, c] * row[c]
        row[a] = value / equations[a, a]
        prediction += row[a] * z[a]
        leverage += row[a] ** 2
    if not math.isnan(known_variance):
        return (values[node] - prediction) / math.sqrt(known_variance * leverage)
    shape = noise_shape + 0.5 * n_samples
    variance = (noise_shape + 0.5 * squares) / shape
    return normal_score((values[node] - prediction) / math.sqrt(variance * leverage), 2.0 * shape)


@kernel
def predictive_scores(
    gram: FloatArray,  # (2, N, N+1, N+1)
    order: npt.NDArray[np.int64],  # (N,)
    tested: BoolArray,  # (N,)
    regimes: npt.NDArray[np.uint8],  # (N,) of the new round
    values: FloatArray,  # (N,)
    noise_mean: FloatArray,  # (2, N)
    known_variance: FloatArray,  # (2, N)
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
) -> FloatArray:
    """Scores of the mechanisms a round was played with, (N,); nan where not tested."""
    n = len(order)
    scores = np.full(n, np.nan)
    before = np.zeros(n, dtype=np.bool_)
    for node in order:
        if tested[node]:
            regime = regimes[node]
            scores[node] = predictive_score(
                gram[regime, node],
                node,
                before,
                values,
                noise_mean[regime, node],
                weight_precision,
                intercept_precision,
                noise_shape,
                known_variance[regime, node],
            )
        before[node] = True
    return scores
