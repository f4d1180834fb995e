"""When to stop looking: the posterior says that going on is no longer worth it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Protocol, runtime_checkable

import numpy as np

from causalarms.errors import ModelError
from causalarms.models.over_draws import Recommendation


@runtime_checkable
class Recommends(Protocol):
    """A policy that says what to settle on and how sure it is."""

    def recommend(
        self, rng: np.random.Generator, *, draws: int = ..., tolerance: float = ...
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
        for name, value in vars(self).items():
            if value is not None and not isinstance(value, Real):
                raise ModelError(f"{name} of a stop rule must be a number, not {value!r}")
        if self.expected_loss is None and self.probability is None:
            raise ModelError("a stop rule needs an expected_loss or a probability")
        if self.expected_loss is not None and not self.expected_loss > 0:
            raise ModelError(f"expected_loss must be above 0, not {self.expected_loss}")
        if self.probability is not None and not 0 < self.probability < 1:
            raise ModelError(f"probability must lie between 0 and 1, not {self.probability}")
        if self.tolerance < 0 or self.every < 1 or self.draws < 1:
            raise ModelError("tolerance must not be negative, every and draws at least 1")

    def met(self, recommendation: Recommendation) -> bool:
        """Is this recommendation good enough?"""
        return (
            self.expected_loss is None or recommendation.expected_loss <= self.expected_loss
        ) and (self.probability is None or recommendation.probability_best >= self.probability)

    def look(self, policy: object, rng: np.random.Generator) -> Recommendation:
        """What the policy would settle on now."""
        if not isinstance(policy, Recommends):
            raise ModelError(
                f"{type(policy).__name__} does not say how sure it is; use the policy 'posterior'"
            )
        return policy.recommend(rng, draws=self.draws, tolerance=self.tolerance)
