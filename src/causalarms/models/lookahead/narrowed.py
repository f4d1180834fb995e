"""Where there are too many interventions to compare them all: those that are worth it.

They are the best one of every draw and of every order's average system, what was played lately, and
what differs in one setting from the best on average, found by changing one setting at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.limits import MAX_AHEAD_LISTED
from causalarms.models.lookahead.model import Model
from causalarms.models.lookahead.situation import Rows, Situation
from causalarms.models.over_draws import Systems, best_of_each, rewards_of
from causalarms.posterior.exact import Draws
from causalarms.search.constraints import Constraints


def narrowed(asked: Situation, model: Model, draws: Systems | None = None) -> Situation:
    """The same, with rows to compare; unchanged where all are compared anyway."""
    if asked.among is None:
        return asked
    rows = promising_rows(asked.among, asked, model, draws)
    cost = asked.among.cost(rows)
    return asked._replace(rows=rows, cost=cost if cost.any() else None)


def first_draws(draws: Draws, n: int) -> Systems:
    return Systems(draws.order[:n], draws.weights[:n], draws.intercept[:n])


def promising_rows(
    among: Constraints, asked: Situation, model: Model, draws: Systems | None
) -> Rows:
    if among.count(MAX_AHEAD_LISTED) is not None:
        return among.interventions(MAX_AHEAD_LISTED)
    averages = Systems(model.orders, model.weights, model.intercept)
    found = [best_of_each(averages, asked.reward, allowed=among, regimes=asked.regimes)]
    if draws is not None:
        found.append(best_of_each(draws, asked.reward, allowed=among, regimes=asked.regimes))
    if len(asked.recent):
        found.append(asked.recent[among.allows(asked.recent)])
    rows = np.unique(np.vstack(found), axis=0)
    best = climbed(averages, asked.reward, among, rows)
    return np.unique(np.vstack([rows, best[None], among.neighbours(best)]), axis=0)


def climbed(
    averages: Systems, reward: int, among: Constraints, starts: Rows
) -> npt.NDArray[np.uint8]:
    """From the best start on average, to the best neighbour while that is better."""
    best, value = starts[0], -np.inf
    rows = starts
    while len(rows):
        net = rewards_of(averages, rows, reward).mean(axis=0) - among.cost(rows)
        at = int(net.argmax())
        if not net[at] > value:
            break
        best, value = rows[at], net[at]
        rows = among.neighbours(best)
    return best
