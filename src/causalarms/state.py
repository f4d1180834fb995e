"""States by declaration: what a policy, or a part of one, has learned, as names and types.

A state is flat: arrays and numbers by name. The names of a part, or of the fields of a record, have
the name of the whole and a dot in front.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from types import UnionType
from typing import Any, ClassVar, TypeAlias

import numpy as np

from causalarms.errors import DataError

# By the name of the attribute, its type: `np.ndarray`, `int`, `float` or `bool`, a dataclass of
# arrays, or a part with `state` and `restore`. `X | None` is what may not have been learned yet.
Declared: TypeAlias = dict[str, type | UnionType]


class HasState:
    """A part whose state is its declared attributes."""

    learned: ClassVar[Declared] = {}

    def state(self) -> dict[str, Any]:
        """Copies of all that was learned."""
        return state_of(self, self.learned)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was exported, in an object built with the same arguments."""
        restore_state(self, self.learned, state)


def arrays(*attributes: str) -> Declared:
    """A declaration of attributes that are arrays."""
    return dict.fromkeys(attributes, np.ndarray)


def state_of(owner: object, declared: Declared) -> dict[str, Any]:
    """Copies of the declared attributes, without their leading underscore; None is left out."""
    state: dict[str, Any] = {}
    for attribute, kind in declared.items():
        name, value = attribute.removeprefix("_"), getattr(owner, attribute)
        if value is None:
            continue
        if hasattr(value, "restore"):
            state |= nested(name, value.state())
        elif is_dataclass(value):
            record = asdict(value)  # type: ignore[arg-type]
            state |= nested(
                name, {key: field for key, field in record.items() if field is not None}
            )
        else:
            state[name] = value.copy() if isinstance(value, np.ndarray) else _bare(kind)(value)
    return state


def restore_state(owner: object, declared: Declared, state: Mapping[str, Any]) -> None:
    """Set the declared attributes to what `state_of` found; an error if an entry does not fit."""
    for attribute, kind in declared.items():
        name, bare = attribute.removeprefix("_"), _bare(kind)
        value: Any
        if hasattr(bare, "restore"):
            part = getattr(owner, attribute)
            if part is not None:  # by its settings the owner may have none
                part.restore(unnested(name, state))
            continue
        if is_dataclass(bare):
            found = unnested(name, state)
            record = {field.name: found.get(field.name) for field in fields(bare)}
            value = bare(**record) if found else None  # type: ignore[operator]
        elif name not in state and isinstance(kind, UnionType):
            value = None
        elif bare is np.ndarray:
            value = _fitting(name, state[name], getattr(owner, attribute))
        else:
            value = bare(state[name])
        setattr(owner, attribute, value)


def _bare(kind: type | UnionType) -> Any:
    return kind.__args__[0] if isinstance(kind, UnionType) else kind


def _fitting(name: str, found: Any, now: Any) -> Any:
    """A copy, of the type it had: for another one, kernels would be compiled again."""
    copy = np.array(found)
    if now is not None and (copy.dtype, copy.ndim) != (now.dtype, now.ndim):
        raise DataError(
            f"{name} of a state must hold {now.dtype} along {now.ndim} axes, not {copy.dtype} "
            f"along {copy.ndim}"
        )
    return copy


def nested(part: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a part inside the state of a whole.

    >>> nested("data", {"values": 1})
    {'data.values': 1}
    """
    return {f"{part}.{name}": value for name, value in state.items()}


def unnested(part: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `nested`.

    >>> unnested("data", {"data.values": 1, "held": 2})
    {'values': 1}
    """
    prefix = f"{part}."
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }
