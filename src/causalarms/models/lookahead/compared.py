"""Interventions beside each other: over draws, on average, and which of them are worth a look."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.models.lookahead.losses import Decisions, Truths, losses_after
from causalarms.models.lookahead.model import Model
from causalarms.models.lookahead.situation import Chosen, Situation
from causalarms.models.over_draws import Systems, rewards_of, upper_values
from causalarms.posterior.exact import Draws
from causalarms.sem.rewards import intervention_of, reward_tables

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint8]


class Compared(NamedTuple):
    """A (allowed) interventions."""

    tables: FloatArray  # (draws, A) net
    mean: FloatArray  # (A,) net
    best: IntArray  # (draws,) the arm that is best in each


def compare(draws: Draws, model: Model, asked: Situation) -> Compared:
    tables = net_rewards(draws.weights, draws.intercept, draws.order, asked)
    mean = net_rewards(model.weights, model.intercept, model.orders, asked).mean(axis=0)
    return Compared(tables, 0.5 * (mean + tables.mean(axis=0)), tables.argmax(axis=1))


def net_rewards(
    weights: FloatArray, intercept: FloatArray, order: IntArray, asked: Situation
) -> FloatArray:
    if asked.rows is not None:
        tables = rewards_of(Systems(order, weights, intercept), asked.rows, asked.reward)
    else:
        tables = reward_tables(weights, intercept, order, asked.reward, asked.regimes)
    if asked.arms is not None:
        tables = np.ascontiguousarray(tables[:, asked.arms])
    return tables if asked.cost is None else tables - asked.cost


def rows_of(asked: Situation, arms: IntArray) -> Rows:
    if asked.rows is not None:
        return np.ascontiguousarray(asked.rows[arms])
    indices = arms if asked.arms is None else asked.arms[arms]
    return np.ascontiguousarray(intervention_of(indices, len(asked.regimes), asked.regimes))


def first_of(most: int, *lists: IntArray) -> IntArray:
    """The first different ones, in this order."""
    together = np.concatenate(lists)
    _, at = np.unique(together, return_index=True)
    return together[np.sort(at)[:most]]


def by_frequency(arms: IntArray) -> IntArray:
    found, count = np.unique(arms, return_counts=True)
    return found[np.argsort(-count, kind="stable")]


def truths_of(
    draws: Draws, rows: IntArray, compared: Compared, decided: IntArray, normals: FloatArray
) -> Truths:
    tables = compared.tables[rows]
    return Truths(
        draws.order[rows],
        draws.weights[rows],
        draws.intercept[rows],
        draws.noise_std[rows],
        normals,
        np.ascontiguousarray(tables[:, decided]),
        tables.max(axis=1),
    )


def decisions_of(asked: Situation, decided: IntArray) -> Decisions:
    rows = rows_of(asked, decided)
    regimes = np.arange(int(asked.regimes.max()))
    chosen = (rows.T[:, None, :] == regimes[None, :, None]).astype(float)
    cost = np.zeros(len(decided)) if asked.cost is None else asked.cost[decided]
    return Decisions(np.ascontiguousarray(chosen), cost, asked.reward)


def loss_so_far(
    model: Model, truths: Truths, asked: Situation, decisions: Decisions, now: FloatArray
) -> float:
    """On average, when nothing more will be known than what is pending; `now` without that."""
    if len(asked.pending) == 0:
        return float(now.mean())
    others, last = asked.pending[:-1], asked.pending[-1:]
    return float(losses_after(model, truths, others, last, 1.0, decisions).mean())


def promising(compared: Compared, n: int) -> IntArray:
    by_mean = np.argsort(-compared.mean, kind="stable")[: n // 3]
    upper = upper_values(compared.tables, max(len(compared.tables) // 8, 1))
    by_upper = np.argsort(-upper, kind="stable")[: n // 3]
    return first_of(n, by_mean[:1], by_upper, by_frequency(compared.best)[: n // 2], by_mean)


def chosen_arm(
    asked: Situation,
    compared: Compared,
    arm: int,
    steady: int,
    saved: float,
    rounds: int,
    quantile: float,
) -> Chosen:
    cost = 0.0 if asked.cost is None else float(asked.cost[arm])
    mean = float(compared.mean[arm])
    width = max(float(np.quantile(compared.tables[:, arm], quantile)) - mean, 0.0)
    row = rows_of(asked, np.array([arm, steady]))
    if arm == steady:
        return Chosen(row[0], mean + cost, width)
    paid = float(compared.mean[steady]) - mean
    return Chosen(row[0], mean + cost, width, saved, rounds, paid, row[1])
