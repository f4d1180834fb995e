"""Does the linear Gaussian model fit a mechanism? Three classical tests of it.

Jarque-Bera for Gaussian shape of the residuals; Ramsey's RESET (does the square of the fitted value
explain what the line left over) for linearity; Chow's (do earlier and later rounds follow the same
line) for steadiness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special  # scipy.stats takes a second to import

from causalarms.sem.regimes import regime_names

FloatArray = npt.NDArray[np.float64]


class MechanismCheck(NamedTuple):
    """How well one mechanism fits; p-values are of the single test, not corrected for many."""

    regime: str
    node: str
    n_samples: int
    explained: float  # share of the variance
    gaussian_p: float
    linear_p: float
    steady_p: float


def check_mechanisms(
    values: FloatArray,
    regimes: npt.NDArray[np.uint8],
    nodes: tuple[str, ...],
    adjacency: npt.NDArray[np.bool_],
    weights: FloatArray,
    known: npt.NDArray[np.bool_],
    names: Sequence[str] = (),
) -> list[MechanismCheck]:
    """One record per known mechanism; `names` are those of the regimes."""
    checks, names = [], names or regime_names(len(known))
    for regime, node in np.argwhere(known):
        rows = values[regimes[:, node] == regime]
        parents = adjacency[regime, :, node]
        fitted = rows[:, parents] @ weights[regime, parents, node]
        residual = rows[:, node] - fitted
        residual = residual - residual.mean()
        checks.append(
            MechanismCheck(
                regime=names[regime],
                node=nodes[node],
                n_samples=len(rows),
                **_tests(rows[:, node], rows[:, parents], fitted, residual),
            )
        )
    return checks


def _tests(
    values: FloatArray, parents: FloatArray, fitted: FloatArray, residual: FloatArray
) -> dict[str, float]:
    """All nan where the regime holds the node constant: there is nothing to explain."""
    if values.var() == 0 or len(values) < 3:
        return dict.fromkeys(("explained", "gaussian_p", "linear_p", "steady_p"), float("nan"))
    return {
        "explained": float(1 - residual.var() / values.var()),
        "gaussian_p": _jarque_bera(residual),
        "linear_p": _reset(parents, fitted, residual),
        "steady_p": _chow(parents, values),
    }


def _jarque_bera(residual: FloatArray) -> float:
    """p-value of skewness and kurtosis being those of a Gaussian."""
    deviation = residual - residual.mean()
    variance = (deviation**2).mean()
    if variance == 0:  # the line fits exactly
        return float("nan")
    skewness = (deviation**3).mean() / variance**1.5
    excess = (deviation**4).mean() / variance**2 - 3
    return float(special.chdtrc(2, len(residual) / 6 * (skewness**2 + excess**2 / 4)))


def _reset(parents: FloatArray, fitted: FloatArray, residual: FloatArray) -> float:
    """p-value of adding the squared fitted value to the regression."""
    n, p = parents.shape
    if not p or n < p + 4:
        return float("nan")
    design = np.column_stack([np.ones(n), parents])
    bend = (fitted - fitted.mean()) ** 2
    bend = bend - design @ np.linalg.lstsq(design, bend, rcond=None)[0]
    residual = residual - design @ np.linalg.lstsq(design, residual, rcond=None)[0]
    r2 = (bend @ residual) ** 2 / ((bend @ bend) * (residual @ residual))
    statistic = r2 / (1 - r2) * (n - p - 2)
    return float(special.fdtrc(1, n - p - 2, max(statistic, 0.0)))


def _chow(parents: FloatArray, values: FloatArray) -> float:
    """p-value of one line for all rounds against one before and one after a third, half, two."""
    n, k = len(parents), parents.shape[1] + 1
    if n < 3 * (k + 2):
        return float("nan")
    design = np.column_stack([np.ones(n), parents])
    together = _squares(design, values)
    p_values = []
    for split in (n // 3, n // 2, 2 * n // 3):
        apart = _squares(design[:split], values[:split]) + _squares(design[split:], values[split:])
        if apart <= 0:
            return float("nan")
        statistic = (together - apart) / k / (apart / (n - 2 * k))
        p_values.append(float(special.fdtrc(k, n - 2 * k, max(statistic, 0.0))))
    return min(1.0, len(p_values) * min(p_values))


def _squares(design: FloatArray, values: FloatArray) -> float:
    left = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(left @ left)
