"""What is imported only if it is used: optional packages, and names that are slow to import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from causalarms.errors import MissingExtraError

EXTRAS = {  # as in pyproject.toml
    "dask": ("distributed",),
    "plot": ("matplotlib",),
    "parquet": ("pyarrow",),
    "serve": ("starlette", "uvicorn", "h11"),
}


def has_extra(extra: str) -> bool:
    return not _missing(extra)


def require_extra(extra: str, what: str) -> None:
    """MissingExtraError if a package of the extra is not installed; `what` needs it."""
    missing = _missing(extra)
    if missing:
        raise MissingExtraError(
            f"{what} needs {', '.join(missing)}, not installed here: "
            f"pip install 'causalarms[{extra}]'"
        )


def imported_on_use(
    package: str, homes: Mapping[str, str], extra: str | None = None
) -> Callable[[str], Any]:
    """The `__getattr__` of a package: name -> its module, which needs the extra."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if extra is not None:
            require_extra(extra, f"{package}.{name}")
        return getattr(import_module(homes[name]), name)

    return get


def _missing(extra: str) -> list[str]:
    return [name for name in EXTRAS[extra] if find_spec(name) is None]
