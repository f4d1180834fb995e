"""A small experiment that every engine must answer alike: 20 repetitions of three policies."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms import LinearSEM, random_sem
from causalarms.policies.simple import RandomPolicy
from causalarms.simulation.experiment import Contestant, Experiment
from causalarms.simulation.monte_carlo import monte_carlo

RUNS = 20
SMALL = Experiment(
    n_nodes=4,
    horizon=120,
    block=20,
    seed=3,
    contestants=(Contestant("csl-ucb"), Contestant("linsem-ts"), Contestant("ucb")),
)


class Mine(RandomPolicy):
    """A policy of a user."""


def sparse(rng: np.random.Generator) -> LinearSEM:
    return random_sem(4, seed=rng, expected_degree=1.5)


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    return rng.standard_t(5, shape)


OWN = Experiment(  # all parts are a user's
    systems=sparse,
    noise=["laplace", heavy],
    horizon=100,
    contestants=(Contestant(Mine), Contestant("random"), Contestant(f"{__name__}:Mine", "b")),
)
N_UNITS = RUNS * len(SMALL.contestants)


@cache
def reference() -> list[dict[str, Any]]:
    """All records, computed one after the other in this process."""
    return monte_carlo(SMALL, runs=RUNS, n_jobs=1)


def text(records: list[dict[str, Any]]) -> str:
    """Every digit of every record: equal texts are equal bits."""
    return json.dumps(records, sort_keys=True)
