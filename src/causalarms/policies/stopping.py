"""When to stop looking: the posterior says that going on is no longer worth it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from causalarms.checks import fraction, integer, number, optional
from causalarms.errors import ModelError, SettingError, TooEarlyError
from causalarms.models.belief import Recommendation


@runtime_checkable
class Recommends(Protocol):
    """A policy that says what to settle on and how sure it is."""

    def recommend(
        self, rng: np.random.Generator | None = ..., *, draws: int = ..., tolerance: float = ...
    ) -> Recommendation: ...


@dataclass(frozen=True)
class StopRule:
    """Stop once the recommended intervention is good enough; all that is stated must hold.

    expected_loss   reward per round that settling now forgoes on average, at most
    probability     that no other intervention is better by more than `tolerance`, at least
    every           rounds between two looks
    draws           of the posterior per look; a probability has a standard error of
                    sqrt(p (1 - p) / draws)

    >>> StopRule(probability=0.95, expected_loss=0.1).probability
    0.95
    """

    expected_loss: float | None = None
    probability: float | None = None
    tolerance: float = 0.0
    every: int = 10
    draws: int = 400

    def __post_init__(self) -> None:
        if self.expected_loss is None and self.probability is None:
            raise SettingError("a stop rule needs an expected_loss or a probability")
        optional(number, "expected_loss", self.expected_loss, above=0.0)
        optional(fraction, "probability", self.probability)
        number("tolerance", self.tolerance, minimum=0.0)
        integer("every", self.every, minimum=1)
        integer("draws", self.draws, minimum=1)

    def met(self, recommendation: Recommendation | None) -> bool:
        """Is this recommendation good enough? None, which is none yet, is not."""
        return recommendation is not None and self.holds(
            recommendation.expected_loss, recommendation.probability
        )

    def holds(self, expected_loss: float, probability: float) -> bool:
        """Are these numbers good enough? What is not known (nan) is not."""
        return (self.expected_loss is None or expected_loss <= self.expected_loss) and (
            self.probability is None or probability >= self.probability
        )

    def look(self, policy: object, rng: np.random.Generator | None = None) -> Recommendation | None:
        """What the policy would settle on now; None while it is too early.

        Without `rng` it is what `policy.recommend()` says.
        """
        if not isinstance(policy, Recommends):
            raise ModelError(
                f"{type(policy).__name__} does not say how sure it is; use the policy 'posterior'"
            )
        try:
            return policy.recommend(rng, draws=self.draws, tolerance=self.tolerance)
        except TooEarlyError:
            return None
