"""What is still lost after a round: it is imagined in every truth, learned from, and decided on.

A truth is a draw of the whole system. A candidate is played in it, every parent set of the played
mechanisms takes in what came out (its average and its probability), orders are weighed anew, and
the decision with the best expected reward is made. What it forgoes in the truth is the loss.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.models.lookahead.model import Model, averages
from causalarms.models.lookahead.parent_sets import ParentSets
from causalarms.models.lookahead.regressions import Regressions, copied, surprise, take_in

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint8]

FAINT = 1e-3  # of the likeliest order's weight: an order below it has no say in a decision


class Truths(NamedTuple):
    """D draws of the system, and what every decision earns in them."""

    order: IntArray  # (D, N)
    weights: FloatArray  # (D, R, N, N)
    intercept: FloatArray  # (D, R, N)
    noise_std: FloatArray  # (D, R, N)
    normals: FloatArray  # (D, rounds, N) noise of the pending rounds, then of the candidate's
    earned: FloatArray  # (D, decisions), net of costs
    best: FloatArray  # (D,), of all interventions


class Decisions(NamedTuple):
    """What may be decided afterwards."""

    chosen: FloatArray  # (N, R, K) 1 where decision k has node i in regime r
    cost: FloatArray  # (K,)
    reward: int


@kernel
def losses_after(
    model: Model,
    truths: Truths,
    pending: Rows,  # (n, N), whose results will be known too
    candidates: Rows,  # (C, N)
    plays: float,  # how often a candidate is played
    decisions: Decisions,
) -> FloatArray:
    """What is lost per round after each candidate, in every truth, (D, C)."""
    n = model.orders.shape[1]
    n_sets = len(model.regressions.size)
    losses = np.empty((len(truths.order), len(candidates)))
    x = np.ones(n + 1)
    density, step = np.empty(n_sets), np.empty(model.regressions.mean.shape)
    for d in range(len(truths.order)):
        regressions, shares = model.regressions, model.sets.share
        weights, intercept = model.weights, model.intercept
        order_weight = np.ones(len(model.orders))
        if len(pending) > 0:
            regressions, shares = copied(model.regressions), model.sets.share.copy()
            for k in range(len(pending)):
                imagine(truths, d, k, pending[k], 1.0, x)
                answer(model.sets, regressions, pending[k], x, 1.0, density, step, True)
                reweigh(model.sets, shares, pending[k], density, order_weight)
            weights, intercept = averages(model.sets, shares, regressions)
        for c in range(len(candidates)):
            imagine(truths, d, len(pending), candidates[c], plays, x)
            answer(model.sets, regressions, candidates[c], x, plays, density, step, False)
            after = expected_rewards(
                model, regressions, shares, weights, intercept, order_weight,
                candidates[c], density, step, decisions,
            )  # fmt: skip
            losses[d, c] = truths.best[d] - truths.earned[d, np.argmax(after)]
    return losses


@kernel
def imagine(
    truths: Truths,
    d: int,
    number: int,
    arm: npt.NDArray[np.uint8],
    plays: float,
    x: FloatArray,  # (N+1,) out, but for the constant
) -> None:
    """A round of this intervention in truth d, the average of `plays` of them."""
    size = 1.0 / math.sqrt(plays)
    for position in range(truths.order.shape[1]):
        node = truths.order[d, position]
        regime = arm[node]
        noise = size * truths.normals[d, number, node]
        total = truths.intercept[d, regime, node] + truths.noise_std[d, regime, node] * noise
        for earlier in range(position):
            parent = truths.order[d, earlier]
            total += truths.weights[d, regime, parent, node] * x[parent]
        x[node] = total


@kernel
def answer(
    sets: ParentSets,
    regressions: Regressions,
    arm: npt.NDArray[np.uint8],
    x: FloatArray,
    plays: float,
    density: FloatArray,  # (M,) out: relative to the mechanism's likeliest set
    step: FloatArray,  # (M, P) out: by how much means move
    keep: bool,  # whether the regressions take the round in
) -> None:
    """What the round says to every parent set of the played mechanisms."""
    noise = 1.0 / plays
    for node in range(len(arm)):
        regime = arm[node]
        first, end = sets.first[regime, node], sets.end[regime, node]
        target = x[node] - regressions.target_mean[regime, node]
        top = -np.inf
        for m in range(first, end):
            h, e, density[m] = surprise(regressions, m, x, target, noise, step[m])
            top = max(top, density[m])
            if keep:
                take_in(regressions, m, h, e, step[m])
            for a in range(regressions.size[m]):
                step[m, a] *= e / (noise + h)
        for m in range(first, end):
            density[m] = math.exp(density[m] - top)


@kernel
def reweigh(
    sets: ParentSets,
    shares: FloatArray,  # (O, R, N, S) in and out
    arm: npt.NDArray[np.uint8],
    density: FloatArray,
    order_weight: FloatArray,  # (O,) in and out
) -> None:
    """Bayes' rule for the parent sets of the played mechanisms and for the orders."""
    for o in range(len(order_weight)):
        for node in range(len(arm)):
            regime = arm[node]
            total = _weight(sets, shares, o, regime, node, density)
            order_weight[o] *= total
            if total > 0.0:
                for place in range(sets.n_named[o, regime, node]):
                    m = sets.which[o, regime, node, place]
                    shares[o, regime, node, place] *= density[m] / total
    top = order_weight.max()
    if top > 0.0:
        order_weight /= top
    else:  # no order explains the round
        order_weight[:] = 1.0


