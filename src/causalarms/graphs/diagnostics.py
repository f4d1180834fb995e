"""Say which nodes the data cannot tell causes from effects for.

In a Gaussian model the residual of a regression in the wrong direction is uncorrelated with its
regressors, hence independent of them, while the regime of every node stays the same. It is the
variation of the other nodes' regimes that makes wrong directions visible to CSL.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray
from causalarms.errors import IdentifiabilityWarning
from causalarms.sem.regimes import Counts, mechanism_name, regime_names


def warn_of_constant_regimes(
    regimes: npt.NDArray[np.uint8], nodes: tuple[str, ...], counts: Counts
) -> None:
    """`counts` says how many regimes each node has.

    Those without a switch are not meant, unless nothing at all varies.
    """
    constant = (regimes == regimes[0]).all(axis=0)
    if not constant.all() and not constant[counts > 1].any():
        return
    constant &= counts > 1
    unknown = {
        name: [
            nodes[i] for i in np.flatnonzero(constant & (regimes[0] != regime) & (regime < counts))
        ]
        for regime, name in enumerate(regime_names(int(counts.max())))
    }
    parts = [f"{', '.join(names)} ({regime})" for regime, names in unknown.items() if names]
    unseen = f"; these mechanisms are unknown, not absent: {'; '.join(parts)}" if parts else ""
    message = open_directions(regimes, nodes, constant) + unseen
    warnings.warn(message, IdentifiabilityWarning, stacklevel=4)


def open_directions(
    regimes: npt.NDArray[np.uint8], nodes: tuple[str, ...], constant: npt.NDArray[np.bool_]
) -> str:
    """What constant regimes of these nodes mean, in words."""
    n_rows = len(regimes)
    if (regimes == regimes[0]).all():
        subject = f"no node's regime varies over the {n_rows} rows"
    else:
        names = ", ".join(repr(nodes[i]) for i in np.flatnonzero(constant))
        subject = f"the regime of {names} never varies over the {n_rows} rows"
    return (
        f"{subject}: directions are told apart by varying regimes, so edges between such nodes may "
        "be reversed"
    )


def warn_of_few_samples(
    counts: npt.NDArray[np.int64], needed: npt.NDArray[np.int64], nodes: tuple[str, ...]
) -> None:
    """Name the mechanisms that have samples, but too few to be learned."""
    few = np.argwhere((counts > 0) & (counts < needed))
    if len(few):
        names = ", ".join(
            f"{mechanism_name(nodes, r, i, len(counts))} with {counts[r, i]} of {needed[i]}"
            for r, i in few
        )
        warnings.warn(
            f"too few samples, left unknown: {names}", IdentifiabilityWarning, stacklevel=4
        )


# Does the linear Gaussian model fit a mechanism? Three classical tests of it.
#
# Jarque-Bera for Gaussian shape of the residuals; Ramsey's RESET (does the square of the fitted
# value explain what the line left over) for linearity; Chow's (do earlier and later rounds follow
# the same line) for steadiness.


class MechanismCheck(NamedTuple):
    """How well one mechanism fits; p-values are of the single test, not corrected for many."""

    regime: str
    node: str
    n_samples: int
    explained: float  # fraction of the variance
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
    """All nan if the regime holds the node constant: there is nothing to explain."""
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
    # not by the module: a study that only lists its trials imports it, too
    from scipy.special import chdtrc

    deviation = residual - residual.mean()
    variance = (deviation**2).mean()
    if variance == 0:  # the line fits exactly
        return float("nan")
    skewness = (deviation**3).mean() / variance**1.5
    excess = (deviation**4).mean() / variance**2 - 3
    return float(chdtrc(2, len(residual) / 6 * (skewness**2 + excess**2 / 4)))


def _reset(parents: FloatArray, fitted: FloatArray, residual: FloatArray) -> float:
    """p-value of adding the squared fitted value to the regression."""
    from scipy.special import fdtrc

    n, p = parents.shape
    if not p or n < p + 4:
        return float("nan")
    design = np.column_stack([np.ones(n), parents])
    bend = (fitted - fitted.mean()) ** 2
    bend = bend - design @ np.linalg.lstsq(design, bend, rcond=None)[0]
    residual = residual - design @ np.linalg.lstsq(design, residual, rcond=None)[0]
    both = (bend @ bend) * (residual @ residual)
    if both == 0:  # the line fits exactly, or all fitted values lie on two points
        return float("nan")
    r2 = min((bend @ residual) ** 2 / both, 1.0)
    statistic = r2 / (1 - r2) * (n - p - 2) if r2 < 1 else math.inf
    return float(fdtrc(1, n - p - 2, statistic))


def _chow(parents: FloatArray, values: FloatArray) -> float:
    """p-value of one line for all rounds against one before and one after a third, half, two."""
    from scipy.special import fdtrc

    n, k = len(parents), parents.shape[1] + 1
    if n < 3 * (k + 2):
        return float("nan")
    design = np.column_stack([np.ones(n), parents])
    together = _squares(design, values)
    p_values = []
    # Nobody knows when it changed; the smallest of three p-values counts three times (Bonferroni).
    for split in (n // 3, n // 2, 2 * n // 3):
        apart = _squares(design[:split], values[:split]) + _squares(design[split:], values[split:])
        if apart <= 0:
            return float("nan")
        statistic = (together - apart) / k / (apart / (n - 2 * k))
        p_values.append(float(fdtrc(k, n - 2 * k, max(statistic, 0.0))))
    return min(1.0, len(p_values) * min(p_values))


def _squares(design: FloatArray, values: FloatArray) -> float:
    left = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(left @ left)
