"""`ucb`: vanilla UCB over all interventions, 2^N unrelated arms with K = 2 (Sec. VI-B).

Every arm once, then the largest mean + alpha sqrt(ln t / n). In a changing world the mean is taken
over the last `window` plays of the arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.checks import number, optional, whole
from causalarms.errors import DataError
from causalarms.policies.base import (
    EXPLOIT,
    EXPLORE,
    FloatArray,
    Intervention,
    Policy,
    Suggestion,
)
from causalarms.search.constraints import Constraints
from causalarms.sem.best_regimes import allowed_arms
from causalarms.sem.regimes import n_interventions
from causalarms.sem.rewards import check_enumerable, index_of, intervention_of

MOST_KEPT = 2**27  # rewards, 1 GiB


class UCB(Policy):
    """Is told nothing but which node is the reward."""

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        alpha: float = 1.0,
        window: int | None = None,
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(n_nodes, reward, regimes=regimes)
        check_enumerable(self.n_nodes, self.regimes)
        n_arms = n_interventions(self.regimes)
        self.alpha = number("alpha", alpha, least=0.0)
        self.window = window = optional(
            whole, "window", window, least=1, most=MOST_KEPT // n_arms,
            why=f"so many plays of {n_arms} arms are kept",
        )  # fmt: skip
        self._plays = np.zeros(n_arms, dtype=np.int64)
        self._means = np.zeros(n_arms)
        self._recent = np.zeros((n_arms, window or 0))  # a ring per arm

    def suggest(
        self,
        rng: np.random.Generator,
        *,
        pending: Sequence[Intervention] = (),
        allowed: Constraints | None = None,
    ) -> Suggestion:
        kept = self.kept(allowed)
        unplayed = np.flatnonzero(self._plays == 0)
        if kept is not None:
            unplayed = unplayed[np.isin(unplayed, allowed_arms(kept).indices)]
        if len(unplayed):
            arm = int(rng.choice(unplayed))
            untried = intervention_of(arm, self.n_nodes, self.regimes)
            return Suggestion(untried, EXPLORE, why="not tried yet")
        widths = self._widths()
        if kept is None:
            arm = int(np.argmax(self._means + widths))
        else:
            arms, cost = allowed_arms(kept)
            arm = int(arms[np.argmax(self._means[arms] + widths[arms] - cost)])
        best = intervention_of(arm, self.n_nodes, self.regimes)
        return Suggestion(best, EXPLOIT, float(self._means[arm]), float(widths[arm]))

    def _widths(self) -> FloatArray:
        """Of arms that were not played: as wide as if they had been once."""
        return self.alpha * np.sqrt(np.log(max(self.n_told, 1)) / np.maximum(self._plays, 1))

    def learn(self, a: Intervention, x: FloatArray) -> None:
        arm, value = index_of(a, self.regimes), float(x[self.reward])
        n = int(self._plays[arm])
        self._plays[arm] += 1
        if self.window is None:
            self._means[arm] += (value - self._means[arm]) / (n + 1)
        else:
            self._recent[arm, n % self.window] = value
            self._means[arm] = self._recent[arm, : min(n + 1, self.window)].mean()

    def own_state(self) -> dict[str, Any]:
        return {
            "plays": self._plays.copy(),
            "means": self._means.copy(),
            "recent": self._recent.copy(),
        }

    def restore_own(self, state: dict[str, Any]) -> None:
        if state["plays"].sum() != self.n_told:
            raise DataError(f"{state['plays'].sum()} plays are not those of {self.n_told} rounds")
        self._plays[:] = state["plays"]
        self._means[:] = state["means"]
        self._recent[:] = state["recent"]
