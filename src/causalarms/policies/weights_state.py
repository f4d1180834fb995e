"""Fitted weights as plain arrays, from which they come back with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.models.weights import MechanismWeights
from causalarms.policies.state_check import FLOATS, INTEGERS, Entry
from causalarms.sem.regimes import Counts, topological_order

ARRAYS = ("weights", "intercept", "noise_std", "spread", "n_regressors")


def weights_state(model: MechanismWeights | None) -> dict[str, Any]:
    """Nothing where there is no model; the order of nodes follows from the graph."""
    return {} if model is None else {name: getattr(model, name) for name in ARRAYS}


def weights_entries(n_regimes: int, n_nodes: int) -> dict[str, Entry]:
    mechanisms = n_regimes, n_nodes
    return {
        "weights": Entry(FLOATS, (*mechanisms, n_nodes), optional=True),
        "intercept": Entry(FLOATS, mechanisms, optional=True),
        "noise_std": Entry(FLOATS, mechanisms, 0, optional=True),
        "spread": Entry(FLOATS, mechanisms, 0, optional=True),
        "n_regressors": Entry(INTEGERS, mechanisms, 0, n_nodes, optional=True),
    }


def restored_weights(
    state: dict[str, Any], adjacency: npt.NDArray[np.bool_], regimes: Counts
) -> MechanismWeights:
    """Of that graph, (R, N, N)."""
    order = topological_order(adjacency.any(axis=0))
    return MechanismWeights(**state, order=order, regimes=regimes)
