"""The intervention that pays most, counting what its result is worth to the rounds that follow."""

from __future__ import annotations

import numpy as np

from causalarms.models.lookahead.early import early_round
from causalarms.models.lookahead.late import late_round
from causalarms.models.lookahead.situation import Chosen, Lookahead, Situation
from causalarms.posterior.exact import ExactPosterior


def choose(
    posterior: ExactPosterior,
    rng: np.random.Generator,
    asked: Situation,
    quantile: float,
    settings: Lookahead,
) -> Chosen:
    if asked.age < settings.early:
        return early_round(posterior, rng, asked, quantile, settings)
    return late_round(posterior, rng, asked, quantile, settings)
