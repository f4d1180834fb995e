"""Stationary and switching worlds (Sec. VI-B and VI-C), and worlds past the paper's model.

Round t (counted from 1) is played in the system in force; a change point c means that rounds after
c follow the next system. Noise of any distribution keeps expected rewards exact. If mechanisms
bend, expected rewards are means over a fixed sample, and all interventions are compared. Hidden
nodes are the last ones of a system: they have one regime and are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, Intervention, Interventions
from causalarms.errors import ModelError
from causalarms.limits import MAX_BENT_NODES
from causalarms.rng import stream
from causalarms.search import Constraints as NumberedConstraints
from causalarms.search import best_intervention
from causalarms.sem.constraints import Constraints
from causalarms.sem.ensembles import Ensemble, regenerate
from causalarms.sem.factors import NamedFactors
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import Counts, n_interventions
from causalarms.sem.rewards import all_interventions, index_of, of_regimes, propagate
from causalarms.simulation.noise import GAUSSIAN, Noise, noise_distribution

Bend: TypeAlias = Callable[[FloatArray, float], FloatArray]

PILOT_ROUNDS = 4000  # measure the scales of bent mechanisms
MONTE_CARLO = 10_000  # samples per expected reward, the same noise for all interventions


class Change(NamedTuple):
    """Which mechanisms (regime, node) differ after a round."""

    after: int
    mechanisms: list[tuple[int, int]]


class World:
    """One system, or several that replace each other.

    systems   the system, or one more than there are changes
    changes   rounds after which the next system is in force
    noise     distribution of the noise: a name, a function (rng, shape) -> draws of mean 0 and
              variance 1, or a list of them that the nodes take in turn
    bend      what replaces x in w x: a name, or a function (values, scale) -> values; None: nothing
    hidden    how many of the last nodes are never shown
    factors   what is set, if the last nodes are columns of factors (`sem/shifts.py`); None: every
              node is switched for itself

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
        factors: NamedFactors | None = None,
    ):
        self.systems = [systems] if isinstance(systems, LinearSEM) else list(systems)
        self.change_points = list(changes)
        self.noise = noise
        self.bend = None if bend is None else bend_of(bend)
        self.hidden = hidden
        self.factors = factors
        self._draw_noise = noise_distribution(noise)
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
            raise ModelError("a hidden node has no switch: give it one regime (regimes=1)")
        if factors is not None:
            if factors.system_nodes != first.nodes:
                raise ModelError(
                    f"the factors are for a system of the nodes {', '.join(factors.system_nodes)}, "
                    f"not {', '.join(first.nodes)}"
                )
            if self.bend is not None or hidden:
                raise ModelError("a world with factors has no bends and no hidden nodes")
        if self.bend is not None and n_interventions(first.regimes) > 2**MAX_BENT_NODES:
            raise ModelError(
                f"if mechanisms bend, all interventions are compared: {first.n_nodes} nodes have "
                f"more than those of {MAX_BENT_NODES} nodes with two regimes"
            )

    @property
    def n_nodes(self) -> int:
        """How many nodes are shown."""
        return self.systems[0].n_nodes - self.hidden

    @property
    def reward(self) -> int:
        """The reward node."""
        return self.systems[0].reward

    @property
    def regimes(self) -> Counts:
        """How many regimes each node has, (N,)."""
        return self.systems[0].regimes[: self.n_nodes]

    @property
    def noise_mean(self) -> FloatArray:
        """Of the first system, (N,) or (R, N)."""
        return self.systems[0].noise_mean[..., : self.n_nodes]

    @property
    def noise_std(self) -> FloatArray:
        """Of the first system, (N,) or (R, N)."""
        return self.systems[0].noise_std[..., : self.n_nodes]

    @cached_property
    def constraints(self) -> NumberedConstraints | None:
        """What may be played if there are factors: all columns of one at the same level."""
        return None if self.factors is None else Constraints().over(self.factors)

    @property
    def linear(self) -> bool:
        """Whether the systems say everything but the distribution of the noise."""
        return self.bend is None and not self.hidden

    def adjacency(self, number: int = 0) -> BoolArray:
        """Edges between nodes that are shown, (R, N, N).

        number   of the system
        """
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
        """Which system a round is played in.

        round_   counted from 1
        """
        if not len(self.change_points):  # every round asks, and most worlds never change
            return 0
        return int(np.searchsorted(self.change_points, round_ - 1, side="right"))

    def play(self, round_: int, intervention: Intervention, rng: np.random.Generator) -> FloatArray:
        """The observation of one round, (N,).

        round_         counted from 1
        intervention   a regime for every node
        rng            draws the noise, the same whatever the intervention
        """
        return self.sample(intervention[None], rng, self.number_at(round_))[0]

    def sample(
        self, interventions: Interventions, rng: np.random.Generator, number: int = 0
    ) -> FloatArray:
        """One sample of the nodes that are shown per intervention, (n, N).

        interventions   one per row
        rng             draws the noise
        number          of the system
        """
        sem, rows = self.systems[number], self._all_nodes(interventions)
        # the usual world in one compiled call; the noise is the same as below
        if self.linear and self.noise == GAUSSIAN:
            return sem.sample(rows, rng)
        exogenous = _exogenous_values(sem, rows, self._draw_noise(rng, rows.shape))
        if self.bend is None:
            values: FloatArray = propagate(sem.weights, sem.order, rows, exogenous)
        else:
            values, _ = _bent_values(sem, self.bend, self.scales[number], rows, exogenous)
        return values[:, : self.n_nodes]

    def expected_reward(self, interventions: Interventions, number: int = 0) -> FloatArray:
        """The mean reward of every intervention, (n,).

        interventions   one per row
        number          of the system
        """
        if self.bend is None:
            return self.systems[number].expected_reward(self._all_nodes(interventions))
        return self._bent_rewards[number][index_of(interventions, self.regimes)]

    def best_intervention(self, number: int = 0) -> Intervention:
        """The intervention with the largest expected reward, (N,).

        number   of the system
        """
        if self.constraints is not None:
            sem = self.systems[number]
            return best_intervention(
                sem.weights, sem.mechanism_mean, sem.order, sem.reward, constraints=self.constraints
            ).intervention
        if self.bend is None:
            return self.systems[number].best_intervention()[: self.n_nodes]
        rows: Interventions = all_interventions(self.n_nodes, self.regimes)
        return rows[int(np.argmax(self._bent_rewards[number]))]

    def best_reward(self, number: int) -> float:
        """The largest expected reward.

        number   of the system
        """
        return float(self.expected_reward(self.best_intervention(number)[None], number)[0])

    def average_reward(self, number: int) -> float:
        """The mean over all interventions: what random play gets.

        number   of the system
        """
        if self.constraints is not None:
            return float(self.expected_reward(self.constraints.interventions(), number).mean())
        if self.bend is None:
            return self.systems[number].average_reward()
        return float(self._bent_rewards[number].mean())

    @cached_property
    def scales(self) -> list[FloatArray]:
        """Root mean squares of the nodes of every system under random interventions, for bends."""
        assert self.bend is not None
        found = []
        for number, sem in enumerate(self.systems):
            # a fixed stream: the scales are part of the world, whatever the experiment's seed
            rng, shape = stream(0, "pilot", number), (PILOT_ROUNDS, sem.n_nodes)
            rows = rng.integers(0, sem.regimes, shape, dtype=np.uint8)
            exogenous = _exogenous_values(sem, rows, self._draw_noise(rng, shape))
            found.append(_bent_values(sem, self.bend, None, rows, exogenous)[1])
        return found

    @cached_property
    def _bent_rewards(self) -> list[FloatArray]:
        assert self.bend is not None
        # common random numbers: the difference of two interventions is surer than their means
        shape = (MONTE_CARLO, self.systems[0].n_nodes)
        noise = self._draw_noise(stream(0, "expected rewards"), shape)
        return [
            _all_bent_rewards(sem, self.bend, scales, noise)
            for sem, scales in zip(self.systems, self.scales, strict=True)
        ]

    def _all_nodes(self, interventions: Interventions) -> Interventions:
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
    """A world in which some mechanisms are regenerated after each change point.

    sem             the first system
    change_points   rounds after which mechanisms change
    rng             draws which, and how
    n_mechanisms    how many, drawn with replacement
    rule            how they are drawn, see `regenerate`
    ensemble        what new weights are drawn from; None: the paper's
    noise, bend     as for `World`
    """
    systems = [sem]
    for _ in change_points:
        changed = regenerate(systems[-1], n_mechanisms, rng, rule=rule, ensemble=ensemble)
        systems.append(changed.sem)
    return World(systems, change_points, noise=noise, bend=bend)


