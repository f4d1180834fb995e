"""Sums of exp(score) over all subsets, or all supersets, of every set (zeta transforms).

Scores of one mechanism differ by thousands of nats, far more than a float64 holds, and taking
logarithms in every addition is slow. Numbers are kept as mantissa * 2^(512 exponent) with a
mantissa near one: an addition is an addition, no term that matters is ever lost, and one logarithm
per set is taken at the end.
"""

from __future__ import annotations

import math

import numpy as np

from causalarms.arrays import FloatArray, Int32Array
from causalarms.kernels import kernel

STEP = 512.0 * math.log(2.0)  # nats per unit of the exponent
DOWN = 2.0**-512
NOTHING = -(2**30)  # exponent of zero
LEAST = -(2**29)  # whatever is 10^11 nats below the largest is as unlikely


@kernel
def split(logs: FloatArray, mantissa: FloatArray, exponent: Int32Array) -> float:
    """exp(log - top) as mantissa in [2^-256, 2^256] and exponent; returns top."""
    top = -np.inf
    for k in range(len(logs)):
        top = max(top, logs[k])
    for k in range(len(logs)):
        if logs[k] == -np.inf:
            mantissa[k], exponent[k] = 0.0, NOTHING
        else:
            # rounded to the nearest unit, so that mantissas stay within 2^-256 and 2^256 and sums
            # of 2^19 of them below overflow
            unit = math.floor((logs[k] - top) / STEP + 0.5)
            if unit > LEAST:
                exponent[k] = int(unit)
                mantissa[k] = math.exp(logs[k] - top - unit * STEP)
            else:
                exponent[k], mantissa[k] = LEAST, 1.0
    return top


@kernel
def _factor(exponent: int, largest: int) -> float:
    """Terms two steps below the largest are less than 2^-490 of the sum."""
    return 1.0 if exponent == largest else (DOWN if exponent == largest - 1 else 0.0)


@kernel
def _add_halves(
    to: FloatArray, to_exponent: Int32Array, what: FloatArray, exponent: Int32Array
) -> None:
    """Add term by term, without branches so that it is done several terms at a time."""
    for k in range(len(to)):
        largest = max(to_exponent[k], exponent[k])
        to[k] = to[k] * _factor(to_exponent[k], largest) + what[k] * _factor(exponent[k], largest)
        to_exponent[k] = largest


@kernel
def subset_log_sums(
    logs: FloatArray, sums: FloatArray, mantissa: FloatArray, exponent: Int32Array
) -> None:
    """sums[S] = log of the sum of exp(logs[P]) over P within S; the last two are room to work."""
    top = split(logs, mantissa, exponent)
    _add_over_bits(mantissa, exponent, True)
    _join(top, mantissa, exponent, sums)


@kernel
def superset_log_sums(
    logs: FloatArray, sums: FloatArray, mantissa: FloatArray, exponent: Int32Array
) -> None:
    """sums[P] = log of the sum of exp(logs[S]) over S that contain P."""
    top = split(logs, mantissa, exponent)
    _add_over_bits(mantissa, exponent, False)
    _join(top, mantissa, exponent, sums)


@kernel
def _add_over_bits(mantissa: FloatArray, exponent: Int32Array, upwards: bool) -> None:
    """Bit by bit, sets without it are added to those with it (upwards), or the other way round."""
    bit = 1
    while bit < len(mantissa):
        for low in range(0, len(mantissa), 2 * bit):
            high, end = low + bit, low + 2 * bit
            m_low, e_low = mantissa[low:high], exponent[low:high]
            m_high, e_high = mantissa[high:end], exponent[high:end]
            if upwards:
                _add_halves(m_high, e_high, m_low, e_low)
            else:
                _add_halves(m_low, e_low, m_high, e_high)
        bit *= 2


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
def _join(top: float, mantissa: FloatArray, exponent: Int32Array, sums: FloatArray) -> None:
    for k in range(len(sums)):
        if mantissa[k] > 0.0:
            sums[k] = top + math.log(mantissa[k]) + exponent[k] * STEP
        else:
            sums[k] = -np.inf
