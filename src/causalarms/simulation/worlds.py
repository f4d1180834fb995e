"""Where the systems of an experiment come from: the paper's ensemble, a function or a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

import numpy as np

from causalarms.arrays import FloatArray, IntArray
from causalarms.errors import CausalArmsError, ModelError
from causalarms.rng import stream
from causalarms.sem.ensembles import Ensemble, WeightDistribution, random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import all_two, regime_counts
from causalarms.simulation.noise import GAUSSIAN, Noise, noise_distribution, refuse_shifted
from causalarms.simulation.results import Record, address, plain
from causalarms.simulation.world import Bend, World, bend_of, switching_world

MakeSystem: TypeAlias = Callable[[np.random.Generator], LinearSEM | World]
Systems: TypeAlias = "MakeSystem | Sequence[LinearSEM | World]"

FUNCTIONS = ("systems", "noise", "bend", "weights")  # settings that may be a user's own
METHODS = ("world", "_made", "policy", "play")  # a subclass with its own ones makes other results

FINGERPRINT_SYSTEMS = 2
FINGERPRINT_ROUNDS = 3  # that are sampled from every system
FINGERPRINT_LENGTH = 16  # hexadecimal digits
SIGNIFICANT_DIGITS = 9  # other machines may round the last ones of a double otherwise


@dataclass(frozen=True, kw_only=True)
class Worlds:
    """One world per repetition.

    n_nodes            of the paper's ensemble, as the next two and `regimes`
    weights            `separated`, `uniform`, or a function (rng, size) -> weights
    edge_probability   of every pair of nodes
    changes            rounds after which mechanisms are regenerated
    n_changed          how many are
    change_rule        which ones and how, see `causalarms.sem.ensembles.regenerate`
    knows_noise_mean   whether policies and learners are told the means of the noise
    seed               everything random follows from it
    regimes            how many each node has, a number or one per node; None: two, as in the paper
    systems            None: random systems of the paper's ensemble. A function of a NumPy generator
                       that makes a `LinearSEM` or a `World`. Or a list of them, which repetitions
                       take in turn
    noise              distribution of the noise, see `World`
    bend               mechanisms that are not linear, see `World`
    """

    entries_field: ClassVar[str] = ""  # the field of those who are compared

    n_nodes: int = 10
    weights: str | WeightDistribution = "separated"
    edge_probability: float = 0.5
    changes: tuple[int, ...] = ()
    n_changed: int = 3
    change_rule: str = "authors"
    knows_noise_mean: bool = True
    seed: int = 0
    regimes: int | tuple[int, ...] | None = None
    systems: Systems | None = None
    noise: Noise = GAUSSIAN
    bend: str | Bend | None = None

    def __post_init__(self) -> None:
        # made to be checked: a wrong setting is refused here, not in the first run
        Ensemble(self.weights, self.edge_probability)
        noise_distribution(self.noise)
        if not isinstance(self.noise, str):
            refuse_shifted(self.noise)
        if self.bend is not None:
            bend_of(self.bend)
        if self.systems is None:
            regime_counts(self.regimes, self.n_nodes)
            return
        if self.regimes is not None:
            raise ModelError("regimes are those of the systems: leave one of the two out")
        if not callable(self.systems):
            try:
                object.__setattr__(self, "systems", tuple(self.systems))
            except TypeError:
                raise ModelError(
                    f"systems must be a function of a generator or a list of systems, not "
                    f"{self.systems!r:.60}"
                ) from None
            if not self.systems:
                raise ModelError("the list of systems is empty")
        # a results file states the size of the systems that are used, not the default
        object.__setattr__(self, "n_nodes", self.world(0).n_nodes)

    def world(self, repetition: int) -> World:
        """The systems of a repetition, the same for all who are compared.

        repetition   counted from 0
        """
        made = self._made(repetition)
        if isinstance(made, World):
            own = {"changes": self.changes, "noise": self.noise != GAUSSIAN, "bend": self.bend}
            for name, given in own.items():
                if given:
                    raise ModelError(
                        f"{name}: the systems are worlds, which have their own; say it there"
                    )
            return made
        if not self.changes:
            return World(made, noise=self.noise, bend=self.bend)
        return switching_world(
            made,
            self.changes,
            stream(self.seed, "change", repetition),
            n_mechanisms=self.n_changed,
            rule=self.change_rule,
            ensemble=Ensemble(self.weights, self.edge_probability),
            noise=self.noise,
            bend=self.bend,
        )

    def _made(self, repetition: int) -> LinearSEM | World:
        rng = stream(self.seed, "system", repetition)
        if self.systems is None:
            return random_sem(
                self.n_nodes,
                seed=rng,
                weights=self.weights,
                edge_probability=self.edge_probability,
                regimes=self.regimes,
            )
        if not callable(self.systems):
            return _checked(self.systems[repetition % len(self.systems)], f"system {repetition}")
        who = f"systems={address(self.systems)}"
        try:
            made = self.systems(rng)
        except CausalArmsError:
            raise
        except Exception as error:
            raise ModelError(
                f"{who} gives no system for repetition {repetition}: "
                f"{type(error).__name__}: {error}"
            ) from error
        return _checked(made, who)

    def common_settings(self) -> Record:
        """The settings that all who are compared share, as plain JSON values."""
        record: Record = {
            setting.name: plain(setting.name, getattr(self, setting.name))
            for setting in fields(self)
            if setting.name not in ("systems", self.entries_field)
        }
        if self.own_world:
            # a function makes any number of systems: the first ones tell functions apart
            listed = None if callable(self.systems) else self.systems
            worlds = map(self.world, range(len(listed) if listed else FINGERPRINT_SYSTEMS))
            record["world"] = {"made by": self._maker(), "fingerprint": fingerprint(worlds)}
        return record

    @property
    def own_world(self) -> bool:
        """Whether names and numbers do not say everything about the worlds."""
        values = [getattr(self, name) for name in FUNCTIONS]
        return self._own_methods or any(not (v is None or isinstance(v, str)) for v in values)

    @property
    def _own_methods(self) -> bool:
        users = (c for c in type(self).__mro__ if not c.__module__.startswith("causalarms."))
        return any(name in vars(owner) for owner in users for name in METHODS)

    def _maker(self) -> str:
        if self._own_methods:
            return address(type(self))
        if self.systems is None:
            return "named settings"
        return address(self.systems) if callable(self.systems) else "a list of systems"

    def told_of(self, world: World) -> dict[str, Any]:
        """What policies and learners are told of a world."""
        # nothing of regimes if all nodes have two: learners of the paper's model need not know them
        two = self.regimes is None and all_two(world.regimes)
        told: dict[str, Any] = {} if two else {"regimes": world.regimes}
        return told | ({"noise_mean": world.noise_mean} if self.knows_noise_mean else {})


def _checked(made: object, who: str) -> LinearSEM | World:
    if not isinstance(made, LinearSEM | World):
        raise ModelError(f"{who} must be a LinearSEM or a World, not {made!r:.60}")
    return made


def fingerprint(worlds: Iterable[World]) -> str:
    """What tells worlds apart whose making nobody can compare: their systems, and some rounds."""
    found = sha256()
    for world in worlds:
        found.update(f"{world.n_nodes} {world.reward} {world.change_points}".encode())
        for sem in world.systems:
            for part in (sem.regimes, sem.weights, sem.mechanism_mean, sem.mechanism_std):
                found.update(_text(part))
        rng = stream(0, "fingerprint")
        for start in (0, *world.change_points):
            for round_ in range(start + 1, start + 1 + FINGERPRINT_ROUNDS):
                a = rng.integers(0, world.regimes, dtype=np.uint8)
                found.update(_text(world.play(round_, a, rng)))
    return found.hexdigest()[:FINGERPRINT_LENGTH]


def _text(values: FloatArray | IntArray) -> bytes:
    # + 0.0 makes -0.0 and 0.0 the same text
    numbers = " ".join(f"{float(value) + 0.0:.{SIGNIFICANT_DIGITS}g}" for value in np.ravel(values))
    return f"{np.shape(values)} {numbers}\n".encode()
