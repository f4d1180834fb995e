"""Stationary and switching worlds (Sec. VI-B and VI-C), and worlds past the paper's model.

Round t (counted from 1) is played in the system in force; a change point c means that rounds after
c follow the next system. Noise of any law keeps expected rewards exact. Where mechanisms bend they
are means over a fixed sample, and all interventions are compared. Hidden nodes are the last ones of
a system: they have one regime and are not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.limits import MAX_BENT_NODES
from causalarms.rng import stream
from causalarms.sem.ensembles import Ensemble, regenerate
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import Counts, n_interventions
from causalarms.sem.rewards import all_interventions, propagate
from causalarms.simulation.bends import (
    MONTE_CARLO,
    Bend,
    all_bent_rewards,
    bend_of,
    bent_values,
    exogenous_values,
    measured_scales,
)
from causalarms.simulation.noise import GAUSSIAN, Noise, noise_law

FloatArray = npt.NDArray[np.float64]


class Change(NamedTuple):
    """Which mechanisms (regime, node) differ after a round."""

    after: int
    mechanisms: list[tuple[int, int]]


class World:
    """One system, or several that replace each other.

    noise    law of the noise: a name, a function (rng, shape) -> draws of mean 0 and variance 1, or
             a list of them that the nodes take in turn
    bend     what replaces x in w x: a name, or a function (values, scale) -> values; None: nothing
    hidden   how many of the last nodes are never shown

    >>> world = World(LinearSEM(weights=np.zeros((2, 2, 2)), noise_mean=1.0), noise="laplace")
    >>> world.best_reward(0)
    1.0
    """

    def __init__(
        self,
        systems: LinearSEM | Sequence[LinearSEM],
        changes: Sequence[int] = (),
        *,
        noise: Noise = GAUSSIAN,
        bend: str | Bend | None = None,
        hidden: int = 0,
    ):
        self.systems = [systems] if isinstance(systems, LinearSEM) else list(systems)
        self.change_points = list(changes)
        self.noise = noise
        self.bend = None if bend is None else bend_of(bend)
        self.hidden = hidden
        self._law = noise_law(noise)
        if len(self.systems) != len(self.change_points) + 1:
            raise ModelError(
                f"{len(self.systems)} systems do not fit {len(self.change_points)} changes"
            )
        if sorted(set(self.change_points)) != self.change_points or (
            self.change_points and self.change_points[0] < 1
        ):
            raise ModelError(f"change points must grow from 1 on, not {self.change_points}")
        if len({(sem.nodes, sem.reward) for sem in self.systems}) > 1:
            raise ModelError("all systems of a world need the same nodes and reward")
        if len({tuple(sem.regimes.tolist()) for sem in self.systems}) > 1:
            raise ModelError("all systems of a world need the same regimes of every node")
        first = self.systems[0]
        if not 0 <= hidden < first.n_nodes or first.reward >= first.n_nodes - hidden:
            raise ModelError(
                f"{hidden} hidden nodes of {first.n_nodes}: the reward "
                f"{first.nodes[first.reward]!r} must be among the nodes that are shown"
            )
        if (first.regimes[self.n_nodes :] > 1).any():
            raise ModelError("a hidden node has no switch: say regimes=1 of it")
        if self.bend is not None and n_interventions(first.regimes) > 2**MAX_BENT_NODES:
            raise ModelError(
                f"where mechanisms bend all interventions are compared: {first.n_nodes} nodes have "
                f"more than those of {MAX_BENT_NODES} nodes with two regimes"
            )

    @property
    def n_nodes(self) -> int:
        """Those that are shown."""
        return self.systems[0].n_nodes - self.hidden

    @property
    def reward(self) -> int:
        return self.systems[0].reward

    @property
    def regimes(self) -> Counts:
        return self.systems[0].regimes[: self.n_nodes]

    @property
    def noise_mean(self) -> FloatArray:
        """Of the first system, (N,) or (R, N)."""
        return self.systems[0].noise_mean[..., : self.n_nodes]

    @property
    def noise_std(self) -> FloatArray:
        return self.systems[0].noise_std[..., : self.n_nodes]

    @property
    def linear(self) -> bool:
        """Whether the systems say everything but the law of the noise."""
        return self.bend is None and not self.hidden

    def adjacency(self, number: int = 0) -> npt.NDArray[np.bool_]:
        """Edges between nodes that are shown, (R, N, N)."""
        return self.systems[number].adjacency[:, : self.n_nodes, : self.n_nodes]

    @property
    def changes(self) -> list[Change]:
        """What differs after each change point."""
        found = []
        for number, after in enumerate(self.change_points):
            before, now = self.systems[number : number + 2]
            differ = (
                (before.weights != now.weights).any(axis=1)
                | (before.mechanism_mean != now.mechanism_mean)
                | (before.mechanism_std != now.mechanism_std)
            )[:, : self.n_nodes]
            found.append(Change(after, [(int(r), int(i)) for r, i in np.argwhere(differ)]))
        return found

    def number_at(self, round_: int) -> int:
        """Which system round `round_` is played in."""
        return int(np.searchsorted(self.change_points, round_ - 1, side="right"))

    def play(
        self, round_: int, intervention: npt.NDArray[np.uint8], rng: np.random.Generator
    ) -> FloatArray:
        """The observation of one round; draws the same noise whatever the intervention."""
        return self.sample(intervention[None], rng, self.number_at(round_))[0]

    def sample(
        self, interventions: npt.NDArray[np.uint8], rng: np.random.Generator, number: int = 0
    ) -> FloatArray:
        """One sample of the nodes that are shown per row of interventions, (n, N)."""
        sem, rows = self.systems[number], self._all_nodes(interventions)
        if self.linear and self.noise == GAUSSIAN:
            return sem.sample(rows, rng)
        exogenous = exogenous_values(sem, rows, self._law(rng, rows.shape))
        if self.bend is None:
            values: FloatArray = propagate(sem.weights, sem.order, rows, exogenous)
        else:
            values = bent_values(sem, self.bend, self.scales[number], rows, exogenous)
        return values[:, : self.n_nodes]

    def expected_reward(self, interventions: npt.NDArray[np.uint8], number: int = 0) -> FloatArray:
        """Of every row of interventions in one of the systems, (n,)."""
        if self.bend is None:
            return self.systems[number].expected_reward(self._all_nodes(interventions))
        radix = np.append(np.cumprod(self.regimes[:0:-1])[::-1], 1)
        return self._bent_rewards[number][np.asarray(interventions, dtype=np.int64) @ radix]

    def best_intervention(self, number: int = 0) -> npt.NDArray[np.uint8]:
        """Of the nodes that are shown, (N,)."""
        if self.bend is None:
            return self.systems[number].best_intervention()[: self.n_nodes]
        rows: npt.NDArray[np.uint8] = all_interventions(self.n_nodes, self.regimes)
        return rows[int(np.argmax(self._bent_rewards[number]))]

    def best_reward(self, number: int) -> float:
        return float(self.expected_reward(self.best_intervention(number)[None], number)[0])

    def average_reward(self, number: int) -> float:
        """Over all interventions: what random play gets."""
        if self.bend is None:
            return self.systems[number].average_reward()
        return float(self._bent_rewards[number].mean())

    @cached_property
    def scales(self) -> list[FloatArray]:
        """Of the nodes of every system, for bends."""
        assert self.bend is not None
        return [
            measured_scales(sem, self.bend, self._law, stream(0, "pilot", number))
            for number, sem in enumerate(self.systems)
        ]

    @cached_property
    def _bent_rewards(self) -> list[FloatArray]:
        assert self.bend is not None
        noise = self._law(stream(0, "expected rewards"), (MONTE_CARLO, self.systems[0].n_nodes))
        return [
            all_bent_rewards(sem, self.bend, scales, noise)
            for sem, scales in zip(self.systems, self.scales, strict=True)
        ]

    def _all_nodes(self, interventions: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        if not self.hidden:
            return interventions
        return np.ascontiguousarray(np.pad(interventions, ((0, 0), (0, self.hidden))))


def switching_world(
    sem: LinearSEM,
    change_points: Sequence[int],
    rng: np.random.Generator,
    *,
    n_mechanisms: int = 3,
    rule: str = "authors",
    ensemble: Ensemble | None = None,
    noise: Noise = GAUSSIAN,
    bend: str | Bend | None = None,
) -> World:
    """A world in which some mechanisms are regenerated after each change point."""
    systems = [sem]
    for _ in change_points:
        changed = regenerate(systems[-1], n_mechanisms, rng, rule=rule, ensemble=ensemble)
        systems.append(changed.sem)
    return World(systems, change_points, noise=noise, bend=bend)


def deviating_world(sem: LinearSEM, rounds: Sequence[int], *, factor: float = -1.0) -> World:
    """A world whose weights are `factor` times the usual ones in these rounds, counted from 1.

    >>> sem = LinearSEM(weights=[[[0, 2.0], [0, 0]]], regimes=1)
    >>> world = deviating_world(sem, [1, 4])
    >>> [world.systems[world.number_at(t)].weights[0, 0, 1].item() for t in range(1, 6)]
    [-2.0, 2.0, 2.0, -2.0, 2.0]
    """
    deviant = LinearSEM(
        weights=factor * sem.weights, noise_mean=sem.noise_mean, noise_std=sem.noise_std,
        nodes=sem.nodes, reward=sem.reward, order=sem.order, regimes=sem.regimes,
    )  # fmt: skip
    wanted = set(rounds)
    systems, changes = [deviant if 1 in wanted else sem], []
    for after in range(1, max(wanted, default=0) + 1):
        following = deviant if after + 1 in wanted else sem
        if following is not systems[-1]:
            systems.append(following)
            changes.append(after)
    return World(systems, changes)
