"""Policies that are told the parents of every mechanism and the noise means.

`linsem-ts` plays what is best in one draw of the weights, `linsem-quantile` what is good in some of
many. They learn weights: moments of every mechanism, ridge estimates, and the normal posterior
N(V^-1 X^T (x_i - nu_i), noise_std^2 V^-1) with V = (noise_std / prior_std)^2 I + X^T X. Under
change they keep the parents they were given; told `restarts`, they start over with the right graph
at each change, which makes them the ceiling of what can be reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from causalarms.arrays import BoolArray, FloatArray, Intervention
from causalarms.checks import integer, number
from causalarms.errors import SettingError
from causalarms.graphs.inputs import as_noise_mean
from causalarms.kernels import kernel
from causalarms.limits import MAX_AT_RISK
from causalarms.models.belief import Belief
from causalarms.models.draws import most_optimistic
from causalarms.policies.base import EXPLOIT, Pending, Policy, Reason, Suggestion, suggestion_of
from causalarms.posterior.base import Draws
from causalarms.search.best import best_intervention
from causalarms.sem.regimes import Regimes, topological_order
from causalarms.state import Declared
from causalarms.statistics.dataset import Moments
from causalarms.statistics.normal_equations import (
    cholesky,
    normal_equations,
    regressors_of,
    solve_transposed,
    whiten,
)

ROUNDING = 1e-13  # relative accuracy of a pivot of 100 accumulated products
# Weights beyond are differences of numbers that agree in all their digits. If the values of a
# dense system span 10^11, sums of squares hold none of a small node's; scaling brings none back.
MAX_WEIGHT = 1e8
DRAWS, QUANTILE = 20, 0.9  # the third best draw
WEIGHT_SIZE = 1.32  # root mean square of `separated` weights of random systems
SEARCH_BUDGET = 500_000  # tree nodes per round; if they do not suffice, the best found is played


class KnownGraph(Policy):
    """Everything but the choice.

    graph        the parents of every mechanism, (R, N, N) as [regime, parent, child]
    noise_mean   (N,) or (R, N)
    prior_std    standard deviation of the prior of a weight; None: the policy's own
    noise_std    of every node
    restarts     pairs (after round, graph): changes at which all is learned again
    """

    name: ClassVar[str]
    weight_size: ClassVar[float] = 1.0  # `prior_std`, unless it is told
    learned: ClassVar[Declared] = {"_moments": Moments}

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        graph: npt.ArrayLike,  # (R, N, N) bool
        noise_mean: npt.ArrayLike,
        prior_std: float | None = None,
        noise_std: float = 1.0,
        restarts: Sequence[tuple[int, npt.ArrayLike]] = (),  # (after round, graph)
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(n_nodes, reward, regimes=regimes)
        self._graphs = {0: _edges("graph", graph, self._regimes)} | _restarts(
            restarts, self._regimes
        )
        self._use(self._graphs[0])
        mean = as_noise_mean(noise_mean, self._nodes, self.n_regimes)
        if mean is None:
            raise SettingError(f"{self.name} must be told the noise means (noise_mean)")
        self.noise_mean = mean
        prior_std = self.weight_size if prior_std is None else prior_std
        prior_std = number("prior_std", prior_std, above=1e-50, maximum=1e50)
        self.noise_std = number("noise_std", noise_std, above=1e-50, maximum=1e50)
        # In units of the noise, as V: the posterior is N(., noise_std^2 V^-1).
        self.prior_precision = (self.noise_std / prior_std) ** 2
        self._moments = Moments(n_nodes, regimes=self._regimes)

    @property
    def adjacency(self) -> BoolArray | None:
        return self._graph

    def _draw(self, rng: Generator) -> FloatArray:
        """One draw of all weights; those whose digits are all lost (dense systems) count as 0."""
        return draw_weights(
            self._moments.gram, self._graph, self.noise_mean, self.prior_precision,
            self.noise_std, rng.standard_normal((self.n_regimes, self.n_nodes, self.n_nodes)),
        )  # fmt: skip

    def make_belief(self, rng: Generator, draws: int) -> Belief | None:
        """The graph is told; weights have the normal posterior that the policy draws from."""
        shape, exist = (self.n_regimes, self.n_nodes), self._regimes.existing
        weights = np.stack([self._draw(rng) for _ in range(draws)])
        drawn = Draws(
            np.repeat(self._order[None], draws, axis=0),
            np.repeat(self._graph[None], draws, axis=0),
            weights,
            np.repeat(np.where(exist, self.noise_mean, 0.0)[None], draws, axis=0),
            np.repeat(np.where(exist, self.noise_std, 0.0)[None], draws, axis=0),
        )
        start = max(after for after in self._graphs if after <= self.n_told)
        starts = np.full(shape, start, dtype=np.int64)
        return Belief(drawn, self._graph.astype(float), self._moments.counts.copy(), starts, False)

    def learn(self, a: Intervention, x: FloatArray) -> None:
        self._moments.add(x, a)
        if self.n_told in self._graphs:
            self._use(self._graphs[self.n_told])
            self._moments = Moments(self.n_nodes, regimes=self._regimes)

    def _use(self, graph: BoolArray) -> None:
        order = topological_order(graph.any(axis=0))
        if order is None:
            raise SettingError("the regimes of the given graph mix into a cycle")
        self._graph, self._order = graph, order

    def restore_own(self, state: dict[str, Any]) -> None:
        super().restore_own(state)
        self._use(self._graphs[max(after for after in self._graphs if after <= self.n_told)])


class LinSEMTS(KnownGraph):
    """`linsem-ts`: Thompson sampling with the true topology (Varici et al. 2023).

    Prior N(0, I) on the weights of the known parents and unit noise. Each round takes one draw of
    all weights and plays the intervention that is best for it, found by branch and bound.
    """

    name: ClassVar[str] = "linsem-ts"

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        drawn = self._draw(rng)
        if self.constraints.risk is not None and self.constraints.count(MAX_AT_RISK) is not None:
            # what a setting is worth then is not linear in its levels: they are compared one by one
            mean = self.noise_mean[None]
            draw = Draws(self._order[None], self._graph[None], drawn[None], mean, mean)
            one = most_optimistic(draw, self.reward, 0.5, self.constraints)
            return Suggestion(one.intervention, EXPLOIT, one.mean, why=Reason("draw"))
        best = best_intervention(
            drawn, self.noise_mean, self._order, self.reward,
            constraints=self.constraints, budget=SEARCH_BUDGET,
        )  # fmt: skip
        reward = best.value
        if not self.constraints.free:
            reward += float(self.constraints.cost(best.intervention[None])[0])
        return Suggestion(best.intervention, EXPLOIT, reward, why=Reason("draw"))


class LinSEMQuantile(KnownGraph):
    """`linsem-quantile`: what `posterior` does by a quantile, with the true topology.

    Each round takes 20 draws of all weights and plays the intervention that is good by at least
    three of them. It has less regret than Thompson sampling, which plays many interventions that
    are good in one draw only. Settings as `linsem-ts`; the prior is as wide as weights of the
    random systems here are.
    """

    name: ClassVar[str] = "linsem-quantile"
    weight_size: ClassVar[float] = WEIGHT_SIZE

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        belief = self.make_belief(rng, DRAWS)
        assert belief is not None  # the graph is always known
        best = most_optimistic(belief.draws, self.reward, QUANTILE, self.constraints)
        return suggestion_of(best)


@kernel
def draw_weights(
    gram: FloatArray,  # (R, N, N+1, N+1)
    graph: BoolArray,
    noise_mean: FloatArray,
    prior_precision: float,
    noise_std: float,
    normals: FloatArray,  # (R, N, N)
) -> FloatArray:
    """One draw of every mechanism's weights from its Gaussian posterior.

    V = precision I + X^T X, mean V^-1 X^T (x_i - nu_i). What has no digits left is 0.
    """
    n = graph.shape[1]
    weights = np.zeros(graph.shape)
    for regime in range(len(graph)):  # of regimes that a node does not have it has no edge
        for node in range(n):
            parents = regressors_of(graph[regime, :, node], False)
            equations = normal_equations(
                gram[regime, node], node, parents, noise_mean[regime, node], prior_precision, 0.0
            )
            p = len(parents)
            cholesky(equations, p, prior_precision, 0.0, ROUNDING)
            z = np.empty(p)
            whiten(equations, z)
            for a in range(p):
                z[a] += noise_std * normals[regime, node, a]
            solve_transposed(equations, z)
            # nan fails the comparison too
            for a in range(p):
                if abs(z[a]) < MAX_WEIGHT:
                    weights[regime, parents[a], node] = z[a]
    return weights


def _restarts(given: Any, regimes: Regimes) -> dict[int, BoolArray]:
    try:
        pairs = [(after, graph) for after, graph in given]
    except (TypeError, ValueError) as error:
        raise SettingError(f"restarts must be pairs (after round, graph), not {given!r}") from error
    return {
        integer("restarts", after, minimum=0): _edges("restarts: graph", graph, regimes)
        for after, graph in pairs
    }


def _edges(name: str, graph: npt.ArrayLike, regimes: Regimes) -> BoolArray:
    try:
        edges = np.asarray(graph, dtype=float) != 0
    except (TypeError, ValueError, OverflowError) as error:
        raise SettingError(f"{name} must be 0 or 1 per edge, not {graph!r}") from error
    exist = regimes.existing
    shape = (*exist.shape, len(regimes))
    if edges.shape != shape:
        raise SettingError(
            f"{name} must have shape {shape}, not {edges.shape}: as many as regimes and nodes"
        )
    for regime, _, child in np.argwhere(edges & ~exist[:, None, :])[:1]:
        raise SettingError(
            f"{name}: node {child} has {regimes.key[child]} regimes, but parents in regime {regime}"
        )
    return edges
