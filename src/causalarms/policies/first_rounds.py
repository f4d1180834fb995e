"""What the first rounds show of every node: its middle and, where it is estimated, its unit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.graphs.units import Units
from causalarms.policies.noise_units import estimated_units

FloatArray = npt.NDArray[np.float64]

FIRST_ROUNDS = 8  # random ones, from which units are estimated
FEWEST = 4  # values of a node that show its spread, where some are missing
LATEST = 24  # rounds after which units are estimated, however many values are missing


def show_units(values: FloatArray) -> bool:
    """Whether these rounds, (n, N), show the spread of every node; nan where missing."""
    if len(values) < FIRST_ROUNDS:
        return False
    return len(values) >= LATEST or bool(((~np.isnan(values)).sum(axis=0) >= FEWEST).all())


def units_shown_by(values: FloatArray, *, center: bool) -> Units:
    """Of what was measured of each node; a node that never was keeps its unit."""
    if not np.isnan(values).any():
        return estimated_units(values, center=center)
    each = [estimated_units(_measured(column)[:, None], center=center) for column in values.T]
    return Units(
        shift=np.array([unit.shift[0] for unit in each]),
        scale=np.array([unit.scale[0] for unit in each]),
    )


def middle_of(values: FloatArray) -> FloatArray:
    """Median of every node, (N,); of one that was never measured zero."""
    if not np.isnan(values).any():
        return np.asarray(np.median(values, axis=0))
    return np.array([np.median(_measured(column)) for column in values.T])


def _measured(column: FloatArray) -> FloatArray:
    found = column[~np.isnan(column)]
    return found if len(found) else np.zeros(1)
