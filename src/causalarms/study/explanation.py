"""Why a trial was suggested, from what was known when it was asked.

With the learned weights the expected reward of an intervention is a sum over mechanisms: the
effect of node i on the reward (its flow) times what its parents send it. To first order the
uncertainty is a sum over the same mechanisms, which says what another round would teach.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from causalarms.errors import StudyError
from causalarms.graphs.regime_names import REGIME_NAMES
from causalarms.sem.rewards import expected_values
from causalarms.study.beliefs import Beliefs, FloatArray, believe
from causalarms.study.best import candidates
from causalarms.study.trials import Ledger

TOP = 5


def explain(ledger: Ledger, number: int) -> dict[str, Any]:
    """A plain record; values that were corrected since are used as corrected."""
    record = ledger.trial(number)
    settings = ledger.settings
    assert settings is not None
    if not record.asked:
        raise StudyError(
            f"trial {number} was {record.state}, not asked: there is nothing to explain"
        )
    asked = record.asked
    beliefs = believe(ledger, None, first=int(asked.get("learned", 0)))
    bits = record.asked_intervention
    a = np.array([bits], dtype=np.uint8)
    text = [_why(asked)]
    if "problem" in asked:
        text.append(f"The policy could not learn from its last round: {asked['problem']}.")
    wanted = asked.get("wanted", asked["intervention"])
    idle = [n for n, w, p in zip(settings.nodes, wanted, bits, strict=True) if w > p]
    if idle:
        text.append(
            f"The policy would also switch {', '.join(idle)}, which this study never switches: "
            "left natural, which is the same to the policy."
        )
    if bits != record.intervention:
        names = [n for n, bit in zip(settings.nodes, record.intervention, strict=True) if bit]
        text.append(f"It was played otherwise: {', '.join(names) or 'nothing'} switched.")
    if settings.constrained:
        text.append("Only interventions within the constraints, at their costs, were compared.")
    result: dict[str, Any] = {
        "trial": number,
        "state": record.state,
        "switch": [n for n, bit in zip(settings.nodes, bits, strict=True) if bit],
        "played": [n for n, bit in zip(settings.nodes, record.intervention, strict=True) if bit],
        "reason": asked["reason"],
        "rounds_known": len(beliefs.values),
        "predicted_by_policy": asked.get("mean"),
        "bound_of_policy": asked.get("width"),
        "samples": _samples(beliefs, bits),
    }
    if beliefs.predictable(a)[0]:
        result |= _with_model(beliefs, a, text)
    elif beliefs.problem:
        text.append(f"No graph could be learned from the rounds before it: {beliefs.problem}.")
    else:
        few = result["samples"][0]
        text.append(
            f"There is no model yet for all of its mechanisms; it adds a round to "
            f"{few['node']} ({few['regime']}), which has {few['rounds']} so far."
        )
    return result | {"text": " ".join(text)}


def _why(asked: dict[str, Any]) -> str:
    if asked["reason"] == "explore":
        return "A random intervention: some mechanism still needs rounds (or had to forget them)."
    return "The best trade-off the policy sees between a high reward and learning more."


def _samples(beliefs: Beliefs, intervention: tuple[int, ...]) -> list[dict[str, Any]]:
    """Rounds so far of the mechanisms this intervention plays, fewest first."""
    counts: list[dict[str, Any]] = [
        {
            "node": node,
            "regime": REGIME_NAMES[regime],
            "rounds": int((beliefs.regimes[:, i] == regime).sum()),
        }
        for i, (node, regime) in enumerate(zip(beliefs.settings.nodes, intervention, strict=True))
    ]
    return sorted(counts, key=lambda c: c["rounds"])[:TOP]


def _with_model(beliefs: Beliefs, a: Any, text: list[str]) -> dict[str, Any]:
    settings, reward = beliefs.settings, beliefs.settings.reward_index
    assert beliefs.order is not None
    mean = expected_values(beliefs.weights, beliefs.intercept, beliefs.order, a)[0]
    low, high = np.quantile(beliefs.draws(a)[:, 0, reward], [0.025, 0.975])
    flow = _flow(beliefs, a[0])
    mechanisms, before, after = _mechanisms(beliefs, a[0], mean, flow)
    others = [arm for arm in candidates(beliefs)[:2] if not np.array_equal(arm, a[0])]
    text.append(
        f"Expected {settings.reward}: {mean[reward]:.3g} (95 % interval {low:.3g} to {high:.3g}). "
        f"One more round of it would narrow the uncertainty from {before:.2g} to {after:.2g}."
    )
    result: dict[str, Any] = {
        "expected": {"mean": float(mean[reward]), "low": float(low), "high": float(high)},
        "uncertainty": {"before": before, "after": after},
        "edges": _edges(beliefs, a[0], mean, flow),
        "mechanisms": mechanisms,
    }
    if others:
        arm = others[0]
        value = float(
            expected_values(beliefs.weights, beliefs.intercept, beliefs.order, arm[None])[0, reward]
        )
        names = [n for n, bit in zip(settings.nodes, arm, strict=True) if bit]
        result["runner_up"] = {"switch": names, "mean": value}
        text.append(
            f"The nearest rival ({', '.join(names) or 'nothing switched'}) has {value:.3g}."
        )
    return result


def _flow(beliefs: Beliefs, a: Any) -> FloatArray:
    """What a unit more of every node does to the reward, (N,)."""
    n, reward = beliefs.settings.n_nodes, beliefs.settings.reward_index
    chosen = np.where(a == 1, beliefs.weights[1], beliefs.weights[0])
    flow = np.zeros(n)
    assert beliefs.order is not None
    for node in beliefs.order[::-1]:
        flow[node] = float(node == reward) + chosen[node] @ flow
    return flow


def _edges(beliefs: Beliefs, a: Any, mean: FloatArray, flow: FloatArray) -> list[dict[str, Any]]:
    """The edges that carry most of the expected reward."""
    nodes = beliefs.settings.nodes
    chosen = np.where(a == 1, beliefs.weights[1], beliefs.weights[0])
    carried = chosen * mean[:, None] * flow[None, :]
    order = np.argsort(-np.abs(carried), axis=None, kind="stable")[:TOP]
    return [
        {
            "parent": nodes[parent],
            "child": nodes[child],
            "regime": REGIME_NAMES[int(a[child])],
            "weight": float(chosen[parent, child]),
            "carries": float(carried[parent, child]),
        }
        for parent, child in zip(*np.unravel_index(order, carried.shape), strict=True)
        if carried[parent, child] != 0
    ]


def _mechanisms(
    beliefs: Beliefs, a: Any, mean: FloatArray, flow: FloatArray
) -> tuple[list[dict[str, Any]], float, float]:
    """Share of the uncertainty per mechanism; its total before and after one more round."""
    nodes, n = beliefs.settings.nodes, beliefs.settings.n_nodes
    before, after = np.zeros(n), np.zeros(n)
    for node in range(n):
        fit = beliefs.fits[int(a[node]), node]
        sigma = fit.residual_std
        if not len(fit.columns) or not sigma > 0:
            continue
        z = np.append(mean, 1.0)[fit.columns]
        doubt = float(z @ fit.covariance() @ z)
        before[node] = flow[node] ** 2 * doubt
        after[node] = before[node] * sigma**2 / (sigma**2 + doubt)
    total = float(before.sum())
    found = [
        {
            "node": nodes[node],
            "regime": REGIME_NAMES[int(a[node])],
            "share_of_uncertainty": float(before[node] / total),
        }
        for node in np.argsort(-before, kind="stable")[:TOP]
        if before[node] > 0
    ]
    return found, float(np.sqrt(total)), float(np.sqrt(after.sum()))
