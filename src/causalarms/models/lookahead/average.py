"""What is expected of every intervention, as long as the posterior stays as it is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.models.lookahead.compared import net_rewards
from causalarms.models.lookahead.model import AnyPosterior, Model, drawn_orders, model_of
from causalarms.models.lookahead.situation import Lookahead, Situation
from causalarms.sem.rewards import reward_tables

FloatArray = npt.NDArray[np.float64]


class OnAverage(NamedTuple):
    model: Model
    rewards: FloatArray | None  # of all interventions, costs not counted; None: there are too many

    def net(self, asked: Situation) -> FloatArray:
        """Of those that are allowed, or compared, (A,)."""
        if self.rewards is None:
            model = self.model
            return net_rewards(model.weights, model.intercept, model.orders, asked).mean(axis=0)
        rewards = self.rewards if asked.arms is None else self.rewards[asked.arms]
        return rewards if asked.cost is None else rewards - asked.cost


def on_average(
    posterior: AnyPosterior, rng: np.random.Generator, asked: Situation, settings: Lookahead
) -> OnAverage:
    orders = drawn_orders(posterior, rng, settings.steady_orders)
    model = model_of(posterior, orders, rng, settings.points)
    if asked.among is not None:
        return OnAverage(model, None)
    weights, intercept = model.weights, model.intercept
    tables = reward_tables(weights, intercept, model.orders, asked.reward, model.regimes)
    return OnAverage(model, tables.mean(axis=0))
