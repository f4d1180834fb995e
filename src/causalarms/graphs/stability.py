"""How often an edge is found again in part of the data.

Resamples are drawn without replacement: rounds drawn twice would be nearest neighbours of
themselves at distance zero and distort the mutual information. 63.2 % of the rounds are as many
distinct ones as a bootstrap sample of full size holds.
"""

from __future__ import annotations

from math import e
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from causalarms.graphs.csl import csl
from causalarms.rng import stream
from causalarms.sem.regimes import Counts
from causalarms.statistics.dataset import Dataset

FRACTION = 1 - 1 / e

FloatArray = npt.NDArray[np.float64]


class Resampling(NamedTuple):
    """How rounds are drawn, and kept for each mechanism."""

    n_resamples: int
    seed: int
    max_samples: int | None
    keep: str


def edge_stability(
    values: FloatArray,
    regimes: npt.NDArray[np.uint8],
    counts: Counts,  # of regimes, (N,)
    settings: dict[str, object],
    resampling: Resampling,
    *,
    n_jobs: int | None,
) -> FloatArray:
    """Fraction of resamples in which each edge was found, among those that knew its mechanism."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_refit)(values, regimes, counts, settings, resampling, number)
        for number in range(resampling.n_resamples)
    )
    edges = np.sum([adjacency for adjacency, _ in found], axis=0, dtype=float)
    known = np.sum([known for _, known in found], axis=0, dtype=float)[:, None, :]
    return np.divide(edges, known, out=np.full_like(edges, np.nan), where=known > 0)


def _refit(
    values: FloatArray,
    regimes: npt.NDArray[np.uint8],
    counts: Counts,
    settings: dict[str, object],
    resampling: Resampling,
    number: int,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    rng = stream(resampling.seed, "resample", number)
    rows = np.sort(rng.choice(len(values), int(FRACTION * len(values)), replace=False))
    data = Dataset(
        values.shape[1], cap=resampling.max_samples, keep=resampling.keep, regimes=counts
    )
    data.append(values[rows], regimes[rows])
    fit = csl(data, **settings)  # type: ignore[arg-type]
    return fit.adjacency, fit.known
