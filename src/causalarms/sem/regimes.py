"""How many regimes each node has, K_i >= 1: regime 0 is natural, one without a switch has no other.

Arrays over mechanisms have R = max K_i rows; what they hold for regimes that a node does not have
is zero and never read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.checks import whole
from causalarms.errors import SettingError
from causalarms.limits import MAX_REGIMES

BoolArray = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

REGIME_NAMES = ("natural", "intervened")


def regime_counts(given: object, n_nodes: int, *, default: int = 2) -> Counts:
    """K_i of every node, (N,), from one number, one per node, or None for the default.

    >>> regime_counts([1, 2, 3], 3).tolist(), regime_counts(None, 2).tolist()
    ([1, 2, 3], [2, 2])
    """
    if given is None:
        given = default
    if isinstance(given, np.ndarray):
        if _checked_before(given, n_nodes):
            return given
        given = given.tolist()
    if isinstance(given, Sequence) and not isinstance(given, str):
        if len(given) != n_nodes:
            raise SettingError(f"regimes must be one number per node: {len(given)} of {n_nodes}")
        counts = [_count(k) for k in given]
    else:
        counts = [_count(given)] * n_nodes
    found = np.array(counts, dtype=np.int64)
    found.setflags(write=False)
    return found


def _checked_before(given: npt.NDArray[Any], n_nodes: int) -> bool:
    """Whether this can be what `regime_counts` has returned: policies ask in every round."""
    return bool(
        given.dtype == np.int64
        and given.shape == (n_nodes,)
        and given.base is None
        and not given.flags.writeable
        and n_nodes > 0
        and given.min() >= 1
        and given.max() <= MAX_REGIMES
    )


def _count(given: object) -> int:
    return whole("regimes", given, least=1, most=MAX_REGIMES)


def existing(regimes: Counts, n_regimes: int | None = None) -> BoolArray:
    """Which mechanisms there are, (R, N).

    >>> existing(np.array([1, 2])).tolist()
    [[True, True], [False, True]]
    """
    most = int(regimes.max()) if n_regimes is None else n_regimes
    return np.arange(most)[:, None] < regimes


def all_two(regimes: Counts) -> bool:
    """Whether every node has a natural and an intervened regime, as in the paper."""
    return bool((regimes == 2).all())


def n_interventions(regimes: Counts) -> int:
    """The product of all K_i."""
    return math.prod(regimes.tolist())


def regime_names(n_regimes: int) -> tuple[str, ...]:
    """What regimes are called in messages and tables.

    >>> regime_names(2), regime_names(3)
    (('natural', 'intervened'), ('natural', 'regime 1', 'regime 2'))
    """
    if n_regimes <= len(REGIME_NAMES):
        return REGIME_NAMES[:n_regimes]
    return (REGIME_NAMES[0], *(f"regime {r}" for r in range(1, n_regimes)))


def mechanism_name(nodes: Sequence[str], regime: int, node: int, n_regimes: int = 2) -> str:
    """
    >>> mechanism_name(["a", "b"], 1, 0)
    "node 'a' (intervened)"
    >>> mechanism_name(["a", "b"], 2, 1, 3)
    "node 'b' (regime 2)"
    """
    return f"node {nodes[node]!r} ({regime_names(max(n_regimes, regime + 1))[regime]})"
