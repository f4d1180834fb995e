"""`random`: every node's regime by chance, all of them equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np

from causalarms.policies.base import EXPLORE, FloatArray, Intervention, Policy, Suggestion
from causalarms.sem.regimes import Counts, all_two


def random_intervention(rng: np.random.Generator, regimes: Counts) -> Intervention:
    if all_two(regimes):
        return rng.integers(0, 2, len(regimes), dtype=np.uint8)
    return rng.integers(0, regimes, dtype=np.uint8)


class RandomPolicy(Policy):
    """Is told nothing and learns nothing."""

    def suggest(self, rng: np.random.Generator) -> Suggestion:
        return Suggestion(random_intervention(rng, self.regimes), EXPLORE, why="a random setting")

    def _learn(self, a: Intervention, x: FloatArray) -> None:
        pass

    def _state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: dict[str, Any]) -> None:
        pass
