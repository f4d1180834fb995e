"""Functions, classes and settings as plain JSON values, for results files and messages."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from causalarms.errors import ModelError


def plain(name: str, value: Any) -> Any:
    """What a results file says of a setting.

    >>> plain("noise", ("laplace", np.cumsum))
    ['laplace', 'numpy:cumsum']
    """
    try:
        return json.loads(json.dumps(value, default=_described))
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{name}: {value!r:.60} cannot be written to a results file ({error}); give plain "
            "values, functions, classes or learners"
        ) from error


def address(made_by: Any) -> str:
    """Where a function or class is from, as `module:name`."""
    if isinstance(made_by, partial):
        return address(made_by.func)
    known = made_by if hasattr(made_by, "__qualname__") else type(made_by)
    return f"{known.__module__}:{known.__qualname__}"


def short_name(made_by: Any) -> str:
    """What a function or class is called in tables."""
    if isinstance(made_by, partial):
        return short_name(made_by.func)
    return str(getattr(made_by, "__name__", type(made_by).__name__))


def _described(value: Any) -> Any:
    if isinstance(value, partial):
        return {"made by": address(value), "with": [list(value.args), value.keywords]}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if hasattr(value, "get_params"):
        return (
            f"{address(type(value))}: {value!r}" if not isinstance(value, type) else address(value)
        )
    if callable(value):
        return address(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is no plain value")
