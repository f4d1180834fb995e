"""From a Dataset to a Graph: learners and the errors they make."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from causalarms.graphs.graph import Graph, GraphErrors, graph_errors, varsortability

if TYPE_CHECKING:
    from causalarms.graphs.estimators import CSL, DAGMA, GOLEM

__all__ = [
    "CSL",
    "DAGMA",
    "GOLEM",
    "Graph",
    "GraphErrors",
    "graph_errors",
    "varsortability",
]

# Loaded on first use: scikit-learn takes long to import, and a study asked from a shell needs only
# the functions beneath these classes.
_ESTIMATORS = ("CSL", "DAGMA", "GOLEM")


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        return getattr(import_module("causalarms.graphs.estimators"), name)
    raise AttributeError(f"module 'causalarms.graphs' has no attribute {name!r}")
