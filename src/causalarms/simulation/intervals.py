"""Bootstrap intervals over systems, which differ a hundredfold in scale: nothing is normal here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.rng import stream

FloatArray = npt.NDArray[np.float64]
N_RESAMPLES = 2000


class Interval(NamedTuple):
    """An estimate and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def bootstrap(
    statistic: Callable[..., FloatArray], *samples: npt.ArrayLike, level: float = 0.95
) -> Interval:
    """Percentile interval of `statistic`, which maps arrays (..., n) to (...).

    Several samples are resampled together: the i-th entries belong to the same system. Resamples
    for which the statistic is nan are left out; nan where it is nan for all.

    >>> bootstrap(lambda x: x.mean(axis=-1), [1.0, 1.0, 1.0])
    Interval(value=1.0, low=1.0, high=1.0)
    """
    arrays = [np.asarray(sample, dtype=float) for sample in samples]
    n = len(arrays[0])
    rows = _resamples(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 0 / 0: a resample that is not defined
        resampled = statistic(*(array[rows] for array in arrays))
        low, high = np.nanquantile(resampled, [(1 - level) / 2, (1 + level) / 2])
        return Interval(float(statistic(*arrays)), float(low), float(high))


def mean(sample: npt.ArrayLike) -> Interval:
    return bootstrap(lambda x: x.mean(axis=-1), sample)


def ratio_of_means(above: npt.ArrayLike, below: npt.ArrayLike) -> Interval:
    """mean(above) / mean(below), resampled in pairs."""
    return bootstrap(lambda a, b: a.mean(axis=-1) / b.mean(axis=-1), above, below)


class Band(NamedTuple):
    """An estimate and the ends of its 95 % interval at every point, (points,)."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def mean_band(curves: npt.ArrayLike, level: float = 0.95) -> Band:
    """Mean over systems of curves (systems, points), with the interval of `mean` at every point.

    >>> mean_band([[1.0, 2.0], [1.0, 2.0]]).high.tolist()
    [1.0, 2.0]
    """
    given = np.asarray(curves, dtype=float)
    n = len(given)
    rows = _resamples(n) + n * np.arange(N_RESAMPLES)[:, None]
    times = np.bincount(rows.ravel(), minlength=N_RESAMPLES * n).reshape(N_RESAMPLES, n)
    resampled = times @ given / n
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Band(given.mean(axis=0), low, high)


def _resamples(n: int) -> npt.NDArray[np.int64]:
    return stream(0, "bootstrap", n).integers(n, size=(N_RESAMPLES, n))
