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

from causalarms.checks import number, optional, whole
from causalarms.errors import SettingError
from causalarms.limits import MAX_OPTIMISTIC_NODES
from causalarms.models.optimism import (
    Ellipsoids,
    optimistic_rewards,
    ridge_ellipsoids,
    usual_starts,
)
from causalarms.policies.base import (
    EXPLOIT,
    EXPLORE,
    LONGEST,
    FloatArray,
    Intervention,
    Suggestion,
)
from causalarms.policies.known_graph import NO_DIGITS, ROUNDING, KnownGraph
from causalarms.search.constraints import Constraints
from causalarms.sem.best_regimes import allowed_arms, within
from causalarms.sem.regimes import n_interventions
from causalarms.sem.rewards import intervention_of

THEORY = "theory"
OPTIMISM = "its reward is the highest for the most favourable weights that are still credible"


class LinSEMUCB(KnownGraph):
    """Is told the parents of every mechanism, the noise means, and for its radius the horizon."""

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
        n_arms = n_interventions(self.regimes)
        if n_arms > 2**MAX_OPTIMISTIC_NODES:
            raise SettingError(
                f"{self.name} compares all interventions each round: {n_arms:,} are too many for "
                f"it (at most 2^{MAX_OPTIMISTIC_NODES}); linsem-ts has no such limit"
            )
        self.horizon = optional(whole, "horizon", horizon, least=1, most=LONGEST)
        self.bound = number("bound", bound, above=0.0)
        if isinstance(beta, str):
            if beta != THEORY:
                raise SettingError(f"beta must be a number or {THEORY!r}, not {beta!r}")
            if self.horizon is None:
                raise SettingError(f"beta={THEORY!r} must be told the horizon")
            self.beta = self.published_beta(self.horizon)
        else:
            self.beta = number("beta", beta, least=0.0)

    def published_beta(self, horizon: int) -> float:
        """beta_T for noise of standard deviation 1."""
        return 1.0 + self._deviation(horizon, self.bound**2)

    def _deviation(self, horizon: int, square: float) -> float:
        d = max(int(self._graph.sum(axis=1).max()), 1)
        return math.sqrt(
            2 * math.log(2 * self.n_nodes * horizon) + d * math.log1p(square * horizon / d)
        )

    def suggest(
        self,
        rng: np.random.Generator,
        *,
        pending: Sequence[Intervention] = (),
        allowed: Constraints | None = None,
    ) -> Suggestion:
        indices, cost = allowed_arms(within(self.regimes, self.kept(allowed)))
        arms = intervention_of(indices, self.n_nodes, self.regimes)
        mean, index = self.scores(arms)
        net = np.where(np.isfinite(index) & np.isfinite(mean), index - cost, -np.inf)
        arm = int(np.argmax(net))
        if net[arm] == -np.inf:  # values of 10^100: nothing is known that would speak for any
            return Suggestion(arms[arm], EXPLORE)
        width = max(float(index[arm] - mean[arm]), 0.0)
        return Suggestion(arms[arm], EXPLOIT, float(mean[arm]), width, OPTIMISM)

    def scores(self, arms: npt.NDArray[np.uint8]) -> tuple[FloatArray, FloatArray]:
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
    return np.where(np.abs(values) < NO_DIGITS, values, 0.0)
