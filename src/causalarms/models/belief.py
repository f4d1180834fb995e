"""`Belief`: everything the data say, in one object; all that a user is shown is computed from it.

A belief is a number of draws of the whole system (graph, weights, noise) in the units of the data.
Expected values, intervals, the probability of being the best and the loss of settling are averages
over the draws. Where the policy weighs graphs, so do the draws; where it has one graph, the draws
take that graph as given, and `weighs_graphs` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray, Intervention, Interventions
from causalarms.errors import ModelError
from causalarms.graphs.graph import Graph
from causalarms.limits import MAX_COMPARED
from causalarms.models.draws import best_of_each, rewards_of
from causalarms.posterior.base import Draws
from causalarms.posterior.dag import draws_given_graph, likely_edges
from causalarms.search.constraints import Constraints
from causalarms.sem.regimes import Counts, existing, topological_order
from causalarms.sem.rewards import expected_values
from causalarms.statistics.units import Units

LEVEL = (0.025, 0.975)  # of all intervals
SEARCHED_DRAWS = 40  # whose best interventions are compared if all are too many
TIE = 1e-9  # of the size of the rewards: a smaller difference makes none


class Summary(NamedTuple):
    """Mean over the draws, and the interval in which 95 % of them lie."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


class Recommendation(NamedTuple):
    """The allowed intervention to settle on, and how sure that is."""

    intervention: Intervention
    reward: Summary  # expected, before costs
    cost: float
    probability: float  # fraction of draws in which no allowed one is better by `tolerance`
    expected_loss: float  # net reward per round forgone by playing it for ever, on average
    draws: int


class Choice(NamedTuple):
    """The intervention that is best on average, net of its cost, among those compared."""

    row: int  # of the interventions compared
    reward: Summary
    probability: float  # fraction of draws in which none is better
    expected_loss: float  # net reward per round forgone by settling on it, on average


@dataclass(frozen=True)
class Belief:
    """Of n draws; R regimes, N nodes."""

    draws: Draws
    edge_probability: FloatArray  # (R, N, N)
    counts: IntArray  # (R, N), rounds each mechanism learns from
    starts: IntArray  # (R, N), the round after which a mechanism began again; 0: never
    weighs_graphs: bool

    @property
    def n_draws(self) -> int:
        return len(self.draws.order)

    def first(self, n: int) -> Draws:
        """Only so many draws, for what takes long with each."""
        order, adjacency, weights, intercept, noise_std = self.draws
        return Draws(order[:n], adjacency[:n], weights[:n], intercept[:n], noise_std[:n])

    def expected(self, rows: Interventions) -> FloatArray:
        """Expected value of every node under every draw, (n, rows, N)."""
        return np.stack(
            [
                expected_values(weights, intercept, order, rows)
                for order, _, weights, intercept, _ in zip(*self.draws, strict=True)
            ]
        )

    def rewards(self, rows: Interventions, reward: int) -> FloatArray:
        """Expected rewards under every draw, (n, rows)."""
        return rewards_of(self.draws, rows, reward)

    def best(
        self, rows: Interventions, reward: int, cost: FloatArray, *, tolerance: float = 0.0
    ) -> Choice:
        """The best of these interventions.

        Interventions that differ only where it makes no difference have the same reward in a draw,
        and count as one; of those that are equally good on average the one with the fewest
        switches is named.
        """
        rewards = self.rewards(rows, reward)
        net = rewards - cost
        mean = net.mean(axis=0)
        level = mean >= mean.max() - TIE * max(float(np.abs(mean).max()), TIE)
        switches = np.where(level, (rows != 0).sum(axis=1), np.iinfo(np.int64).max)
        row = int(np.argmin(switches))
        top = net.max(axis=1)
        loss = top - net[:, row]
        return Choice(
            row,
            summary(rewards[:, row]),
            float((loss <= tolerance + TIE * np.abs(top)).mean()),
            float(loss.mean()),
        )

    def scaled(self, factors: FloatArray) -> Belief:
        """The belief about the nodes multiplied by these factors, (N,)."""
        draws = self.draws._replace(
            weights=self.draws.weights * (factors[None, :] / factors[:, None]),
            intercept=self.draws.intercept * factors,
            noise_std=self.draws.noise_std * np.abs(factors),
        )
        return replace(self, draws=draws)


