"""Stationary and switching worlds (Sec. VI-B and VI-C).

Round t (counted from 1) is played in the system in force; a change point c means that rounds after
c follow the next system.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.sem.ensembles import Ensemble, regenerate
from causalarms.sem.linear_sem import LinearSEM


class Change(NamedTuple):
    """Which mechanisms (regime, node) differ after a round."""

    after: int
    mechanisms: list[tuple[int, int]]


class World:
    """One system, or several that replace each other."""

    def __init__(self, systems: LinearSEM | Sequence[LinearSEM], changes: Sequence[int] = ()):
        self.systems = [systems] if isinstance(systems, LinearSEM) else list(systems)
        self.change_points = list(changes)
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

    @property
    def n_nodes(self) -> int:
        return self.systems[0].n_nodes

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
            )
            found.append(Change(after, [(int(r), int(i)) for r, i in np.argwhere(differ)]))
        return found

    def number_at(self, round_: int) -> int:
        """Which system round `round_` is played in."""
        return int(np.searchsorted(self.change_points, round_ - 1, side="right"))

    def play(
        self, round_: int, intervention: npt.NDArray[np.uint8], rng: np.random.Generator
    ) -> npt.NDArray[np.float64]:
        """The observation of one round; draws N normals whatever the intervention."""
        return self.systems[self.number_at(round_)].sample(intervention[None], rng)[0]


def switching_world(
    sem: LinearSEM,
    change_points: Sequence[int],
    rng: np.random.Generator,
    *,
    n_mechanisms: int = 3,
    rule: str = "authors",
    ensemble: Ensemble | None = None,
) -> World:
    """A world in which some mechanisms are regenerated after each change point."""
    systems = [sem]
    for _ in change_points:
        changed = regenerate(systems[-1], n_mechanisms, rng, rule=rule, ensemble=ensemble)
        systems.append(changed.sem)
    return World(systems, change_points)


def deviating_world(sem: LinearSEM, rounds: Sequence[int], *, factor: float = -1.0) -> World:
    """A world whose weights are `factor` times the usual ones in these rounds, counted from 1.

    >>> sem = LinearSEM(weights=[[[0, 2.0], [0, 0]]], noise_mean=1.0)
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
