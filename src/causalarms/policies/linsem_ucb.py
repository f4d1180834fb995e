"""`linsem-ucb`: LinSEM-UCB (Varici, Shanmugam, Sattigeri, Tajer, JMLR 2023), told the topology.

Ridge estimates of every mechanism's weights and an ellipsoid of radius beta around each; the
intervention whose reward is largest for the most favourable weights within their ellipsoids is
played. The published index is that maximum itself and has no closed form; here it is found by exact
improvement of one node after the other (`models/optimism.py`). The published sets are also cut
by a bound on the norm of the weights, which would have to be told; here they are not.

beta="theory": beta_T = 1 + sqrt(2 ln(2 N T) + d ln(1 + m^2 T / d)), with d the largest number of
parents and m a bound on the size of the parents' values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from causalarms.arrays import BoolArray, FloatArray, Intervention, Interventions
from causalarms.checks import integer, number, optional
from causalarms.errors import SettingError
from causalarms.kernels import kernel
from causalarms.limits import MAX_HORIZON, MAX_OPTIMISTIC_NODES
from causalarms.models.optimism import (
    Ellipsoids,
    optimistic_rewards,
    ridge_ellipsoids,
    usual_starts,
)
from causalarms.policies.base import EXPLOIT, EXPLORE, Pending, Reason, Suggestion
from causalarms.policies.known_graph import MAX_WEIGHT, ROUNDING, KnownGraph
from causalarms.sem.rewards import allowed_arms, intervention_of
from causalarms.state import Declared
from causalarms.statistics.normal_equations import (
    cholesky,
    normal_equations,
    regressors_of,
    solve_lower,
)

THEORY = "theory"


class LinSEMUCB(KnownGraph):
    """Is told the parents of every mechanism, the noise means, and for its radius the horizon.

    beta      radius of the ellipsoids in units of the noise, or "theory"
    horizon   rounds that will be played, for beta="theory"
    bound     of the size of the parents' values, for beta="theory"
    """

    name: ClassVar[str] = "linsem-ucb"

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        graph: npt.ArrayLike,  # (R, N, N) bool
        noise_mean: npt.ArrayLike,
        beta: float | str = 2.0,
        horizon: int | None = None,
        bound: float = 10.0,
        noise_std: float = 1.0,
        restarts: Sequence[tuple[int, npt.ArrayLike]] = (),  # (after round, graph)
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(
            n_nodes, reward, graph=graph, noise_mean=noise_mean, noise_std=noise_std,
            restarts=restarts, regimes=regimes,
        )  # fmt: skip
        n_arms = self._regimes.n_interventions
        if n_arms > 2**MAX_OPTIMISTIC_NODES:
            raise SettingError(
                f"{self.name} compares all interventions each round: {n_arms:,} are too many for "
                f"it (at most 2^{MAX_OPTIMISTIC_NODES}); linsem-ts has no such limit"
            )
        self.horizon = optional(integer, "horizon", horizon, minimum=1, maximum=MAX_HORIZON)
        self.bound = number("bound", bound, above=0.0)
        if isinstance(beta, str):
            if beta != THEORY:
                raise SettingError(f"beta must be a number or {THEORY!r}, not {beta!r}")
            if self.horizon is None:
                raise SettingError(f"beta={THEORY!r} must be told the horizon")
            self.beta = self.published_beta(self.horizon)
        else:
            self.beta = number("beta", beta, minimum=0.0)

    def published_beta(self, horizon: int) -> float:
        """beta_T for noise of standard deviation 1."""
        return 1.0 + self._deviation(horizon, self.bound**2)

    def _deviation(self, horizon: int, square: float) -> float:
        # At least one parent: the bound of a graph without edges would divide by 0.
        d = max(int(self._graph.sum(axis=1).max()), 1)
        return math.sqrt(
            2 * math.log(2 * self.n_nodes * horizon) + d * math.log1p(square * horizon / d)
        )

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        indices, worth = allowed_arms(self.constraints)
        arms = intervention_of(indices, self.n_nodes, self._regimes)
        mean, index = self.scores(arms)
        net = np.where(np.isfinite(index) & np.isfinite(mean), worth.net(index), -np.inf)
        arm = int(np.argmax(net))
        if net[arm] == -np.inf:  # values of 10^100: nothing is known in favour of any
            return Suggestion(arms[arm], EXPLORE)
        width = max(float(index[arm] - mean[arm]), 0.0)
        return Suggestion(arms[arm], EXPLOIT, float(mean[arm]), width, Reason("credible"))

    def scores(self, arms: Interventions) -> tuple[FloatArray, FloatArray]:
        """The estimated and the optimistic reward of every intervention."""
        radius = self.beta * self.noise_std
        return optimistic_rewards(
            self.ellipsoids(),
            self._graph,
            radius,
            self.noise_mean,
            self._order,
            arms,
            self.reward,
            usual_starts(self.n_nodes),
        )

    def ellipsoids(self) -> Ellipsoids:
        """What has no digits left is 0."""
        centre, shape = ridge_ellipsoids(
            self._moments.gram, self._graph, self.noise_mean, self.prior_precision, ROUNDING
        )
        return Ellipsoids(with_digits(centre), with_digits(shape))


def with_digits(values: FloatArray) -> Any:
    """As `KnownGraph` takes weights: those whose digits are all lost count as 0."""
    return np.where(np.abs(values) < MAX_WEIGHT, values, 0.0)


# -- robust-linsem ---------------------------------------------------------------------------------
#
# LinSEM-UCB for models that deviate now and then (Yan, Mukherjee, Varici, Tajer, *Robust Causal
# Bandits for Linear Models*, arXiv 2310.19794). The weights of a node may be others in up to C
# rounds. Every round is weighted for every node by
#
#     w = min(1 / C, 1 / (C |x_pa|_{U^-1})),    U = I + sum of w^2 x_pa x_pa^T
#
# so that no round moves an estimate by much, whatever happened in it. Estimates are those of
# weighted ridge regression, V = I + sum of w x_pa x_pa^T, and the ellipsoids of LinSEM-UCB become
# |theta - centre|_{V U^-1 V} <= beta.
#
# beta="theory": sqrt(2 ln(1 / delta) + d ln(1 + m^2 T / (d C^2))) + 1 + m; delta = 1 / (2 N T) is
# that of LinSEM-UCB and not published for this one.


class RobustLinSEM(LinSEMUCB):
    """As LinSEM-UCB, for systems that deviate from their model now and then.

    deviations   rounds C in which the weights of a node may be others; None: sqrt(horizon)
    """

    name: ClassVar[str] = "robust-linsem"
    learned: ClassVar[Declared] = KnownGraph.learned | {
        "_weighted": np.ndarray,
        "_squared": np.ndarray,
    }

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        graph: npt.ArrayLike,  # (R, N, N) bool
        noise_mean: npt.ArrayLike,
        deviations: float | None = None,
        beta: float | str = 2.0,
        horizon: int | None = None,
        bound: float = 10.0,
        noise_std: float = 1.0,
        restarts: Sequence[tuple[int, npt.ArrayLike]] = (),
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        self._deviations = optional(number, "deviations", deviations, minimum=0.0, maximum=1e9)
        super().__init__(
            n_nodes, reward, graph=graph, noise_mean=noise_mean, beta=beta, horizon=horizon,
            bound=bound, noise_std=noise_std, restarts=restarts, regimes=regimes,
        )  # fmt: skip
        if self._deviations is None and self.horizon is None:
            raise SettingError(
                "robust-linsem must be told how many rounds may deviate (deviations), or a horizon "
                "whose root it takes for them"
            )
        self._weighted = np.zeros_like(self._moments.gram)  # sums of w z z^T
        self._squared = np.zeros_like(self._moments.gram)  # sums of w^2 z z^T

    @property
    def budget(self) -> float:
        """C, at least 1."""
        # Below 1 rounds would count more than once.
        told = self._deviations
        return max(math.sqrt(self.horizon or 1) if told is None else told, 1.0)

    def published_beta(self, horizon: int) -> float:
        return self._deviation(horizon, (self.bound / self.budget) ** 2) + 1.0 + self.bound

    def learn(self, a: Intervention, x: FloatArray) -> None:
        # Before `super().learn`, which takes the next graph if all is learned again from here on.
        add_weighted(
            self._weighted, self._squared, self._graph, x, a, self.budget, self.prior_precision
        )
        super().learn(a, x)
        if self.n_told in self._graphs:
            self._weighted[:] = self._squared[:] = 0.0

    def ellipsoids(self) -> Ellipsoids:
        centre, inverse = ridge_ellipsoids(
            self._weighted, self._graph, self.noise_mean, self.prior_precision, ROUNDING
        )
        size = self.n_nodes
        middle = self._squared[..., :size, :size] + self.prior_precision * np.eye(size)
        with np.errstate(over="ignore", invalid="ignore"):
            shape = inverse @ middle @ inverse
        return Ellipsoids(with_digits(centre), with_digits(shape))

    def _draw(self, rng: Generator) -> FloatArray:
        """From the normal distribution with the ellipsoids' centres and shapes."""
        centre, shape = self.ellipsoids()
        normals = rng.standard_normal(centre.shape)  # [regime, node]
        values, vectors = np.linalg.eigh(shape)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
        steps = (roots @ normals[..., None])[..., 0].swapaxes(1, 2)
        drawn: FloatArray = np.where(self._graph, centre + self.noise_std * steps, 0.0)
        return drawn


@kernel
def add_weighted(
    weighted: FloatArray,  # (R, N, N+1, N+1)
    squared: FloatArray,
    graph: BoolArray,  # (R, N, N)
    values: FloatArray,
    intervention: Intervention,
    budget: float,
    precision: float,
) -> None:
    """One round, for every node with a weight of its own."""
    n = len(values)
    for node in range(n):
        regime = intervention[node]
        parents = regressors_of(graph[regime, :, node], False)
        p = len(parents)
        equations = normal_equations(squared[regime, node], node, parents, 0.0, precision, 0.0)
        cholesky(equations, p, precision, 0.0, ROUNDING)
        z = values[parents]
        solve_lower(equations, z)
        norm = 0.0
        for a in range(p):
            norm += z[a] ** 2
        weight = min(1.0, 1.0 / math.sqrt(norm)) / budget if norm > 0.0 else 1.0 / budget
        for i in range(n + 1):
            left = values[i] if i < n else 1.0
            for j in range(n + 1):
                product = left * (values[j] if j < n else 1.0)
                weighted[regime, node, i, j] += weight * product
                squared[regime, node, i, j] += weight * weight * product