def recommend(
    belief: Belief, reward: int, allowed: Constraints, *, tolerance: float = 0.0
) -> Recommendation:
    """What to settle on: the only answer to "what is best and how sure", whoever asks.

    All allowed interventions are compared. If they are too many, those are that are best in some
    draw, and then the neighbours of the best while one of them is better.
    """
    few = allowed.count(MAX_COMPARED) is not None
    rows = candidates(belief, reward, allowed)
    while True:
        cost = allowed.cost(rows)
        found = belief.best(rows, reward, cost, tolerance=tolerance)
        chosen = rows[found.row]
        known = len(rows)
        if not few:
            rows = np.unique(np.concatenate([rows, allowed.neighbours(chosen)]), axis=0)
        if len(rows) == known:  # nothing near the best is left to compare it with
            return Recommendation(
                chosen.copy(),
                found.reward,
                float(cost[found.row]),
                found.probability,
                found.expected_loss,
                belief.n_draws,
            )


def candidates(belief: Belief, reward: int, allowed: Constraints) -> Interventions:
    """All allowed interventions; if they are too many, those that are best in some draw.

    The natural one is always among them: it is what happens if nobody does anything.
    """
    if allowed.count(MAX_COMPARED) is not None:
        return allowed.interventions(MAX_COMPARED)
    found = best_of_each(belief.first(SEARCHED_DRAWS), reward, allowed=allowed)
    natural = np.zeros((1, allowed.n_nodes), dtype=np.uint8)
    rows = np.unique(np.concatenate([found, natural]), axis=0)
    return np.ascontiguousarray(rows[allowed.allows(rows)])


def summary(values: FloatArray) -> Summary:
    """Of draws, along the first axis."""
    low, high = np.quantile(values, LEVEL, axis=0)
    mean = np.asarray(values.mean(axis=0))  # outside where nearly all draws agree to the last digit
    return Summary(mean, np.minimum(low, mean), np.maximum(high, mean))


def belief_given_graph(
    adjacency: npt.NDArray[np.bool_],  # (R, N, N)
    gram: FloatArray,  # (R, N, N+1, N+1), in these units
    units: Units,
    starts: IntArray,  # (R, N)
    rng: np.random.Generator,
    n: int,
    *,
    noise_mean: FloatArray | None = None,  # (R, N), in the units of the data
    regimes: Counts | None = None,  # (N,), None: all R
) -> Belief:
    """What is believed by somebody who takes one graph as certain."""
    order = topological_order(adjacency.any(axis=0))
    if order is None:
        raise ModelError("the learned graphs of the regimes mix into a cycle: no prediction")
    known = None if noise_mean is None else noise_mean / units.scale
    drawn = draws_given_graph(gram, adjacency, order, rng, n, noise_mean=known, regimes=regimes)
    return Belief(
        in_units_of_data(units, drawn, regimes),
        adjacency.astype(float),
        gram[:, :, -1, -1].astype(np.int64),
        starts,
        weighs_graphs=False,
    )


def in_units_of_data(units: Units, draws: Draws, regimes: Counts | None = None) -> Draws:
    """Draws made in units of the prior; `regimes` (N,) says how many each node has, None: all."""
    if units.trivial:
        return draws
    weights = units.weights(draws.weights)
    intercept = units.intercept(draws.intercept, weights)
    if regimes is not None:
        intercept = np.where(existing(regimes), intercept, 0.0)
    return draws._replace(
        weights=weights,
        intercept=intercept,
        noise_std=draws.noise_std * units.scale,
    )


def likely_graph(belief: Belief, nodes: tuple[str, ...], regimes: Counts) -> Graph:
    """The likely edges, without a cycle; weights are those of the draws that have the edge.

    `regimes` (N,) says how many regimes of each node are meant.
    """
    exists = existing(regimes, len(belief.counts))
    adjacency = likely_edges(np.where(exists[:, None, :], belief.edge_probability, 0.0))
    draws = belief.draws
    present = draws.adjacency.sum(axis=0)
    weights = np.divide(
        draws.weights.sum(axis=0),
        present,
        where=adjacency & (present > 0),
        out=np.zeros(adjacency.shape),
    )
    deviation = np.where(draws.adjacency, draws.weights - weights, 0.0)
    error = np.sqrt((deviation**2).sum(axis=0) / np.maximum(present, 1))
    order = topological_order(adjacency.any(axis=0))
    assert order is not None
    return Graph(
        nodes,
        adjacency,
        weights,
        known=exists & (belief.counts > 0),
        order=tuple(nodes[i] for i in order),
        measures={
            "probability": belief.edge_probability,
            "standard_error": np.where(adjacency, error, np.nan),
        },
        regimes=regimes,
    )
