"""A late round: what is best on average, unless a test is worth more than it costs.

A test is for the draws that disagree: those in which another intervention is better. It is looked
for at rounds further and further apart, and after a round that played something else.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import numpy.typing as npt

from causalarms.models.lookahead.average import OnAverage
from causalarms.models.lookahead.compared import (
    by_frequency,
    chosen_arm,
    compare,
    decisions_of,
    first_of,
    loss_so_far,
    promising,
    rows_of,
    truths_of,
)
from causalarms.models.lookahead.losses import losses_after
from causalarms.models.lookahead.model import AnyPosterior
from causalarms.models.lookahead.narrowed import first_draws, narrowed
from causalarms.models.lookahead.situation import Chosen, Lookahead, Situation
from causalarms.sem.rewards import indices_of

FloatArray = npt.NDArray[np.float64]


def looks_ahead(age: int, settings: Lookahead) -> bool:
    """Whether this late round is judged, by its number alone."""
    return age % int(np.clip(age // settings.spacing, 1, settings.most_held)) == 0


def late_round(
    posterior: AnyPosterior,
    average: OnAverage,
    rng: np.random.Generator,
    asked: Situation,
    quantile: float,
    settings: Lookahead,
) -> Chosen:
    model, told = average.model, asked
    asked = narrowed(told, model)
    mean = average.net(asked)
    steady = steady_arm(mean, asked, settings)
    row = rows_of(asked, np.array([steady]))[0]
    tested = len(asked.recent) > 0 and not np.array_equal(asked.recent[-1], row)
    if not tested and not looks_ahead(asked.age, settings):
        cost = 0.0 if asked.cost is None else float(asked.cost[steady])
        return Chosen(row, float(mean[steady]) + cost, float("nan"))
    n_draws = int(np.clip(2**22 // len(mean), settings.dissenters, settings.draws))
    if asked.rows is not None:
        n_draws = settings.searched
    draws = posterior.draw(rng, n_draws)
    asked = narrowed(told, model, first_draws(draws, n_draws))
    compared = compare(draws, model, asked)
    steady = steady_arm(compared.mean, asked, settings)
    gain = compared.tables.max(axis=1) - compared.tables[:, steady]
    slight = settings.slight * max(float(compared.mean[steady] - compared.mean.mean()), 0.0)
    dissent = np.flatnonzero(gain > slight)
    hold = chosen_arm(asked, compared, steady, steady, 0.0, 0, quantile)
    if len(dissent) == 0 or len(mean) == 1:
        return hold
    share = len(dissent) / n_draws
    rows = dissent[: settings.dissenters]
    theirs = compared._replace(tables=compared.tables[rows], best=compared.best[rows])
    candidates = promising(theirs, settings.tests)
    candidates = candidates[candidates != steady]
    by_mean = np.argsort(-compared.mean, kind="stable")
    decided = first_of(
        settings.decisions, np.array([steady]), by_frequency(theirs.best), by_mean[:10]
    )
    normals = rng.standard_normal((len(rows), len(asked.pending) + 1, len(asked.regimes)))
    truths = truths_of(draws, rows, compared, decided, normals)
    decisions = decisions_of(asked, decided)
    lost = loss_so_far(model, truths, asked, decisions, gain[rows])
    rounds = settings.late_horizon * math.sqrt(asked.age)
    paid = compared.mean[steady] - compared.mean[candidates]
    best, top, saved = -1, 0.0, 0.0
    for plays in settings.repeats:
        loss = losses_after(
            model, truths, asked.pending, rows_of(asked, candidates), float(plays), decisions
        ).mean(axis=0)
        worth = rounds * share * (lost - loss)
        value = worth - plays * paid
        if value.max() > top:
            best, top = int(value.argmax()), float(value.max())
            saved = float(worth[best]) / plays
    if best < 0:
        return hold
    return chosen_arm(asked, compared, int(candidates[best]), steady, saved, int(rounds), quantile)


def steady_arm(mean: FloatArray, asked: Situation, settings: Lookahead) -> int:
    """The best on average, or the one that is being played if it is hardly worse."""
    best = int(mean.argmax())
    if len(asked.recent) == 0:
        return best
    usual = _usual_arm(asked)
    if usual is None:
        return best
    slight = settings.slight * float(mean[best] - mean.mean())
    return usual if mean[usual] >= mean[best] - slight else best


def _usual_arm(asked: Situation) -> int | None:
    """The one played most lately; None where it is not among those that are compared."""
    if asked.rows is not None:
        rows, count = np.unique(asked.recent, axis=0, return_counts=True)
        same = np.flatnonzero((asked.rows == rows[count.argmax()]).all(axis=1))
        return int(same[0]) if len(same) else None
    played = Counter(sorted(indices_of(asked.recent, asked.regimes).tolist()))
    index = played.most_common(1)[0][0]
    if asked.arms is None:
        return index
    at = int(np.searchsorted(asked.arms, index))
    return at if at < len(asked.arms) and asked.arms[at] == index else None
