"""`oracle`: the best intervention of every round, the zero line of regret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.checks import instance, whole
from causalarms.errors import SettingError
from causalarms.policies.base import EXPLOIT, FloatArray, Intervention, Policy, Suggestion
from causalarms.search import best_intervention
from causalarms.search.best import Best
from causalarms.search.constraints import Constraints
from causalarms.sem.linear_sem import LinearSEM


class Oracle(Policy):
    """Is told the true systems and the rounds after which one replaces the other."""

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        systems: Sequence[LinearSEM],
        change_points: Sequence[int] = (),
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        try:
            systems, change_points = list(systems), list(change_points)
        except TypeError as error:
            raise SettingError("systems and change_points must be lists") from error
        for system in systems:
            instance("systems", system, LinearSEM)
        known = systems[0].regimes if systems and regimes is None else regimes
        super().__init__(n_nodes, reward, regimes=known)
        for system in systems:
            if not np.array_equal(system.regimes, self.regimes):
                raise SettingError("regimes are not those of the systems")
        for point in change_points:
            whole("change_points", point, least=0)
        if len(systems) != len(change_points) + 1:
            raise SettingError(
                f"{len(systems)} systems do not fit {len(change_points)} change_points"
            )
        self._change_points = change_points
        self._systems = systems
        self._best_allowed: dict[tuple[int, Constraints], Best] = {}
        self._best = [sem.best_intervention() for sem in systems]
        self._means = [
            float(sem.expected_reward(best[None])[0])
            for sem, best in zip(systems, self._best, strict=True)
        ]

    def suggest(
        self,
        rng: np.random.Generator,
        *,
        pending: Sequence[Intervention] = (),
        allowed: Constraints | None = None,
    ) -> Suggestion:
        system = int(np.searchsorted(self._change_points, self.n_told, side="right"))
        kept = self.kept(allowed)
        if kept is not None:
            best = self._best_of(system, kept)
            reward = best.value + float(kept.cost(best.intervention[None])[0])
            return Suggestion(best.intervention, EXPLOIT, reward, 0.0)
        return Suggestion(self._best[system], EXPLOIT, self._means[system], 0.0)

    def _best_of(self, system: int, allowed: Constraints) -> Best:
        if (system, allowed) not in self._best_allowed:
            sem = self._systems[system]
            self._best_allowed[system, allowed] = best_intervention(
                sem.weights, sem.mechanism_mean, sem.order, self.reward, constraints=allowed
            )
        return self._best_allowed[system, allowed]

    def learn(self, a: Intervention, x: FloatArray) -> None:
        pass

    def own_state(self) -> dict[str, Any]:
        return {}

    def restore_own(self, state: dict[str, Any]) -> None:
        pass
