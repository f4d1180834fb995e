"""The intervention that costs least for what it tells about which intervention is best.

Draws of the whole system say, of the expected reward r(a) of every intervention a,

    D(a) = E[max_b r(b) - r(a)]          what playing a costs on average
    V(a) = Var(E[r(a) | the best b])     how far r(a) tells which intervention is best

The one with the smallest D(a)^p / V(a) is played. p = 2 is the variance-based information ratio of
Russo and Van Roy (2014, Learning to optimize via information-directed sampling); larger powers,
which weigh what a round costs more, are the generalised ratio of Lattimore and György (2021, Mirror
descent and the information ratio). A setting that is wild in single draws is not played for that
alone, as it is by a quantile: it must be good on average, too.
"""

from __future__ import annotations

import numpy as np

from causalarms.arrays import FloatArray
from causalarms.limits import MAX_RATIOS
from causalarms.models.belief import rewards_of
from causalarms.models.quantile import Optimistic, next_to_average, rank_of
from causalarms.posterior.base import Draws
from causalarms.search.constraints import Constraints

POWER = 4.0  # 2 tests too long, 6 too short in larger systems: docs/research/what-was-tried.md


def least_ratio(draws: Draws, reward: int, quantile: float, allowed: Constraints) -> Optimistic:
    """Of all allowed interventions, at most `MAX_RATIOS`.

    `mean` and `upper`, the quantile over the draws, are rewards before costs.
    """
    rows = allowed.interventions(MAX_RATIOS)
    rewards, worth = rewards_of(draws, rows, reward), allowed.worth(rows)
    best = int(np.argmin(log_ratios(worth.net(rewards))))
    rank = rank_of(quantile, len(rewards))
    return next_to_average(rewards, worth, best, rank, lambda at: rows[at].copy())


def log_ratios(rewards: FloatArray, power: float = POWER) -> FloatArray:
    """log(D^power / V) of every intervention, (arms,), from net rewards (draws, arms).

    >>> log_ratios(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])).round(2).tolist()
    [-2.89, -0.12]
    """
    best = rewards.argmax(axis=1)
    mean = rewards.mean(axis=0)
    cost = (rewards.max(axis=1)[:, None] - rewards).mean(axis=0)
    told = np.zeros(rewards.shape[1])
    for arm in np.unique(best):
        same = best == arm
        told += same.mean() * (rewards[same].mean(axis=0) - mean) ** 2
    # as logarithms: powers of very small or large units would leave the range of numbers
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = np.log(cost)
        # what tells nothing is never played, unless it costs nothing
        return np.where(cost > 0.0, power * costs - np.log(told), -np.inf)