def deviating_world(sem: LinearSEM, rounds: Sequence[int]) -> World:
    """A world whose weights have the other sign in some rounds.

    sem      the system in all other rounds
    rounds   those that deviate, counted from 1

    >>> sem = LinearSEM(weights=[[[0, 2.0], [0, 0]]], regimes=1)
    >>> world = deviating_world(sem, [1, 4])
    >>> [world.systems[world.number_at(t)].weights[0, 0, 1].item() for t in range(1, 6)]
    [-2.0, 2.0, 2.0, -2.0, 2.0]
    """
    deviant = sem.replace(weights=-sem.weights, order=sem.order)
    wanted = set(rounds)
    systems, changes = [deviant if 1 in wanted else sem], []
    for after in range(1, max(wanted, default=0) + 1):
        following = deviant if after + 1 in wanted else sem
        if following is not systems[-1]:
            systems.append(following)
            changes.append(after)
    return World(systems, changes)


# -- bends: w x of a linear mechanism becomes w f(x, scale); scales make them fit nodes of any size


def _saturates_mildly(x: FloatArray, scale: float) -> FloatArray:
    return 2 * scale * np.tanh(x / (2 * scale))


def _saturates_strongly(x: FloatArray, scale: float) -> FloatArray:
    return scale / 2 * np.tanh(2 * x / scale)


