"""The best intervention of an estimated model, also where its regimes mix into a cycle.

With a common order it is found by branch and bound. Without one, only the regimes of the nodes on
cycles decide whether B_a is acyclic; once those are fixed, the rest has a common order again. Up to
20 nodes (a million interventions) all are scored; beyond, all acyclic patterns of regimes on the
cycles are tried where there are few, else a pattern is improved flip by flip, which proves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.limits import MAX_PATTERN_NODES, MAX_SCORED_NODES
from causalarms.models.scores import best_score, score_interventions
from causalarms.models.weights import MechanismWeights
from causalarms.search import Constraints, best_intervention
from causalarms.search.best import BUDGET
from causalarms.sem.regimes import all_two, ancestors, n_interventions, topological_order
from causalarms.sem.rewards import all_interventions, neighbours, within

Intervention = npt.NDArray[np.uint8]

NOT_COUNTED = -1


class ModelBest(NamedTuple):
    """The best intervention by estimated mean."""

    intervention: Intervention
    mean: float
    proven: bool
    n_cyclic: int  # interventions without an expected reward; NOT_COUNTED where too many


def best_of_model(
    model: MechanismWeights,
    reward: int,
    *,
    allowed: Constraints | None = None,
    budget: int = BUDGET,
) -> ModelBest:
    """The best intervention among those whose B_a is acyclic, net of what `allowed` ones cost."""
    if allowed is not None:
        return _best_allowed(model, reward, within(model.counts, allowed), budget)
    n_nodes, regimes = model.weights.shape[1], model.counts
    if model.order is not None:
        best = best_intervention(
            model.weights, model.intercept, model.order, reward,
            constraints=within(regimes), budget=budget,
        )  # fmt: skip
        return ModelBest(best.intervention, best.value, best.exact, 0)
    if n_interventions(regimes) <= 2**MAX_SCORED_NODES:
        arms = all_interventions(n_nodes, regimes)
        scores = score_interventions(model, arms, reward)
        arm = best_score(scores.mean)
        return ModelBest(arms[arm], float(scores.mean[arm]), True, scores.n_cyclic)
    on_cycles = np.flatnonzero(ancestors((model.weights != 0).any(axis=0)).diagonal())
    if n_interventions(regimes[on_cycles]) <= 2**MAX_PATTERN_NODES:
        return _every_pattern(model, reward, on_cycles, budget)
    return _improved_pattern(model, reward, on_cycles, budget)


def _best_allowed(
    model: MechanismWeights, reward: int, allowed: Constraints, budget: int
) -> ModelBest:
    order = model.order
    if order is not None:
        best = best_intervention(
            model.weights, model.intercept, order, reward, constraints=allowed, budget=budget
        )
        return ModelBest(best.intervention, best.value, best.exact, 0)
    rows = allowed.interventions(2**MAX_SCORED_NODES)
    scores = score_interventions(model, rows, reward)
    net = scores.mean - allowed.cost(rows)
    arm = best_score(net)
    if np.isnan(net[arm]):
        raise ModelError("the learned model is cyclic under every allowed intervention")
    return ModelBest(rows[arm], float(net[arm]), True, scores.n_cyclic)


def _with_pattern(
    model: MechanismWeights,
    reward: int,
    on_cycles: npt.NDArray[np.int64],
    pattern: npt.NDArray[np.uint8],
    budget: int,
) -> ModelBest | None:
    """The best with these regimes on the cycles; None where they close one."""
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
    share = budget // (4 * len(on_cycles))
    regimes = model.counts
    starts = [
        _with_pattern(
            model,
            reward,
            on_cycles,
            np.minimum(regime, regimes[on_cycles] - 1).astype(np.uint8),
            share,
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
        if not means[flip] > best.mean + 1e-9 * abs(best.mean):  # nan: every flip closes a cycle
            return best._replace(proven=False)
        again = _with_pattern(model, reward, on_cycles, flipped[flip, on_cycles], share)
        assert again is not None  # its mean is a number
        best = again
