"""Rounds of uniformly random interventions on a random system, for the tests of learners."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms import LinearSEM, random_sem


class RandomRounds(NamedTuple):
    sem: LinearSEM
    X: npt.NDArray[np.float64]
    A: npt.NDArray[np.int64]


def random_rounds(n_nodes: int, n_rows: int, seed: int, **ensemble: Any) -> RandomRounds:
    sem = random_sem(n_nodes, seed=seed, **ensemble)
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n_rows, n_nodes))
    return RandomRounds(sem, sem.sample(A, rng), A)
