"""What is compared: policies (`Experiment`) or learners of graphs (`LearnerExperiment`).

One unit of work is one repetition of one contestant. Everything in it follows from the experiment's
settings, the repetition's number and the contestant, so every engine gives the same bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any, ClassVar

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, Interventions
from causalarms.changes.detector import misfits
from causalarms.checks import choice, integer
from causalarms.errors import CausalArmsError, CausalArmsWarning, ModelError
from causalarms.graphs.graph import graph_errors
from causalarms.graphs.registry import make_learner
from causalarms.policies.base import Policy
from causalarms.policies.registry import accepted_settings, make_policy, policy_factory
from causalarms.policies.stopping import Recommends, StopRule
from causalarms.posterior.roots import factor_columns
from causalarms.registry import part_of
from causalarms.rng import stream
from causalarms.simulation.results import Record, plain, short_name
from causalarms.simulation.simulate import Trace, simulate
from causalarms.simulation.world import World
from causalarms.simulation.worlds import Worlds

Unit = tuple[tuple[str, int], tuple[Any, ...]]  # its key, and the arguments of `run_unit`

TRUTH = "true"  # as a setting: the policy is told the world's noise_std or restarts
LAST_ROUNDS, LAST_FRACTION = 300, 5  # a run still loses if it does in its last fifth, or 300 rounds
LOSING = 0.01  # of what random play loses per round

LEARNERS = "learners"  # the kind of a results file; one of policies says nothing
METRICS = ("false_negative", "precision", "recall", "nshd")
RANDOM, NONE, ALL_OR_NONE = "random", "none", "all-or-none"
SHOWN = (RANDOM, NONE, ALL_OR_NONE)
UNIFORM_LEARNERS = ("golem", "dagma")  # learn from rounds in which all nodes are in one regime


class Entry:
    """A policy or a learner with its settings, under the label it has in tables."""

    kind: ClassVar[str]  # of what it is: the name of its first field
    label: str
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        """The label or, without one, the short name of the policy or learner."""
        made_by = getattr(self, self.kind)
        own = made_by.rpartition(":")[2] if isinstance(made_by, str) else ""
        return self.label or own or short_name(made_by)

    def told(self) -> Record:
        """All that distinguishes its results, as plain JSON values."""
        return {
            self.kind: plain(self.kind, getattr(self, self.kind)),
            "settings": plain(f"settings of {self.name}", self.settings),
        }

    def as_dict(self) -> Record:
        """What it was told, with the label."""
        return {"label": self.label} | self.told()


class Comparison(Worlds):
    """Worlds x contestants: what experiments with policies and with learners share."""

    @property
    def entries(self) -> tuple[Any, ...]:
        """The contestants: policies or learners."""
        found: tuple[Any, ...] = getattr(self, self.entries_field)
        return found

    @property
    def names(self) -> list[str]:
        """Labels of the contestants."""
        return [entry.name for entry in self.entries]

    def units(self, runs: int) -> list[Unit]:
        """One unit per repetition and contestant."""
        return [
            ((entry.name, repetition), (self, entry, repetition))
            for repetition in range(runs)
            for entry in self.entries
        ]

    def settings(self) -> Record:
        """All that determines the results, as plain JSON values."""
        return self.common_settings() | {self.entries_field: [e.as_dict() for e in self.entries]}

    def check_entries(self) -> None:
        """ModelError if the settings of a contestant are wrong: before the first unit is run."""
        raise NotImplementedError

    def record(self, entry: Any, repetition: int) -> Record:
        """One repetition of one contestant as a record of plain JSON values."""
        raise NotImplementedError

    def _check_names(self, one: str, many: str) -> None:
        if not self.entries:
            raise ModelError(f"an experiment needs at least one {one}")
        twice = {name for name in self.names if self.names.count(name) > 1}
        if twice:
            raise ModelError(f"two {many} are called {twice.pop()!r}; give one a label")


def run_unit(experiment: Comparison, entry: Any, repetition: int) -> Record:
    """One unit of work, as a function that can be sent to other processes."""
    return experiment.record(entry, repetition)


# -- policies --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contestant(Entry):
    """A policy with its settings, under the label it has in tables.

    policy     a registered name, `module:Class`, or a class or function that makes a policy
    label      its name in tables; empty: that of the policy
    settings   of the policy, by name
    """

    kind: ClassVar[str] = "policy"

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
    def factory(self) -> Callable[..., Policy]:
        """What makes the policy."""
        return policy_factory(part_of("policy", self.policy))


@dataclass(frozen=True, kw_only=True)
class Experiment(Comparison):
    """Systems x policies; the settings of the systems are those of `Worlds`.

    horizon       rounds of a run
    block         rounds per point of the optimal fraction
    step          rounds per point of the regret curve
    contestants   the policies that are compared
    batch         how many interventions are asked for before a result is told
    stop          ends the learning of policies that say how sure they are; what they recommend is
                  then played to the end of the horizon
    """

    entries_field: ClassVar[str] = "contestants"

    horizon: int = 1500
    block: int = 100
    step: int = 10
    contestants: tuple[Contestant, ...] = ()
    batch: int = 1
    stop: StopRule | None = None

    def __post_init__(self) -> None:
        self._check_names("policy", "policies")
        if self.horizon < max(self.block, self.step):
            raise ModelError(
                f"the horizon of {self.horizon} rounds is shorter than a block of {self.block}"
            )
        integer("batch", self.batch, minimum=1)
        super().__post_init__()
        late = [c for c in self.changes if c >= self.horizon]
        if late:
            raise ModelError(f"the change after round {late[0]} is not within the horizon")

    def check_entries(self) -> None:
        # a policy refuses wrong settings when it is made: here, not after hours of runs
        world = self.world(0)
        for contestant in self.contestants:
            self.policy(contestant, world)

    def policy(self, contestant: Contestant, world: World) -> Policy:
        """A fresh policy that is told what its settings ask for and no more.

        contestant   which policy, with which settings
        world        what it will be played in
        """
        settings = dict(contestant.settings)
        if isinstance(settings.get("learner"), str):
            settings["learner"] = part_of("learner", settings["learner"])
        # what it is told of the truth follows from its signature: nobody is told by accident
        accepted = accepted_settings(contestant.factory)
        told: dict[str, Any] = {"horizon": self.horizon} | self.told_of(world)
        if world.factors is not None:
            told["constraints"] = world.constraints
            if "columns" in accepted:
                told["columns"] = factor_columns(world.factors, reward=world.reward)
                told.pop("noise_mean", None)  # means and shifts are learned together
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
        """One run round by round, and the world it was played in.

        contestant   the policy that plays
        repetition   number of the world and of the noise
        """
        world = self.world(repetition)
        policy = self.policy(contestant, world)
        # not the contestant's: all policies meet the same noise in a repetition
        seed = int(stream(self.seed, "run", repetition).integers(2**62))
        stop = self.stop if isinstance(policy, Recommends) else None
        trace = simulate(
            policy, world, horizon=self.horizon, seed=seed, batch=self.batch, stop=stop
        )
        return world, trace

    def record(self, entry: Contestant, repetition: int) -> Record:
        """What is kept of a run."""
        return trace_record(self, entry, repetition, *self.play(entry, repetition))


def trace_record(
    experiment: Experiment, contestant: Contestant, repetition: int, world: World, trace: Trace
) -> Record:
    """What is kept of a run; one that stopped goes on with what it recommends."""
    stopped = {} if experiment.stop is None else _stopped(experiment.stop, trace)
    trace = settled(trace, world, experiment.horizon)
    regret = trace.regret
    # a run that still loses at its end has settled on something worse than the best
    last = trace.gap[-max(1, min(LAST_ROUNDS, len(trace.gap) // LAST_FRACTION)) :]
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
        "linear_regret": bool(last.mean() > LOSING * spreads[-1]),
        # systems differ a hundredfold in scale; this makes their regrets comparable
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


def settled(trace: Trace, world: World, horizon: int) -> Trace:
    """A run that stopped, with what it recommends in all rounds that are left."""
    left = horizon - len(trace.gap)
    if not left or trace.recommendation is None:
        return trace
    a = np.asarray(trace.recommendation.intervention, dtype=np.uint8)
    lost = [
        world.best_reward(number) - float(world.expected_reward(a[None], number)[0])
        for number in range(len(world.systems))
    ]
    rounds = range(len(trace.gap) + 1, horizon + 1)
    return replace(
        trace,
        interventions=np.vstack([trace.interventions, np.tile(a, (left, 1))]),
        # these rounds were not played: nothing was observed
        observations=np.vstack([trace.observations, np.full((left, len(a)), np.nan)]),
        gap=np.append(trace.gap, [lost[world.number_at(t)] for t in rounds]),
        explored=np.append(trace.explored, np.zeros(left, dtype=bool)),
    )


def _random_regret(world: World, spreads: list[float], horizon: int) -> float:
    """What uniformly random play loses in the whole run, on average."""
    ends = [min(point, horizon) for point in (*world.change_points, horizon)]
    rounds = np.diff([0, *ends])
    return float(rounds @ np.array(spreads))


def _stopped(rule: StopRule, trace: Trace) -> Record:
    """When a run stopped, and how sure it was then; None if it did not."""
    found = trace.recommendation
    return {
        "stopped": len(trace.gap) if found is not None and rule.met(found) else None,
        "probability_best": None if found is None else float(found.probability),
        "expected_loss": None if found is None else float(found.expected_loss),
    }


def _played(trace: Trace, world: World) -> list[list[int]]:
    """Per change and changed mechanism, in how many rounds before the next change it was played."""
    # what is played after the next change says nothing about this one
    ends = [*world.change_points, len(trace.gap)][1:]
    return [
        [int((trace.interventions[change.after : end, node] == regime).sum())
         for regime, node in change.mechanisms]
        for change, end in zip(world.changes, ends, strict=True)
    ]  # fmt: skip


# -- learners (Sec. VI-A) --------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnerContestant(Entry):
    """A learner with its settings, under the label it has in tables.

    learner    a registered name, `module:Class`, a class, or a learner
    label      its name in tables; empty: that of the learner
    settings   of the learner, by name
    shown      rounds it learns from: of `random` interventions, `none`, or half with `all-or-none`;
               empty: as in the paper, `none` for golem and dagma, `random` for all others
    """

    kind: ClassVar[str] = "learner"

    learner: Any
    label: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    shown: str = ""

    def __post_init__(self) -> None:
        if self.shown:
            choice("shown", self.shown, SHOWN)

    @property
    def rounds_shown(self) -> str:
        """What `shown` says or, if it is empty, what the paper does."""
        return self.shown or (NONE if self.learner in UNIFORM_LEARNERS else RANDOM)

    def make(self) -> Any:
        """A fresh learner."""
        if isinstance(self.learner, str) or callable(self.learner):
            return make_learner(part_of("learner", self.learner), **self.settings)
        if self.settings:
            raise ModelError(f"{self.name!r} is made already: give its settings to the class")
        # what was given stays as it is: every unit fits a learner of its own
        from sklearn.base import clone

        return clone(self.learner)

    def told(self) -> Record:
        return super().told() | {"shown": self.rounds_shown}


@dataclass(frozen=True, kw_only=True)
class LearnerExperiment(Comparison):
    """Systems x learners; the settings of the systems are those of `Worlds`.

    As in the paper, learners see rounds of random interventions, GOLEM and DAGMA rounds without
    any; errors are of B, the natural graph.

    rounds     how many every learner sees of each system
    learners   those that are compared
    """

    entries_field: ClassVar[str] = "learners"

    rounds: int = 400
    learners: tuple[LearnerContestant, ...] = ()

    def __post_init__(self) -> None:
        self._check_names("learner", "learners")
        integer("rounds", self.rounds, minimum=2)
        if self.changes:
            raise ModelError("changes: learners see systems that do not change")
        super().__post_init__()

    def common_settings(self) -> Record:
        return super().common_settings() | {"kind": LEARNERS}

    def check_entries(self) -> None:
        for contestant in self.learners:
            made = contestant.make()
            if hasattr(made, "check_settings"):
                made.check_settings()

    def interventions(self, world: World, shown: str, rng: np.random.Generator) -> Interventions:
        """Those of the rounds that a learner sees, (rounds, N).

        world   whose nodes are intervened on
        shown   `random`, `none` or `all-or-none`
        rng     draws the random ones
        """
        shape = (self.rounds, world.n_nodes)
        if shown == RANDOM:
            return rng.integers(0, world.regimes, shape, dtype=np.uint8)
        rows = np.zeros(shape, dtype=np.uint8)
        if shown == ALL_OR_NONE:
            # a node without a switch stays natural
            rows[self.rounds // 2 :] = np.minimum(1, world.regimes - 1)
        return rows

    def record(self, entry: LearnerContestant, repetition: int) -> Record:
        """Errors of the graph that was learned, and the processor time of the fit."""
        world, shown = self.world(repetition), entry.rounds_shown
        if world.factors is not None:
            raise ModelError("learners are compared on systems without factors")
        # not the contestant's: all learners that are shown the same kind see the same rounds
        rng = stream(self.seed, "learner rounds", repetition)
        A = self.interventions(world, shown, rng)
        X = world.sample(A, rng)
        record: Record = {
            "policy": entry.name,
            "told": entry.told(),
            "repetition": repetition,
            "nodes": world.n_nodes,
            "failed": None,
        }
        # processor time: other units run on the same machine
        learner, start = entry.make(), process_time()
        try:
            found = _fitted(learner, X, A, self.told_of(world), world.adjacency().shape)
        except Exception as error:  # of any learner: the others go on, and it is counted
            known = isinstance(error, CausalArmsError)
            return record | {"failed": str(error) if known else f"{type(error).__name__}: {error}"}
        record["seconds"] = process_time() - start
        # rounds without interventions show nothing of B': its errors would mean nothing
        n_shown = 1 if shown == NONE else len(found)
        for regime, suffix in enumerate(("", "_intervened")[:n_shown]):
            errors = graph_errors(world.adjacency()[regime], found[regime])
            record |= {f"{metric}{suffix}": float(getattr(errors, metric)) for metric in METRICS}
        return record


def _fitted(
    learner: Any, X: FloatArray, A: Interventions, told: dict[str, Any], shape: Sequence[int]
) -> BoolArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CausalArmsWarning)  # remarks on single systems
        found = np.asarray(learner.fit(X, interventions=A, **told).adjacency_)
    if found.shape != shape:
        raise ModelError(f"adjacency_ has shape {found.shape}, not {shape}")
    return found != 0
