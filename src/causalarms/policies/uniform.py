"""`random`: every node's regime by the toss of a coin."""

from __future__ import annotations

from typing import Any

import numpy as np

from causalarms.policies.base import EXPLORE, FloatArray, Intervention, Policy, Suggestion


def random_intervention(rng: np.random.Generator, n_nodes: int) -> Intervention:
    return rng.integers(0, 2, n_nodes, dtype=np.uint8)


class RandomPolicy(Policy):
    """Is told nothing and learns nothing."""

    def suggest(self, rng: np.random.Generator) -> Suggestion:
        return Suggestion(random_intervention(rng, self.n_nodes), EXPLORE, why="a random setting")

    def _learn(self, a: Intervention, x: FloatArray) -> None:
        pass

    def _state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: dict[str, Any]) -> None:
        pass
