"""From a Dataset to a Graph: learners and the errors they make."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from causalarms.graphs.graph import Graph, GraphErrors, graph_errors, varsortability

if TYPE_CHECKING:
    from causalarms.graphs.continuous.estimators import DAGMA, GOLEM
    from causalarms.graphs.csl_estimator import CSL

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
_HOME = {
    "CSL": "causalarms.graphs.csl_estimator",
    "DAGMA": "causalarms.graphs.continuous.estimators",
    "GOLEM": "causalarms.graphs.continuous.estimators",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'causalarms.graphs' has no attribute {name!r}")
