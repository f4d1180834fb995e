"""One check per kind of setting: the value as it is used, or an error that names the setting.

Settings are validated in the constructor, before any work starts. Numbers are bounded so that
their squares stay in the range of double precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from causalarms.errors import SettingError, shown

LARGEST = 1e100
SMALLEST = 1e-100  # of numbers that must be above 0
MAX_INTEGER = 2**62  # fits an array

Kind = TypeVar("Kind")
Checked = TypeVar("Checked")


def integer(
    name: str, value: object, *, minimum: int, maximum: int | None = None, why: str = ""
) -> int:
    """An integer in a range; `why` tells where the range comes from.

    >>> integer("draws", 20, minimum=1)
    20
    """
    # `True` is an `int` in Python; passing it as a count is always a mistake
    if (
        isinstance(value, bool | np.bool_)
        or not isinstance(value, Integral)
        or not minimum <= int(value) <= (MAX_INTEGER if maximum is None else maximum)
    ):
        span = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        reason = f" ({why})" if why else ""
        raise SettingError(f"{name} must be an integer {span}{reason}, not {shown(value)}")
    return int(value)


def number(
    name: str,
    value: object,
    *,
    minimum: float = -LARGEST,
    above: float | None = None,
    maximum: float = LARGEST,
) -> float:
    """A finite number in a range that includes its ends; `above` is an end that it excludes.

    >>> number("alpha", 1, minimum=0)
    1.0
    """
    low = minimum if above is None else max(above, SMALLEST)
    found = _real(value)
    if low <= found <= maximum:
        return found
    words = []
    if above is not None:
        words.append(f"above {above:g}")
    elif minimum > -LARGEST:
        words.append(f"of at least {minimum:g}")
    if maximum < LARGEST:
        words.append(f"at most {maximum:g}")
    if math.isfinite(found) and (abs(found) > LARGEST or 0 < abs(found) < SMALLEST):
        words.append("not so far from 1 that its square is lost")
    span = " " + " and ".join(words) if words else ""
    raise SettingError(f"{name} must be a number{span}, not {shown(value)}")


def fraction(name: str, value: object, *, ends: str = "()") -> float:
    """A number between 0 and 1; `ends` says which of them belong to it, as in "[0, 1)".

    >>> fraction("delta", 0.05)
    0.05
    """
    found = _real(value)
    above = found >= 0 if ends[0] == "[" else found >= SMALLEST
    below = found <= 1 if ends[1] == "]" else found < 1
    if above and below:
        return found
    words = {
        "()": "lie between 0 and 1",
        "[)": "be at least 0 and below 1",
        "[]": "lie in [0, 1]",
    }
    raise SettingError(f"{name} must {words[ends]}, not {shown(value)}")


def choice(name: str, value: object, names: Sequence[str]) -> str:
    """One of a few names.

    >>> choice("keep", "oldest", ("oldest", "newest"))
    'oldest'
    """
    if not isinstance(value, str) or value not in names:
        raise SettingError(f"{name} must be one of {', '.join(names)}, not {shown(value)}")
    return value


def flag(name: str, value: object) -> bool:
    """True or False.

    >>> flag("hold", True)
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def instance(name: str, value: object, kinds: type[Kind] | tuple[type[Kind], ...]) -> Kind:
    """An object of one of these classes."""
    if not isinstance(value, kinds):
        names = [kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,))]
        raise SettingError(f"{name} must be a {' or a '.join(names)}, not {shown(value)}")
    return value


def as_sequence(name: str, value: object, kind: str = "a list") -> Sequence[Any]:
    """A list or a tuple, of this `kind`; text is a sequence of letters, which nobody means."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise SettingError(f"{name} must be {kind}, not {shown(value)}")
    return value


def as_mapping(name: str, value: object, kind: str = "names with values") -> Mapping[Any, Any]:
    """A dict or another mapping, of this `kind`."""
    if not isinstance(value, Mapping):
        raise SettingError(f"{name} must be {kind}, not {shown(value)}")
    return value


def optional(
    check: Callable[..., Checked], name: str, value: object, **bounds: object
) -> Checked | None:
    """None, or what the check makes of it.

    >>> optional(integer, "window", None, minimum=1)
    """
    return None if value is None else check(name, value, **bounds)


def usable(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which measured values can be computed with: finite, and so are sums of their squares."""
    return np.abs(values) <= LARGEST  # False of nan


def why_unusable(value: float) -> str:
    """What a message says of a value that is not `usable`, after its place.

    >>> why_unusable(1e308)
    'is 1e+308: too large to compute with, use other units'
    """
    if math.isnan(value):
        return "is NaN"
    if math.isinf(value):
        return "is infinite (inf)"
    return f"is {value:g}: too large to compute with, use other units"


def _real(value: object) -> float:
    """nan, which lies in no range, if it is not a number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return math.nan
    return as_float(value)


def as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:  # an integer of hundreds of digits
        return math.inf
