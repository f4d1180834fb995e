"""The expected loss after one more round.

Each draw of the posterior is taken as the truth in turn. A candidate is played in it, the outcome
updates the mean and the probability of every parent set of the played mechanisms and the weights
of the orders, and the decision with the best expected reward is made. The loss is what this
decision forgoes in the draw. Its average over the draws is, up to its sign, what knowledge-gradient
rules call the value of the posterior after the round (Frazier, Powell and Dayanik, 2008).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, Interventions
from causalarms.kernels import kernel
from causalarms.models.knowledge_gradient.model import (
    Model,
    ParentSets,
    Regressions,
    averages,
    copied,
    predictive_log_density,
    rank_one_update,
)

# Relative to the likeliest order. Orders below it barely change an expected reward, and each
# that is left out saves a pass over all nodes and decisions.
MIN_RELATIVE_ORDER_WEIGHT = 1e-3


class PosteriorDraws(NamedTuple):
    """D draws of the system, and what every decision earns in them."""

    order: npt.NDArray[np.int64]  # (D, N)
    weights: FloatArray  # (D, R, N, N)
    intercept: FloatArray  # (D, R, N)
    noise_std: FloatArray  # (D, R, N)
    normals: FloatArray  # (D, rounds, N) noise of the pending rounds, then of the candidate's
    earned: FloatArray  # (D, decisions), net of costs
    best: FloatArray  # (D,), of all interventions


class Decisions(NamedTuple):
    """What may be decided afterwards."""

    chosen: FloatArray  # (N, R, K) 1 if decision k has node i in regime r, else 0
    keep: FloatArray  # (K,) what remains of the reward, 1 unless it may fail
    cost: FloatArray  # (K,)
    reward: int


class Learned(NamedTuple):
    """The model after the pending rounds."""

    regressions: Regressions
    fraction: FloatArray  # (O, R, N, S) of the parent sets, given the order
    weights: FloatArray  # (O, R, N, N) averages
    intercept: FloatArray  # (O, R, N)
    order_weight: FloatArray  # (O,), the largest is 1


class Outcome(NamedTuple):
    """A round, and how it updates the M parent sets of the mechanisms it was played with."""

    arm: npt.NDArray[np.uint8]  # (N,)
    x: FloatArray  # (N+1,), the constant last
    density: FloatArray  # (M,) relative to the mechanism's likeliest set
    step: FloatArray  # (M, P) change of the means


@kernel
def losses_after(
    model: Model,
    draws: PosteriorDraws,
    pending: Interventions,  # (n, N), whose results will be known too
    candidates: Interventions,  # (C, N)
    plays: float,  # how often a candidate is played
    decisions: Decisions,
) -> FloatArray:
    """Loss per round after each candidate, in every draw, (D, C)."""
    n_sets = len(model.regressions.size)
    losses = np.empty((len(draws.order), len(candidates)))
    x = np.ones(model.orders.shape[1] + 1)
    density, step = np.empty(n_sets), np.empty(model.regressions.mean.shape)
    for d in range(len(draws.order)):
        regressions, fraction = model.regressions, model.sets.fraction
        weights, intercept = model.weights, model.intercept
        order_weight = np.ones(len(model.orders))
        # In every draw the pending results differ, so each draw learns them in a copy of its own.
        if len(pending) > 0:
            regressions, fraction = copied(model.regressions), model.sets.fraction.copy()
            for k in range(len(pending)):
                outcome = Outcome(pending[k], x, density, step)
                sample_outcome(draws, d, k, 1.0, outcome)
                score_parent_sets(model.sets, regressions, 1.0, outcome, True)
                update_order_weights(model.sets, fraction, outcome, order_weight)
            weights, intercept = averages(model.sets, fraction, regressions)
        learned = Learned(regressions, fraction, weights, intercept, order_weight)
        for c in range(len(candidates)):
            outcome = Outcome(candidates[c], x, density, step)
            sample_outcome(draws, d, len(pending), plays, outcome)
            score_parent_sets(model.sets, regressions, plays, outcome, False)
            after = expected_rewards(model, learned, outcome, decisions)
            losses[d, c] = draws.best[d] - draws.earned[d, np.argmax(after)]
    return losses


@kernel
def sample_outcome(
    draws: PosteriorDraws, d: int, number: int, plays: float, outcome: Outcome
) -> None:
    """Write x of a round of `outcome.arm` in draw d, the average of `plays` rounds."""
    # The average of several plays has the same mean and a smaller noise: one sample stands for it.
    x, size = outcome.x, 1.0 / math.sqrt(plays)
    for position in range(draws.order.shape[1]):
        node = draws.order[d, position]
        regime = outcome.arm[node]
        noise = size * draws.normals[d, number, node]
        total = draws.intercept[d, regime, node] + draws.noise_std[d, regime, node] * noise
        for earlier in range(position):
            parent = draws.order[d, earlier]
            total += draws.weights[d, regime, parent, node] * x[parent]
        x[node] = total


@kernel
def score_parent_sets(
    sets: ParentSets,
    regressions: Regressions,
    plays: float,
    outcome: Outcome,
    keep: bool,  # whether the regressions learn the round
) -> None:
    """Density and step of every parent set of the played mechanisms."""
    noise, x, density, step = 1.0 / plays, outcome.x, outcome.density, outcome.step
    for node in range(len(outcome.arm)):
        regime = outcome.arm[node]
        first, end = sets.first[regime, node], sets.end[regime, node]
        target = x[node] - regressions.target_mean[regime, node]
        top = -np.inf
        for m in range(first, end):
            h, e, density[m] = predictive_log_density(regressions, m, x, target, noise, step[m])
            top = max(top, density[m])
            if keep:
                rank_one_update(regressions, m, h, e, step[m])
            for a in range(regressions.size[m]):
                # A^-1 x becomes the change of the mean (docs/posterior.md#knowledge-gradient).
                step[m, a] *= e / (noise + h)
        for m in range(first, end):
            density[m] = math.exp(density[m] - top)


@kernel
def update_order_weights(
    sets: ParentSets,
    fraction: FloatArray,  # (O, R, N, S) in and out
    outcome: Outcome,
    order_weight: FloatArray,  # (O,) in and out
) -> None:
    """Bayes' rule for the parent sets of the played mechanisms and for the orders."""
    density = outcome.density
    for o in range(len(order_weight)):
        for node in range(len(outcome.arm)):
            regime = outcome.arm[node]
            total = _weight(sets, fraction, o, regime, node, density)
            order_weight[o] *= total
            if total > 0.0:
                for place in range(sets.n_named[o, regime, node]):
                    m = sets.which[o, regime, node, place]
                    fraction[o, regime, node, place] *= density[m] / total
    top = order_weight.max()
    if top > 0.0:
        order_weight /= top
    else:  # no order explains the round
        order_weight[:] = 1.0


