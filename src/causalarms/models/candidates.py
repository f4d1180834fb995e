"""Interventions worth scoring where all are too many: the best by mean and their neighbours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.models.best_of_model import best_of_model
from causalarms.models.weights import MechanismWeights
from causalarms.search import Constraints, best_interventions
from causalarms.sem.rewards import neighbours, within

BUDGET = 500_000  # tree nodes, half a second


def candidates(
    model: MechanismWeights, reward: int, *, m: int = 20, allowed: Constraints | None = None
) -> npt.NDArray[np.uint8]:
    """The m best by estimated mean and all that differ from one of them in one node, (n, N).

    With `allowed` constraints, the m best net of costs and their allowed neighbours.

    Of interventions that have the same effect on the reward only one counts among the m. Where a
    node has more than two regimes, m is 1.
    Where the regimes mix into a cycle, the best one found and its neighbours.
    """
    if model.order is None:
        best = [best_of_model(model, reward, allowed=allowed, budget=BUDGET).intervention]
    else:
        found = best_interventions(
            model.weights, model.intercept, model.order, reward, m,
            constraints=within(model.counts, allowed), distinct=True, budget=BUDGET,
        )  # fmt: skip
        best = [arm.intervention for arm in found]
    if allowed is None:
        beside = [neighbours(a, model.counts) for a in best]
    else:
        beside = [allowed.neighbours(a) for a in best]
    return np.unique(np.vstack([*best, *beside]), axis=0)
