"""Why a trial was suggested, by what the policy believed then, and whether its model fits.

To first order the uncertainty of an expected reward is a sum over mechanisms: the effect of node i
on the reward (its flow) times the uncertainty of what its mechanism gives. It says what another
round would teach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray, Interventions
from causalarms.errors import NotAskedError
from causalarms.files import shown_number
from causalarms.graphs.diagnostics import MechanismCheck, check_mechanisms
from causalarms.models.belief import Belief, candidates, edge_weights, likely_graph, working
from causalarms.policies.base import Policy
from causalarms.posterior.base import Draws
from causalarms.posterior.dag import LIKELY
from causalarms.sem.factors import NamedFactors
from causalarms.study.far_values import left_out
from causalarms.study.ledger import Ledger
from causalarms.study.records import (
    CarryingEdge,
    Check,
    DoubtfulMechanism,
    Explanation,
    Interval,
    RunnerUp,
    Samples,
    Uncertainty,
    in_words,
)
from causalarms.study.report import Beliefs, believe

SHOWN_ENTRIES = 5  # of each list
COMPARED_ROUNDS = 200  # with which a trial is compared
MIN_NARROWING = 0.95  # of an uncertainty: below this fraction it is said to be narrower
REASONS = {  # of trials whose policy did not say why
    "explore": "an exploratory setting",
    "exploit": "the best trade-off the policy saw between a high reward and learning more",
}


def explain(ledger: Ledger, number: int, policy: Policy) -> Explanation:
    """Explain a trial by a policy that has learned what was known when it was asked.

    Values are as corrected since.
    """
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
        told = zip(settings.nodes, record.values or (), strict=True)
        lacking = [node for node, x in told if x is None]
        text.append(f"Not measured in it: {', '.join(lacking)}.")
    missing = int(np.isnan(beliefs.values).sum())
    if missing:
        were = "value was" if missing == 1 else "values were"
        text.append(f"Of the rounds known before it, {missing} {were} not measured.")
    if settings.constrained:
        text.append("Only interventions within the constraints, at their costs, were compared.")
    samples, by_model = _samples(beliefs, bits), dict[str, Any]()
    if beliefs.belief is not None:
        by_model = _by_model(beliefs, asked, text)
    else:
        few = samples[0]
        text.append(
            f"Before it there was no model ({beliefs.why_nothing}). It adds a round to "
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
    return sorted(counts, key=lambda c: c.rounds)[:SHOWN_ENTRIES]


def _by_model(beliefs: Beliefs, asked: Mapping[str, Any], text: list[str]) -> dict[str, Any]:
    """What is believed of the intervention, given what was known of the context at the ask."""
    settings, usual = beliefs.settings, _usual(beliefs)
    # Nodes that are not context any more have mechanisms again.
    context = {n: x for n, x in asked.get("context", {}).items() if n in settings.context}
    beliefs, a = beliefs.given(context), np.array([asked["intervention"]], dtype=np.uint8)
    reward, belief = settings.reward_index, beliefs.known
    mean, low, high = (part[0] for part in beliefs.expected(a))
    played = belief.draws.under(a[0])
    weights, flow = played.weights[:, 0].mean(axis=0), _flow(played, reward)
    mechanisms, before, after = _mechanisms(beliefs, a[0], played, mean, flow)
    span = high[reward] - low[reward]
    expected = [shown_number(part[reward], span) for part in (mean, low, high)]
    wide, narrow = shown_number(before, before), shown_number(after, before)
    narrows = (
        f"would narrow the uncertainty from {wide} to {narrow}"
        if after < MIN_NARROWING * before
        else f"would hardly narrow the uncertainty, {wide}"
    )
    text.append(
        f"Expected {settings.reward}: {expected[0]} (95 % interval {expected[1]} to "
        f"{expected[2]}). One more round of it {narrows}."
    )
    found: dict[str, Any] = {
        "expected": Interval(*(float(part[reward]) for part in (mean, low, high))),
        "uncertainty": Uncertainty(before, after),
        "edges": _edges(beliefs, a[0], mean - usual, weights, flow),
        "mechanisms": mechanisms,
    }
    rival = _rival(beliefs, a[0])
    if rival is not None:
        regimes = rival.tolist()
        value = float(beliefs.expected(rival[None])[0][0, reward])
        levels = settings.named.levels(regimes)
        found["runner_up"] = RunnerUp(levels, settings.named.switched(regimes), value)
        tried = beliefs.tried(rival)
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


def _flow(played: Draws, reward: int) -> FloatArray:
    """What a unit more of every node does to the reward, averaged over the draws, (N,)."""
    flow = np.zeros(played.order.shape)
    for of_draw, chosen, order in zip(flow, played.weights[:, 0], played.order, strict=True):
        for node in order[::-1]:
            of_draw[node] = float(node == reward) + chosen[node] @ of_draw
    return np.asarray(flow.mean(axis=0))


def _usual(beliefs: Beliefs) -> FloatArray:
    """What every node is expected to be in the average of the last rounds, whatever was typed."""
    rows, often = np.unique(beliefs.regimes[-COMPARED_ROUNDS:], axis=0, return_counts=True)
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
    most = sorted(found.items(), key=lambda edge: -abs(edge[1][1]))[:SHOWN_ENTRIES]
    return [
        CarryingEdge(parent, nodes[child], named.regime_name(child, int(a[child])), *numbers)
        for (parent, child), numbers in most
        if numbers[1]
    ]


def _mechanisms(
    beliefs: Beliefs, a: Interventions, played: Draws, mean: FloatArray, flow: FloatArray
) -> tuple[list[DoubtfulMechanism], float, float]:
    """Fraction of the uncertainty per mechanism; its total before and after one more round."""
    nodes = beliefs.settings.named.shown
    before, after = np.zeros(len(nodes)), np.zeros(len(nodes))
    for node in range(len(a)):
        values = played.weights[:, 0, :, node] @ mean + played.intercept[:, 0, node]
        doubt = float(values.var())
        noise = float(np.median(played.noise_std[:, 0, node])) ** 2
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
        for node in np.argsort(-before, kind="stable")[:SHOWN_ENTRIES]
        if before[node] > 0
    ]
    return found, float(np.sqrt(total)), float(np.sqrt(after.sum()))


# -- does the model fit? ---------------------------------------------------------------------------

DOUBTFUL_P_VALUE = 0.001  # those below are called out: many mechanisms are tested at once


class _Fitted(NamedTuple):
    """The mechanisms to check, of all nodes of the system; a free node has one per level."""

    by: IntArray  # (M,), the node whose regime each follows
    adjacency: BoolArray  # (R, M, M)
    weights: FloatArray  # (R, M, M)
    known: BoolArray  # (R, M)


def _fitted(belief: Belief, named: NamedFactors) -> _Fitted:
    """As most draws have them; a node is free here if it is in more than half of them."""
    graph = likely_graph(belief, named.system_nodes, named.regimes)
    by, draws = np.arange(len(named.system_nodes)), belief.draws
    if draws.by is None:
        return _Fitted(by, graph.adjacency, graph.weights, graph.known)
    adjacency, weights, known = graph.adjacency.copy(), graph.weights.copy(), graph.known.copy()
    for node in range(named.n_measured):
        followed, often = np.unique(draws.by[:, node], return_counts=True)
        by[node] = followed[np.argmax(often)] if often.max() > LIKELY * belief.n_draws else node
        if by[node] == node:
            continue
        free = draws.by[:, node] == by[node]
        part = draws._replace(
            adjacency=draws.adjacency[free][..., [node]], weights=draws.weights[free][..., [node]]
        )
        adjacency[:, :, node] = part.adjacency.mean(axis=0)[..., 0] > LIKELY
        weights[:, :, node] = edge_weights(part).mean[..., 0]
        known[:, node] = graph.known[:, by[node]]
    return _Fitted(by, adjacency, weights, known)


def model_checks(beliefs: Beliefs) -> list[Check]:
    """One per mechanism with complete rounds since its last change that are learned from."""
    starts, named = beliefs.known.starts, beliefs.settings.named
    by, adjacency, weights, known = _fitted(beliefs.known, named)
    values = np.array(
        [
            np.append(x, named.values(row))
            for x, row in zip(beliefs.values, beliefs.regimes, strict=True)
        ]
    )
    usable = np.asarray(~np.isnan(beliefs.values).any(axis=1))
    usable[list(beliefs.left_out)] = False
    found = []
    for regime, node in np.argwhere(known[:, : named.n_measured]).tolist():
        only = np.zeros_like(known)
        only[regime, node] = True
        start = int(starts[regime if by[node] == node else 0, node])
        rounds = start + np.flatnonzero(usable[start:])
        regimes = beliefs.regimes[rounds][:, by]
        if not (regimes[:, node] == regime).any():
            continue  # a switch that this study never moves, or nothing complete
        (check,) = check_mechanisms(
            values[rounds], regimes, named.system_nodes, adjacency, weights, only
        )
        found.append(
            Check(
                node=named.nodes[node],
                regime=named.regime_name(int(by[node]), regime),
                rounds=check.n_samples,
                verdict=_verdict(check),
                doubtful=bool(_doubts(check)),
            )
        )
    return found


def _verdict(check: MechanismCheck) -> str:
    """What the tests of one mechanism mean."""
    if math.isnan(check.explained):
        return "constant: there is nothing to explain"
    percent = 100 * max(check.explained, 0)
    causes = f"its causes explain {percent:.0f} % of the variance"
    words = [causes if percent >= 0.5 else "no cause known"]
    words += _doubts(check) or ["nothing speaks against a linear Gaussian mechanism"]
    return "; ".join(words)


def _doubts(check: MechanismCheck) -> list[str]:
    words = []
    if check.steady_p < DOUBTFUL_P_VALUE:
        words.append("it is not the same in all of its rounds: it seems to have changed")
    if check.linear_p < DOUBTFUL_P_VALUE:
        words.append("the effect of its causes looks bent, not linear: predictions may be off")
    if check.gaussian_p < DOUBTFUL_P_VALUE:
        words.append("residuals are not Gaussian (outliers, skew): intervals may be too narrow")
    return words
