"""The intervention that pays most, counting what its result is worth to the rounds that follow.

Early, every round: the best of  expected reward - weight * loss after it  over a few candidates.
Later, at rounds further and further apart: a test is played if draws that disagree with the best
intervention on average say that it is worth more than it costs; else that intervention.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.models.lookahead.losses import Decisions, Truths, losses_after
from causalarms.models.lookahead.model import Model, model_of
from causalarms.models.over_draws import upper_values
from causalarms.posterior.exact import Draws, ExactPosterior
from causalarms.sem.rewards import indices_of, intervention_of, reward_tables

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint8]


class Lookahead(NamedTuple):
    """How much is computed, and how much what is learned counts."""

    early: int = 60  # rounds in which every round is judged as a test
    orders: int = 6
    points: int = 6  # parent sets per mechanism and order
    truths: int = 48  # early
    first_truths: int = 16  # judge all candidates; the others only the most promising of them
    finalists: int = 6
    candidates: int = 18
    decisions: int = 40
    horizon: float = 1.0  # rounds to come that profit, early, as a multiple of those played
    draws: int = 300  # later
    dissenters: int = 20  # of them that are looked at, at most
    tests: int = 10  # candidates later
    late_horizon: float = 5.0  # later, as a multiple of the square root of those played
    repeats: tuple[int, ...] = (1, 6)
    steady_orders: int = 8  # for the average of a round that is not judged
    slight: float = 1e-3  # of the spread of rewards: less is no reason to disagree or to move
    spacing: int = 15  # a judged round every age / spacing rounds
    most_held: int = 30


class Chosen(NamedTuple):
    """In the units of the posterior."""

    intervention: npt.NDArray[np.uint8]
    mean: float
    width: float  # of the draws above the mean; nan where there are none
    saved: float = 0.0  # by what is learned, over `rounds` rounds
    rounds: int = 0
    paid: float = 0.0  # by not playing the best on average
    instead_of: npt.NDArray[np.uint8] | None = None  # that one, where it is not played


class Situation(NamedTuple):
    """What is asked: which interventions may be played, and what is being played."""

    reward: int
    regimes: IntArray  # (N,)
    arms: IntArray | None  # (A,) allowed ones by their index; None: all
    cost: FloatArray | None  # (A,), in units of the posterior's reward
    pending: Rows  # (n, N)
    recent: Rows  # (m, N), the last rounds told, the last one last
    age: int  # rounds played or being played since the last change


def looks_ahead(age: int, settings: Lookahead) -> bool:
    """Whether this late round is judged, by its number alone."""
    return age % int(np.clip(age // settings.spacing, 1, settings.most_held)) == 0


def choose(
    posterior: ExactPosterior,
    rng: np.random.Generator,
    asked: Situation,
    quantile: float,
    settings: Lookahead,
) -> Chosen:
    if asked.age < settings.early:
        return _early(posterior, rng, asked, quantile, settings)
    return _late(posterior, rng, asked, quantile, settings)


class _Compared(NamedTuple):
    tables: FloatArray  # (draws, A) net
    mean: FloatArray  # (A,) net
    best: IntArray  # (draws,) the arm that is best in each


def _compare(draws: Draws, model: Model, asked: Situation) -> _Compared:
    tables = _net(draws.weights, draws.intercept, draws.order, asked)
    mean = _net(model.weights, model.intercept, model.orders, asked).mean(axis=0)
    return _Compared(tables, 0.5 * (mean + tables.mean(axis=0)), tables.argmax(axis=1))


def _net(
    weights: FloatArray, intercept: FloatArray, order: IntArray, asked: Situation
) -> FloatArray:
    tables = reward_tables(weights, intercept, order, asked.reward, asked.regimes)
    if asked.arms is not None:
        tables = np.ascontiguousarray(tables[:, asked.arms])
    return tables if asked.cost is None else tables - asked.cost


def _rows(asked: Situation, arms: IntArray) -> Rows:
    indices = arms if asked.arms is None else asked.arms[arms]
    return np.ascontiguousarray(intervention_of(indices, len(asked.regimes), asked.regimes))


def _first_of(most: int, *lists: IntArray) -> IntArray:
    """The first different ones, in this order."""
    together = np.concatenate(lists)
    _, at = np.unique(together, return_index=True)
    return together[np.sort(at)[:most]]


def _by_frequency(arms: IntArray) -> IntArray:
    found, count = np.unique(arms, return_counts=True)
    return found[np.argsort(-count, kind="stable")]


def _truths(
    draws: Draws, rows: IntArray, compared: _Compared, decided: IntArray, normals: FloatArray
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


def _decisions(asked: Situation, decided: IntArray) -> Decisions:
    rows = _rows(asked, decided)
    regimes = np.arange(int(asked.regimes.max()))
    chosen = (rows.T[:, None, :] == regimes[None, :, None]).astype(float)
    cost = np.zeros(len(decided)) if asked.cost is None else asked.cost[decided]
    return Decisions(np.ascontiguousarray(chosen), cost, asked.reward)


def _candidates(compared: _Compared, n: int) -> IntArray:
    by_mean = np.argsort(-compared.mean, kind="stable")[: n // 3]
    upper = upper_values(compared.tables, max(len(compared.tables) // 8, 1))
    by_upper = np.argsort(-upper, kind="stable")[: n // 3]
    return _first_of(n, by_mean[:1], by_upper, _by_frequency(compared.best)[: n // 2], by_mean)


def _early(
    posterior: ExactPosterior,
    rng: np.random.Generator,
    asked: Situation,
    quantile: float,
    settings: Lookahead,
) -> Chosen:
    n = settings.truths
    draws = posterior.draw(rng, n)
    orders = posterior.draw(rng, settings.orders).order
    model = model_of(posterior, orders, rng, settings.points)
    compared = _compare(draws, model, asked)
    steady = int(compared.mean.argmax())
    candidates = _candidates(compared, settings.candidates)
    by_mean = np.argsort(-compared.mean, kind="stable")
    decided = _first_of(settings.decisions, by_mean[:10], _by_frequency(compared.best), by_mean)
    decisions = _decisions(asked, decided)
    normals = rng.standard_normal((n, len(asked.pending) + 1, len(asked.regimes)))
    worth = settings.horizon * max(asked.age, 1)

    def losses(arms: IntArray, rows: IntArray) -> FloatArray:
        truths = _truths(draws, rows, compared, decided, normals[rows])
        return losses_after(model, truths, asked.pending, _rows(asked, arms), 1.0, decisions)

    first = np.arange(settings.first_truths)
    loss = losses(candidates, first)
    value = compared.mean[candidates] - worth * loss.mean(axis=0)
    left = np.sort(np.argsort(-value, kind="stable")[: settings.finalists])
    loss = np.vstack([loss[:, left], losses(candidates[left], np.arange(len(first), n))])
    lost = loss.mean(axis=0)
    finalists = candidates[left]
    best = int((compared.mean[finalists] - worth * lost).argmax())
    now = compared.tables.max(axis=1) - compared.tables[:, steady]
    saved = worth * (float(now.mean()) - lost[best])
    return _chosen(asked, compared, int(finalists[best]), steady, saved, int(worth), quantile)


def _chosen(
    asked: Situation,
    compared: _Compared,
    arm: int,
    steady: int,
    saved: float,
    rounds: int,
    quantile: float,
) -> Chosen:
    cost = 0.0 if asked.cost is None else float(asked.cost[arm])
    mean = float(compared.mean[arm])
    width = max(float(np.quantile(compared.tables[:, arm], quantile)) - mean, 0.0)
    row = _rows(asked, np.array([arm, steady]))
    if arm == steady:
        return Chosen(row[0], mean + cost, width)
    paid = float(compared.mean[steady]) - mean
    return Chosen(row[0], mean + cost, width, saved, rounds, paid, row[1])


def _late(
    posterior: ExactPosterior,
    rng: np.random.Generator,
    asked: Situation,
    quantile: float,
    settings: Lookahead,
) -> Chosen:
    orders = posterior.draw(rng, settings.steady_orders).order
    model = model_of(posterior, orders, rng, settings.points)
    mean = _net(model.weights, model.intercept, model.orders, asked).mean(axis=0)
    steady = _steady(mean, asked, settings)
    row = _rows(asked, np.array([steady]))[0]
    tested = len(asked.recent) > 0 and not np.array_equal(asked.recent[-1], row)
    if not tested and not looks_ahead(asked.age, settings):
        cost = 0.0 if asked.cost is None else float(asked.cost[steady])
        return Chosen(row, float(mean[steady]) + cost, float("nan"))
    n_arms = len(mean)
    n_draws = int(np.clip(2**22 // n_arms, settings.dissenters, settings.draws))
    draws = posterior.draw(rng, n_draws)
    compared = _compare(draws, model, asked)
    steady = _steady(compared.mean, asked, settings)
    gain = compared.tables.max(axis=1) - compared.tables[:, steady]
    slight = settings.slight * max(float(compared.mean[steady] - compared.mean.mean()), 0.0)
    dissent = np.flatnonzero(gain > slight)
    hold = _chosen(asked, compared, steady, steady, 0.0, 0, quantile)
    if len(dissent) == 0 or n_arms == 1:
        return hold
    share = len(dissent) / n_draws
    rows = dissent[: settings.dissenters]
    theirs = compared._replace(tables=compared.tables[rows], best=compared.best[rows])
    candidates = _candidates(theirs, settings.tests)
    candidates = candidates[candidates != steady]
    by_mean = np.argsort(-compared.mean, kind="stable")
    decided = _first_of(
        settings.decisions, np.array([steady]), _by_frequency(theirs.best), by_mean[:10]
    )
    normals = rng.standard_normal((len(rows), len(asked.pending) + 1, len(asked.regimes)))
    truths = _truths(draws, rows, compared, decided, normals)
    decisions = _decisions(asked, decided)
    lost = float(gain[rows].mean())
    rounds = settings.late_horizon * math.sqrt(asked.age)
    paid = compared.mean[steady] - compared.mean[candidates]
    best, top, saved = -1, 0.0, 0.0
    for plays in settings.repeats:
        loss = losses_after(
            model, truths, asked.pending, _rows(asked, candidates), float(plays), decisions
        ).mean(axis=0)
        worth = rounds * share * (lost - loss)
        value = worth - plays * paid
        if value.max() > top:
            best, top = int(value.argmax()), float(value.max())
            saved = float(worth[best]) / plays
    if best < 0:
        return hold
    return _chosen(asked, compared, int(candidates[best]), steady, saved, int(rounds), quantile)


def _steady(mean: FloatArray, asked: Situation, settings: Lookahead) -> int:
    """The best on average, or the one that is being played if it is hardly worse."""
    best = int(mean.argmax())
    if len(asked.recent) == 0:
        return best
    played, count = np.unique(indices_of(asked.recent, asked.regimes), return_counts=True)
    usual = _arm_of(int(played[count.argmax()]), asked)
    if usual is None:
        return best
    slight = settings.slight * float(mean[best] - mean.mean())
    return usual if mean[usual] >= mean[best] - slight else best


def _arm_of(index: int, asked: Situation) -> int | None:
    """Where this intervention stands among the allowed ones."""
    if asked.arms is None:
        return index
    at = int(np.searchsorted(asked.arms, index))
    return at if at < len(asked.arms) and asked.arms[at] == index else None
