"""`posterior`: Thompson sampling and its average on the exact posterior over graphs.

Nobody tells it the topology: every round it holds the posterior over orders, parent sets, weights
and noise of all mechanisms (`graphs/posterior`). With probability `explore` it plays the best
intervention of one draw, else the best on the average of `draws` draws. The average wastes less on
what is merely unknown; the single draw keeps every intervention that may be best in play, so that
no wrong one is locked in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.graphs.inputs import as_noise_mean
from causalarms.graphs.posterior.exact import Draws, ExactPosterior
from causalarms.graphs.posterior.prior import MechanismPrior
from causalarms.policies.base import (
    EXPLOIT,
    EXPLORE,
    FloatArray,
    Intervention,
    Policy,
    Suggestion,
)
from causalarms.sem.rewards import all_expected_rewards, check_enumerable, intervention_of
from causalarms.statistics.moments import Moments

EVERY_ROUND = 300  # rounds in which the posterior is refreshed each time; later every `refresh`


class Posterior(Policy):
    """Is told nothing but, where known, the noise means (and standard deviations).

    explore        share of rounds that play the best intervention of a single draw
    draws          draws averaged in the other rounds
    refresh        after the first 300 rounds the posterior takes in rounds in groups of this size
    edge_probability, weight_scale, noise_shape   the prior (`MechanismPrior`)
    """

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        noise_mean: npt.ArrayLike | None = None,
        noise_std: npt.ArrayLike | None = None,
        explore: float = 0.3,
        draws: int = 10,
        refresh: int = 5,
        edge_probability: float | str = 0.5,
        weight_mean: float = 0.0,
        weight_scale: float = 1.5,
        noise_shape: float = 0.5,
        memory_limit: int | None = None,
    ) -> None:
        super().__init__(n_nodes, reward)
        check_enumerable(n_nodes)
        if not 0 < explore <= 1:
            raise ModelError(f"explore must lie in (0, 1], not {explore}")
        if draws < 1 or refresh < 1:
            raise ModelError(f"draws and refresh must be at least 1, not {draws} and {refresh}")
        self.explore = explore
        self.draws = draws
        self.refresh = refresh
        self._moments = Moments(n_nodes)
        self._posterior = ExactPosterior(
            n_nodes,
            noise_mean=as_noise_mean(noise_mean, self._nodes),
            noise_std=as_noise_mean(noise_std, self._nodes),
            prior=MechanismPrior(
                edge_probability=edge_probability,
                weight_mean=weight_mean,
                weight_scale=weight_scale,
                noise_shape=noise_shape,
            ),
            memory_limit=memory_limit,
        )
        self._refreshed = 0

    @property
    def edge_probability(self) -> FloatArray:
        """Probability of every edge as of the last refresh, (2, N, N)."""
        return self._posterior.edge_probability

    @property
    def adjacency(self) -> npt.NDArray[np.bool_] | None:
        """The edges that are more likely present than absent."""
        return self.edge_probability > 0.5

    def suggest(self, rng: np.random.Generator) -> Suggestion:
        single = rng.random() < self.explore
        rewards = self._rewards(self._posterior.draw(rng, 1 if single else self.draws))
        mean = rewards.mean(axis=0)
        arm = int(np.argmax(mean))
        return Suggestion(
            intervention_of(arm, self.n_nodes),
            EXPLORE if single else EXPLOIT,
            float(mean[arm]),
            float(rewards[:, arm].std()) if len(rewards) > 1 else float("nan"),
            self._refreshed,
        )

    def _rewards(self, draws: Draws) -> FloatArray:
        """Expected rewards of all interventions under every draw, (n, 2^N)."""
        return np.stack(
            [
                all_expected_rewards(weights, intercept, order, self.reward)
                for weights, intercept, order in zip(
                    draws.weights, draws.intercept, draws.order, strict=True
                )
            ]
        )

    def _learn(self, a: Intervention, x: FloatArray) -> None:
        self._moments.add(x, a)
        if self.n_told <= EVERY_ROUND or self.n_told % self.refresh == 0:
            self._posterior.update(self._moments)
            self._refreshed = self.n_told

    def _state(self) -> dict[str, Any]:
        return {
            **self._moments.state(),
            "seen": self._posterior.gram.copy(),
            "refreshed": self._refreshed,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._moments.restore(state)
        self._refreshed = int(state["refreshed"])
        seen = Moments(self.n_nodes)
        seen.gram[:] = state["seen"]
        self._posterior.update(seen)
