"""Laws of the noise. Each has mean 0 and variance 1; the system's means and deviations scale it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.rng import stream

FloatArray = npt.NDArray[np.float64]
Law: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
Noise: TypeAlias = "str | Law | Sequence[str | Law]"

GAUSSIAN = "gaussian"
DEGREES = 3  # of freedom: fewer have no variance
LOOKED_AT = 4000  # draws of an own law
FARTHEST_MEAN = 0.2  # twelve standard errors of the mean of so many draws


def _gaussian(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.standard_normal(shape)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.uniform(-(3**0.5), 3**0.5, shape)


def _laplace(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.laplace(0.0, 0.5**0.5, shape)


def _student_t(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.standard_t(DEGREES, shape) / (DEGREES / (DEGREES - 2)) ** 0.5


def _exponential(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.exponential(1.0, shape) - 1.0


NOISE_LAWS: dict[str, Law] = {
    GAUSSIAN: _gaussian,
    "uniform": _uniform,
    "laplace": _laplace,
    "student-t": _student_t,
    "exponential": _exponential,
}


def noise_law(noise: Noise) -> Law:
    """One law for all nodes, or several that the nodes take in turn.

    >>> noise_law("uniform")(stream(0, "doc"), (100, 2)).max() < 3**0.5
    True
    """
    if isinstance(noise, str) or callable(noise):
        return _one(noise)
    laws = [_one(law) for law in noise]
    if not laws:
        raise ModelError("noise: the list of laws is empty")

    def in_turn(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        values = np.empty(shape)
        for node in range(shape[-1]):
            values[..., node] = laws[node % len(laws)](rng, shape[:-1])
        return values

    return in_turn


def _one(law: str | Law) -> Law:
    if callable(law):
        return _checked(law)
    if law not in NOISE_LAWS:
        raise ModelError(
            f"unknown noise {law!r}; there are {', '.join(NOISE_LAWS)}, or give a function "
            "(rng, shape) -> draws"
        )
    return NOISE_LAWS[law]


def _checked(law: Law) -> Law:
    def checked(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        values = np.asarray(law(rng, shape), dtype=float)
        if values.shape != tuple(shape):
            raise ModelError(f"noise: asked for the shape {shape}, the law gave {values.shape}")
        if not np.isfinite(values).all():
            raise ModelError("noise: the law gave a value that is not finite")
        return values

    return checked


def refuse_shifted(noise: Noise) -> None:
    """ModelError where an own law is not centred: no expected reward would be the true one."""
    mean = float(noise_law(noise)(stream(0, "look at noise"), (LOOKED_AT, 1)).mean())
    if abs(mean) > FARTHEST_MEAN:
        raise ModelError(
            f"noise: the law must have mean 0, not about {mean:.2g}: subtract it, and give it to "
            "the system as its noise_mean"
        )
