"""Weights of a known graph by least squares, and the estimated reward of interventions (Sec. IV).

`fit_weights` regresses every mechanism on its parents once. `score_interventions` combines the
regressions to the estimated reward and the confidence bound of every intervention (eq. select_a).

The bound is Theorem 1: the error at the reward is at most
    |column of (I - B_a)^-1 at the reward| |mu_a| sigma_max(Delta B_a),
and Lemma 2 bounds the largest singular value of the weight errors by the largest eigenvalues
lambda_i of the covariances Phi of the mechanisms. There are three forms of that bound:

theorem   2 (N^2 + 2N)^(1/4) sqrt(ln(2N/delta) sum lambda_i), as printed
parents   the error of a column lies in the coordinates of its p_i parents, so p_i replaces N
          inside the sum (the authors' program)
valid     Bernstein's inequality holds as printed only while ln(2N/delta) is at most
          sqrt(N/(N+2)) sum lambda / max lambda; beyond it the sub-exponential tail applies:
          2 sqrt((N + 2) max lambda) ln(2N/delta)

All assume that data were not chosen adaptively and that no edge is missing. An estimated intercept
counts as one more parent whose value is the constant 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray
from causalarms.checks import choice
from causalarms.errors import DataError
from causalarms.kernels import kernel
from causalarms.sem.regimes import (
    Counts,
    existing,
    mechanism_name,
    regime_counts,
    topological_order,
)
from causalarms.statistics.dataset import Moments
from causalarms.statistics.normal_equations import SingularError, regress

FORMS = ("theorem", "parents", "valid")


@dataclass(frozen=True)
class MechanismWeights:
    """All regressions, from which expected rewards and their bounds are computed."""

    weights: FloatArray  # (R, N, N)
    intercept: FloatArray  # (R, N), the noise means, given or estimated
    noise_std: FloatArray  # (R, N)
    spread: FloatArray  # (R, N), lambda_max of Phi = sigma^2 (X X^T)^-1; 0 without parents
    n_regressors: npt.NDArray[np.int64]  # (R, N), an estimated intercept counts as one
    order: npt.NDArray[np.int64] | None  # None if the regimes mix into a cycle
    regimes: Counts | None = None  # (N,), None: all R

    @property
    def counts(self) -> Counts:
        """How many regimes each node has, (N,)."""
        return regime_counts(self.regimes, self.weights.shape[1], default=len(self.weights))


class Scores(NamedTuple):
    """Estimated rewards and bounds of interventions; nan if B_a is cyclic."""

    mean: FloatArray
    width: FloatArray  # U(X, a, delta)

    @property
    def n_cyclic(self) -> int:
        return int(np.isnan(self.mean).sum())


def fit_weights(
    moments: Moments,
    adjacency: npt.NDArray[np.bool_],  # (R, N, N)
    *,
    noise_mean: FloatArray | None,  # (R, N)
    noise_std: FloatArray | None = None,  # (R, N), estimated unless given
) -> MechanismWeights:
    """Least squares of every mechanism on its parents; `adjacency` says which these are."""
    n_nodes = adjacency.shape[1]
    weights = np.zeros(adjacency.shape)
    intercept, std, spread = np.zeros((3, *adjacency.shape[:2]))
    n_regressors = np.zeros(adjacency.shape[:2], dtype=np.int64)
    for regime, node in np.argwhere(existing(moments.n_regimes)).tolist():
        parents = np.flatnonzero(adjacency[regime, :, node])
        known = None if noise_mean is None else float(noise_mean[regime, node])
        try:
            fit = regress(moments.gram[regime, node], node, parents, known)
        except SingularError as error:
            names = tuple(f"x{i}" for i in range(n_nodes))
            name = mechanism_name(names, regime, node, len(weights))
            raise DataError(f"{name}: {fit_problem(moments, regime, node)}") from error
        weights[regime, parents, node] = fit.weights[: len(parents)]
        intercept[regime, node] = fit.weights[-1] if known is None else known
        std[regime, node] = fit.residual_std if noise_std is None else noise_std[regime, node]
        n_regressors[regime, node] = len(fit.columns)
        if len(fit.columns):
            # Lemma 2 needs the largest eigenvalue of Phi = sigma^2 (X X^T)^-1 of each mechanism.
            eigenvalue = float(np.linalg.eigvalsh(fit.inverse)[-1])
            spread[regime, node] = std[regime, node] ** 2 * eigenvalue
    order = topological_order(adjacency.any(axis=0))
    return MechanismWeights(weights, intercept, std, spread, n_regressors, order, moments.n_regimes)


def score_interventions(
    model: MechanismWeights,
    interventions: npt.NDArray[np.uint8],  # (n, N)
    reward: int,
    *,
    delta: float = 0.05,
    bound: str = "theorem",
    known_mean: bool = True,
) -> Scores:
    """Mean and bound of every given intervention.

    reward       the node to maximise
    delta        probability that a bound does not hold
    bound        one of `FORMS`
    known_mean   whether noise means were given; else intercepts were estimated

    If the regimes mix into a cycle there is no common order. Each intervention then gets its own,
    and one whose B_a is cyclic has no expected reward (nan) and is never chosen.
    """
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


def form_code(form: str) -> int:
    """The form as kernels take it, an index of `FORMS`."""
    return FORMS.index(choice("bound", form, FORMS))


@kernel
def singular_value_bound(
    spread: FloatArray,  # (N,) lambda_max of the mechanisms in use
    n_regressors: npt.NDArray[np.int64],  # (N,)
    form: int,
    log_term: float,  # ln(2N / delta)
) -> float:
    """Lemma 2: the bound of sigma_max(Delta B_a) that holds with probability 1 - delta."""
    n = len(spread)
    total = largest = 0.0
    for i in range(n):
        dimension = n_regressors[i] if form == 1 else n
        total += np.sqrt(dimension * (dimension + 2.0)) * spread[i]
        largest = max(largest, spread[i])
    # beyond this Bernstein's inequality has its sub-exponential tail (see the module's text)
    if form == 2 and log_term * largest * (n + 2.0) > total:
        return 2.0 * np.sqrt((n + 2.0) * largest) * log_term
    return 2.0 * np.sqrt(log_term * total)


def fit_problem(moments: Moments, regime: int, node: int) -> str:
    """Why a regression has no unique solution, in words."""
    count = int(moments.counts[regime, node])
    return f"its parents' values in {count} samples are linearly dependent"


class Fitted(NamedTuple):
    """`MechanismWeights` as the kernel takes them."""

    weights: FloatArray  # (R, N, N)
    intercept: FloatArray  # (R, N)
    spread: FloatArray  # (R, N)
    n_regressors: IntArray  # (R, N)
    order: IntArray  # (N,), of all regimes together
    has_order: bool  # else the order means nothing


class Bound(NamedTuple):
    """The form of the confidence bound (`singular_value_bound`)."""

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
        # in topological order (I - B_a)^-1 is two substitutions: nothing is inverted
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
        # eq. mu_a: mu_a = (I - B_a^T)^-1 nu, here at the reward
        mean[row] = mu[reward]
        # Theorem 1: |column of (I - B_a)^-1 at the reward| |mu_a| sigma_max(Delta B_a)
        width[row] = np.sqrt(flow_square * mu_square) * singular_value_bound(
            spread_a, regressors_a, bound.form, bound.log_term
        )
    return mean, width


@kernel
def _find_order(weights: FloatArray, order: IntArray) -> bool:
    """Write a topological order of one weight matrix; False if it has a cycle."""
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
