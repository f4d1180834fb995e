"""Why a trial was suggested, from what the policy believed when it was asked.

To first order the uncertainty of an expected reward is a sum over mechanisms: the effect of node i
on the reward (its flow) times the uncertainty of what its mechanism gives. It says what another
round would teach.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from causalarms.arrays import FloatArray, Interventions
from causalarms.errors import NotAskedError
from causalarms.files import shown_number
from causalarms.models.belief import Belief, candidates, working
from causalarms.policies.base import Policy
from causalarms.study.ledger import Ledger
from causalarms.study.records import (
    CarryingEdge,
    DoubtfulMechanism,
    Explanation,
    Interval,
    RunnerUp,
    Samples,
    Uncertainty,
    in_words,
)
from causalarms.study.report import Beliefs, believe
from causalarms.study.suspects import left_out

TOP = 5
LATELY = 200  # rounds, with which a trial is compared
HARDLY = 0.95  # of an uncertainty, from which on it is hardly narrower
REASONS = {  # of trials whose policy did not say why
    "explore": "an exploratory setting",
    "exploit": "the best trade-off the policy saw between a high reward and learning more",
}


def explain(ledger: Ledger, number: int, policy: Policy) -> Explanation:
    """The policy has learned what was known then; values are as corrected since."""
    beliefs = believe(ledger, policy, first=rounds_known(ledger, number))
    return explain_by(beliefs, ledger, number, [out.message for out in left_out(ledger, policy)])


def explain_by(
    beliefs: Beliefs, ledger: Ledger, number: int, remarks: Sequence[str]
) -> Explanation:
    """The same from what was believed then, with remarks about values left out of it."""
    record = ledger.trial(number)
    settings = ledger.settings
    asked = record.asked
    bits = record.asked_intervention
    text = [f"Why this one: {asked.get('why') or REASONS[asked['reason']]}."]
    if "problem" in asked:
        text.append(f"The policy could not learn from its last round: {asked['problem']}.")
    text += [f"Note: {remark}" for remark in remarks]  # they end with a command
    if bits != record.intervention:
        words = in_words(settings.named.levels(record.intervention))
        text.append(f"It was executed otherwise: {words}.")
    if record.n_missing:
        lacking = [
            node for node, x in zip(settings.nodes, record.values or (), strict=True) if x is None
        ]
        text.append(f"Not measured in it: {', '.join(lacking)}.")
    missing = int(np.isnan(beliefs.values).sum())
    if missing:
        were = "value was" if missing == 1 else "values were"
        text.append(f"Of the rounds known before it, {missing} {were} not measured.")
    if settings.constrained:
        text.append("Only interventions within the constraints, at their costs, were compared.")
    samples, by_model = _samples(beliefs, bits), dict[str, Any]()
    if beliefs.belief is not None:
        by_model = _by_model(beliefs, np.array([bits], dtype=np.uint8), text)
    else:
        few = samples[0]
        text.append(
            f"Before it there was no model: {beliefs.why_nothing}. It adds a round to "
            f"{few.node} ({few.regime}), which had {few.rounds}."
        )
    return Explanation(
        trial=number,
        state=record.state,
        switch=settings.named.switched(bits),
        executed=settings.named.switched(record.intervention),
        levels=settings.named.levels(bits),
        reason=asked["reason"],
        rounds_known=len(beliefs.values),
        values_missing=missing,
        predicted_by_policy=asked.get("mean"),
        bound_of_policy=asked.get("width"),
        samples=samples,
        text=" ".join(text),
        **by_model,
    )


def rounds_known(ledger: Ledger, number: int) -> int:
    """How many rounds the policy had learned when it was asked for this trial."""
    record = ledger.trial(number)
    # Imported rounds were chosen by nobody.
    if not record.asked:
        raise NotAskedError(
            f"trial {number} was {record.state}, not asked: there is nothing to explain",
            number,
            record.state,
        )
    return int(record.asked.get("learned", 0))


def _samples(beliefs: Beliefs, intervention: tuple[int, ...]) -> list[Samples]:
    """Rounds so far of the mechanisms this intervention plays, fewest first."""
    counts = [
        Samples(
            node,
            beliefs.settings.named.regime_name(i, regime),
            int((beliefs.regimes[:, i] == regime).sum()),
        )
        for i, (node, regime) in enumerate(zip(beliefs.settings.nodes, intervention, strict=False))
    ]
    return sorted(counts, key=lambda c: c.rounds)[:TOP]


def _by_model(beliefs: Beliefs, a: Interventions, text: list[str]) -> dict[str, Any]:
    settings, reward, belief = beliefs.settings, beliefs.settings.reward_index, beliefs.known
    mean, low, high = (part[0] for part in beliefs.expected(a))
    weights = _mean_weights(belief, a[0])
    flow = _flow(belief, a[0], reward)
    mechanisms, before, after = _mechanisms(beliefs, a[0], mean, flow)
    span = high[reward] - low[reward]
    expected = [shown_number(part[reward], span) for part in (mean, low, high)]
    wide, narrow = shown_number(before, before), shown_number(after, before)
    narrows = (
        f"would narrow the uncertainty from {wide} to {narrow}"
        if after < HARDLY * before
        else f"would hardly narrow the uncertainty, {wide}"
    )
    text.append(
        f"Expected {settings.reward}: {expected[0]} (95 % interval {expected[1]} to "
        f"{expected[2]}). One more round of it {narrows}."
    )
    found: dict[str, Any] = {
        "expected": Interval(*(float(part[reward]) for part in (mean, low, high))),
        "uncertainty": Uncertainty(before, after),
        "edges": _edges(beliefs, a[0], mean - _usual(beliefs), weights, flow),
        "mechanisms": mechanisms,
    }
    rival = _rival(beliefs, a[0])
    if rival is not None:
        regimes = rival.tolist()
        value = float(beliefs.expected(rival[None])[0][0, reward])
        levels = settings.named.levels(regimes)
        found["runner_up"] = RunnerUp(levels, settings.named.switched(regimes), value)
        tried = int((beliefs.regimes == rival).all(axis=1).sum())
        often = f"tried {tried} time{'' if tried == 1 else 's'}" if tried else "never tried"
        costs = ", costs included," if settings.costs else ""
        text.append(
            f"Of all others{costs} the best on average is {in_words(levels)}, {often} before: "
            f"{shown_number(value, span)}."
        )
    return found


def _rival(beliefs: Beliefs, a: Interventions) -> Interventions | None:
    """The best allowed intervention by mean net reward, other than this one."""
    assert beliefs.belief is not None
    reward, allowed = beliefs.settings.reward_index, beliefs.allowed
    rows = candidates(beliefs.belief, reward, allowed)
    rows = working(rows[(rows != a).any(axis=1)], allowed)
    if not len(rows):
        return None
    mean = beliefs.belief.rewards(rows, reward).mean(axis=0)
    return rows[int(np.argmax(allowed.worth(rows).net(mean)))]


def _mean_weights(belief: Belief, a: Interventions) -> FloatArray:
    """Weights of the mechanisms played, averaged over the draws, [parent, child]."""
    each = [belief.draws.mechanism(node, a)[0].mean(axis=0) for node in range(len(a))]
    return np.stack(each, axis=1)


def _flow(belief: Belief, a: Interventions, reward: int) -> FloatArray:
    """What a unit more of every node does to the reward, averaged over the draws, (N,)."""
    draws, size = belief.draws, len(a)
    total = np.zeros(size)
    for d, (order, weights) in enumerate(zip(draws.order, draws.weights, strict=True)):
        seen = enumerate(draws.seen(d, a))
        chosen = np.stack([weights[regime, :, node] for node, regime in seen], axis=1)
        flow = np.zeros(size)
        for node in order[::-1]:
            flow[node] = float(node == reward) + chosen[node] @ flow
        total += flow
    return total / belief.n_draws


def _usual(beliefs: Beliefs) -> FloatArray:
    """What every node is expected to be in the average of the last rounds, whatever was typed."""
    rows, often = np.unique(beliefs.regimes[-LATELY:], axis=0, return_counts=True)
    return np.average(beliefs.known.expected(rows).mean(axis=0), axis=0, weights=often)


def _edges(
    beliefs: Beliefs, a: Interventions, apart: FloatArray, weights: FloatArray, flow: FloatArray
) -> list[CarryingEdge]:
    """The edges that carry most of what sets the expected reward apart from the average round.

    Offsets do not matter: `apart` is by how much each parent differs from its average. All columns
    of a factor are one parent, and its weight is what it adds to the child.
    """
    named = beliefs.settings.named
    nodes, n = named.shown, beliefs.values.shape[1]
    found: dict[tuple[str, int], tuple[float, float]] = {}
    for parent, child in zip(*np.nonzero(weights), strict=True):
        adds = float(weights[parent, child] * apart[parent])
        weight, carries = found.get((nodes[parent], child), (0.0, 0.0))
        weight += float(weights[parent, child]) if parent < n else adds
        found[nodes[parent], child] = weight, carries + adds * float(flow[child])
    most = sorted(found.items(), key=lambda edge: -abs(edge[1][1]))[:TOP]
    return [
        CarryingEdge(parent, nodes[child], named.regime_name(child, int(a[child])), *numbers)
        for (parent, child), numbers in most
        if numbers[1]
    ]


def _mechanisms(
    beliefs: Beliefs, a: Interventions, mean: FloatArray, flow: FloatArray
) -> tuple[list[DoubtfulMechanism], float, float]:
    """Fraction of the uncertainty per mechanism; its total before and after one more round."""
    nodes, draws = beliefs.settings.named.shown, beliefs.known.draws
    before, after = np.zeros(len(nodes)), np.zeros(len(nodes))
    for node in range(len(a)):
        weights, intercept, noise_std = draws.mechanism(node, a)
        doubt = float((weights @ mean + intercept).var())
        noise = float(np.median(noise_std)) ** 2
        before[node] = flow[node] ** 2 * doubt
        # One more measurement with this noise: variances of normals add as precisions.
        after[node] = before[node] * noise / (noise + doubt) if doubt > 0 else 0.0
    total = float(before.sum())
    found = [
        DoubtfulMechanism(
            node=nodes[node],
            regime=beliefs.settings.named.regime_name(int(node), int(a[node])),
            share_of_uncertainty=float(before[node] / total),
        )
        for node in np.argsort(-before, kind="stable")[:TOP]
        if before[node] > 0
    ]
    return found, float(np.sqrt(total)), float(np.sqrt(after.sum()))
