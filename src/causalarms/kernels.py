"""Hot loops: numba's compiler with types kept for the checker and machine code kept on disk.

With NUMBA_DISABLE_JIT=1 kernels are ordinary functions that a debugger can step through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])

# Called with the name of a kernel before it is compiled, not if it is loaded from the cache.
before_compiling: list[Callable[[str], None]] = []


class Kernel:
    """A function that numba compiles on its first call.

    numba itself is imported then, too: that takes a second, and most commands of a study call no
    kernel at all.
    """

    def __init__(self, function: Callable[..., object], **options: object) -> None:
        functools.update_wrapper(self, function)
        self._options = options

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatcher(*arguments)

    @functools.cached_property
    def _dispatcher(self) -> Any:
        from numba import njit

        forgiving_cache = _prepare_numba()
        compiled = njit(cache=True, error_model="numpy", **self._options)(self.__wrapped__)
        if compiled is not self.__wrapped__:  # it is with NUMBA_DISABLE_JIT
            compiled._cache = forgiving_cache(self.__wrapped__)
        return compiled

    def __getattr__(self, name: str) -> Any:
        # numba reads the options of callees (`targetoptions`, `py_func`) to inline them. Dunder
        # names are asked for by copy and pickle, also of an object that is not initialised yet.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._dispatcher, name)

    def __reduce__(self) -> str:
        return self.__qualname__  # by name, as functions are pickled


@functools.cache
def _prepare_numba() -> Any:
    """Teach numba about kernels; the class of its cache that survives a change of the source."""
    from numba.core import event
    from numba.core.caching import FunctionCache
    from numba.core.typing.typeof import typeof_impl

    # In a kernel that calls a kernel, numba finds a `Kernel` where it knows dispatchers only.
    def typeof(value: Kernel, context: Any) -> Any:
        return typeof_impl(value._dispatcher, context)

    typeof_impl.register(Kernel)(typeof)

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, started: Any) -> None:
            for tell in before_compiling:
                tell(started.data["dispatcher"].py_func.__name__)

        def on_end(self, ended: Any) -> None:
            pass

    event.register("numba:compile", Listener())

    class ForgivingCache(FunctionCache):  # type: ignore[misc]
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:
                # numba unpickles an entry before it looks whether the source has changed since.
                # One that names a class of a module that was moved cannot be unpickled: compile.
                self.flush()
                return None

    return ForgivingCache


def kernel(function: Function) -> Function:
    """Compile a pure function of arrays on first use; later processes load it from the cache.

    Other threads go on meanwhile: a service tells results while it chooses trials. Code that
    shares arrays between threads locks them (`Reader.learning`).
    """
    return cast(Function, Kernel(function, no_cfunc_wrapper=True, nogil=True))


def inner(function: Function) -> Function:
    """A kernel that only kernels call: compiled sooner, without a way in from Python."""
    return cast(Function, Kernel(function, no_cfunc_wrapper=True, no_cpython_wrapper=True))


def inlined(function: Function) -> Function:
    """A part of a kernel that is pasted into its callers."""
    return cast(Function, Kernel(function, inline="always"))
