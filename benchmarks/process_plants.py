"""Simulated process plants in physical units, with the exact truth of every switch position.

Mechanisms are those of `causalarms.random_sem` with a mean degree of 1.5 to 3.5, in standardised
units; what is measured is offset + scale * standardised. A plant whose reward hardly moves (by less
than three times its own noise) is drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms import LinearSEM, random_sem
from causalarms.rng import stream
from causalarms.sem.ensembles import Ensemble
from causalarms.sem.rewards import all_interventions
from shared import FloatArray, rescaled

Bits = npt.NDArray[np.uint8]

N_SWITCHES = 7
DEGREES = (1.5, 3.5)
LEAST_RANGE = 3.0  # of the expected reward, in standard deviations of the reward's own noise
CLOSE = 0.02  # of the range: as good as the best
COSTS = (0.02, 0.08)  # of a switch, as a fraction of the range of the expected reward
MISSING = 0.01


class Unit(NamedTuple):
    offset: float
    scale: float  # about the standard deviation of the noise


UNITS = {
    "temperature_K": Unit(350.0, 3.0),
    "pressure_Pa": Unit(1e5, 1e3),
    "flow_m3_per_s": Unit(1e-3, 2e-5),
    "concentration_percent": Unit(40.0, 1.5),
    "power_W": Unit(2e4, 500.0),
    "acidity_pH": Unit(7.0, 0.1),
    "viscosity_Pa_s": Unit(2e-3, 1e-4),
    "level_m": Unit(2.5, 0.05),
    "stirring_rpm": Unit(300.0, 10.0),
    "density_kg_per_m3": Unit(950.0, 4.0),
    "conductivity_S_per_m": Unit(0.1, 2e-3),
    "particle_size_m": Unit(5e-5, 1e-6),
}


@dataclass(frozen=True)
class Switch:
    """Called like the first node it acts on, unless it has a label, which says nothing of that."""

    acts_on: tuple[str, ...]
    cost: float = 0.0  # of having it on in a run, in units of the reward
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.acts_on[0]


@dataclass(frozen=True)
class Truth:
    """Of all switch positions, rows as in `all_interventions(N_SWITCHES)`."""

    values: FloatArray  # (2^S, N), expected
    reward: FloatArray  # (2^S,), expected, before costs
    net: FloatArray  # (2^S,)

    @property
    def range(self) -> float:
        return float(np.ptp(self.net))

    @property
    def loss(self) -> FloatArray:
        """Against the best position, (2^S,)."""
        return self.net.max() - self.net

    @property
    def close(self) -> npt.NDArray[np.bool_]:
        return self.loss <= CLOSE * self.range


@dataclass(frozen=True)
class Plant:
    """Runs are numbered from 0; from `changes_at` on they happen in the second system."""

    systems: tuple[LinearSEM, ...]
    switches: tuple[Switch, ...]
    seed: int
    changes_at: int | None = None
    missing: float = 0.0

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.systems[0].nodes

    @property
    def reward(self) -> str:
        return self.nodes[self.systems[0].reward]

    @cached_property
    def truths(self) -> list[Truth]:
        return [_truth(system, self.switches) for system in self.systems]

    def truth(self, run: int) -> Truth:
        return self.truths[self._number_at(run)]

    def unlabelled(self) -> Plant:
        """The same plant; nobody knows what its switches act on."""
        switches = [
            replace(switch, label=f"switch {number}")
            for number, switch in enumerate(self.switches, start=1)
        ]
        return replace(self, switches=tuple(switches))

    def measure(self, run: int, positions: Bits) -> dict[str, float | None]:
        """What is read off after a run with these positions (S,); None: not measured."""
        regimes = regimes_of(positions[None], self.switches, self.nodes)
        system = self.systems[self._number_at(run)]
        values = system.sample(regimes, stream(self.seed, "run", run))[0]
        lost = stream(self.seed, "missing", run).random(len(values)) < self.missing
        return {
            node: None if gone else float(value)
            for node, value, gone in zip(self.nodes, values, lost, strict=True)
        }

    def _number_at(self, run: int) -> int:
        return int(self.changes_at is not None and run >= self.changes_at)


def regimes_of(positions: Bits, switches: tuple[Switch, ...], nodes: tuple[str, ...]) -> Bits:
    """Which nodes are intervened on, (n, N), under switch positions, (n, S)."""
    acts = np.array([[node in switch.acts_on for node in nodes] for switch in switches])
    return (positions @ acts.astype(np.uint8)).clip(max=1).astype(np.uint8)


def clean_plant(seed: int, number: int) -> Plant:
    """Every switch acts on one node; nothing costs, changes or goes missing."""
    standard, names, nodes = _drawn(seed, number)
    system = in_units(standard, names)
    switches = tuple(Switch((names[node],)) for node in nodes[:N_SWITCHES])
    return Plant((system,), switches, _seed(seed, number))


def messy_plant(seed: int, number: int, changes_at: int) -> Plant:
    """The same, but the first switch acts on two nodes, switches cost, a mechanism changes."""
    standard, names, nodes = _drawn(seed, number)
    rng = stream(seed, "mess", number)
    reach: list[tuple[str, ...]] = [(names[node],) for node in nodes[:N_SWITCHES]]
    system = in_units(standard, names)
    span = np.ptp(_truth(system, tuple(map(Switch, reach))).reward)
    costs = span * rng.uniform(*COSTS, N_SWITCHES)
    reach[0] = (*reach[0], names[nodes[N_SWITCHES]])
    switches = tuple(Switch(acts, float(cost)) for acts, cost in zip(reach, costs, strict=True))
    after = in_units(_changed(standard, names, switches, rng), names)
    return Plant((system, after), switches, _seed(seed, number), changes_at, MISSING)


def in_units(sem: LinearSEM, names: tuple[str, ...]) -> LinearSEM:
    """The same system in the units of the named nodes: offset + scale * value."""
    offset = np.array([UNITS[name].offset for name in names])
    scale = np.array([UNITS[name].scale for name in names])
    return rescaled(sem, offset, scale, names)


def _drawn(seed: int, number: int) -> tuple[LinearSEM, tuple[str, ...], list[int]]:
    """A system in standardised units, names of its nodes, and the nodes that can be switched."""
    rng = stream(seed, "plant", number)
    names = tuple(str(name) for name in rng.permutation(list(UNITS)))
    while True:
        sem = random_sem(len(names), seed=rng, expected_degree=rng.uniform(*DEGREES))
        differ = (sem.weights[0] != sem.weights[1]).any(axis=0)
        differ[sem.reward] = False
        nodes = rng.permutation(np.flatnonzero(differ)).tolist()
        if len(nodes) <= N_SWITCHES:  # one more for the switch that acts on two
            continue
        switches = tuple(Switch((sem.nodes[node],)) for node in nodes[:N_SWITCHES])
        if _truth(sem, switches).range >= LEAST_RANGE:
            return sem, names, nodes


def _changed(
    standard: LinearSEM,
    names: tuple[str, ...],
    switches: tuple[Switch, ...],
    rng: np.random.Generator,
) -> LinearSEM:
    """One mechanism of the best position drawn again, so that this position is good no more."""
    best = int(_truth(in_units(standard, names), switches).net.argmax())
    regimes = regimes_of(all_interventions(N_SWITCHES)[[best]], switches, names)[0]
    matters = [standard.nodes.index(node) for node in standard.ancestors(standard.reward, regimes)]
    place = np.argsort(standard.order).tolist()
    ensemble = Ensemble(edge_probability=DEGREES[1] / (len(names) - 1))
    least = LEAST_RANGE * UNITS[names[standard.reward]].scale
    while True:
        node = int(rng.choice([*matters, standard.reward]))
        earlier = standard.order[: place[node]]
        weights = standard.weights.copy()
        old = weights[regimes[node], earlier, node]
        weights[regimes[node], earlier, node] = ensemble.column_unlike(old[None], rng, len(earlier))
        changed = standard.replace(weights=weights, order=standard.order)
        truth = _truth(in_units(changed, names), switches)
        if truth.range >= least and not truth.close[best]:
            return changed


def _truth(system: LinearSEM, switches: tuple[Switch, ...]) -> Truth:
    positions = _positions()
    values = system.mean(regimes_of(positions, switches, system.nodes))
    reward = values[:, system.reward]
    return Truth(values, reward, reward - positions @ np.array([s.cost for s in switches]))


@cache
def _positions() -> Bits:
    return all_interventions(N_SWITCHES)


def _seed(seed: int, number: int) -> int:
    return int(stream(seed, "noise", number).integers(2**32))
