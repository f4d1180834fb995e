"""What a study may play, and what its policy learns from.

Policies keep factors, combinations and costs by themselves (`Policy.suggest(allowed=...)`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from causalarms.policies.base import Policy, Suggestion
from causalarms.study.settings import Settings
from causalarms.study.trials import Record

Bits = npt.NDArray[np.uint8]


class Limits:
    """The limits of a study's settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def choose(
        self, policy: Policy, rng: np.random.Generator, pending: Sequence[Bits] = ()
    ) -> Suggestion:
        """The policy's suggestion; `pending` were asked before and have not been told yet."""
        return policy.suggest(rng, pending=pending, allowed=self.settings.constraints)

    def learnable(self, record: Record) -> bool:
        """Whether it has values that the policy can learn from."""
        return record.complete or (record.measured and self.settings.learns_from_gaps)
