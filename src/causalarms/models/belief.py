"""`Belief`: what a policy knows of the system. All that a user is shown is computed from it.

A belief is a number of draws of the whole system (graph, weights, noise) in the units of the data.
Expected values, intervals, the probability of being the best and the loss of settling are averages
over the draws. If the policy has a posterior over graphs, the draws differ in their graphs. If it
has one graph, all draws have that graph, and `weighs_graphs` is False. `recommend` is the only
answer to "what is best and how sure".
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

INTERVAL = (0.025, 0.975)  # quantiles between which all intervals lie
SEARCHED_DRAWS = 40  # whose best interventions are compared if there are too many to compare all
TIE = 1e-9  # relative difference of rewards below which they are equal


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
    probability: float  # fraction of draws in which none is better by more than `tolerance`
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
    """A belief of n draws about R regimes and N nodes."""

    draws: Draws
    edge_probability: FloatArray  # (R, N, N)
    counts: IntArray  # (R, N), rounds each mechanism learns from
    starts: IntArray  # (R, N), the last round before its last change; 0: it never changed
    weighs_graphs: bool

    @property
    def n_draws(self) -> int:
        return len(self.draws.order)

    def first(self, n: int) -> Draws:
        """The first n draws, for computations that take long with each."""
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

        rows        (n, N) interventions
        reward      the node to maximise
        cost        (n,) of each intervention
        tolerance   net reward by which another may be better

        Interventions that differ only in nodes without an effect on the reward are ties. Of those
        that are equally good on average the one with the fewest switches is chosen.
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
    """What to settle on, and how sure that is.

    All allowed interventions are compared. If there are too many, those that are best in some draw
    are compared, and then the neighbours of the best until none of them is better.
    `tolerance` is the net reward by which another may be better.
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
    """The belief of a policy that takes one graph as certain; `n` is the number of draws."""
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


def likely_graph(belief: Belief, nodes: tuple[str, ...], regimes: Counts) -> Graph:
    """The graph of the likely edges, without a cycle.

    A weight is the mean over the draws that have the edge. `nodes` are the names, and `regimes`
    (N,) says how many regimes each node has.
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


def candidates(belief: Belief, reward: int, allowed: Constraints) -> Interventions:
    """All allowed interventions; if there are too many, those that are best in some draw.

    The natural one, without any switch, is always among them if it is allowed.
    """
    if allowed.count(MAX_COMPARED) is not None:
        return allowed.interventions(MAX_COMPARED)
    found = best_of_each(belief.first(SEARCHED_DRAWS), reward, allowed=allowed)
    natural = np.zeros((1, allowed.n_nodes), dtype=np.uint8)
    rows = np.unique(np.concatenate([found, natural]), axis=0)
    return np.ascontiguousarray(rows[allowed.allows(rows)])


def summary(values: FloatArray) -> Summary:
    """Mean and interval of draws, along the first axis."""
    low, high = np.quantile(values, INTERVAL, axis=0)
    mean = np.asarray(values.mean(axis=0))
    # a few far draws can move the mean out of the interval: widen it to contain the mean
    return Summary(mean, np.minimum(low, mean), np.maximum(high, mean))


def in_units_of_data(units: Units, draws: Draws, regimes: Counts | None = None) -> Draws:
    """Draws in units of the prior, converted; `regimes` (N,) says how many each node has."""
    if units.trivial:
        return draws
    weights = units.weights(draws.weights)
    intercept = units.intercept(draws.intercept, weights)
    if regimes is not None:  # the shift of the units is not an intercept of a missing regime
        intercept = np.where(existing(regimes), intercept, 0.0)
    return draws._replace(
        weights=weights,
        intercept=intercept,
        noise_std=draws.noise_std * units.scale,
    )