@kernel
def _weight(
    sets: ParentSets, shares: FloatArray, o: int, regime: int, node: int, density: FloatArray
) -> float:
    total = 0.0
    for place in range(sets.n_named[o, regime, node]):
        total += shares[o, regime, node, place] * density[sets.which[o, regime, node, place]]
    return total


@kernel
def expected_rewards(
    model: Model,
    regressions: Regressions,
    shares: FloatArray,  # (O, R, N, S)
    weights: FloatArray,  # (O, R, N, N) averages before the round
    intercept: FloatArray,  # (O, R, N)
    order_weight: FloatArray,  # (O,)
    arm: npt.NDArray[np.uint8],  # that was played
    density: FloatArray,
    step: FloatArray,
    decisions: Decisions,
) -> FloatArray:
    """Of every decision after the round, net of its cost, (K,)."""
    sets = model.sets
    n_orders, n = model.orders.shape
    chosen = decisions.chosen
    n_decisions = chosen.shape[2]
    totals = np.empty((n_orders, n))
    after = order_weight.copy()
    for o in range(n_orders):
        for node in range(n):
            totals[o, node] = _weight(sets, shares, o, arm[node], node, density)
            after[o] *= totals[o, node]
    top = after.max()
    if not top > 0.0:  # nothing explains the round: orders stay as likely as they were
        after[:] = order_weight
        top = after.max()
    values = np.zeros(n_decisions)
    means = np.empty((n, n_decisions))
    coefficient = np.empty(n_decisions)
    row, said = np.empty(n + 1), 0.0
    for o in range(n_orders):
        if after[o] < FAINT * top:
            continue
        said += after[o]
        for position in range(n):
            node = model.orders[o, position]
            played = arm[node]
            row[:] = 0.0
            total = totals[o, node]
            for place in range(sets.n_named[o, played, node]):
                m = sets.which[o, played, node, place]
                share = shares[o, played, node, place]
                if total > 0.0:
                    share *= density[m] / total
                for a in range(regressions.size[m]):
                    row[regressions.regressor[m, a]] += share * (
                        regressions.mean[m, a] + step[m, a]
                    )
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
            if node == decisions.reward:
                for k in range(n_decisions):
                    values[k] += after[o] * mean[k]
                break
    return values / said - decisions.cost
