"""What is expected of every intervention, as long as the posterior stays as it is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.models.lookahead.model import Model, model_of
from causalarms.models.lookahead.situation import Lookahead, Situation
from causalarms.posterior.exact import ExactPosterior
from causalarms.sem.rewards import reward_tables

FloatArray = npt.NDArray[np.float64]


class OnAverage(NamedTuple):
    model: Model
    rewards: FloatArray  # of all interventions, costs not counted

    def net(self, asked: Situation) -> FloatArray:
        """Of those that are allowed, (A,)."""
        rewards = self.rewards if asked.arms is None else self.rewards[asked.arms]
        return rewards if asked.cost is None else rewards - asked.cost


def on_average(
    posterior: ExactPosterior, rng: np.random.Generator, reward: int, settings: Lookahead
) -> OnAverage:
    orders = posterior.draw(rng, settings.steady_orders).order
    model = model_of(posterior, orders, rng, settings.points)
    tables = reward_tables(model.weights, model.intercept, model.orders, reward, model.regimes)
    return OnAverage(model, tables.mean(axis=0))
