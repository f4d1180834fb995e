"""Interventions as rows of 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError


def as_interventions(given: npt.ArrayLike, nodes: Sequence[str]) -> npt.NDArray[np.uint8]:
    """A contiguous (n, N) array of 0/1, or an error that names the row and the node."""
    array = np.asarray(given)
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise DataError("interventions must be numbers 0 (natural) or 1 (intervened)")
    if array.ndim != 2 or array.shape[1] != len(nodes):
        raise DataError(
            f"interventions must have shape (n, {len(nodes)}), one column per node, "
            f"not {array.shape}"
        )
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        row, node = np.argwhere(wrong)[0]
        raise DataError(
            f"row {row} of node {nodes[node]!r}: regime {array[row, node]} "
            "is neither 0 (natural) nor 1 (intervened)"
        )
    return np.ascontiguousarray(array, dtype=np.uint8)
