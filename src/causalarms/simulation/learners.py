"""Learners against each other on systems with known graphs (Sec. VI-A).

As in the paper, learners see rounds of random interventions, GOLEM and DAGMA rounds without any;
errors are of B, the natural graph. One unit of work is one repetition of one learner.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.checks import whole
from causalarms.errors import CausalArmsError, CausalArmsWarning, ModelError
from causalarms.graphs.graph import graph_errors
from causalarms.graphs.registry import make_learner
from causalarms.registry import part_of
from causalarms.rng import stream
from causalarms.simulation.described import plain, short_name
from causalarms.simulation.world import World
from causalarms.simulation.worlds import Worlds

KIND = "learners"
METRICS = ("false_negative", "precision", "recall", "nshd")
RANDOM, NONE, ALL_OR_NONE = "random", "none", "all-or-none"
SHOWN = (RANDOM, NONE, ALL_OR_NONE)
ONLY_WHOLE = ("golem", "dagma")  # learn from rounds in which all nodes are in the same regime


@dataclass(frozen=True)
class LearnerContestant:
    """A learner with its settings, under the label it has in tables.

    learner   a registered name, `module:Class`, a class, or a learner
    shown     rounds it learns from: of `random` interventions, `none`, or half with `all-or-none`;
              empty: as in the paper, `none` for golem and dagma, `random` for all others
    """

    learner: Any
    label: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    shown: str = ""

    def __post_init__(self) -> None:
        if self.shown not in ("", *SHOWN):
            raise ModelError(f"shown must be {', '.join(SHOWN)}, not {self.shown!r}")

    @property
    def name(self) -> str:
        if self.label or not isinstance(self.learner, str):
            return self.label or short_name(self.learner)
        return self.learner.rpartition(":")[2]

    @property
    def rounds_shown(self) -> str:
        return self.shown or (NONE if self.learner in ONLY_WHOLE else RANDOM)

    def make(self) -> Any:
        """A fresh learner."""
        if isinstance(self.learner, str) or callable(self.learner):
            return make_learner(part_of("learner", self.learner), **self.settings)
        if self.settings:
            raise ModelError(f"{self.name!r} is made already: give its settings to the class")
        from sklearn.base import clone

        return clone(self.learner)

    def told(self) -> dict[str, Any]:
        """Learner, settings and rounds as plain JSON values."""
        return {
            "learner": plain("learner", self.learner),
            "settings": plain(f"settings of {self.name}", self.settings),
            "shown": self.rounds_shown,
        }


@dataclass(frozen=True, kw_only=True)
class LearnerExperiment(Worlds):
    """Systems x learners, which see `rounds` rounds of each system."""

    rounds: int = 400
    learners: tuple[LearnerContestant, ...] = ()

    def __post_init__(self) -> None:
        if not self.learners:
            raise ModelError("a comparison needs at least one learner")
        twice = {name for name in self.names if self.names.count(name) > 1}
        if twice:
            raise ModelError(f"two learners are called {twice.pop()!r}; give one a label")
        whole("rounds", self.rounds, least=2)
        if self.changes:
            raise ModelError("changes: learners see systems that do not change")
        super().__post_init__()

    @property
    def names(self) -> list[str]:
        return [learner.name for learner in self.learners]

    def common_settings(self) -> dict[str, Any]:
        """The settings that all learners share."""
        record = super().settings()
        return {key: value for key, value in record.items() if key != "learners"} | {"kind": KIND}

    def settings(self) -> dict[str, Any]:
        learners = [{"label": c.label} | c.told() for c in self.learners]
        return self.common_settings() | {"learners": learners}

    def interventions(
        self, world: World, shown: str, rng: np.random.Generator
    ) -> npt.NDArray[np.uint8]:
        """(rounds, N)."""
        shape = (self.rounds, world.n_nodes)
        if shown == RANDOM:
            return rng.integers(0, world.regimes, shape, dtype=np.uint8)
        rows = np.zeros(shape, dtype=np.uint8)
        if shown == ALL_OR_NONE:
            rows[self.rounds // 2 :] = np.minimum(1, world.regimes - 1)
        return rows


def run_learner(
    experiment: LearnerExperiment, contestant: LearnerContestant, repetition: int
) -> dict[str, Any]:
    """One repetition of one learner as a record of plain JSON values."""
    world = experiment.world(repetition)
    shown = contestant.rounds_shown
    rng = stream(experiment.seed, "learner rounds", repetition)
    A = experiment.interventions(world, shown, rng)
    X = world.sample(A, rng)
    told: dict[str, Any] = dict(experiment.told_regimes(world))
    if experiment.knows_noise_mean:
        told["noise_mean"] = world.noise_mean
    record: dict[str, Any] = {
        "policy": contestant.name,
        "told": contestant.told(),
        "repetition": repetition,
        "nodes": world.n_nodes,
        "failed": None,
    }
    learner, start = contestant.make(), process_time()
    try:
        found = _fitted(learner, X, A, told, world)
    except Exception as error:  # of any learner: the others go on, and it is counted
        return record | {"failed": _words(error)}
    record["seconds"] = process_time() - start
    n_shown = 1 if shown == NONE else len(found)
    for regime, suffix in enumerate(("", "_intervened")[:n_shown]):
        errors = graph_errors(world.adjacency()[regime], found[regime])
        record |= {f"{metric}{suffix}": float(getattr(errors, metric)) for metric in METRICS}
    return record


def _fitted(
    learner: Any, X: Any, A: Any, told: dict[str, Any], world: World
) -> npt.NDArray[np.bool_]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CausalArmsWarning)  # remarks on single systems
        fit: Callable[..., Any] = learner.fit
        found = np.asarray(fit(X, interventions=A, **told).adjacency_)
    shape = world.adjacency().shape
    if found.shape != shape:
        raise ModelError(f"adjacency_ has shape {found.shape}, not {shape}")
    return found != 0


def _words(error: Exception) -> str:
    known = isinstance(error, CausalArmsError)
    return str(error) if known else f"{type(error).__name__}: {error}"
