"""Systems with factors for `outside_peers.py`: two simulators of other people, and random worlds.

tunnel          the wind tunnel of the causal chambers (package `causalchamber`, models A1, B1, C3)
sludge          activated sludge with nitrogen removal (package `bsm2-python`, model ASM1)
world-mediated  random linear systems; factors act upstream of the reward
world-direct    the same; all factors act on the reward and on nothing else
world-bent      as mediated; numeric factors only, whose levels do not lie along any simple curve
world-mixed     the same; factors act anywhere upstream of the reward or on it, each either shifts
                its nodes (80 %) or changes their slopes

A seed is a tunnel, a plant or a world of its own. All of them hide the reward: what nobody sets
(weather, sewage, noise upstream) moves it about as much as the settings do.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from scipy.integrate import odeint

from causalarms.errors import CausalArmsError
from causalarms.rng import stream
from shared import FloatArray

Level = float | str
Levels = Mapping[str, Level]  # of every factor
Costs = dict[str, dict[Level, float]]


class System(Protocol):
    """What is played; nothing but `measure` and `truth` needs to know how it works."""

    @property
    def nodes(self) -> list[str]: ...

    @property
    def reward(self) -> str: ...

    @property
    def factors(self) -> dict[str, list[Level]]: ...

    @property
    def costs(self) -> Costs:
        """Of levels, in units of the reward; 0 if not named."""

    @property
    def context(self) -> list[str]:
        """Nodes that no factor moves, directly or through others."""

    @property
    def acts_on(self) -> dict[str, list[str]]:
        """Nodes that each factor acts on directly."""

    def measure(self, levels: Levels, rng: Generator) -> FloatArray:
        """All nodes in one trial, (N,)."""

    def truth(self) -> FloatArray:
        """Expected reward of every setting, costs not subtracted, in the order of `settings`."""

    def carried(self) -> float:
        """How much of what settings do to the reward goes through nodes that are measured.

        The variance over all settings of the part that the reward's causes carry, while the
        reward's own mechanism is held at its average over the settings, over that of the truth.
        More than 1 if settings also act on the reward itself, against what goes through others.
        """


def settings(system: System) -> list[dict[str, Level]]:
    """All of them; the last factor changes first."""
    names = list(system.factors)
    rows = itertools.product(*system.factors.values())
    return [dict(zip(names, row, strict=True)) for row in rows]


def costs(system: System) -> FloatArray:
    """Of every setting, (S,)."""
    told = system.costs
    return np.array(
        [
            sum(told.get(name, {}).get(level, 0.0) for name, level in levels.items())
            for levels in settings(system)
        ]
    )


def make_system(name: str, seed: int) -> System:
    if name not in SYSTEMS:
        raise CausalArmsError(f"no system {name!r}; there are {', '.join(SYSTEMS)}")
    return SYSTEMS[name](seed)


def needed(module: str, package: str) -> Any:
    """A module of a package that is not among the dependencies."""
    try:
        return import_module(module)
    except ImportError as error:
        raise CausalArmsError(f"{module} is missing ({error}): pip install {package}") from error


# -- the wind tunnel -------------------------------------------------------------------------------

WEATHER_ROUNDS = 4000  # over which the truth of a tunnel is averaged, the same in all settings


class Tunnel:
    """Two fans blow into and out of a tunnel with a hatch; the reward is the pressure inside.

    Simulator A1C3 and model B1 with the parameters of the paper's calibration, each 10-20 % off by
    seed. The fans do not hold their load exactly. Running a fan costs power, with the cube of its
    load, and little exhaust costs ventilation, so the best setting is seldom a corner. Pressure
    inside follows the ambient pressure, which moves by more than the settings do.
    """

    nodes = ["ambient", "rpm_in", "rpm_out", "current_in", "current_out", "downwind"]  # noqa: RUF012
    reward = "downwind"
    context = ["ambient"]  # noqa: RUF012
    acts_on = {  # noqa: RUF012
        "load_in": ["rpm_in", "current_in"],
        "load_out": ["rpm_out", "current_out"],
        "hatch": ["downwind"],
    }

    def __init__(self, seed: int) -> None:
        self._models = needed("causalchamber.models", "causalchamber")
        rng = stream(seed, "tunnel")
        self.seed = seed
        self._flow = {
            "S_max": 74.8 * rng.uniform(0.8, 1.2),  # Pa
            "Q_max": 186.3 / 3600 * rng.uniform(0.9, 1.1),  # m³/s
            "r_0": rng.uniform(0.6, 0.75),
            "beta": rng.uniform(0.1, 0.2),
        }
        self._omega_max = 314.2 * rng.uniform(0.9, 1.1)  # rad/s
        self._current = {"C_min": 0.166, "C_max": rng.uniform(0.24, 0.3), "L_min": 0.1}  # A
        self._pressure = rng.uniform(95_000, 101_000)  # Pa
        self._weather = rng.uniform(8, 16)  # Pa
        self._precision = rng.uniform(0.8, 2.0)  # Pa, of both barometers
        self._slip = rng.uniform(0.01, 0.03)  # relative, of a fan's load
        self.factors: dict[str, list[Level]] = {
            "load_in": _spread(rng, (0.2, 0.4), (0.5, 0.7), (0.85, 1.0)),
            "load_out": _spread(rng, (0.2, 0.4), (0.5, 0.7), (0.85, 1.0)),
            "hatch": [0.0, 22.5, 45.0],
        }
        # per squared load at the middle of the hatch, which the price of power has to balance
        gain = self._inside(np.array([1.0]), np.array([0.0]), 22.5)[0]
        power_in, power_out = gain / rng.uniform(0.35, 1.1, 2)
        air = gain * rng.uniform(0.5, 4.0)
        self.costs: Costs = {
            "load_in": {load: round(power_in * load**3, 2) for load in self._loads("load_in")},
            "load_out": {
                load: round(power_out * load**3 / 3 + air * (1 - load) ** 2, 2)
                for load in self._loads("load_out")
            },
        }

    def _loads(self, name: str) -> list[float]:
        return [float(load) for load in self.factors[name]]

    def measure(self, levels: Levels, rng: Generator) -> FloatArray:
        return self._rounds(levels, 1, rng)[0]

    def truth(self) -> FloatArray:
        rewards = []
        for levels in settings(self):
            rounds = self._rounds(levels, WEATHER_ROUNDS, stream(self.seed, "truth"))
            # what the weather did in these rounds is the same in all settings, and no part of it
            ambient, downwind = rounds[:, 0], rounds[:, -1]
            rewards.append(downwind.mean() - ambient.mean() + self._pressure)
        return np.array(rewards)

    def carried(self) -> float:
        """Fans move the rotors, which are measured; the hatch acts on the reward itself."""
        truth = self.truth().reshape(-1, len(self.factors["hatch"]))
        return float(truth.mean(axis=1).var() / truth.var())

    def _rounds(self, levels: Levels, n: int, rng: Generator) -> FloatArray:
        """(n, nodes)"""
        load_in, load_out = (
            float(levels[name]) * (1 + self._slip * rng.normal(size=n))
            for name in ("load_in", "load_out")
        )
        weather = self._pressure + self._weather * rng.normal(size=n)
        downwind = weather + self._inside(load_in, load_out, float(levels["hatch"]))
        barometer = self._precision * rng.normal(size=(2, n))
        columns = [weather + barometer[0]]
        columns += [
            np.atleast_1d(self._models.model_a1(load, 0.1, self._omega_max)) * 30 / np.pi
            + 10 * rng.normal(size=n)
            for load in (load_in, load_out)
        ]
        columns += [
            np.atleast_1d(self._models.model_b1(load, **self._current)) + 0.003 * rng.normal(size=n)
            for load in (load_in, load_out)
        ]
        return np.column_stack([*columns, downwind + barometer[1]])

    def _inside(self, load_in: FloatArray, load_out: FloatArray, hatch: float) -> FloatArray:
        """Pressure above that outside; noise of the barometer is added later."""
        pressure, _, _ = self._models.simulator_a1_c3(
            load_in,
            load_out,
            hatch,
            np.zeros(len(load_in)),
            L_min=0.1,
            omega_max=self._omega_max,
            **self._flow,
            barometer_error=0.0,
            barometer_precision=0.0,
        )
        return np.asarray(pressure)


def _spread(rng: Generator, *ranges: tuple[float, float]) -> list[Level]:
    return [round(float(rng.uniform(*each)), 2) for each in ranges]


# -- activated sludge ------------------------------------------------------------------------------

# components of the model's state: substrate, oxygen, nitrate, ammonia, ...
SS, SO, SNO, SNH, SND, XND, SALK, FLOW, TEMPERATURE = 1, 7, 8, 9, 10, 11, 12, 14, 15
PARTICLES = [2, 3, 4, 5, 6, XND]
CARBON_SOURCE = 400_000.0  # g COD per m³
RETURNED = 20_648.0  # m³ of sludge a day, as much as comes in
HOURS = 12.0
QUADRATURE = 4  # points per quantity that nobody sets


class Sludge:
    """A tank without and a tank with air remove nitrogen from sewage; half a day is a trial.

    The equations are `asm1equations` of bsm2-python with its parameters, up to 15 % off by seed.
    Quality is the nitrogen part of the effluent quality index of the BSM, 3 Kjeldahl + 1 nitrate,
    by minus one. Sewage and temperature vary; how much substrate the sewage has is not measured.
    """

    nodes = [  # noqa: RUF012
        "sewage_ammonia", "temperature", "oxygen", "ammonia", "nitrate", "alkalinity", "quality"
    ]  # fmt: skip
    reward = "quality"
    context = ["sewage_ammonia", "temperature"]  # noqa: RUF012
    acts_on = {  # noqa: RUF012
        "aeration": ["oxygen"],
        "carbon": ["nitrate", "oxygen"],
        "recycle": ["nitrate", "ammonia"],
    }

    def __init__(self, seed: int) -> None:
        model = needed("bsm2_python.bsm2.asm1_bsm2", "bsm2-python")
        start = needed("bsm2_python.bsm2.init.asm1init_bsm2", "bsm2-python")
        rng = stream(seed, "sludge")
        self.seed = seed
        self._equations, self._add_carbon = model.asm1equations, model.carbonaddition
        self._begin = np.array([start.YINIT1, start.YINIT5])
        self._parameters = start.PAR1.copy()
        self._parameters[:14] *= rng.uniform(0.85, 1.15, 14)  # rates and saturations
        self._volumes = 3000.0 * rng.uniform(0.8, 1.3), 9000.0 * rng.uniform(0.8, 1.2)  # m³
        self._varied = (  # mean and deviation
            (rng.uniform(20, 30), rng.uniform(3, 6)),  # ammonia of the sewage, g/m³
            (rng.uniform(12, 17), rng.uniform(1, 2)),  # °C
            (rng.uniform(45, 70), rng.uniform(6, 12)),  # substrate of the sewage, g/m³
        )
        self.factors: dict[str, list[Level]] = {
            "aeration": _spread(rng, (50, 65), (80, 110), (140, 180)),  # oxygen transfer, 1/d
            "carbon": _spread(rng, (0, 0.5), (1.5, 3), (4, 6)),  # m³/d
            "recycle": _spread(rng, (15_000, 30_000), (50_000, 70_000), (90_000, 120_000)),  # m³/d
        }
        prices = rng.uniform(0.005, 0.02), rng.uniform(0.1, 0.6), rng.uniform(5e-6, 4e-5)
        self.costs: Costs = {
            name: {level: round(price * float(level), 3) for level in levels}
            for price, (name, levels) in zip(prices, self.factors.items(), strict=True)
        }
        self._noise = np.array([1.0, 0.2, 0.1, 0.1, 0.3, 0.05, 1.0])  # of sensors and laboratory

    def measure(self, levels: Levels, rng: Generator) -> FloatArray:
        return self._day(levels, rng.normal(size=3)) + self._noise * rng.normal(size=7)

    def truth(self) -> FloatArray:
        """By quadrature over the sewage, and kept in the folder for temporary files: it is slow."""
        kept = Path(tempfile.gettempdir()) / "causalarms-outside" / f"sludge-{self.seed}.json"
        known = json.loads(kept.read_text()) if kept.exists() else {}
        told = json.loads(json.dumps([*self._varied, self._volumes, self._parameters.tolist()]))
        told += [self.factors, HOURS, QUADRATURE]
        if known.get("of") != told:
            points, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
            mass = np.prod(list(itertools.product(weights / weights.sum(), repeat=3)), axis=1)
            sewages = np.array(list(itertools.product(points, repeat=3)))
            rewards = [
                float(mass @ [self._day(levels, sewage)[-1] for sewage in sewages])
                for levels in settings(self)
            ]
            known = {"of": told, "truth": rewards}
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps(known))
        return np.array(known["truth"])

    def carried(self) -> float:
        """By ammonia and nitrate, with average sewage; organic nitrogen is not measured."""
        days = np.array([self._day(levels, np.zeros(3)) for levels in settings(self)])
        ammonia, nitrate, quality = (
            days[:, self.nodes.index(name)] for name in ("ammonia", "nitrate", "quality")
        )
        return float((3 * ammonia + nitrate).var() / quality.var())

    def _day(self, levels: Levels, sewage: FloatArray) -> FloatArray:
        """All nodes without the noise of sensors, (N,); `sewage` is standard normal, (3,)."""
        ammonia, temperature, substrate = (
            mean + deviation * value
            for (mean, deviation), value in zip(self._varied, sewage, strict=True)
        )
        feed = self._feed(max(ammonia, 1.0), substrate, temperature, float(levels["carbon"]))
        both = odeint(
            self._change,
            self._begin.ravel(),
            [0.0, HOURS / 24],
            args=(feed, float(levels["recycle"]), float(levels["aeration"])),
            tfirst=True,
            rtol=1e-4,
            atol=1e-3,
        )
        out = both[1].reshape(2, -1)[1]
        kjeldahl = out[SNH] + out[SND] + 0.1 * out[XND]  # most particles stay in the settler
        quality = -(3 * kjeldahl + out[SNO])
        measured = [ammonia, temperature, out[SO], out[SNH], out[SNO], out[SALK], quality]
        return np.array(measured)

    def _feed(
        self, ammonia: float, substrate: float, temperature: float, carbon: float
    ) -> FloatArray:
        """Sewage and returned sludge, with carbon added."""
        sewage = np.zeros(21)
        sewage[:16] = [
            27.2, max(substrate, 5.0), 92.5, 363.9, 50.7, 0, 0, 0, 0, ammonia, 5.65, 16.1, 7, 380,
            RETURNED, temperature,
        ]  # fmt: skip
        sludge = self._begin[1].copy()
        sludge[PARTICLES] *= 1.95  # thickened by the settler
        feed = (sewage + sludge) / 2
        feed[FLOW], feed[TEMPERATURE] = 2 * RETURNED, temperature
        return np.asarray(self._add_carbon(feed, carbon, CARBON_SOURCE))

    def _change(
        self, time: float, state: FloatArray, feed: FloatArray, recycle: float, aeration: float
    ) -> FloatArray:
        """Of both tanks, per day; the second flows back into the first."""
        anoxic, aerated = state[:21].copy(), state[21:].copy()
        flow = feed[FLOW] + recycle
        inflow = (feed * feed[FLOW] + aerated * recycle) / flow
        passed = anoxic.copy()
        for each in (inflow, passed):
            each[FLOW], each[TEMPERATURE] = flow, feed[TEMPERATURE]
        first, second = (
            self._equations(time, tank, into, self._parameters, air, volume, False, False)
            for tank, into, air, volume in zip(
                (anoxic, aerated), (inflow, passed), (0.0, aeration), self._volumes, strict=True
            )
        )
        return np.concatenate([first, second])


# -- random linear worlds --------------------------------------------------------------------------

MEDIATED, DIRECT, BENT, MIXED = KINDS = ("mediated", "direct", "bent", "mixed")
NEW_SLOPES = 0.2  # probability that slopes are changed instead of shifting; a root has none
NAMES = ("red", "green", "blue", "white")


@dataclass(frozen=True)
class Effect:
    """Of one factor on one node: what each level adds to the intercept and to the weights."""

    shift: FloatArray  # (levels,)
    weights: FloatArray  # (levels, nodes)


class World:
    """Nodes are linear in their parents with standard normal noise, then put in units and offsets.

    Columns are sorted so that causes come first; the nodes' names do not tell.
    """

    def __init__(self, kind: str, seed: int) -> None:
        rng = stream(seed, "world", KINDS.index(kind))
        while True:
            n = int(rng.integers(6, 11))
            edges = np.tril(rng.random((n, n)) < 3 / (n - 1), -1)  # 1.5 parents per node
            last = int(rng.integers(n // 2, n))
            upstream = np.flatnonzero(_ancestors(edges)[last])
            if len(upstream) >= 2:
                break
        self.weights = edges * rng.choice([-1, 1], (n, n)) * rng.uniform(0.5, 1.5, (n, n))
        self._intercepts = rng.normal(0, 2, n)
        names = [f"x{number}" for number in rng.permutation(n)]
        self.nodes, self.reward, self._last = names, names[last], last
        self.factors = _random_factors(rng, kind)
        self._effects = {
            name: self._random_effects(rng, kind, levels, upstream)
            for name, levels in self.factors.items()
        }
        self._units = 10 ** rng.uniform(-2, 3, n)
        self._offsets = self._units * rng.normal(0, 10, n)
        self.acts_on = {
            name: [names[node] for node in effects] for name, effects in self._effects.items()
        }
        acted = {node for effects in self._effects.values() for node in effects}
        moved = [bool(acted & {j, *np.flatnonzero(_ancestors(edges)[j])}) for j in range(n)]
        self.context = [names[j] for j in range(n) if not moved[j] and j != last]
        self.costs: Costs = {}
        span = float(np.ptp(self.truth()))
        self.costs = {
            name: {level: span * float(rng.uniform(0, 0.1)) for level in levels[1:]}
            for name, levels in self.factors.items()
            if rng.random() < 0.5
        }

    def _random_effects(
        self, rng: Generator, kind: str, levels: list[Level], upstream: Any
    ) -> dict[int, Effect]:
        """Of one factor, by node."""
        if kind == MIXED:
            all_new = rng.random() < NEW_SLOPES
            able = [j for j in (*upstream, self._last) if not all_new or self.weights[j].any()]
            return {
                int(node): _random_effect(rng, kind, levels, self.weights[node], all_new)
                for node in _some(rng, able)
            }
        found = {}
        for node in [self._last] if kind == DIRECT else _some(rng, upstream):
            weights = self.weights[node]
            new = bool(weights.any()) and rng.random() < NEW_SLOPES
            found[int(node)] = _random_effect(rng, kind, levels, weights, new)
        return found

    def measure(self, levels: Levels, rng: Generator) -> FloatArray:
        return self._values(levels, rng.normal(size=len(self.nodes)))

    def truth(self) -> FloatArray:
        return self._expected

    @cached_property
    def _expected(self) -> FloatArray:
        quiet = np.zeros(len(self.nodes))  # exact: weights depend on levels only
        return np.array([self._values(levels, quiet)[self._last] for levels in settings(self)])

    def carried(self) -> float:
        quiet, every = np.zeros(len(self.nodes)), settings(self)
        values = np.array([self._values(levels, quiet) for levels in every]) / self._units
        own = np.mean([self._mechanisms(levels)[1][self._last] for levels in every], axis=0)
        return float((values @ own).var() / values[:, self._last].var())

    def _values(self, levels: Levels, noise: FloatArray) -> FloatArray:
        intercepts, weights = self._mechanisms(levels)
        values = np.linalg.solve(np.eye(len(noise)) - weights, intercepts + noise)
        return self._offsets + self._units * values

    def _mechanisms(self, levels: Levels) -> tuple[FloatArray, FloatArray]:
        """Intercepts, (N,), and weights, (N, N), in standardised units."""
        intercepts, weights = self._intercepts.copy(), self.weights.copy()
        for name, effects in self._effects.items():
            level = self.factors[name].index(levels[name])
            for node, effect in effects.items():
                intercepts[node] += effect.shift[level]
                weights[node] += effect.weights[level]
        return intercepts, weights


def _ancestors(edges: Any) -> Any:
    """Whether k is upstream of j, (j, k)."""
    found = edges.copy()
    for _ in range(len(edges)):
        found = found | (found @ edges)
    return found


def _some(rng: Generator, nodes: Any) -> Any:
    return rng.choice(nodes, min(int(rng.integers(1, 4)), len(nodes)), replace=False)


def _random_factors(rng: Generator, kind: str) -> dict[str, list[Level]]:
    factors: dict[str, list[Level]] = {}
    for number in range(int(rng.integers(3, 7))):
        n_levels = int(rng.integers(3 if kind == BENT else 2, 5))
        if kind == BENT or rng.random() < 0.5:
            steps = rng.uniform(0.5, 1.5, n_levels).cumsum() * 10 ** rng.uniform(-1, 2)
            factors[f"f{number}"] = [float(f"{step:.3g}") for step in steps]
        else:
            factors[f"f{number}"] = list(NAMES[:n_levels])
    return factors


def _random_effect(
    rng: Generator, kind: str, levels: list[Level], weights: FloatArray, new_slopes: bool
) -> Effect:
    shift, new = np.zeros(len(levels)), np.zeros((len(levels), len(weights)))
    parents = np.flatnonzero(weights)
    if new_slopes:
        drawn = rng.choice([-1, 1], (len(levels), len(parents)))
        drawn = drawn * rng.uniform(0.5, 1.5, drawn.shape)
        new[1:, parents] = drawn[1:] - weights[parents]  # the first level leaves them as they are
    elif kind == BENT or isinstance(levels[0], str):
        shift = rng.normal(size=len(levels))
    else:
        numbers = np.array(levels, dtype=float)
        line = (numbers - numbers.mean()) / numbers.std()
        shift = rng.normal() * line + 0.3 * rng.normal() * line**2
    return Effect(shift, new)


WORLDS = tuple(f"world-{kind}" for kind in KINDS)
SYSTEMS: dict[str, Callable[[int], System]] = {
    "tunnel": Tunnel,
    "sludge": Sludge,
    **{name: partial(World, kind) for name, kind in zip(WORLDS, KINDS, strict=True)},
}
