"""What interventions are worth: their expected reward, net of costs and of failing trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray

EQUALLY_FAILING = 0.01  # a smaller difference of two probabilities of failing says nothing


class Risk(NamedTuple):
    """How likely trials fail, and what a failed one is worth; nan: that is not known."""

    probability: Callable[[Any], FloatArray]  # of rows of levels, (n, F)
    reward: float


class Worth(NamedTuple):
    """What n interventions are worth next to their expected reward R: (1 - p) R + p f - cost.

    They fail with probability p, and a failed trial is worth f.
    """

    cost: FloatArray  # (n,)
    failing: FloatArray | None = None  # (n,) p; None: nothing has failed, or it does not matter
    failed: float = 0.0

    @property
    def keep(self) -> FloatArray:
        """What remains of a reward, (n,)."""
        return np.ones(len(self.cost)) if self.failing is None else 1.0 - self.failing

    @property
    def charge(self) -> FloatArray:
        """What is taken off then, (n,)."""
        return self.cost if self.failing is None else self.cost - self.failing * self.failed

    def net(self, rewards: FloatArray) -> FloatArray:
        """What these rewards (..., n) are worth."""
        if self.failing is None:  # to the last bit as without failures
            return rewards - self.cost
        return rewards * self.keep - self.charge

    def gross(self, net: float, at: int) -> float:
        """The reward of the intervention in this place, of which this is the net value."""
        return (net + float(self.charge[at])) / float(self.keep[at])

    def of(self, chosen: npt.NDArray[Any]) -> Worth:
        """The same of some of them."""
        failing = None if self.failing is None else self.failing[chosen]
        return self._replace(cost=self.cost[chosen], failing=failing)

    def as_likely_to_fail(self, row: int) -> Worth:
        """As if those hardly more or less likely to fail than this one were as likely."""
        if self.failing is None:
            return self
        near = np.abs(self.failing - self.failing[row]) < EQUALLY_FAILING
        return self._replace(failing=np.where(near, self.failing[row], self.failing))

    def in_units(self, scale: float, origin: float) -> Worth:
        """The same for rewards that are relative to this origin, in these units."""
        return self._replace(cost=self.cost / scale, failed=(self.failed - origin) / scale)
