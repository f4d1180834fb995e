"""What an entry of a state may be, for those whose states grow or start empty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FLOATS, INTEGERS, BITS, FLAGS = ARRAYS = "<f8", "<i8", "|u1", "|b1"
WHOLE, REAL = "whole number", "number"  # scalars


class Entry(NamedTuple):
    """What one entry of a state may be."""

    kind: str
    shape: tuple[int | None, ...] = ()  # None: any length
    low: float = -np.inf
    high: float = np.inf
    finite: bool = True
    nan: bool = False
    optional: bool = False
