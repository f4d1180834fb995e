"""What `posterior` has learned of the system: rounds, the units they show, and the posterior.

Values reach the posterior relative to the origin of the rounds and in units of its own; whatever is
read from it here is in those of the data again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.graphs.units import Units
from causalarms.models.belief import Belief, in_units_of_data
from causalarms.policies.beforehand import Beforehand
from causalarms.policies.first_rounds import FIRST_ROUNDS, show_units, units_shown_by
from causalarms.policies.incomplete_rounds import DRAWS_TO_FILL
from causalarms.policies.noise_units import moments_in
from causalarms.policies.told_rounds import ToldRounds
from causalarms.posterior.exact import Draws
from causalarms.posterior.mixed import MixedPosterior
from causalarms.rng import stream
from causalarms.statistics.moments import Moments

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class LearnedSystem:
    """`units` are None until the first rounds show them."""

    def __init__(self, before: Beforehand, units: Units | None, rounds: ToldRounds) -> None:
        self.before = before
        self.rounds = rounds
        self.use(units)

    def use(self, units: Units | None) -> None:
        """These units from now on, by a posterior that has seen nothing."""
        self.units = units
        self.posterior = self.before.posterior(units)

    def settle(self, n_told: int, *, changed: bool) -> FloatArray | None:
        """Middle and units, where the rounds so far show them; None while units are unknown.

        Else what draws of the posterior are relative to until it is refreshed. With a change among
        the rounds they show no middle.
        """
        rounds = self.rounds
        zero = rounds.origin
        centers = self.before.noise_mean is None
        if centers and (n_told <= FIRST_ROUNDS or self.units is None) and not changed:
            rounds.center(n_told)
        if self.units is not None:
            return zero
        first = rounds.recent.values(n_told) - rounds.origin
        if not show_units(first):
            return None
        self.use(units_shown_by(first, center=centers))
        if not len(rounds.gaps):
            return zero
        self._see(rounds.moments)
        return rounds.origin

    def refresh(self) -> None:
        """The posterior takes in all rounds."""
        self._see(self.rounds.evidence)

    def _see(self, moments: Moments) -> None:
        assert self.units is not None
        self.posterior.update(moments_in(self.units, moments))

    def fill_gaps(self, n_told: int, n_new: int, zero: FloatArray, starts: IntArray) -> None:
        """By draws of the posterior before this round, which are relative to `zero`."""
        rounds = self.rounds
        due = rounds.gaps.due(n_told) or n_new > 1
        if due or n_new:
            draws = self.draw(stream(0, "gaps", n_told), DRAWS_TO_FILL)
            if due:
                rounds.gaps.fill(n_told, draws, starts, zero, rounds.origin)
            else:
                rounds.gaps.fill_last(draws, starts, rounds.origin)

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Of values relative to the origin."""
        drawn = self.posterior.draw(rng, n)
        if self.units is None:
            return drawn
        return in_units_of_data(self.units, drawn, self.before.regimes)

    def belief(self, rng: np.random.Generator, draws: int, starts: IntArray) -> Belief | None:
        if self.units is None:
            return None
        moved = Units(shift=self.units.shift + self.rounds.origin, scale=self.units.scale)
        return Belief(
            in_units_of_data(moved, self.posterior.draw(rng, draws), self.before.regimes),
            self.posterior.edge_probability,
            self.rounds.counts,
            starts,
            weighs_graphs=True,
        )

    def scale_of(self, node: int) -> float:
        """One unit of the posterior in those of the data."""
        return 1.0 if self.units is None else float(self.units.scale[node])

    def in_data(self, value: float, node: int) -> float:
        """A value of the posterior in units of the data."""
        shift = 0.0 if self.units is None else float(self.units.shift[node])
        return value * self.scale_of(node) + shift + float(self.rounds.origin[node])

    @property
    def strengths(self) -> dict[float, float]:
        posterior = self.posterior
        if not isinstance(posterior, MixedPosterior):
            return {}
        return {
            posterior.parts[k].prior.weight_mean: float(p)
            for k, p in zip(posterior.held, posterior.probability, strict=True)
        }
