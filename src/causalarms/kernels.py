"""Hot loops: numba's compiler with types kept for the checker and machine code kept on disk.

With NUMBA_DISABLE_JIT=1 kernels are ordinary functions that a debugger can step through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a pure function of arrays on first use; later processes load it from the cache."""
    compiled = njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)
    return cast(Function, compiled(function))


def inner(function: Function) -> Function:
    """A kernel that only kernels call: compiled sooner, without a way in from Python."""
    compiled = njit(cache=True, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True)
    return cast(Function, compiled(function))


def inlined(function: Function) -> Function:
    """A part of a kernel that is pasted into its callers."""
    return cast(Function, njit(cache=True, inline="always", error_model="numpy")(function))
