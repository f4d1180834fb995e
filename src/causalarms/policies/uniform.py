"""`random`: every node's regime by chance, all of them equally likely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from causalarms.limits import MAX_TABLE_NODES
from causalarms.policies.base import EXPLORE, FloatArray, Intervention, Policy, Suggestion
from causalarms.search.constraints import Constraints
from causalarms.sem.best_regimes import allowed_arms
from causalarms.sem.regimes import GivenRegimes, regimes_of
from causalarms.sem.rewards import intervention_of

FEW = 2**MAX_TABLE_NODES  # interventions that are listed rather than drawn by their factors
DRAWN = 100


def random_intervention(
    rng: np.random.Generator, regimes: GivenRegimes, allowed: Constraints | None = None
) -> Intervention:
    """One of all, or of the allowed interventions, each as likely as the others."""
    known = regimes_of(regimes, len(regimes))
    if allowed is not None:
        if known.n_interventions > FEW:
            return allowed.random(rng)
        arm = int(rng.choice(allowed_arms(allowed).indices))
        return intervention_of(arm, len(known), known)
    if known.all_two:
        return rng.integers(0, 2, len(known), dtype=np.uint8)
    return rng.integers(0, known.counts, dtype=np.uint8)


def nearest_allowed(
    wanted: Intervention, allowed: Constraints, rng: np.random.Generator
) -> Intervention:
    """An allowed intervention with as many regimes of the wanted one as may be.

    Where there are too many to look at all of them, of some that are drawn at random.
    """
    rows = allowed.interventions(FEW) if allowed.count(FEW) is not None else None
    if rows is None:
        rows = np.stack([allowed.random(rng) for _ in range(DRAWN)])
    unlike = (rows != wanted).sum(axis=1)
    return rows[rng.choice(np.flatnonzero(unlike == unlike.min()))].copy()


class RandomPolicy(Policy):
    """Is told nothing and learns nothing."""

    def suggest(
        self,
        rng: np.random.Generator,
        *,
        pending: Sequence[Intervention] = (),
        allowed: Constraints | None = None,
    ) -> Suggestion:
        arm = random_intervention(rng, self._regimes, self.kept(allowed))
        return Suggestion(arm, EXPLORE, why="a random setting")

    def learn(self, a: Intervention, x: FloatArray) -> None:
        pass

    def own_state(self) -> dict[str, Any]:
        return {}

    def restore_own(self, state: dict[str, Any]) -> None:
        pass
