"""Rounds that `posterior` plays at random: the first ones, and probes after an alarm.

Probes come in groups of R, with two regimes in pairs of opposites: each moves every node on to its
next regime, so that a group plays every mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from causalarms.arrays import Intervention
from causalarms.policies.base import EXPLORE, Suggestion
from causalarms.policies.first_rounds import FIRST_ROUNDS
from causalarms.policies.simple import nearest_allowed, random_intervention
from causalarms.search.constraints import Constraints
from causalarms.sem.regimes import Counts

TO_FIND_CHANGES = "a mechanism has changed: random settings look for others that changed with it"
TO_SEE_SCALES = f"the first {FIRST_ROUNDS} rounds are random: they show the scale of every node"


def random_round(
    rng: np.random.Generator,
    regimes: Counts,
    kept: Constraints | None,
    *,
    probes_left: int,
    last: Intervention,  # told
    pending: Sequence[Intervention],
) -> Suggestion:
    """A probe while some are left, else one of the first rounds."""
    why = TO_FIND_CHANGES if probes_left else TO_SEE_SCALES
    if not probes_left or (probes_left + len(pending)) % max(int(regimes.max()), 2) == 0:
        return Suggestion(random_intervention(rng, regimes, kept), EXPLORE, why=why)
    probe = moved_on(pending[-1] if len(pending) else last, regimes, rng, kept)
    return Suggestion(probe, EXPLORE, why=why)


def moved_on(
    played: Intervention, regimes: Counts, rng: np.random.Generator, kept: Constraints | None
) -> Intervention:
    """Every node in its next regime, of two the opposite one, or as near to that as may be."""
    moved = ((played.astype(np.int64) + 1) % regimes).astype(np.uint8)
    return moved if kept is None else nearest_allowed(moved, kept, rng)
