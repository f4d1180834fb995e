"""What a study may play: factors that may be moved, combinations refused or required, costs.

Policies keep these by themselves (`Policy.suggest(allowed=...)`).

Older studies gave every node a switch. One that was never to be switched is, for the policy of such
a study, a node whose switch does nothing: it may ask for either position, the study plays natural,
and the policy is told what it asked for. Past rounds in which such a node was switched nevertheless
are left out of learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.policies.base import Policy, Suggestion
from causalarms.rng import stream
from causalarms.study.settings import Settings
from causalarms.study.trials import Record

Bits = npt.NDArray[np.uint8]


class Choice(NamedTuple):
    """What to play, what the policy wanted, and why."""

    intervention: Bits  # (N,)
    wanted: Bits  # (N,), differs in idle switches only
    suggestion: Suggestion


class Limits:
    """The limits of a study's settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.idle = settings.idle

    def choose(
        self, policy: Policy, rng: np.random.Generator, pending: Sequence[Bits] = ()
    ) -> Choice:
        """The policy's suggestion; `pending` were asked before and have not been told yet."""
        if self.settings.factors is None and self.settings.constrained:
            policy.suggest(rng, pending=pending)  # older studies drew once in vain
        suggestion = policy.suggest(rng, pending=pending, allowed=self.settings.for_policy)
        wanted = suggestion.intervention
        played = np.where(self.idle, 0, wanted).astype(np.uint8)
        return Choice(played, wanted, suggestion)

    def learnable(self, record: Record) -> bool:
        """Values the policy can learn from, and no switch moved that it believes to be idle."""
        enough = record.complete or (record.measured and self.settings.learns_from_gaps)
        return enough and not (np.array(record.intervention)[self.idle] == 1).any()

    def made(self, record: Record) -> int | None:
        """When it was carried out, in the order of trials; older studies took it as told."""
        return None if self.settings.factors is None else record.number

    def as_told(self, record: Record) -> Bits:
        """What the policy is told was played: idle switches as it wanted them, else by a coin."""
        played = np.array(record.intervention, dtype=np.uint8)
        if not self.idle.any():
            return played
        wanted = np.array(record.wanted or (), dtype=np.uint8)
        if not len(wanted):
            coins = stream(self.settings.seed, "idle switch", record.number)
            wanted = coins.integers(0, 2, len(played), dtype=np.uint8)
        return np.where(self.idle, wanted, played).astype(np.uint8)
