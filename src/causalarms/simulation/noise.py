"""Noise of simulated worlds: every distribution has mean 0 and variance 1; systems shift it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from causalarms.arrays import FloatArray
from causalarms.errors import ModelError
from causalarms.rng import stream

Distribution: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
Noise: TypeAlias = "str | Distribution | Sequence[str | Distribution]"

GAUSSIAN = "gaussian"
DEGREES_OF_FREEDOM = 3  # of Student's t: fewer have no variance
CHECKED_DRAWS = 4000  # of a user's distribution
MAX_MEAN = 0.2  # twelve standard errors of the mean of so many draws


def _gaussian(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.standard_normal(shape)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.uniform(-(3**0.5), 3**0.5, shape)


def _laplace(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.laplace(0.0, 0.5**0.5, shape)


def _student_t(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    variance = DEGREES_OF_FREEDOM / (DEGREES_OF_FREEDOM - 2)
    return rng.standard_t(DEGREES_OF_FREEDOM, shape) / variance**0.5


def _exponential(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.exponential(1.0, shape) - 1.0


NOISE_DISTRIBUTIONS: dict[str, Distribution] = {
    GAUSSIAN: _gaussian,
    "uniform": _uniform,
    "laplace": _laplace,
    "student-t": _student_t,
    "exponential": _exponential,
}


def noise_distribution(noise: Noise) -> Distribution:
    """One distribution for all nodes, or several that the nodes take in turn.

    noise   a name, a function (rng, shape) -> draws, or a list of them

    >>> bool(noise_distribution("uniform")(stream(0, "doc"), (100, 2)).max() < 3**0.5)
    True
    """
    if isinstance(noise, str) or callable(noise):
        return _one(noise)
    each = [_one(one) for one in noise]
    if not each:
        raise ModelError("noise: the list of distributions is empty")

    def in_turn(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        values = np.empty(shape)
        for node in range(shape[-1]):
            values[..., node] = each[node % len(each)](rng, shape[:-1])
        return values

    return in_turn


def refuse_shifted(noise: Noise) -> None:
    """ModelError if a user's distribution is not centred: expected rewards would be wrong.

    noise   as for `noise_distribution`
    """
    mean = noise_distribution(noise)(stream(0, "look at noise"), (CHECKED_DRAWS, 1)).mean()
    if abs(mean) > MAX_MEAN:
        raise ModelError(
            f"noise: the distribution must have mean 0, not about {mean:.2g}: subtract it, and "
            "give it to the system as its noise_mean"
        )


def _one(given: str | Distribution) -> Distribution:
    if not callable(given):
        if given not in NOISE_DISTRIBUTIONS:
            raise ModelError(
                f"unknown noise {given!r}; there are {', '.join(NOISE_DISTRIBUTIONS)}, or give a "
                "function (rng, shape) -> draws"
            )
        return NOISE_DISTRIBUTIONS[given]

    def checked(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        values = np.asarray(given(rng, shape), dtype=float)
        if values.shape != tuple(shape):
            raise ModelError(f"noise: the function gave the shape {values.shape}, not {shape}")
        if not np.isfinite(values).all():
            raise ModelError("noise: the function gave a value that is not finite")
        return values

    return checked
