"""The best intervention of an estimated model, also if its regimes mix into a cycle.

With a common order it is found by branch and bound. Without one, only the regimes of the nodes on
cycles decide whether B_a is acyclic; once those are fixed, the rest has a common order again. Up to
20 nodes (a million interventions) all are scored; beyond, all acyclic patterns of regimes on the
cycles are tried if there are few, else a pattern is improved flip by flip, which proves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import Intervention, Interventions
from causalarms.errors import DataError, ModelError
from causalarms.limits import MAX_PATTERN_NODES, MAX_SCORED_NODES
from causalarms.models.linear import MechanismWeights, Scores, best_score, score_interventions
from causalarms.search.best import BUDGET, best_intervention, best_interventions
from causalarms.search.constraints import Constraints
from causalarms.search.worth import Worth
from causalarms.sem.regimes import all_two, ancestors, n_interventions, topological_order
from causalarms.sem.rewards import (
    all_interventions,
    allowed_arms,
    intervention_of,
    neighbours,
    within,
)

NOT_COUNTED = -1


class ModelBest(NamedTuple):
    """The best intervention by estimated mean."""

    intervention: Intervention
    mean: float
    proven: bool
    n_cyclic: int  # interventions without an expected reward; NOT_COUNTED if too many


def best_of_model(
    model: MechanismWeights,
    reward: int,
    *,
    allowed: Constraints | None = None,
    budget: int = BUDGET,
) -> ModelBest:
    """The best intervention among those whose B_a is acyclic, net of what `allowed` ones cost."""
    regimes = model.counts
    allowed = within(regimes, allowed)
    if model.order is not None:
        best = best_intervention(
            model.weights, model.intercept, model.order, reward, constraints=allowed, budget=budget
        )
        return ModelBest(best.intervention, best.value, best.exact, 0)
    if not allowed.free or n_interventions(regimes) <= 2**MAX_SCORED_NODES:
        # constraints list a million free interventions fifty times more slowly
        free = allowed.free
        most = 2**MAX_SCORED_NODES
        rows = all_interventions(len(regimes), regimes) if free else allowed.interventions(most)
        scores = score_interventions(model, rows, reward)
        net = scores.mean if free else allowed.worth(rows).net(scores.mean)
        arm = best_score(net)
        if np.isnan(net[arm]) and not free:
            raise ModelError("the learned model is cyclic under every allowed intervention")
        return ModelBest(rows[arm], float(net[arm]), True, scores.n_cyclic)
    on_cycles = np.flatnonzero(ancestors((model.weights != 0).any(axis=0)).diagonal())
    if n_interventions(regimes[on_cycles]) <= 2**MAX_PATTERN_NODES:
        return _every_pattern(model, reward, on_cycles, budget)
    return _improved_pattern(model, reward, on_cycles, budget)


def _with_pattern(
    model: MechanismWeights,
    reward: int,
    on_cycles: npt.NDArray[np.int64],
    pattern: npt.NDArray[np.uint8],
    budget: int,
) -> ModelBest | None:
    """The best with these regimes on the cycles; None if they close one."""
    weights, intercept = model.weights.copy(), model.intercept.copy()
    weights[:, :, on_cycles] = model.weights[pattern, :, on_cycles].T[None]
    intercept[:, on_cycles] = model.intercept[pattern, on_cycles]
    order = topological_order((weights != 0).any(axis=0))
    if order is None:
        return None
    regimes = model.counts
    if not all_two(regimes):
        regimes = regimes.copy()
        regimes[on_cycles] = 1
    best = best_intervention(
        weights, intercept, order, reward, constraints=within(regimes), budget=budget
    )
    best.intervention[on_cycles] = pattern
    return ModelBest(best.intervention, best.value, best.exact, NOT_COUNTED)


def _every_pattern(
    model: MechanismWeights, reward: int, on_cycles: npt.NDArray[np.int64], budget: int
) -> ModelBest:
    regimes = model.counts
    patterns = all_interventions(len(on_cycles), regimes[on_cycles])
    found = [_with_pattern(model, reward, on_cycles, p, budget // len(patterns)) for p in patterns]
    acyclic = [best for best in found if best is not None]
    if not acyclic:
        raise ModelError("the learned model is cyclic under every intervention")
    best = max(acyclic, key=lambda candidate: candidate.mean)
    return best._replace(
        proven=all(candidate.proven for candidate in acyclic),
        n_cyclic=(len(found) - len(acyclic)) * n_interventions(np.delete(regimes, on_cycles)),
    )


def _improved_pattern(
    model: MechanismWeights, reward: int, on_cycles: npt.NDArray[np.int64], budget: int
) -> ModelBest:
    """From all natural, all in regime 1, ..., the best flip on the cycles until none helps."""
    # Every flip that helps is followed by another search: each has a part of the budget.
    budget_each = budget // (4 * len(on_cycles))
    regimes = model.counts
    starts = [
        _with_pattern(
            model,
            reward,
            on_cycles,
            np.minimum(regime, regimes[on_cycles] - 1).astype(np.uint8),
            budget_each,
        )
        for regime in range(len(model.weights))
    ]
    acyclic = [start for start in starts if start is not None]
    if not acyclic:
        raise ModelError("all learned regimes are cyclic: no intervention is known to be acyclic")
    best = max(acyclic, key=lambda candidate: candidate.mean)
    while True:
        flipped = neighbours(best.intervention, regimes, on_cycles)
        means = score_interventions(model, flipped, reward).mean
        flip = best_score(means)
        # the margin keeps rounding from flipping back and forth for ever
        if not means[flip] > best.mean + 1e-9 * abs(best.mean):  # nan: every flip closes a cycle
            return best._replace(proven=False)
        again = _with_pattern(model, reward, on_cycles, flipped[flip, on_cycles], budget_each)
        assert again is not None  # its mean is a number
        best = again


CANDIDATE_SEARCH_BUDGET = 500_000  # tree nodes, half a second


def best_and_neighbours(
    model: MechanismWeights, reward: int, *, m: int = 20, allowed: Constraints | None = None
) -> npt.NDArray[np.uint8]:
    """The interventions worth scoring if all are too many, (n, N).

    They are the m best by estimated mean and all that differ from one of them in one node. With
    `allowed` constraints, they are the m best net of costs and their allowed neighbours.

    Of interventions that have the same effect on the reward only one counts among the m. If a node
    has more than two regimes, m is 1. If the regimes mix into a cycle, they are the best one found
    and its neighbours.
    """
    if model.order is None:
        best = [
            best_of_model(
                model, reward, allowed=allowed, budget=CANDIDATE_SEARCH_BUDGET
            ).intervention
        ]
    else:
        found = best_interventions(
            model.weights, model.intercept, model.order, reward, m,
            constraints=within(model.counts, allowed), distinct=True,
            budget=CANDIDATE_SEARCH_BUDGET,
        )  # fmt: skip
        best = [arm.intervention for arm in found]
    if allowed is None:
        around = [neighbours(a, model.counts) for a in best]
    else:
        around = [allowed.neighbours(a) for a in best]
    return np.unique(np.vstack([*best, *around]), axis=0)


class ScoredInterventions:
    """The interventions that a model scores: all of them in order, or few if too many.

    DataError if no score is a number.
    """

    def __init__(
        self, model: MechanismWeights, reward: int, *, delta: float, bound: str, known_mean: bool
    ) -> None:
        self._model, self._reward = model, reward
        self._delta, self._bound, self._known_mean = delta, bound, known_mean
        self._regimes, self._n_nodes = model.counts, len(model.counts)
        self._candidates: Interventions | None = None  # None: all in order
        self._under: tuple[Constraints, Interventions, Scores] | None = None
        if n_interventions(self._regimes) > 2**MAX_SCORED_NODES:
            self._candidates = best_and_neighbours(model, reward)
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

    def _scores_of(self, rows: Interventions) -> Scores:
        with np.errstate(all="ignore"):
            return score_interventions(
                self._model, rows, self._reward,
                delta=self._delta, bound=self._bound, known_mean=self._known_mean,
            )  # fmt: skip

    def intervention(self, arm: int) -> Interventions:
        """The one in that place of `scores`, (N,)."""
        if self._candidates is None:
            return intervention_of(arm, self._n_nodes, self._regimes)
        return self._candidates[arm].copy()

    def under(self, allowed: Constraints, unit: float) -> tuple[Interventions, Scores, Worth]:
        """Allowed interventions, (n, N), their scores, and what they are worth in the data.

        `unit` is that of the model's reward in the data.
        """
        if self._candidates is None:
            arms, worth = allowed_arms(allowed)
            rows = intervention_of(arms, self._n_nodes, self._regimes)
            return rows, Scores(self.scores.mean[arms], self.scores.width[arms]), worth
        if self._under is None or self._under[0] != allowed:  # searched for once
            priced = allowed.priced(1.0 / unit)
            rows = best_and_neighbours(self._model, self._reward, allowed=priced)
            self._under = allowed, rows, self._scores_of(rows)
        _, rows, scores = self._under
        return rows, scores, allowed.worth(rows)
