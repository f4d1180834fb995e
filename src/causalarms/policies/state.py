"""States of parts inside the state of a whole: flat names with a dot."""

from __future__ import annotations

from typing import Any


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
