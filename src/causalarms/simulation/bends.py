"""Mechanisms that are not linear: w x of a straight line becomes w f(x, scale).

`scale` is the root mean square of the parent under random interventions, so that one function
serves nodes of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import n_interventions
from causalarms.sem.rewards import of_regimes
from causalarms.simulation.noise import Law

FloatArray = npt.NDArray[np.float64]
Regimes = npt.NDArray[np.uint8]
Bend: TypeAlias = Callable[[FloatArray, float], FloatArray]

PILOT = 4000  # rounds that measure the scales
MONTE_CARLO = 10_000  # samples per expected reward, the same noise for all interventions


def _saturates_mildly(x: FloatArray, scale: float) -> FloatArray:
    return 2 * scale * np.tanh(x / (2 * scale))


def _saturates_strongly(x: FloatArray, scale: float) -> FloatArray:
    return scale / 2 * np.tanh(2 * x / scale)


def _one_sided(x: FloatArray, scale: float) -> FloatArray:
    return np.maximum(x, 0.0)


def _u_shaped(x: FloatArray, scale: float) -> FloatArray:
    return np.abs(x)


BENDS: dict[str, Bend] = {
    "saturates-mildly": _saturates_mildly,
    "saturates-strongly": _saturates_strongly,
    "one-sided": _one_sided,
    "u-shaped": _u_shaped,
}


def bend_of(given: str | Bend) -> Bend:
    """A bend by name, or one's own."""
    if callable(given):
        return given
    if given not in BENDS:
        raise ModelError(
            f"unknown bend {given!r}; there are {', '.join(BENDS)}, or give a function "
            "(values, scale) -> values"
        )
    return BENDS[given]


def bent_values(
    sem: LinearSEM, bend: Bend, scales: FloatArray, rows: Regimes, exogenous: FloatArray
) -> FloatArray:
    """Node values (n, N), one row per intervention."""
    return _along_order(sem, bend, scales, rows, exogenous)[0]


def measured_scales(sem: LinearSEM, bend: Bend, law: Law, rng: np.random.Generator) -> FloatArray:
    """Root mean squares of all nodes under random interventions, (N,)."""
    n = sem.n_nodes
    rows = rng.integers(0, sem.regimes, (PILOT, n), dtype=np.uint8)
    exogenous = exogenous_values(sem, rows, law(rng, (PILOT, n)))
    return _along_order(sem, bend, None, rows, exogenous)[1]


def _along_order(
    sem: LinearSEM, bend: Bend, known: FloatArray | None, rows: Regimes, exogenous: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Values, and the scales that were known or are measured on the way."""
    values, bent = exogenous.copy(), np.zeros_like(exogenous)
    scales = np.empty(sem.n_nodes) if known is None else known
    for i in sem.order:
        by_regime = bent @ sem.weights[:, :, i].T  # (n, R)
        values[:, i] += np.take_along_axis(by_regime, rows[:, i : i + 1].astype(int), axis=1)[:, 0]
        if known is None:
            scales[i] = max(np.sqrt((values[:, i] ** 2).mean()), np.finfo(float).tiny)
        bent[:, i] = _bend(bend, values[:, i], scales[i])
    return values, scales


def all_bent_rewards(
    sem: LinearSEM, bend: Bend, scales: FloatArray, noise: FloatArray
) -> FloatArray:
    """Mean reward of every intervention over the rows of noise (n, N), in lexicographic order.

    Depth first along the order: interventions that agree on the first nodes share their values.
    """
    before_reward = sem.order[: int(np.flatnonzero(sem.order == sem.reward)[0]) + 1]
    table = np.zeros(tuple(sem.regimes))
    bent = np.zeros_like(noise)
    chosen: list[slice | int] = [slice(None)] * sem.n_nodes

    def go(depth: int) -> None:
        i = int(before_reward[depth])
        by_regime = bent @ sem.weights[:, :, i].T
        for regime in range(int(sem.regimes[i])):
            chosen[i] = regime
            exogenous = noise[:, i] * sem.mechanism_std[regime, i] + sem.mechanism_mean[regime, i]
            values = exogenous + by_regime[:, regime]
            if i == sem.reward:
                table[tuple(chosen)] = values.mean()
            else:
                bent[:, i] = _bend(bend, values, scales[i])
                go(depth + 1)
        chosen[i] = slice(None)
        bent[:, i] = 0.0

    go(0)
    return table.reshape(n_interventions(sem.regimes))


def exogenous_values(sem: LinearSEM, rows: Regimes, noise: FloatArray) -> FloatArray:
    """Noise of a law in the units of the system."""
    return noise * of_regimes(sem.mechanism_std, rows) + of_regimes(sem.mechanism_mean, rows)


def _bend(bend: Bend, x: FloatArray, scale: float) -> FloatArray:
    bent = np.asarray(bend(x, float(scale)), dtype=float)
    if bent.shape != x.shape or not np.isfinite(bent).all():
        raise ModelError(
            "bend: the function must give one finite value for every value it is given"
        )
    return bent
