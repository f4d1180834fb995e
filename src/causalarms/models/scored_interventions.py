"""The interventions a model scores: all of them, or where they are too many the candidates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.limits import MAX_SCORED_NODES
from causalarms.models.candidates import candidates
from causalarms.models.scores import Scores, score_interventions
from causalarms.models.weights import MechanismWeights
from causalarms.search.constraints import Constraints
from causalarms.sem.regimes import n_interventions
from causalarms.sem.rewards import all_interventions, allowed_arms, intervention_of

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.uint8]


class ScoredInterventions:
    """`scores` of all in order, or of the candidates; DataError where none is a number."""

    def __init__(
        self, model: MechanismWeights, reward: int, *, delta: float, bound: str, known_mean: bool
    ) -> None:
        self._model, self._reward = model, reward
        self._delta, self._bound, self._known_mean = delta, bound, known_mean
        self._regimes, self._n_nodes = model.counts, len(model.counts)
        self._candidates: Rows | None = None  # None: all in order
        self._under: tuple[Constraints, Rows, Scores] | None = None
        if n_interventions(self._regimes) > 2**MAX_SCORED_NODES:
            self._candidates = candidates(model, reward)
        self.scores = self._scores_of(
            all_interventions(self._n_nodes, self._regimes)
            if self._candidates is None
            else self._candidates
        )
        if not np.isfinite(self.scores.mean + self.scores.width).any():
            raise DataError(
                "no expected reward is a number: the values told are far from noise_mean"
            )

    def __len__(self) -> int:
        return len(self.scores.mean)

    def _scores_of(self, rows: Rows) -> Scores:
        with np.errstate(all="ignore"):
            return score_interventions(
                self._model, rows, self._reward,
                delta=self._delta, bound=self._bound, known_mean=self._known_mean,
            )  # fmt: skip

    def intervention(self, arm: int) -> Rows:
        """The one in that place of `scores`, (N,)."""
        if self._candidates is None:
            return intervention_of(arm, self._n_nodes, self._regimes)
        return self._candidates[arm].copy()

    def under(self, allowed: Constraints, unit: float) -> tuple[Rows, Scores, FloatArray]:
        """Allowed interventions, (n, N), their scores, and their costs in the data.

        `unit` is that of the model's reward in the data.
        """
        if self._candidates is None:
            arms, cost = allowed_arms(allowed)
            rows = intervention_of(arms, self._n_nodes, self._regimes)
            return rows, Scores(self.scores.mean[arms], self.scores.width[arms]), cost
        if self._under is None or self._under[0] != allowed:  # searched for once
            rows = candidates(self._model, self._reward, allowed=allowed.priced(1.0 / unit))
            self._under = allowed, rows, self._scores_of(rows)
        _, rows, scores = self._under
        return rows, scores, allowed.cost(rows)
