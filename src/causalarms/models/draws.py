"""Interventions judged by draws of the whole system: optimism, agreement, what stopping costs.

An intervention's upper value is a quantile of its expected reward over the draws: as high as, say,
three of twenty draws say. Up to 15 nodes of two regimes it is taken over all interventions. Beyond,
the search starts from the best intervention of every draw and flips one node at a time while that
raises the upper value: no certificate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, Intervention
from causalarms.kernels import kernel
from causalarms.limits import MAX_TABLE_NODES
from causalarms.posterior.base import Draws
from causalarms.search.best import best_intervention
from causalarms.search.constraints import Constraints
from causalarms.sem.regimes import Counts, n_interventions, regime_counts
from causalarms.sem.rewards import (
    allowed_arms,
    expected_values,
    intervention_of,
    neighbours,
    reward_tables,
    within,
)

MAX_ROWS = 2**MAX_TABLE_NODES  # allowed interventions that are compared one by one
BUDGET = 5_000  # tree nodes per draw; a starting point need not be proven
CLIMBS = 10  # starting points from which one node at a time is flipped


class Systems(NamedTuple):
    """What decides expected rewards, of n systems."""

    order: npt.NDArray[np.int64]  # (n, N)
    weights: FloatArray  # (n, R, N, N)
    intercept: FloatArray  # (n, R, N)


class Optimistic(NamedTuple):
    """The intervention of the highest upper value."""

    intervention: Intervention
    upper: float
    mean: float  # over the draws


def rank_of(quantile: float, n_draws: int) -> int:
    """How many draws agree that an intervention is at least as good as its upper value.

    >>> rank_of(0.9, 20), rank_of(0.5, 1)
    (3, 1)
    """
    return n_draws - math.floor(quantile * (n_draws - 1))


def counts_of(draws: Draws | Systems, regimes: Counts | None) -> Counts:
    """How many regimes each node has; None: all that the draws have."""
    return regime_counts(regimes, draws.order.shape[1], default=draws.weights.shape[1])


def most_optimistic(
    draws: Draws,
    reward: int,
    quantile: float,
    *,
    regimes: Counts | None = None,
    allowed: Constraints | None = None,
) -> Optimistic:
    """The intervention with the largest quantile of its expected reward over the draws.

    Of the `allowed` ones, net of what each costs; `upper` and `mean` are rewards before costs.
    """
    if allowed is not None:
        return _most_optimistic_allowed(draws, reward, quantile, allowed)
    n_draws, n_nodes = draws.order.shape
    rank, regimes = rank_of(quantile, n_draws), counts_of(draws, regimes)
    if n_interventions(regimes) <= 2**MAX_TABLE_NODES:
        tables = reward_tables(draws.weights, draws.intercept, draws.order, reward, regimes)
        upper = upper_values(tables, rank)
        arm = int(np.argmax(upper))
        return Optimistic(
            intervention_of(arm, n_nodes, regimes), float(upper[arm]), float(tables[:, arm].mean())
        )
    starts = np.unique(best_of_each(draws, reward, regimes=regimes), axis=0)
    values = upper_values(rewards_of(draws, starts, reward), rank)
    best = max(
        (_climb(draws, reward, rank, starts[s], regimes) for s in np.argsort(-values)[:CLIMBS]),
        key=lambda found: found[1],
    )
    mean = float(rewards_of(draws, best[0][None], reward).mean())
    return Optimistic(best[0], best[1], mean)


def _most_optimistic_allowed(
    draws: Draws, reward: int, quantile: float, allowed: Constraints
) -> Optimistic:
    rank = rank_of(quantile, len(draws.order))
    regimes = counts_of(draws, np.array(allowed.regimes))
    if n_interventions(regimes) <= 2**MAX_TABLE_NODES:
        arms, cost = allowed_arms(allowed)
        tables = reward_tables(draws.weights, draws.intercept, draws.order, reward, regimes)
        upper = upper_values(np.ascontiguousarray(tables[:, arms]), rank)
        best = int(np.argmax(upper - cost))
        return Optimistic(
            intervention_of(int(arms[best]), len(regimes), regimes),
            float(upper[best]),
            float(tables[:, arms[best]].mean()),
        )
    if allowed.count(MAX_ROWS) is not None:
        return _best_row(draws, reward, rank, allowed, allowed.interventions(MAX_ROWS))
    starts = np.unique(best_of_each(draws, reward, allowed=allowed, regimes=regimes), axis=0)
    values = upper_values(rewards_of(draws, starts, reward), rank) - allowed.cost(starts)
    return max(
        (
            _climb_allowed(draws, reward, rank, starts[start], allowed)
            for start in np.argsort(-values, kind="stable")[:CLIMBS]
        ),
        key=lambda found: found.upper - float(allowed.cost(found.intervention[None])[0]),
    )


def _best_row(
    draws: Draws, reward: int, rank: int, allowed: Constraints, rows: npt.NDArray[np.uint8]
) -> Optimistic:
    rewards = rewards_of(draws, rows, reward)
    upper = upper_values(rewards, rank)
    best = int(np.argmax(upper - allowed.cost(rows)))
    return Optimistic(rows[best].copy(), float(upper[best]), float(rewards[:, best].mean()))


def _climb_allowed(
    draws: Draws, reward: int, rank: int, start: Intervention, allowed: Constraints
) -> Optimistic:
    """From allowed neighbour to allowed neighbour while the net upper value grows."""
    best = _best_row(draws, reward, rank, allowed, start[None])
    while True:
        rows = np.vstack([best.intervention[None], allowed.neighbours(best.intervention)])
        found = _best_row(draws, reward, rank, allowed, rows)
        if np.array_equal(found.intervention, best.intervention):
            return best
        best = found


def best_of_each(
    draws: Draws | Systems,
    reward: int,
    *,
    allowed: Constraints | None = None,
    regimes: Counts | None = None,
) -> npt.NDArray[np.uint8]:
    """The best intervention found for every draw, (n, N)."""
    constraints = within(counts_of(draws, regimes), allowed)
    return np.stack(
        [
            best_intervention(
                weights, mean, order, reward, constraints=constraints, budget=BUDGET
            ).intervention
            for weights, mean, order in zip(
                draws.weights, draws.intercept, draws.order, strict=True
            )
        ]
    )


def rewards_of(draws: Draws | Systems, arms: npt.NDArray[np.uint8], reward: int) -> FloatArray:
    """Expected rewards of given interventions under every draw, (n, arms)."""
    return np.stack(
        [
            expected_values(weights, mean, order, arms)[:, reward]
            for weights, mean, order in zip(
                draws.weights, draws.intercept, draws.order, strict=True
            )
        ]
    )


def _climb(
    draws: Draws, reward: int, rank: int, start: Intervention, regimes: Counts
) -> tuple[Intervention, float]:
    """One flip at a time, the one that raises the upper value most, until none does."""
    best, value = start, -math.inf
    while True:
        arms = np.vstack([best[None], neighbours(best, regimes)])
        upper = upper_values(rewards_of(draws, arms, reward), rank)
        arm = int(np.argmax(upper))
        if not upper[arm] > value:
            return best, value
        best, value = arms[arm], float(upper[arm])


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
