"""Small systems and loops for the tests of studies."""

from __future__ import annotations

from typing import Any

import numpy as np

from causalarms import LinearSEM, Study, random_sem
from causalarms.rng import stream
from causalarms.study.records import Trial

SEM = random_sem(3, seed=3)
NODES = ("heat", "stir", "yield")
SETTINGS: dict[str, Any] = {
    "nodes": NODES,
    "intervenable": NODES,  # the yield, too: as every node of the system that plays
    "reward": "yield",
    "policy": "csl-ucb",
    "seed": 1,
    "horizon": 200,
}


def result(trial: Trial, sem: LinearSEM = SEM) -> list[float]:
    """What the system gives in a trial, always the same."""
    a = np.array([list(trial.intervention.values())], dtype=np.uint8)
    values: list[float] = sem.sample(a, stream(7, "noise", trial.number))[0].tolist()
    return values


def play(study: Study, rounds: int, sem: LinearSEM = SEM) -> None:
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, result(trial, sem))


def state_of(study: Study) -> dict[str, Any]:
    """Everything the policy knows, comparable."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in study.policy.state().items()
    }
