"""How many regimes each node has, K_i >= 1: regime 0 is natural, one without a switch has no other.

Arrays over mechanisms have R = max K_i rows; what they hold for regimes that a node does not have
is zero and never read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from causalarms.checks import whole
from causalarms.errors import SettingError
from causalarms.limits import MAX_REGIMES

BoolArray = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

REGIME_NAMES = ("natural", "intervened")

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Regimes:
    """How many regimes each node has, checked once, and what follows from it.

    >>> some = regimes_of([1, 2, 3], 3)
    >>> some.n_regimes, some.n_interventions, some.all_two, some.existing.tolist()[2]
    (3, 6, False, [False, False, True])
    """

    key: tuple[int, ...]  # (N,)

    def __len__(self) -> int:
        return len(self.key)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.key, dtype=dtype or np.int64)

    def __reduce__(self) -> tuple[object, ...]:  # arrays would lose that they are read-only
        return _checked, (self.key,)

    @cached_property
    def counts(self) -> Counts:
        """K_i of every node, (N,), read-only."""
        return _fixed(np.array(self.key, dtype=np.int64))

    @cached_property
    def existing(self) -> BoolArray:
        """Which mechanisms there are, (R, N), read-only."""
        return _fixed(np.arange(self.n_regimes)[:, None] < self.counts)

    @cached_property
    def last(self) -> npt.NDArray[np.uint8]:
        """The highest regime of every node, (N,): K_i itself may not fit a byte."""
        return _fixed((self.counts - 1).astype(np.uint8))

    @cached_property
    def strides(self) -> npt.NDArray[np.int64]:
        """By how much the index of an intervention grows with the regime of each node, (N,)."""
        largest = 2**62  # no index of an array reaches it
        sizes = [math.prod(self.key[i + 1 :]) for i in range(len(self))]
        return _fixed(np.array([min(size, largest) for size in sizes], dtype=np.int64))

    @cached_property
    def n_regimes(self) -> int:
        """The most that a node has, R."""
        return max(self.key, default=0)

    @cached_property
    def n_interventions(self) -> int:
        """The product of all K_i."""
        return math.prod(self.key)

    @cached_property
    def all_two(self) -> bool:
        """Whether every node has a natural and an intervened regime, as in the paper."""
        return set(self.key) <= {2}


GivenRegimes = Regimes | Counts


def regimes_of(given: object, n_nodes: int, *, default: int = 2) -> Regimes:
    """From one number, one per node, or None for the default."""
    if isinstance(given, Regimes):
        found = given
    elif isinstance(given, np.ndarray) and given.dtype == np.int64 and given.ndim == 1:
        found = _checked(tuple(given.tolist()))  # a policy asks in every round
    else:
        given = default if given is None else given
        given = given.tolist() if isinstance(given, np.ndarray) else given
        if isinstance(given, Sequence) and not isinstance(given, str):
            found = _checked(tuple(_count(k) for k in given))
        else:
            found = _checked((_count(given),) * n_nodes)
    if len(found) != n_nodes:
        raise SettingError(f"regimes must be one number per node: {len(found)} of {n_nodes}")
    return found


@lru_cache(maxsize=1024)
def _checked(counts: tuple[int, ...]) -> Regimes:
    return Regimes(tuple(_count(k) for k in counts))


def _count(given: object) -> int:
    return whole("regimes", given, least=1, most=MAX_REGIMES)


def _fixed(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    array.setflags(write=False)
    return array


def regime_counts(given: object, n_nodes: int, *, default: int = 2) -> Counts:
    """K_i of every node, (N,), from one number, one per node, or None for the default.

    >>> regime_counts([1, 2, 3], 3).tolist(), regime_counts(None, 2).tolist()
    ([1, 2, 3], [2, 2])
    """
    return regimes_of(given, n_nodes, default=default).counts


def existing(regimes: Counts, n_regimes: int | None = None) -> BoolArray:
    """Which mechanisms there are, (R, N).

    >>> existing(np.array([1, 2])).tolist()
    [[True, True], [False, True]]
    """
    if n_regimes is None:
        return regimes_of(regimes, len(regimes)).existing
    return np.arange(n_regimes)[:, None] < regimes


def all_two(regimes: Counts) -> bool:
    """Whether every node has a natural and an intervened regime, as in the paper."""
    return regimes_of(regimes, len(regimes)).all_two


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
