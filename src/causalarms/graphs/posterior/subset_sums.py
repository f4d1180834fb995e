"""Sums of exp(score) over all subsets, or all supersets, of every set (zeta transforms).

Scores of one mechanism differ by thousands of nats, far more than a float64 holds, and taking
logarithms in every addition is slow. Numbers are kept as mantissa * 2^(512 exponent) with a
mantissa near one: an addition is an addition, no term that matters is ever lost, and one logarithm
per set is taken at the end.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]

STEP = 512.0 * math.log(2.0)  # nats per unit of the exponent
DOWN = 2.0**-512
NOTHING = -(2**30)  # exponent of zero


@kernel
def split(logs: FloatArray, mantissa: FloatArray, exponent: IntArray) -> float:
    """exp(log - top) as mantissa in [2^-256, 2^256] and exponent; returns top."""
    top = -np.inf
    for k in range(len(logs)):
        top = max(top, logs[k])
    for k in range(len(logs)):
        if logs[k] == -np.inf:
            mantissa[k], exponent[k] = 0.0, NOTHING
        else:
            unit = math.floor((logs[k] - top) / STEP + 0.5)
            exponent[k] = int(unit)
            mantissa[k] = math.exp(logs[k] - top - unit * STEP)
    return top


@kernel
def _add(mantissa: FloatArray, exponent: IntArray, to: int, what: int) -> None:
    """Terms two steps smaller are below 2^-490 of the sum."""
    gap = exponent[to] - exponent[what]
    if gap == 0:
        mantissa[to] += mantissa[what]
    elif gap == 1:
        mantissa[to] += mantissa[what] * DOWN
    elif gap < 0:
        kept = mantissa[to] * DOWN if gap == -1 else 0.0
        mantissa[to] = mantissa[what] + kept
        exponent[to] = exponent[what]


@kernel
def subset_log_sums(
    logs: FloatArray, sums: FloatArray, mantissa: FloatArray, exponent: IntArray
) -> None:
    """sums[S] = log of the sum of exp(logs[P]) over P within S; the last two are room to work."""
    top = split(logs, mantissa, exponent)
    bit = 1
    while bit < len(logs):
        for block in range(0, len(logs), 2 * bit):
            for k in range(block, block + bit):
                _add(mantissa, exponent, k + bit, k)
        bit *= 2
    _join(top, mantissa, exponent, sums)


@kernel
def superset_log_sums(
    logs: FloatArray, sums: FloatArray, mantissa: FloatArray, exponent: IntArray
) -> None:
    """sums[P] = log of the sum of exp(logs[S]) over S that contain P."""
    top = split(logs, mantissa, exponent)
    bit = 1
    while bit < len(logs):
        for block in range(0, len(logs), 2 * bit):
            for k in range(block, block + bit):
                _add(mantissa, exponent, k, k + bit)
        bit *= 2
    _join(top, mantissa, exponent, sums)


@kernel
def subset_maxima(logs: FloatArray, maxima: FloatArray) -> None:
    """maxima[S] = the largest logs[P] over P within S."""
    maxima[:] = logs
    bit = 1
    while bit < len(logs):
        for block in range(0, len(logs), 2 * bit):
            for k in range(block, block + bit):
                maxima[k + bit] = max(maxima[k + bit], maxima[k])
        bit *= 2


@kernel
def _join(top: float, mantissa: FloatArray, exponent: IntArray, sums: FloatArray) -> None:
    for k in range(len(sums)):
        if mantissa[k] > 0.0:
            sums[k] = top + math.log(mantissa[k]) + exponent[k] * STEP
        else:
            sums[k] = -np.inf
