"""Causal bandits with an unknown graph and unknown, soft interventions."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from causalarms.graphs import CSL
    from causalarms.sem import LinearSEM, random_sem

__version__ = _version("causalarms")

# Loaded on first use, so that `causalarms --help` does not wait for compilers.
_HOME = {
    "CSL": "causalarms.graphs",
    "LinearSEM": "causalarms.sem",
    "random_sem": "causalarms.sem",
}

__all__ = ["CSL", "LinearSEM", "__version__", "random_sem"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'causalarms' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
