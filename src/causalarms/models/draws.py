"""What to play, chosen from draws of the system: by a quantile, or by the information ratio.

`most_optimistic` plays the intervention whose reward may well be the highest. Its upper value is a
quantile of its expected reward over the draws: as high as, say, three of twenty draws say. Up to 15
nodes of two regimes it is taken over all interventions. Beyond, the search starts from the best
intervention of every draw and goes from neighbour to neighbour while that raises the upper value:
no certificate.

`least_ratio` plays the intervention that costs least for what it tells about which one is best.
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

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from causalarms.arrays import FloatArray, Intervention, Interventions
from causalarms.kernels import kernel
from causalarms.limits import MAX_RATIOS, MAX_TABLE_NODES
from causalarms.models.belief import best_of_each, rewards_of
from causalarms.posterior.base import Draws
from causalarms.search.constraints import Constraints
from causalarms.search.worth import Worth
from causalarms.sem.regimes import n_interventions
from causalarms.sem.rewards import allowed_arms, intervention_of, reward_tables, within

MAX_ROWS = 2**MAX_TABLE_NODES  # allowed interventions that are compared one by one
CLIMBS = 10  # starting points from which one node at a time is flipped
# Of the information ratio: 2 tests too long, 6 too short in larger systems
# (docs/research/what-was-tried.md).
POWER = 4.0


class Optimistic(NamedTuple):
    """What is chosen from draws of the system."""

    intervention: Intervention
    upper: float
    mean: float  # over the draws
    average: Intervention | None = None  # what is best on average, maybe this; None: not looked for
    better: float = 0.0  # in which fraction of the draws it is better than that
    cost: float = 0.0  # how much less it gives on average, net


def rank_of(quantile: float, n_draws: int) -> int:
    """How many draws agree that an intervention is at least as good as its upper value.

    >>> rank_of(0.9, 20), rank_of(0.5, 1)
    (3, 1)
    """
    return n_draws - math.floor(quantile * (n_draws - 1))


def most_optimistic(
    draws: Draws, reward: int, quantile: float, allowed: Constraints | None = None
) -> Optimistic:
    """The intervention with the largest quantile of its expected reward over the draws.

    Of the `allowed` ones (None: all), net of what each costs; `upper` and `mean` are rewards before
    costs.
    """
    rank = rank_of(quantile, len(draws.order))
    n_regimes, n_nodes = draws.intercept.shape[1:]
    allowed = within(np.full(n_nodes, n_regimes), allowed)
    regimes = np.array(allowed.regimes)
    # the tables hold own regimes only: draws with `by` take the rows, or the search
    if draws.by is None and n_interventions(regimes) <= 2**MAX_TABLE_NODES:
        tables = reward_tables(draws.weights, draws.intercept, draws.order, reward, regimes)
        arms = allowed_arms(allowed)
        tables, worth = arms.columns(tables), arms.worth
        upper = worth.net(upper_values(tables, rank))

        def row(at: int) -> Intervention:
            return intervention_of(int(arms.indices[at]), n_nodes, regimes)

        return next_to_average(tables, worth, int(np.argmax(upper)), rank, row)
    if allowed.count(MAX_ROWS) is not None:
        rows = allowed.interventions(MAX_ROWS)
        rewards, worth = rewards_of(draws, rows, reward), allowed.worth(rows)
        best = int(np.argmax(worth.net(upper_values(rewards, rank))))
        return next_to_average(rewards, worth, best, rank, lambda at: rows[at].copy())
    starts = np.unique(best_of_each(draws, reward, allowed), axis=0)
    values = allowed.worth(starts).net(upper_values(rewards_of(draws, starts, reward), rank))
    return max(
        (
            _climb(draws, reward, rank, starts[start], allowed)
            # stable: equal values keep the order of the rows, so that every platform climbs the
            # same way
            for start in np.argsort(-values, kind="stable")[:CLIMBS]
        ),
        key=lambda at: float(allowed.worth(at.intervention[None]).net(np.array([at.upper]))[0]),
    )


def least_ratio(draws: Draws, reward: int, quantile: float, allowed: Constraints) -> Optimistic:
    """The one of the least ratio among all allowed interventions, which are at most `MAX_RATIOS`.

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


def next_to_average(
    rewards: FloatArray, worth: Worth, best: int, rank: int, row: Callable[[int], Intervention]
) -> Optimistic:
    """The intervention in place `best` of rewards (draws, arms), next to the best on average.

    `row` gives the intervention in a place.
    """
    average = int(np.argmax(worth.net(rewards.mean(axis=0))))
    both = np.array([best, average])
    mine, other = worth.of(both).net(rewards[:, both]).T
    chosen = rewards[:, [best]]
    return Optimistic(
        row(best),
        float(upper_values(chosen, rank)[0]),
        float(chosen.mean()),
        row(average),
        better=float((mine > other).mean()),
        cost=max(float((other - mine).mean()), 0.0),
    )


def _best_row(
    draws: Draws, reward: int, rank: int, allowed: Constraints, rows: Interventions
) -> Optimistic:
    rewards = rewards_of(draws, rows, reward)
    upper = upper_values(rewards, rank)
    best = int(np.argmax(allowed.worth(rows).net(upper)))
    return Optimistic(rows[best].copy(), float(upper[best]), float(rewards[:, best].mean()))


def _climb(
    draws: Draws, reward: int, rank: int, start: Intervention, allowed: Constraints
) -> Optimistic:
    """From allowed neighbour to allowed neighbour while the net upper value grows."""
    best = _best_row(draws, reward, rank, allowed, start[None])
    while True:
        # where it stands is the first row: it wins a tie, so that the climb ends
        rows = np.vstack([best.intervention[None], allowed.neighbours(best.intervention)])
        found = _best_row(draws, reward, rank, allowed, rows)
        if np.array_equal(found.intervention, best.intervention):
            return best
        best = found


@kernel
def upper_values(rewards: FloatArray, rank: int) -> FloatArray:
    """The `rank`-th largest of every column, (arms,)."""
    n_draws, n_arms = rewards.shape
    largest = np.full((rank, n_arms), -np.inf)
    for d in range(n_draws):
        for arm in range(n_arms):
            value = rewards[d, arm]
            if value > largest[rank - 1, arm]:
                place = rank - 1
                while place > 0 and largest[place - 1, arm] < value:
                    largest[place, arm] = largest[place - 1, arm]
                    place -= 1
                largest[place, arm] = value
    return largest[rank - 1]
