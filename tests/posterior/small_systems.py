"""Rounds of small random systems and the posterior of them, for the tests in this folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms import LinearSEM, random_sem
from causalarms.posterior.exact import ExactPosterior
from causalarms.statistics.dataset import Dataset, Moments


def rounds(
    n_nodes: int, n_rows: int, seed: int
) -> tuple[LinearSEM, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    sem = random_sem(n_nodes, seed=seed)
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n_rows, n_nodes))
    return sem, sem.sample(A, rng), A


def moments_of(X: npt.ArrayLike, A: npt.ArrayLike) -> Moments:
    data = Dataset(np.shape(X)[1])
    data.append(X, A)
    return Moments.of(data)


def posterior_of(X: npt.ArrayLike, A: npt.ArrayLike, **settings: Any) -> ExactPosterior:
    return ExactPosterior(np.shape(X)[1], moments_of(X, A), **settings)
