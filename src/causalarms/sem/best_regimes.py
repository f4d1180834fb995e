"""The best intervention for any numbers of regimes.

Nodes of one or two regimes are searched by branch and bound (best_arm.py): a node without a switch
is one whose regime is decided. With more regimes, up to a million interventions are enumerated, if
the budget allows as many; beyond, regimes are changed one at a time from a few starts, which
proves nothing.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.sem.arm_ascent import TIE
from causalarms.sem.arm_constraints import Allowed, unconstrained
from causalarms.sem.best_arm import BUDGET, BestArm, best_arm, top_arms
from causalarms.sem.regimes import Counts, all_two, existing, n_interventions
from causalarms.sem.rewards import all_expected_rewards, expected_values, intervention_of

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Intervention = npt.NDArray[np.uint8]

MOST_ENUMERATED = 2**20
STARTS = 8  # of the search by single changes


def best_of_regimes(
    weights: FloatArray,  # (R, N, N)
    noise_mean: FloatArray,  # (R, N)
    order: IntArray,
    reward: int,
    regimes: Counts,
    *,
    allowed: Allowed | None = None,
    budget: int = BUDGET,
) -> BestArm:
    """The best intervention; `allowed` only where no node has more than two regimes."""
    if all_two(regimes):
        return best_arm(weights, noise_mean, order, reward, allowed=allowed, budget=budget)
    if regimes.max() <= 2:
        pair = with_switches(weights, noise_mean, regimes)
        within = decided(allowed, regimes)
        return best_arm(*pair, order, reward, allowed=within, budget=budget)
    if allowed is not None:
        raise ModelError("constraints are for nodes of one or two regimes")
    if n_interventions(regimes) <= min(MOST_ENUMERATED, budget):
        values = all_expected_rewards(weights, noise_mean, order, reward, regimes)
        best = float(values.max())
        arm = int(np.argmax(values >= best - TIE * abs(best)))  # the first of equals
        found = intervention_of(arm, len(order), regimes)
        return BestArm(found, float(values[arm]), 0.0, len(values), True)
    return _by_single_changes(weights, noise_mean, order, reward, regimes)


def top_of_regimes(
    weights: FloatArray,
    noise_mean: FloatArray,
    order: IntArray,
    reward: int,
    m: int,
    regimes: Counts,
    *,
    budget: int = BUDGET,
) -> list[BestArm]:
    """The m best of different effect; with more than two regimes only the best one."""
    if regimes.max() > 2:
        return [best_of_regimes(weights, noise_mean, order, reward, regimes, budget=budget)]
    pair = with_switches(weights, noise_mean, regimes)
    within = decided(None, regimes)
    return top_arms(*pair, order, reward, m, allowed=within, distinct=True, budget=budget)


def with_switches(
    weights: FloatArray, noise_mean: FloatArray, regimes: Counts
) -> tuple[FloatArray, FloatArray]:
    """Arrays of two regimes in which a node without a switch has the same mechanism twice."""
    same = ~existing(regimes, 2)[1]
    first = [0, min(1, len(weights) - 1)]
    pair = np.array(weights[first])
    mean = np.array(np.broadcast_to(noise_mean, weights.shape[:2])[first])
    pair[1][:, same], mean[1, same] = pair[0][:, same], mean[0, same]
    return pair, mean


def decided(allowed: Allowed | None, regimes: Counts) -> Allowed | None:
    """Nodes without a switch are natural."""
    if all_two(regimes):
        return allowed
    found = (allowed or unconstrained(len(regimes))).narrowed(
        {int(node): 0 for node in np.flatnonzero(regimes == 1)}
    )
    if found is None:
        raise ModelError("no intervention satisfies the constraints: some node has no switch")
    return found


def neighbours(
    intervention: Intervention, regimes: Counts, nodes: IntArray | None = None
) -> npt.NDArray[np.uint8]:
    """All interventions that differ in one node (of `nodes`), by node and regime, (n, N)."""
    changes = np.argwhere(existing(regimes).T)  # (node, regime)
    changes = changes[changes[:, 1] != intervention[changes[:, 0]]]
    if nodes is not None:
        changes = changes[np.isin(changes[:, 0], nodes)]
    found = np.repeat(intervention[None], len(changes), axis=0)
    found[np.arange(len(changes)), changes[:, 0]] = changes[:, 1]
    return found


def _by_single_changes(
    weights: FloatArray, noise_mean: FloatArray, order: IntArray, reward: int, regimes: Counts
) -> BestArm:
    """The best change of one node until none helps, from regimes 0, 1, ... of all nodes."""
    mean = np.array(np.broadcast_to(noise_mean, weights.shape[:2]))
    best, value, n_seen = np.zeros(len(order), dtype=np.uint8), -math.inf, 0
    for start in range(min(STARTS, int(regimes.max()))):
        arm = np.minimum(start, regimes - 1).astype(np.uint8)
        while True:
            rows = np.vstack([arm[None], neighbours(arm, regimes)])
            values = expected_values(weights, mean, order, rows)[:, reward]
            n_seen += len(rows)
            highest = int(np.argmax(values))
            if not values[highest] > values[0] + TIE * abs(values[0]):
                break
            arm = rows[highest]
        if values[0] > value:
            best, value = arm, float(values[0])
    return BestArm(best, value, math.inf, n_seen, False)
