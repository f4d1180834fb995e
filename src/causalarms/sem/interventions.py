"""Interventions as rows of regimes, one per node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.limits import MAX_REGIMES
from causalarms.sem.regimes import GivenRegimes, regimes_of


def as_interventions(
    given: npt.ArrayLike, nodes: Sequence[str], regimes: GivenRegimes | None = None
) -> npt.NDArray[np.uint8]:
    """A contiguous (n, N) array with 0 <= a_i < K_i, or an error that names the row and the node.

    Without `regimes` every node has two.
    """
    known = regimes_of(regimes, len(nodes))
    array = np.asarray(given)
    right_shape = array.ndim == 2 and array.shape[1] == len(nodes)
    if array.dtype.char == "B" and right_shape and (array <= known.last).all():
        return np.ascontiguousarray(array)  # as policies and systems hand them on in every round
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise DataError(
            "interventions must be numbers 0 (natural) or 1 (intervened)"
            if known.all_two
            else "interventions must be numbers, 0 (natural) and up"
        )
    if not right_shape:
        raise DataError(
            f"interventions must have shape (n, {len(nodes)}), one column per node, "
            f"not {array.shape}"
        )
    right = (array >= 0) & (array < known.counts) & (array == np.floor(array))
    if not right.all():
        row, node = np.argwhere(~right)[0]
        raise DataError(
            f"row {row} of node {nodes[node]!r}: regime {array[row, node]} {_why(known.key[node])}"
        )
    return np.ascontiguousarray(array, dtype=np.uint8)


def _why(n_regimes: int) -> str:
    if n_regimes == MAX_REGIMES:
        return f"is no whole number from 0 (natural) to {MAX_REGIMES - 1}"
    if n_regimes == 1:
        return "is not 0 (natural), and the node has 1 regime: it has no switch"
    if n_regimes == 2:
        return "is neither 0 (natural) nor 1 (intervened), and the node has 2 regimes"
    return f"is none of 0 (natural) to {n_regimes - 1}: the node has {n_regimes} regimes"
