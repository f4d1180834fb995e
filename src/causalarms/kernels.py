"""Hot loops: numba's compiler with types kept for the checker and machine code kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a pure function of arrays on first use; later processes load it from the cache."""
    return cast(Function, njit(cache=True, error_model="numpy")(function))


def inlined(function: Function) -> Function:
    """A part of a kernel that is pasted into its callers."""
    return cast(Function, njit(cache=True, inline="always", error_model="numpy")(function))
