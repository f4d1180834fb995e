"""An early round: the best of  expected reward - rounds to come * loss after it.

All candidates are judged by a few truths, and the most promising of them by all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
from causalarms.models.lookahead.model import AnyPosterior, drawn_orders, model_of
from causalarms.models.lookahead.narrowed import first_draws, narrowed
from causalarms.models.lookahead.situation import Chosen, Lookahead, Situation

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def early_round(
    posterior: AnyPosterior,
    rng: np.random.Generator,
    asked: Situation,
    quantile: float,
    settings: Lookahead,
) -> Chosen:
    n = settings.truths
    draws = posterior.draw(rng, n)
    orders = drawn_orders(posterior, rng, settings.orders)
    model = model_of(posterior, orders, rng, settings.points)
    asked = narrowed(asked, model, first_draws(draws, settings.searched))
    compared = compare(draws, model, asked)
    steady = int(compared.mean.argmax())
    candidates = promising(compared, settings.candidates)
    by_mean = np.argsort(-compared.mean, kind="stable")
    decided = first_of(settings.decisions, by_mean[:10], by_frequency(compared.best), by_mean)
    decisions = decisions_of(asked, decided)
    normals = rng.standard_normal((n, len(asked.pending) + 1, len(asked.regimes)))
    worth = settings.horizon * max(asked.age, 1)

    def losses(arms: IntArray, rows: IntArray) -> FloatArray:
        truths = truths_of(draws, rows, compared, decided, normals[rows])
        return losses_after(model, truths, asked.pending, rows_of(asked, arms), 1.0, decisions)

    first = np.arange(settings.first_truths)
    loss = losses(candidates, first)
    value = compared.mean[candidates] - worth * loss.mean(axis=0)
    left = np.sort(np.argsort(-value, kind="stable")[: settings.finalists])
    loss = np.vstack([loss[:, left], losses(candidates[left], np.arange(len(first), n))])
    lost = loss.mean(axis=0)
    finalists = candidates[left]
    best = int((compared.mean[finalists] - worth * lost).argmax())
    now = compared.tables.max(axis=1) - compared.tables[:, steady]
    truths = truths_of(draws, np.arange(n), compared, decided, normals)
    saved = worth * (loss_so_far(model, truths, asked, decisions, now) - float(lost[best]))
    return chosen_arm(asked, compared, int(finalists[best]), steady, saved, int(worth), quantile)