@kernel
def _weight(
    sets: ParentSets, fraction: FloatArray, o: int, regime: int, node: int, density: FloatArray
) -> float:
    total = 0.0
    for place in range(sets.n_named[o, regime, node]):
        total += fraction[o, regime, node, place] * density[sets.which[o, regime, node, place]]
    return total


@kernel
def expected_rewards(
    model: Model, learned: Learned, outcome: Outcome, decisions: Decisions
) -> FloatArray:
    """What every decision is worth after the round, (K,).

    Only the played mechanisms have new weights. They are averaged here, row by row, instead of
    for the whole system: this is the innermost loop of the knowledge gradient.
    """
    sets, regressions, fraction = model.sets, learned.regressions, learned.fraction
    weights, intercept = learned.weights, learned.intercept
    density, step = outcome.density, outcome.step
    n_orders, n = model.orders.shape
    chosen = decisions.chosen
    n_decisions = chosen.shape[2]
    totals = np.empty((n_orders, n))
    after = learned.order_weight.copy()
    for o in range(n_orders):
        for node in range(n):
            totals[o, node] = _weight(sets, fraction, o, outcome.arm[node], node, density)
            after[o] *= totals[o, node]
    top = after.max()
    if not top > 0.0:  # nothing explains the round: orders stay as likely as they were
        after[:] = learned.order_weight
        top = after.max()
    values = np.zeros(n_decisions)
    means = np.empty((n, n_decisions))
    coefficient = np.empty(n_decisions)
    row, total_weight = np.empty(n + 1), 0.0
    for o in range(n_orders):
        if after[o] < MIN_RELATIVE_ORDER_WEIGHT * top:
            continue
        total_weight += after[o]
        for position in range(n):
            node = model.orders[o, position]
            played = outcome.arm[node]
            row[:] = 0.0
            total = totals[o, node]
            for place in range(sets.n_named[o, played, node]):
                m = sets.which[o, played, node, place]
                part = fraction[o, played, node, place]
                if total > 0.0:
                    part *= density[m] / total
                for a in range(regressions.size[m]):
                    row[regressions.regressor[m, a]] += part * (regressions.mean[m, a] + step[m, a])
            row[n] += regressions.target_mean[played, node]
            mean = means[position]
            for r in range(model.regimes[node]):
                value = row[n] if r == played else intercept[o, r, node]
                of_regime = chosen[node, r]
                if r == 0:
                    mean[:] = 0.0
                for k in range(n_decisions):
                    mean[k] += value * of_regime[k]
            for earlier in range(position):
                parent = model.orders[o, earlier]
                silent = row[parent] == 0.0
                for r in range(model.regimes[node]):
                    silent &= r == played or weights[o, r, parent, node] == 0.0
                if silent:
                    continue
                coefficient[:] = 0.0
                for r in range(model.regimes[node]):
                    value = row[parent] if r == played else weights[o, r, parent, node]
                    of_regime = chosen[node, r]
                    for k in range(n_decisions):
                        coefficient[k] += value * of_regime[k]
                of_parent = means[earlier]
                for k in range(n_decisions):
                    mean[k] += coefficient[k] * of_parent[k]
            if node == decisions.reward:  # later nodes do not matter to it
                for k in range(n_decisions):
                    values[k] += after[o] * mean[k]
                break
    return decisions.keep * (values / total_weight) - decisions.cost
