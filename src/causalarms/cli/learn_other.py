"""`causalarms learn --method NAME` with a learner of another package, or MODULE:CLASS."""

from __future__ import annotations

from typing import Any

import numpy as np

from causalarms.errors import CausalArmsError, DataError
from causalarms.graphs.graph import Graph
from causalarms.graphs.inputs import Rounds
from causalarms.graphs.registry import make_learner
from causalarms.registry import part_of
from causalarms.sem.regimes import topological_order


def other_learner(method: str) -> Any:
    """A learner that is not built in; unknown names are refused with the nearest."""
    return make_learner(part_of("learner", method))


def fit_other(learner: Any, method: str, rounds: Rounds, noise_mean: Any) -> Graph:
    """What it has learned, with the names of the table; its own refusals in words."""
    values, regimes, nodes = rounds
    try:
        learner.fit(values, interventions=regimes, noise_mean=noise_mean)
        adjacency = np.asarray(learner.adjacency_) != 0
        weights = np.asarray(learner.weights_, dtype=float)
    except CausalArmsError:
        raise
    except Exception as error:
        raise DataError(
            f"learner {method!r} cannot learn from this: {type(error).__name__}: {error}"
        ) from error
    shape = (2, len(nodes), len(nodes))
    for name, found in (("adjacency_", adjacency), ("weights_", weights)):
        if found.shape != shape:
            raise DataError(f"learner {method!r} leaves {name} of shape {found.shape}, not {shape}")
    order = topological_order(adjacency.any(axis=0))
    return Graph(
        nodes=nodes,
        adjacency=adjacency,
        weights=weights,
        known=np.isfinite(weights).all(axis=1),
        order=None if order is None else tuple(nodes[i] for i in order),
        measures={},
    )
