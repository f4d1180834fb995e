"""From a Dataset to a Graph: learners and the errors they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from causalarms.extras import imported_on_use
from causalarms.graphs.graph import Graph, GraphErrors, graph_errors, varsortability

if TYPE_CHECKING:
    from causalarms.graphs.estimators import CSL, DAGMA, GOLEM

__all__ = ["CSL", "DAGMA", "GOLEM", "Graph", "GraphErrors", "graph_errors", "varsortability"]

# scikit-learn takes long to import, and a study asked from a shell needs only the functions beneath
# these classes.
__getattr__ = imported_on_use(
    __name__, dict.fromkeys(("CSL", "DAGMA", "GOLEM"), "causalarms.graphs.estimators")
)
