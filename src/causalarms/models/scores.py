"""Estimated reward and confidence bound of many interventions (eq. select_a).

The terms of the bound depend on the mechanisms only: 2N numbers serve all interventions.
Where the two regimes mix into a cycle there is no common order; each intervention then looks for
its own, and one whose B_a is cyclic has no expected reward (nan) and is never chosen. Nothing is
inverted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.models.confidence import form_code, singular_value_bound
from causalarms.models.weights import MechanismWeights

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Scores(NamedTuple):
    """Per intervention; nan where B_a is cyclic."""

    mean: FloatArray
    width: FloatArray  # U(X, a, delta)

    @property
    def n_cyclic(self) -> int:
        return int(np.isnan(self.mean).sum())


def score_interventions(
    model: MechanismWeights,
    interventions: npt.NDArray[np.uint8],  # (n, N)
    reward: int,
    *,
    delta: float = 0.05,
    bound: str = "theorem",
    known_mean: bool = True,
) -> Scores:
    """Mean and bound of every given intervention."""
    n_nodes = model.weights.shape[1]
    order = np.arange(n_nodes) if model.order is None else model.order
    fitted = Fitted(
        model.weights, model.intercept, model.spread, model.n_regressors, order,
        model.order is not None,
    )  # fmt: skip
    log_term, constant = float(np.log(2 * n_nodes / delta)), 0.0 if known_mean else 1.0
    mean, width = _score(fitted, interventions, reward, Bound(form_code(bound), log_term, constant))
    return Scores(mean, width)


def best_score(values: FloatArray) -> int:
    """The first of the largest; nan never wins."""
    return int(np.argmax(np.where(np.isnan(values), -np.inf, values)))


class Fitted(NamedTuple):
    """`MechanismWeights` as the kernel takes them."""

    weights: FloatArray  # (R, N, N)
    intercept: FloatArray  # (R, N)
    spread: FloatArray  # (R, N)
    n_regressors: IntArray  # (R, N)
    order: IntArray  # (N,), of all regimes together
    has_order: bool  # else the order means nothing


class Bound(NamedTuple):
    """The form of the confidence bound (`confidence.py`)."""

    form: int
    log_term: float
    constant: float  # the square of the value of the constant parent


@kernel
def _score(
    fitted: Fitted,
    interventions: npt.NDArray[np.uint8],  # (n, N)
    reward: int,
    bound: Bound,
) -> tuple[FloatArray, FloatArray]:
    n_rows, n = interventions.shape
    mean, width = np.full(n_rows, np.nan), np.full(n_rows, np.nan)
    order, chosen = fitted.order.copy(), np.empty((n, n))
    mu, flow = np.empty(n), np.empty(n)
    spread_a, regressors_a = np.empty(n), np.empty(n, np.int64)
    for row in range(n_rows):
        for node in range(n):
            regime = interventions[row, node]
            for parent in range(n):
                chosen[parent, node] = fitted.weights[regime, parent, node]
            mu[node] = fitted.intercept[regime, node]
            spread_a[node] = fitted.spread[regime, node]
            regressors_a[node] = fitted.n_regressors[regime, node]
        if not fitted.has_order and not _find_order(chosen, order):
            continue
        for position in range(n):
            node = order[position]
            for earlier in range(position):
                mu[node] += chosen[order[earlier], node] * mu[order[earlier]]
        for position in range(n - 1, -1, -1):  # flow[k]: what a unit at k does to the reward
            node = order[position]
            flow[node] = 1.0 if node == reward else 0.0
            for later in range(position + 1, n):
                flow[node] += chosen[node, order[later]] * flow[order[later]]
        flow_square, mu_square = 0.0, bound.constant
        for node in range(n):
            flow_square += flow[node] ** 2
            mu_square += mu[node] ** 2
        mean[row] = mu[reward]
        width[row] = np.sqrt(flow_square * mu_square) * singular_value_bound(
            spread_a, regressors_a, bound.form, bound.log_term
        )
    return mean, width


@kernel
def _find_order(weights: FloatArray, order: IntArray) -> bool:
    """Write a topological order of one weight matrix; False where it has a cycle."""
    n = len(weights)
    placed = np.zeros(n, np.bool_)
    for position in range(n):
        found = -1
        for node in range(n):
            if placed[node]:
                continue
            free = True
            for parent in range(n):
                if not placed[parent] and weights[parent, node] != 0.0:
                    free = False
                    break
            if free:
                found = node
                break
        if found < 0:
            return False
        placed[found] = True
        order[position] = found
    return True
