"""What is compared: systems, how they change, and policies with exactly what each is told.

One unit of work is one repetition of one policy. Everything in it follows from the experiment's
settings, the repetition's number and the policy's name, so any engine gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from causalarms.changes.detector import misfits
from causalarms.checks import whole
from causalarms.errors import ModelError
from causalarms.policies.base import Policy
from causalarms.policies.registry import accepted_settings, make_policy, policy_factory
from causalarms.policies.stopping import Recommends, StopRule
from causalarms.registry import part_of
from causalarms.rng import stream
from causalarms.simulation.described import plain, short_name
from causalarms.simulation.settled import settled
from causalarms.simulation.simulate import Trace, simulate
from causalarms.simulation.world import World
from causalarms.simulation.worlds import Worlds

TRUTH = "true"  # as a setting: the policy is told the world's noise_std or restarts


@dataclass(frozen=True)
class Contestant:
    """A policy with its settings, under the label it has in tables.

    policy   a registered name, `module:Class`, or a class or function that makes a policy
    """

    policy: str | Callable[..., Policy]
    label: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (isinstance(self.policy, str) or callable(self.policy)):
            raise ModelError(
                f"a contestant is a policy's name, its class or a function that makes it, "
                f"not {self.policy!r:.60}"
            )

    @property
    def name(self) -> str:
        if self.label:
            return self.label
        own = self.policy.rpartition(":")[2] if isinstance(self.policy, str) else None
        return own or short_name(self.policy)

    @property
    def factory(self) -> Callable[..., Policy]:
        return policy_factory(part_of("policy", self.policy))

    def as_dict(self) -> dict[str, Any]:
        return {"policy": plain("policy", self.policy), "label": self.label} | {
            "settings": plain(f"settings of {self.name}", self.settings)
        }

    def told(self) -> dict[str, Any]:
        """Policy and settings as plain JSON values."""
        return {key: value for key, value in self.as_dict().items() if key != "label"}


@dataclass(frozen=True, kw_only=True)
class Experiment(Worlds):
    """Systems x policies.

    `knows_noise_mean` tells policies the noise means. With a `batch`, so many interventions are
    asked for before a result is told. A `stop` rule ends the learning of policies that say how sure
    they are; what they recommend is then played to the end of the horizon.
    """

    horizon: int = 1500
    block: int = 100  # rounds per point of the optimal share
    step: int = 10  # rounds per point of the regret curve
    contestants: tuple[Contestant, ...] = ()
    batch: int = 1
    stop: StopRule | None = None

    def __post_init__(self) -> None:
        if not self.contestants:
            raise ModelError("an experiment needs at least one policy")
        twice = {name for name in self.names if self.names.count(name) > 1}
        if twice:
            raise ModelError(f"two policies are called {twice.pop()!r}; give one a label")
        if self.horizon < max(self.block, self.step):
            raise ModelError(
                f"the horizon of {self.horizon} rounds is shorter than a block of {self.block}"
            )
        whole("batch", self.batch, least=1)
        super().__post_init__()
        late = [c for c in self.changes if c >= self.horizon]
        if late:
            raise ModelError(f"the change after round {late[0]} is not within the horizon")

    @property
    def names(self) -> list[str]:
        """Labels of the contestants."""
        return [contestant.name for contestant in self.contestants]

    def policy(self, contestant: Contestant, world: World) -> Policy:
        """A fresh policy that is told what its settings ask for and no more."""
        factory, settings = contestant.factory, dict(contestant.settings)
        if isinstance(settings.get("learner"), str):
            settings["learner"] = part_of("learner", settings["learner"])
        accepted = accepted_settings(factory)
        told: dict[str, Any] = {"horizon": self.horizon} | self.told_regimes(world)
        if self.knows_noise_mean:
            told["noise_mean"] = world.noise_mean
        if "graph" in accepted:
            told["graph"] = world.adjacency()
        if "systems" in accepted:
            if not world.linear:
                raise ModelError(
                    f"{contestant.name!r} is told the systems, which do not say everything about "
                    "this world: mechanisms bend or nodes are hidden"
                )
            told |= {"systems": world.systems, "change_points": world.change_points}
        if settings.get("noise_std") == TRUTH:
            told["noise_std"] = world.noise_std
        if settings.get("restarts") == TRUTH:
            told["restarts"] = [
                (after, world.adjacency(number))
                for number, after in enumerate(world.change_points, start=1)
            ]
        return make_policy(
            part_of("policy", contestant.policy),
            n_nodes=world.n_nodes,
            reward=world.reward,
            **(settings | told),
        )

    def play(self, contestant: Contestant, repetition: int) -> tuple[World, Trace]:
        world = self.world(repetition)
        policy = self.policy(contestant, world)
        seed = int(stream(self.seed, "run", repetition).integers(2**62))
        stop = self.stop if isinstance(policy, Recommends) else None
        trace = simulate(
            policy, world, horizon=self.horizon, seed=seed, batch=self.batch, stop=stop
        )
        return world, trace

    def settings(self) -> dict[str, Any]:
        """All that determines the results, as plain JSON values."""
        return super().settings() | {"contestants": [c.as_dict() for c in self.contestants]}

    def later(self) -> tuple[str, ...]:
        return (*super().later(), "batch", "stop")

    @classmethod
    def _world_methods(cls) -> tuple[object, ...]:
        return (*super()._world_methods(), cls.policy, cls.play)

    @staticmethod
    def _plain_methods() -> tuple[object, ...]:
        return (*Worlds._plain_methods(), Experiment.policy, Experiment.play)

    def common_settings(self) -> dict[str, Any]:
        """The settings that all policies share."""
        return {key: value for key, value in self.settings().items() if key != "contestants"}


def run_unit(experiment: Experiment, contestant: Contestant, repetition: int) -> dict[str, Any]:
    """One repetition of one policy as a record of plain JSON values."""
    world, trace = experiment.play(contestant, repetition)
    return trace_record(experiment, contestant, repetition, world, trace)


def trace_record(
    experiment: Experiment, contestant: Contestant, repetition: int, world: World, trace: Trace
) -> dict[str, Any]:
    """What is kept of a run, of one that stopped as if what it recommends had been played on."""
    stopped = {} if experiment.stop is None else _stopped(experiment, trace)
    trace = settled(trace, world, experiment.horizon)
    regret = trace.regret
    last = trace.gap[-max(1, min(300, len(trace.gap) // 5)) :]
    spreads = [
        world.best_reward(number) - world.average_reward(number)
        for number in range(len(world.systems))
    ]
    at = np.arange(experiment.step, experiment.horizon + 1, experiment.step) - 1
    return {
        "policy": contestant.name,
        "told": contestant.told(),
        "repetition": repetition,
        "regret": float(regret[-1]),
        "simple_regret": float(trace.simple_regret[-1]),
        "optimal_share": float(trace.optimal.mean()),
        "final_optimal_share": float(trace.optimal_share(experiment.block)[-1]),
        "lasting_optimum": trace.rounds_to_lasting_optimum,
        "explored": int(trace.explored.sum()),
        "mean_last_gap": float(last.mean()),
        "linear_regret": bool(last.mean() > 0.01 * spreads[-1]),
        "random_regret": _random_regret(world, spreads, experiment.horizon),
        "alarms": [
            [int(a.round), int(a.regime), int(a.node), int(a.change_point), float(a.statistic)]
            for a in trace.alarms
        ],
        "misfits": [list(mechanism) for mechanism in misfits(trace.alarms)],
        "changes": [
            {"after": change.after, "mechanisms": [list(m) for m in change.mechanisms]}
            for change in world.changes
        ],
        "played_after": _played(trace, world),
        "regret_curve": [round(float(value), 6) for value in regret[at]],
        "optimal_curve": [float(v) for v in trace.optimal_share(experiment.block)],
    } | stopped


def _random_regret(world: World, spreads: list[float], horizon: int) -> float:
    """What uniformly random play loses in the whole run, on average."""
    ends = [min(point, horizon) for point in (*world.change_points, horizon)]
    rounds = np.diff([0, *ends])
    return float(rounds @ np.array(spreads))


def _stopped(experiment: Experiment, trace: Trace) -> dict[str, Any]:
    """When a run stopped, and how sure it was then; None where it did not."""
    played, found = len(trace.gap), trace.recommendation
    met = found is not None and experiment.stop is not None and experiment.stop.met(found)
    return {
        "stopped": played if met else None,
        "probability_best": None if found is None else float(found.probability),
        "expected_loss": None if found is None else float(found.expected_loss),
    }


def _played(trace: Trace, world: World) -> list[list[int]]:
    """Per change and changed mechanism, in how many rounds before the next change it was played."""
    ends = [*world.change_points, len(trace.gap)][1:]
    return [
        [int((trace.interventions[change.after : end, node] == regime).sum())
         for regime, node in change.mechanisms]
        for change, end in zip(world.changes, ends, strict=True)
    ]  # fmt: skip
