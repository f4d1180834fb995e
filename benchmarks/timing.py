"""Median times of calls, each on data it has not seen, and growth exponents.

Processor time of the one thread, so that other programs on the machine disturb little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import process_time
from typing import Any

import numpy as np


def median_time(function: Callable[..., Any], inputs: Sequence[tuple[Any, ...]]) -> float:
    """Seconds per call over different inputs; the first one warms up and is not counted.

    A call repeated on the same data is up to several times faster: the branch predictor has
    learned them by heart.
    """
    times = []
    for arguments in inputs:
        start = process_time()
        function(*arguments)
        times.append(process_time() - start)
    return median(times[1:])


def growth_exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Slope of log time over log size by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def readable(seconds: float) -> str:
    for factor, unit in ((1e-3, "µs"), (1.0, "ms")):
        if seconds < factor:
            return f"{seconds * 1e3 / factor:.3g} {unit}"
    return f"{seconds:.3g} s"
