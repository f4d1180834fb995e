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

from causalarms.errors import ModelError
from causalarms.graphs.units import Units
from causalarms.models.over_draws import rewards_of
from causalarms.posterior.base import Draws
from causalarms.posterior.one_graph import draws_given_graph
from causalarms.sem.regimes import Counts, existing, topological_order
from causalarms.sem.rewards import expected_values

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint8]

LEVEL = (0.025, 0.975)  # of all intervals
TIE = 1e-9  # of the size of the rewards: a smaller difference makes none


class Summary(NamedTuple):
    """Mean over the draws, and the interval in which 95 % of them lie."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


class Choice(NamedTuple):
    """The intervention that is best on average, net of its cost, among those compared."""

    row: int  # of the interventions compared
    reward: Summary
    probability: float  # share of draws in which none is better
    expected_loss: float  # net reward per round forgone by settling on it, on average


@dataclass(frozen=True)
class Belief:
    """Of n draws; R regimes, N nodes."""

    draws: Draws
    edge_probability: FloatArray  # (R, N, N)
    counts: IntArray  # (R, N), rounds each mechanism learns from
    starts: IntArray  # (R, N), the round after which a mechanism began anew; 0: never
    weighs_graphs: bool

    @property
    def n_draws(self) -> int:
        return len(self.draws.order)

    def first(self, n: int) -> Draws:
        """Only so many draws, for what takes long with each."""
        order, adjacency, weights, intercept, noise_std = self.draws
        return Draws(order[:n], adjacency[:n], weights[:n], intercept[:n], noise_std[:n])

    def expected(self, rows: Rows) -> FloatArray:
        """Expected value of every node under every draw, (n, rows, N)."""
        return np.stack(
            [
                expected_values(weights, intercept, order, rows)
                for order, _, weights, intercept, _ in zip(*self.draws, strict=True)
            ]
        )

    def rewards(self, rows: Rows, reward: int) -> FloatArray:
        """Expected rewards under every draw, (n, rows)."""
        return rewards_of(self.draws, rows, reward)

    def best(self, rows: Rows, reward: int, cost: FloatArray, *, tolerance: float = 0.0) -> Choice:
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
