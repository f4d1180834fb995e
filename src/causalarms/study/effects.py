"""What factors act on: roots of the graph that people see, and what each level does to the reward.

A factor that shifts nodes stands behind them as columns (`sem/factors.py`). People see one root per
factor, with the probability that it acts on each node.

A factor acts on a node by its own columns or by those of its pairs with others: what it does may
depend on the level of another. Own columns are there or not, but pairs are part of a mechanism
whether they matter or not (on the reward always, `posterior/roots.py`). How likely a pair matters
follows from the draws: 1 / (1 + n^(k/2) exp(-d^2/2)), where d is the distance of its k weights from
zero in their standard deviations and n the number of rounds. This is Schwarz's approximation (BIC)
of the posterior probability, if both are as likely before. Of the own columns of a factor and its
pairs the likeliest counts.

A draw in which a node has a mechanism per level of a factor (`Draws.by`) counts as one in which the
factor acts on the node. What a level does there to the node itself is the difference of its
expected values at this level and at the first, while its parents stay as they are expected to be in
that draw with all factors at their first level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray, Interventions
from causalarms.files import shown_probability
from causalarms.graphs.graph import Graph
from causalarms.limits import MIN_VALUES_TO_LEARN
from causalarms.models.belief import Belief, level_by_level, likely_graph, summary
from causalarms.posterior.base import Draws
from causalarms.posterior.dag import LIKELY
from causalarms.sem.factors import NamedFactors
from causalarms.sem.regimes import Counts
from causalarms.study.records import Effect, Interval, Remark
from causalarms.study.settings import Settings

if TYPE_CHECKING:
    from causalarms.study.report import Beliefs

REMARK_PROBABILITY = 0.9  # above which a remark is made
RANGE_QUANTILES = (0.975, 0.025)  # of a node's values: a typing error does not widen the range
UNMOVED_PROBABILITY = 0.75  # of no factor upstream, from which on a question is asked
MIN_ROUNDS_OF_QUESTION = 20  # before it is asked whether a node is context


def graph_with_roots(
    rooted: Rooted, settings: Settings, intervention: Sequence[int] | None = None
) -> Graph:
    """The likely edges; factors that shift nodes are roots.

    The weight of a root is what its last level adds to a node, compared with its first, while all
    other factors are at their first. With an `intervention` the graph has one regime, the
    mechanisms in force under it, and the weight of a root is what its level adds there.
    """
    named, names = settings.named, settings.named.root_names
    graph = likely_graph(rooted.belief, (*named.nodes, *names), rooted.regimes, rooted.parts)
    setting = () if intervention is None else (setting_name(named, intervention),)
    return replace(graph, regime_names=setting, factors=tuple(names), context=settings.context)


def setting_name(named: NamedFactors, intervention: Sequence[int]) -> str:
    """What the one regime of the graph of a setting is called."""
    levels, moved = named.levels(intervention), named.switched(intervention)
    words = [f"{f.name}{' ' if f.is_switch else '='}{levels[f.name]}" for f in named.factors]
    shown = [text for text, f in zip(words, named.factors, strict=True) if f.name in moved]
    return ", ".join(shown) or "every factor at its first level"


class Rooted(NamedTuple):
    """A belief about nodes and roots, in whose draws every node follows its own regime."""

    belief: Belief
    regimes: Counts  # of all nodes
    parts: FloatArray | None  # how much of a draw each row counts for (`edge_weights`)


def with_roots(
    belief: Belief, named: NamedFactors, intervention: Sequence[int] | None = None
) -> Rooted:
    """The same belief with one node for all columns of a factor."""
    n, first = named.n_measured, named.roots
    kept = [*range(n), *first]
    levels = None if intervention is None else named.numbers_of(intervention)
    steps = named.root_steps(levels)
    regimes = named.regimes[kept].copy()
    regimes[n:] = 1
    r = int(regimes.max())  # columns have more regimes than nodes, and roots have one
    if intervention is None:
        draws, parts = level_by_level(belief.draws, named.regimes)
    else:
        draws, parts = belief.draws.under(np.array(intervention, dtype=np.uint8)), None
    adjacency = draws.adjacency[:, :r, kept][:, :, :, kept]
    weights = draws.weights[:, :r, kept][:, :, :, kept]
    weights[:, :, n:, :n] = np.einsum("gc,drcj->drgj", steps, draws.weights[:, :r, n:, :n])
    probability = belief.edge_probability[:r, kept][:, :, kept]
    counts, starts = belief.counts[:r, kept], belief.starts[:r, kept]
    counts[0, n:] = belief.counts[:, first].sum(axis=0)  # at any of its levels
    if intervention is not None:
        at, own = [*intervention[:n], *[0] * len(first)], np.arange(len(kept))
        probability = probability[at, :, own].T[None]
        counts, starts, regimes = counts[at, own][None], starts[at, own][None], np.ones_like(own)
    if belief.draws.by is not None:
        for d, root, node, added, acts in _free_effects(belief, named, levels):
            copies = np.arange(len(draws.order)).reshape(-1, belief.n_draws)[:, d]
            adjacency[copies, 0, n + root, node] |= acts
            weights[copies, 0, n + root, node] = added
        # The posterior has the average over levels of edges between nodes: the rest is counted.
        changed = np.flatnonzero((belief.draws.by != np.arange(len(named.regimes))).any(axis=0))
        often = _often(adjacency[:, 0], None if parts is None else parts[:, kept], belief.n_draws)
        counted = np.arange(n if intervention is None else 0, len(kept))[:, None]
        probability[0, counted, changed] = often[counted, changed]
    for pair, acting, chance in _pairs(belief, named):
        if intervention is not None:
            chance = chance[list(intervention[:n]), np.arange(n)][None]
        probability[:, acting, :n] = np.maximum(probability[:, acting, :n], chance[:r, None])
        there = draws.adjacency[:, :r, pair, :n] & (chance[:r] > LIKELY)
        adjacency[:, :, acting, :n] |= there[:, :, None]
    weights[:, :, n:, :n] *= adjacency[:, :, n:, :n]
    order = np.array([[kept.index(i) for i in row if i in kept] for row in draws.order.tolist()])
    mean, std = draws.intercept[:, :r, kept], draws.noise_std[:, :r, kept]
    return Rooted(
        Belief(
            Draws(order, adjacency, weights, mean, std),
            probability,
            counts,
            starts,
            weighs_graphs=belief.weighs_graphs,
        ),
        regimes,
        None if parts is None else parts[:, kept],
    )


def _pairs(belief: Belief, named: NamedFactors) -> list[tuple[int, list[int], FloatArray]]:
    """Of every pair of factors its first column, both roots, and how likely it matters, (R, N)."""
    n, draws, found = named.n_measured, belief.draws, []
    for bits in np.unique(named.bits[named.is_pair]).tolist():
        own = n + np.flatnonzero(named.bits == bits)
        chance = np.zeros(belief.counts[:, :n].shape)
        for regime, node in np.argwhere(belief.counts[:, :n] > 0).tolist():
            there = draws.adjacency[:, regime, own[0], node]
            if draws.by is not None:
                there = there & (draws.by[:, node] == node)
            if there.sum() <= len(own):
                continue
            drawn = draws.weights[there, regime][:, own, node]
            mean, spread = drawn.mean(axis=0), np.atleast_2d(np.cov(drawn.T))
            squared = float(mean @ np.linalg.pinv(spread) @ mean)
            against = 0.5 * (len(own) * math.log(belief.counts[regime, node]) - squared)
            chance[regime, node] = there.mean() / (1.0 + math.exp(min(against, 700.0)))
        roots = [n + root for root in range(len(named.shifting)) if bits >> root & 1]
        found.append((int(own[0]), roots, chance))
    return found


def reward_effects(beliefs: Beliefs, graph: Graph, weights: FloatArray) -> FloatArray:
    """What each edge does to the reward over the range of its parent that was seen, (R, N, N).

    Of a factor: what its level does. Mechanisms on the way to the reward count as often as they
    were in force; `weights` (R, N, N) are those of the edges.
    """
    nodes = len(graph.nodes)
    seen, often = np.ones(nodes), np.zeros((graph.n_regimes, nodes))
    often[0] = 1.0
    for i, column in enumerate(beliefs.values.T):
        values = column[~np.isnan(column)]
        seen[i] = np.subtract(*np.quantile(values, RANGE_QUANTILES)) if len(values) else 0.0
        regimes = np.minimum(beliefs.regimes[:, i], graph.n_regimes - 1)
        often[:, i] = np.bincount(regimes, minlength=graph.n_regimes) / max(len(regimes), 1)
    passed = np.einsum("rc,rpc->pc", often, graph.weights)
    flow = np.zeros(nodes)
    flow[beliefs.settings.reward_index] = 1.0
    assert graph.order is not None
    for node in map(graph.nodes.index, graph.order[::-1]):  # exactly 0 if no way leads to it
        flow[node] += passed[node] @ flow
    return np.asarray(weights * seen[:, None] * flow)


def _often(adjacency: BoolArray, parts: FloatArray | None, n_draws: int) -> FloatArray:
    """In which fraction of the draws an edge is there, in any part of it."""
    if parts is None:
        return np.asarray(adjacency.mean(axis=0))
    there = (parts > 0).reshape(-1, n_draws, 1, parts.shape[1])
    found = adjacency.reshape(-1, n_draws, *adjacency.shape[1:]) & there
    return np.asarray(found.any(axis=0).mean(axis=0))


def _free_effects(
    belief: Belief, named: NamedFactors, levels: Sequence[int] | None
) -> list[tuple[IntArray, int, int, FloatArray, BoolArray]]:
    """The draws in which roots give a node its mechanisms, and what the level of a root adds there.

    Of every root and such a node, and whether it is this root that gives them; `levels` as in
    `NamedFactors.root_steps`.
    """
    assert belief.draws.by is not None
    n, found = named.n_measured, []
    base = [0] * len(named.factors) if levels is None else levels
    free = belief.draws.by[:, :n] != np.arange(n)
    for root, (at, column) in enumerate(zip(named.shifting, named.roots, strict=True)):
        level = len(named.factors[at].levels) - 1 if levels is None else levels[at]
        rows = named.numbers.interventions([at_level(base, at, x) for x in (0, level)])
        for node in np.flatnonzero(free.any(axis=0)).tolist():
            d = np.flatnonzero(free[:, node])
            added = _direct(belief, rows.astype(np.uint8), node, n)[d, 0]
            found.append((d, root, node, added, belief.draws.by[d, node] == column))
    return found


def at_level(levels: Sequence[int], at: int, level: int) -> list[int]:
    """The same levels, but this one of the factor `at`."""
    return [*levels[:at], level, *levels[at + 1 :]]


def effects(beliefs: Beliefs) -> list[Effect]:
    """Of every factor: the nodes it acts on, and what its levels do to the reward.

    Both are compared with the factor's first level, while all others are at theirs.
    """
    named, belief = beliefs.settings.named, beliefs.known
    first = [0] * len(named.factors)
    rows, places = [first], list[tuple[int, int]]()
    for at, factor in enumerate(named.factors):
        for level in range(1, len(factor.levels)):
            rows.append(at_level(first, at, level))
            places.append((at, level))
    interventions = named.numbers.interventions(rows).astype(np.uint8)
    reward = beliefs.settings.reward_index
    rewards = belief.rewards(interventions, reward)  # (draws, rows)
    gained = rewards[:, 1:] - rewards[:, :1]
    direct = _direct(belief, interventions, reward, named.n_measured)
    acts, free = _acts_on(belief, named), _changes_answers(belief, named)
    found = []
    for at, factor in enumerate(named.factors):
        mine = [k for k, (which, _) in enumerate(places) if which == at]
        names = [str(factor.levels[places[k][1]]) for k in mine]
        found.append(
            Effect(
                factor=factor.name,
                acts_on=acts[at],
                free=free[at],
                reward={name: _interval(gained[:, k]) for name, k in zip(names, mine, strict=True)},
                direct={name: _interval(direct[:, k]) for name, k in zip(names, mine, strict=True)},
            )
        )
    return found


def _interval(values: FloatArray) -> Interval:
    return Interval(*(float(part) for part in summary(values)))


def _direct(belief: Belief, rows: Interventions, node: int, n_measured: int) -> FloatArray:
    """What the levels add to a node while all that is measured stays, (draws, rows - 1).

    All that is measured stays as it is expected to be under the first of the rows.
    """
    draws, kept = belief.draws, belief.expected(rows)  # (draws, rows, M)
    kept[:, :, :n_measured] = kept[:, :1, :n_measured]
    if draws.by is None:
        regimes = rows[:, node].astype(np.int64)
        own = draws.weights[:, :, :, node][:, regimes]  # (draws, rows, M)
        intercept = draws.intercept[:, :, node][:, regimes]
    else:
        d, seen = np.arange(belief.n_draws)[:, None], rows[:, draws.by[:, node]].T
        own, intercept = draws.weights[d, seen, :, node], draws.intercept[d, seen, node]
    given = (own * kept).sum(axis=2) + intercept
    return np.asarray(given[:, 1:] - given[:, :1])


def _acts_on(belief: Belief, named: NamedFactors) -> list[dict[str, float]]:
    """By factor, the probability that it acts on each node; a mechanism per level is told."""
    n = named.n_measured
    chance = with_roots(belief, named).belief.edge_probability.max(axis=0)[n:, :n]
    rows = dict(zip(named.shifting, chance.tolist(), strict=True))
    return [
        dict(zip(named.nodes, rows[at], strict=True))
        if at in rows
        else {node: float(node in factor.acts_on) for node in named.nodes}
        for at, factor in enumerate(named.factors)
    ]


def _changes_answers(belief: Belief, named: NamedFactors) -> list[dict[str, float]]:
    """By factor, the probability that each node has a mechanism per level; empty: not learned."""
    by, n = belief.draws.by, named.n_measured
    found = [dict[str, float]() for _ in named.factors]
    if by is not None:
        for at, column in zip(named.shifting, named.roots, strict=True):
            chance = (by[:, :n] == column).mean(axis=0)
            found[at] = dict(zip(named.nodes, chance.tolist(), strict=True))
    return found


# -- remarks: what the results say against what was told, and a question ---------------------------


def remarks(beliefs: Beliefs) -> list[Remark]:
    """Nodes without values, factors that act on more than was told, nodes that may be context."""
    belief = beliefs.belief
    if belief is None or not belief.weighs_graphs:
        return []  # one learned graph has no doubts: its edges are no evidence
    found = [
        Remark(node, "", 1.0, f"{node} {often}: nothing is learned of it")
        for node, often in hardly_measured(beliefs)
    ]
    found += _untold_effects(belief, beliefs.settings.named)
    if len(beliefs.values) >= MIN_ROUNDS_OF_QUESTION:
        found += _maybe_context(belief, beliefs.settings)
    return found


def hardly_measured(beliefs: Beliefs) -> list[tuple[str, str]]:
    """Nodes that lack values and have too few to learn from, and how often they were measured."""
    counts = (~np.isnan(beliefs.values)).sum(axis=0)
    few = counts < min(MIN_VALUES_TO_LEARN, len(beliefs.values))
    words = ("was never measured", "was measured only once")
    return [(beliefs.settings.nodes[i], words[counts[i]]) for i in np.flatnonzero(few).tolist()]


def _untold_effects(belief: Belief, named: NamedFactors) -> list[Remark]:
    found = []
    for at, acts in enumerate(_acts_on(belief, named)):
        factor = named.factors[at]
        if at not in named.shifting or not factor.acts_on:
            continue  # a mechanism per level is not doubted, and nobody told what it acts on
        for node, chance in acts.items():
            if node not in factor.acts_on and chance > REMARK_PROBABILITY:
                words = shown_probability(chance)
                text = f"{factor.name} also seems to act on {node} (probability {words})"
                found.append(Remark(node, factor.name, chance, text))
    return found


def _maybe_context(belief: Belief, settings: Settings) -> list[Remark]:
    """Nodes that no factor moves, directly or through others, while it does move most nodes.

    A question only: to treat as context what a factor moves a little hides part of its effect.
    """
    named = settings.named
    still = 1.0 - _moved(belief, named).mean(axis=0)[: named.n_measured]
    asked = [i for i, node in enumerate(named.nodes) if node not in settings.context]
    quiet = [i for i in asked if still[i] >= UNMOVED_PROBABILITY and i != settings.reward_index]
    if 2 * len(quiet) > len(asked):
        return []  # the factors move little at all: that says nothing about single nodes
    return [
        Remark(
            named.nodes[i],
            "",
            float(still[i]),
            f"{named.nodes[i]} has not answered to any factor so far; is it context? "
            f"(causalarms study change FILE --context {named.nodes[i]})",
        )
        for i in quiet
    ]


def _moved(belief: Belief, named: NamedFactors) -> BoolArray:
    """Which nodes have a factor among their ancestors or acting on them, (draws, M)."""
    draws = belief.draws
    there = draws.existing(named.regimes)
    edges = np.any(draws.adjacency & there[..., None, :], axis=1)  # (draws, M, M)
    moved: BoolArray = np.tile(named.regimes > 1, (belief.n_draws, 1))
    if draws.by is not None:
        moved |= draws.by != np.arange(len(named.regimes))
    for _ in range(named.n_measured):  # a path has no more edges
        moved = moved | np.any(edges & moved[:, :, None], axis=1)
    return moved


def least_certain_effect(
    belief: Belief, named: NamedFactors, intervention: Interventions, reward: int
) -> str:
    """What makes the reward of this setting most uncertain of all that factors do to nodes.

    In words that follow "least certain is"; "" if all of it is certain.
    """
    n = named.n_measured
    weights = belief.draws.under(intervention).weights[:, 0, :, :n]
    inner = weights[:, :n]
    unit = np.eye(n)[reward][:, None]
    flow = np.linalg.solve(np.eye(n) - inner, np.tile(unit, (len(inner), 1, 1)))[:, :, 0]
    added, acts = _added(belief, named, intervention, weights[:, n:].transpose(2, 0, 1))
    best, found = 0.0, ""
    for root, at in enumerate(named.shifting):
        spread = (added[root] * flow.T).std(axis=1)
        node = int(np.argmax(spread))
        if spread[node] > best:
            best, name = float(spread[node]), named.factors[at].name
            sure = float(acts[root, node].mean()) > REMARK_PROBABILITY
            found = f"what {name} does to" if sure else f"whether {name} acts on"
            found += f" {named.nodes[node]}"
    return found


def _added(
    belief: Belief, named: NamedFactors, intervention: Interventions, weights: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """What every root adds to every node, and whether it acts on it, (roots, N, draws) each.

    `weights` (N, draws, columns) are those in force.
    """
    free = belief.draws.by is not None
    values = named.values(intervention.tolist())
    if free:  # what a level adds to a node that is free is compared with the first level
        values = values - named.codes[0]
    each = [named.bits == 1 << root for root in range(len(named.shifting))]
    added = np.array([(weights * values)[:, :, own].sum(axis=2) for own in each])
    acts = np.array([(weights[:, :, own] != 0).any(axis=2) for own in each])
    if free:
        levels = named.numbers_of(intervention.tolist())
        for d, root, node, more, own in _free_effects(belief, named, levels):
            added[root, node, d[own]], acts[root, node, d[own]] = more[own], True
    return added, acts
