"""From a Dataset to a Graph: learners and the errors they make."""

from causalarms.graphs.continuous.estimators import DAGMA, GOLEM
from causalarms.graphs.csl_estimator import CSL
from causalarms.graphs.graph import Graph
from causalarms.graphs.metrics import GraphErrors, graph_errors, varsortability
from causalarms.graphs.posterior.estimator import GraphPosterior

__all__ = [
    "CSL",
    "DAGMA",
    "GOLEM",
    "Graph",
    "GraphErrors",
    "GraphPosterior",
    "graph_errors",
    "varsortability",
]
