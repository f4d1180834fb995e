"""Graph and moments to weights with their uncertainty, once per mechanism (Sec. III and IV)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.sem.regimes import (
    Counts,
    existing,
    mechanism_name,
    regime_counts,
    topological_order,
)
from causalarms.statistics.moments import Moments
from causalarms.statistics.normal_equations import SingularError, regress

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MechanismWeights:
    """All regressions: what the expected rewards and their bound are assembled from."""

    weights: FloatArray  # (R, N, N)
    intercept: FloatArray  # (R, N), the noise means, given or estimated
    noise_std: FloatArray  # (R, N)
    spread: FloatArray  # (R, N), lambda_max of Phi = sigma^2 (X X^T)^-1; 0 without parents
    n_regressors: npt.NDArray[np.int64]  # (R, N), an estimated intercept counts as one
    order: npt.NDArray[np.int64] | None  # None where the regimes mix into a cycle
    regimes: Counts | None = None  # (N,), None: all R

    @property
    def counts(self) -> Counts:
        """How many regimes each node has, (N,)."""
        return regime_counts(self.regimes, self.weights.shape[1], default=len(self.weights))


def fit_weights(
    moments: Moments,
    adjacency: npt.NDArray[np.bool_],  # (R, N, N)
    *,
    noise_mean: FloatArray | None,  # (R, N)
    noise_std: FloatArray | None = None,  # (R, N), estimated unless given
) -> MechanismWeights:
    """Least squares of every mechanism on its parents."""
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
            eigenvalue = float(np.linalg.eigvalsh(fit.inverse)[-1])
            spread[regime, node] = std[regime, node] ** 2 * eigenvalue
    order = topological_order(adjacency.any(axis=0))
    return MechanismWeights(weights, intercept, std, spread, n_regressors, order, moments.n_regimes)


def fit_problem(moments: Moments, regime: int, node: int) -> str:
    count = int(moments.counts[regime, node])
    return f"its parents' values in {count} samples are linearly dependent"