def _one_sided(x: FloatArray, scale: float) -> FloatArray:
    return np.maximum(x, 0.0)


def _u_shaped(x: FloatArray, scale: float) -> FloatArray:
    return np.abs(x)


BENDS: dict[str, Bend] = {
    "saturates-mildly": _saturates_mildly,
    "saturates-strongly": _saturates_strongly,
    "one-sided": _one_sided,
    "u-shaped": _u_shaped,
}


def bend_of(given: str | Bend) -> Bend:
    """The function that is given, or the one of this name."""
    if callable(given):
        return given
    if given not in BENDS:
        raise ModelError(
            f"unknown bend {given!r}; there are {', '.join(BENDS)}, or give a function "
            "(values, scale) -> values"
        )
    return BENDS[given]


def _exogenous_values(sem: LinearSEM, rows: Interventions, noise: FloatArray) -> FloatArray:
    """Noise of mean 0 and variance 1 in the units of the system."""
    return noise * of_regimes(sem.mechanism_std, rows) + of_regimes(sem.mechanism_mean, rows)


def _bent_values(
    sem: LinearSEM, bend: Bend, known: FloatArray | None, rows: Interventions, exogenous: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Node values (n, N), and the scales (N,) that were known or are measured on the way."""
    values, bent = exogenous.copy(), np.zeros_like(exogenous)
    scales = np.empty(sem.n_nodes) if known is None else known
    for i in sem.order:
        by_regime = bent @ sem.weights[:, :, i].T  # (n, R)
        values[:, i] += np.take_along_axis(by_regime, rows[:, i : i + 1].astype(int), axis=1)[:, 0]
        if known is None:
            # bends divide by it: a node that is always 0 must not have the scale 0
            scales[i] = max(np.sqrt((values[:, i] ** 2).mean()), np.finfo(float).tiny)
        bent[:, i] = _bend(bend, values[:, i], scales[i])
    return values, scales


def _all_bent_rewards(
    sem: LinearSEM, bend: Bend, scales: FloatArray, noise: FloatArray
) -> FloatArray:
    """Mean reward of every intervention over the rows of noise (n, N), in lexicographic order.

    Depth first along the order: interventions that agree on the first nodes share their values.
    """
    # what comes after the reward does not move it: its axes are filled by slices
    before_reward = sem.order[: int(np.flatnonzero(sem.order == sem.reward)[0]) + 1]
    table = np.zeros(tuple(sem.regimes))
    bent = np.zeros_like(noise)
    chosen: list[slice | int] = [slice(None)] * sem.n_nodes

    def go(depth: int) -> None:
        i = int(before_reward[depth])
        by_regime = bent @ sem.weights[:, :, i].T
        for regime in range(int(sem.regimes[i])):
            chosen[i] = regime
            exogenous = noise[:, i] * sem.mechanism_std[regime, i] + sem.mechanism_mean[regime, i]
            values = exogenous + by_regime[:, regime]
            if i == sem.reward:
                table[tuple(chosen)] = values.mean()
            else:
                bent[:, i] = _bend(bend, values, scales[i])
                go(depth + 1)
        chosen[i] = slice(None)
        bent[:, i] = 0.0

    go(0)
    return table.reshape(n_interventions(sem.regimes))


def _bend(bend: Bend, x: FloatArray, scale: float) -> FloatArray:
    bent = np.asarray(bend(x, float(scale)), dtype=float)
    if bent.shape != x.shape or not np.isfinite(bent).all():
        raise ModelError(
            "bend: the function must give one finite value for every value it is given"
        )
    return bent
