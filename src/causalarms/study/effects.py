"""What factors act on: roots of the graph that people see, and what each level does to the reward.

A factor that shifts nodes stands behind them as columns (`sem/factors.py`). People see one root per
factor, with the probability that it acts on each node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from causalarms.arrays import FloatArray, Interventions
from causalarms.graphs.graph import Graph
from causalarms.models.belief import Belief, likely_graph, summary
from causalarms.posterior.base import Draws
from causalarms.posterior.roots import first_columns, root_names, root_steps
from causalarms.sem.factors import NamedFactors
from causalarms.sem.regimes import Counts
from causalarms.study.records import Effect, Interval

if TYPE_CHECKING:
    from causalarms.study.report import Beliefs


def graph_with_roots(belief: Belief, named: NamedFactors) -> Graph:
    """The likely edges; factors that shift nodes are roots.

    The weight of a root is what its last level adds to a node, compared with its first.
    """
    roots, regimes = with_roots(belief, named)
    return likely_graph(roots, (*named.nodes, *root_names(named)), regimes)


def with_roots(belief: Belief, named: NamedFactors) -> tuple[Belief, Counts]:
    """The same belief with one node for all columns of a factor, and the regimes of all nodes."""
    n, n_roots = named.n_measured, len(named.shifting)
    if not n_roots:
        return belief, named.regimes
    first = [n + column for column in first_columns(named)]
    kept = [*range(n), *first]
    draws = belief.draws
    weights = draws.weights[:, :, kept][:, :, :, kept]
    weights[:, :, n:, :n] = np.einsum(
        "gc,drcj->drgj", root_steps(named), draws.weights[:, :, n:, :n]
    )
    place = np.full(len(named.system_nodes), -1)
    place[kept] = np.arange(len(kept))
    order = np.array([[place[i] for i in row if place[i] >= 0] for row in draws.order])
    found = Belief(
        Draws(
            order,
            draws.adjacency[:, :, kept][:, :, :, kept],
            weights,
            draws.intercept[:, :, kept],
            draws.noise_std[:, :, kept],
        ),
        belief.edge_probability[:, kept][:, :, kept],
        belief.counts[:, kept],
        belief.starts[:, kept],
        weighs_graphs=belief.weighs_graphs,
    )
    regimes = named.regimes[kept].copy()
    regimes[n:] = 1
    return found, regimes


def effects(beliefs: Beliefs) -> list[Effect]:
    """Of every factor: the nodes it acts on, and what its levels do to the reward.

    Both are compared with the factor's first level, while all others are at theirs.
    """
    named, belief = beliefs.settings.named, beliefs.known
    first = [0] * len(named.factors)
    rows, places = [first], list[tuple[int, int]]()
    for at, factor in enumerate(named.factors):
        for level in range(1, len(factor.levels)):
            rows.append([*first[:at], level, *first[at + 1 :]])
            places.append((at, level))
    interventions = named.numbers.interventions(rows).astype(np.uint8)
    reward = beliefs.settings.reward_index
    rewards = belief.rewards(interventions, reward)  # (draws, rows)
    gained = rewards[:, 1:] - rewards[:, :1]
    direct = _direct(belief, interventions, reward, named.n_measured)
    acts = _acts_on(belief, named)
    found = []
    for at, factor in enumerate(named.factors):
        mine = [k for k, (which, _) in enumerate(places) if which == at]
        names = [str(factor.levels[places[k][1]]) for k in mine]
        found.append(
            Effect(
                factor=factor.name,
                acts_on=acts[at],
                reward={name: _interval(gained[:, k]) for name, k in zip(names, mine, strict=True)},
                direct={name: _interval(direct[:, k]) for name, k in zip(names, mine, strict=True)},
            )
        )
    return found


def _interval(values: FloatArray) -> Interval:
    return Interval(*(float(part) for part in summary(values)))


def _direct(belief: Belief, rows: Interventions, reward: int, n_measured: int) -> FloatArray:
    """What the levels add to the reward while all that is measured stays, (draws, rows - 1)."""
    draws, kept = belief.draws, belief.expected(rows)  # (draws, rows, M)
    kept[:, :, :n_measured] = kept[:, :1, :n_measured]
    regimes = rows[:, reward].astype(np.int64)
    own = draws.weights[:, :, :, reward][:, regimes]  # (draws, rows, M)
    given = (own * kept).sum(axis=2) + draws.intercept[:, :, reward][:, regimes]
    return given[:, 1:] - given[:, :1]


def _acts_on(belief: Belief, named: NamedFactors) -> list[dict[str, float]]:
    """By factor, the probability that it acts on each node; a mechanism per level is told."""
    chance = belief.edge_probability.max(axis=0)  # (M, M)
    columns = dict(zip(named.shifting, first_columns(named), strict=True))
    found = []
    for at, factor in enumerate(named.factors):
        if at in columns:
            row = chance[named.n_measured + columns[at], : named.n_measured]
            found.append(dict(zip(named.nodes, row.tolist(), strict=True)))
        else:
            found.append({node: float(node in factor.acts_on) for node in named.nodes})
    return found
