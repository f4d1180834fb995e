"""Could this state be that of this policy? What a fresh policy's state shows is compared with it.

A fresh state shows names, kinds and lengths. What grows or appears later only is declared by the
policy (`Policy.state_entries`), and what ties entries to each other is checked when they are
restored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.changes.detector import Alarm
from causalarms.errors import DataError
from causalarms.state_entries import (
    ARRAYS,
    BITS,
    FLAGS,
    FLOATS,
    INTEGERS,
    REAL,
    WHOLE,
    Entry,
)

__all__ = [
    "BITS", "FLAGS", "FLOATS", "INTEGERS", "REAL", "WHOLE", "Entry", "check_state", "nested",
    "unnested",
]  # fmt: skip

ALARMS = "alarms"


def check_state(
    fresh: dict[str, Any],
    declared: dict[str, Entry],
    state: dict[str, Any],
    *,
    n_nodes: int,
    n_told: int,
    n_regimes: int = 2,
) -> None:
    """DataError where `state` cannot be what `fresh` has become after `n_told` rounds."""
    entries = {name: _derived(value, n_told, n_regimes) for name, value in fresh.items()}
    entries |= declared
    entries[ALARMS] = Entry(FLOATS, (None, len(Alarm._fields)), finite=False)
    for name in state:
        if name not in entries:
            raise DataError(f"{name} is not part of it")
    for name, entry in entries.items():
        if name in state:
            _check(name, state[name], entry)
        elif not entry.optional:
            raise DataError(f"{name} is missing")
    if state["n_told"] != n_told:
        raise DataError(f"it knows {state['n_told']} rounds, the log {n_told}")
    _check_alarms(state[ALARMS], n_nodes, n_told, n_regimes)


def _derived(value: Any, n_told: int, n_regimes: int) -> Entry:
    """An axis that is empty at first may grow; whole numbers count rounds, bytes are regimes."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, np.ndarray | int | float) or isinstance(value, bool):
        return Entry(type(value).__name__)
    numbers = np.asarray(value)
    shape = tuple(length or None for length in numbers.shape)
    if numbers.dtype.kind == "f":
        usual, nan = np.isfinite(numbers).all(), np.isnan(numbers).any()
        kind = REAL if isinstance(value, float) else FLOATS
        return Entry(kind, shape, finite=bool(usual), nan=bool(nan))
    if numbers.dtype.kind == "i":
        low, high = numbers.min(initial=0), numbers.max(initial=n_told)
        return Entry(WHOLE if isinstance(value, int) else INTEGERS, shape, low, high)
    return Entry(numbers.dtype.str, shape, 0, n_regimes - 1 if numbers.dtype.kind == "u" else 1)


def _check(name: str, value: Any, entry: Entry) -> None:
    if entry.kind in (WHOLE, REAL):
        if type(value) is not (int if entry.kind == WHOLE else float):
            raise DataError(f"{name} is {value!r:.40}, not a {entry.kind}")
        numbers = np.array([float(value)])
    elif entry.kind not in ARRAYS:
        if type(value).__name__ != entry.kind:
            raise DataError(f"{name} is {value!r:.40}, not a {entry.kind}")
        return
    else:
        if not isinstance(value, np.ndarray) or value.dtype.str != entry.kind:
            found = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
            raise DataError(f"{name} holds {found}, not {np.dtype(entry.kind)}")
        fits = len(value.shape) == len(entry.shape) and all(
            wanted in (None, length)
            for wanted, length in zip(entry.shape, value.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if n is None else str(n) for n in entry.shape)
            raise DataError(f"{name} has shape {value.shape}, not ({wanted})")
        numbers = value
    if entry.finite and not np.isfinite(numbers).all():
        raise DataError(f"{name} holds a number that is not finite")
    if np.isnan(numbers).any() and not entry.nan:
        raise DataError(f"{name} holds nan")
    if ((numbers < entry.low) | (numbers > entry.high)).any():
        raise DataError(f"{name} holds a number outside {entry.low:g} to {entry.high:g}")


def _check_alarms(
    alarms: npt.NDArray[np.float64], n_nodes: int, n_told: int, n_regimes: int
) -> None:
    rounds, regimes, nodes, points = alarms[:, :4].T
    whole = (alarms[:, :4] == np.round(alarms[:, :4])).all()
    all_nodes = (regimes == -1) & (nodes == -1)
    one_node = (regimes >= 0) & (regimes < n_regimes) & (nodes >= 0) & (nodes < n_nodes)
    known = (rounds >= 1) & (rounds <= n_told) & (points >= -1) & (points <= n_told)
    if not whole or not (known & (all_nodes | one_node)).all():
        raise DataError("an alarm names a round or a mechanism that does not exist")
    if (np.diff(rounds) < 0).any() or len(np.unique(alarms[:, :3], axis=0)) < len(alarms):
        raise DataError("the alarms are not in the order of rounds")


def nested(part: str, state: dict[str, Any]) -> dict[str, Any]:
    """The state of a part inside the state of a whole: flat names with a dot.

    >>> nested("data", {"values": 1})
    {'data.values': 1}
    """
    return {f"{part}.{name}": value for name, value in state.items()}


def unnested(part: str, state: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `nested`.

    >>> unnested("data", {"data.values": 1, "held": 2})
    {'values': 1}
    """
    prefix = f"{part}."
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }
