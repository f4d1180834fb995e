"""Hot loops: numba's compiler with types kept for the checker and machine code kept on disk.

With NUMBA_DISABLE_JIT=1 kernels are ordinary functions that a debugger can step through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


class Kernel:
    """A function that numba compiles on its first call.

    numba itself is imported then, too: it takes a second, and most commands of a study call no
    kernel at all.
    """

    def __init__(self, function: Callable[..., object], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._options = options

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatcher(*arguments)

    @functools.cached_property
    def _dispatcher(self) -> Any:
        import numba

        _teach_numba()
        return numba.njit(cache=True, error_model="numpy", **self._options)(self.__wrapped__)

    def __getattr__(self, name: str) -> Any:
        # numba asks callees for their options; dunder names belong to copying and pickling.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._dispatcher, name)

    def __reduce__(self) -> str:
        return self.__qualname__


@functools.cache
def _teach_numba() -> None:
    """Kernels that call kernels: numba takes a `Kernel` for the dispatcher inside it."""
    from numba.core.typing.typeof import typeof_impl

    @typeof_impl.register(Kernel)
    def _typeof(value: Kernel, context: Any) -> Any:
        return typeof_impl(value._dispatcher, context)


def kernel(function: Function) -> Function:
    """Compile a pure function of arrays on first use; later processes load it from the cache."""
    return cast(Function, Kernel(function, {"no_cfunc_wrapper": True}))


def inner(function: Function) -> Function:
    """A kernel that only kernels call: compiled sooner, without a way in from Python."""
    return cast(Function, Kernel(function, {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}))


def inlined(function: Function) -> Function:
    """A part of a kernel that is pasted into its callers."""
    return cast(Function, Kernel(function, {"inline": "always"}))
