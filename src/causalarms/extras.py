"""Optional packages: which extra brings them, and one message if they are missing."""

from __future__ import annotations

from importlib.util import find_spec

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


def _missing(extra: str) -> list[str]:
    return [name for name in EXTRAS[extra] if find_spec(name) is None]
