"""Interventions worth scoring where 2^N are too many: the best by mean and their neighbours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.models.best_of_model import best_of_model
from causalarms.models.weights import MechanismWeights
from causalarms.search import best_interventions

BUDGET = 500_000  # tree nodes, half a second


def candidates(model: MechanismWeights, reward: int, *, m: int = 20) -> npt.NDArray[np.uint8]:
    """The m best by estimated mean and all that differ from one of them in one node, (n, N).

    Of interventions that have the same effect on the reward only one counts among the m.
    Where the regimes mix into a cycle, the best one found and its neighbours.
    """
    if model.order is None:
        best = [best_of_model(model, reward, budget=BUDGET).intervention]
    else:
        found = best_interventions(
            model.weights, model.intercept, model.order, reward, m, distinct=True, budget=BUDGET
        )
        best = [arm.intervention for arm in found]
    n_nodes = model.weights.shape[1]
    neighbours = np.stack(best)[:, None, :] ^ np.eye(n_nodes, dtype=np.uint8)
    return np.unique(np.vstack([*best, *neighbours]), axis=0)
