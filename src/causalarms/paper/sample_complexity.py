"""The "67 % fewer samples" of the conclusions, whose protocol the paper does not state.

Here: the rounds each method needs for the same accuracy of both graphs. CSL learns B and B' from
one set of random interventions; GOLEM needs half of its rounds at a = 0 and half at a = 1. The
accuracy to reach is CSL's mean recall over both regimes after 200 rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.graphs.continuous.golem import golem
from causalarms.graphs.continuous.numerics import threshold_to_dag
from causalarms.graphs.csl import csl
from causalarms.graphs.graph import graph_errors
from causalarms.paper.settings import Settings
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.statistics.dataset import Dataset

METHODS = ("CSL", "GOLEM")
REFERENCE = 200  # rounds of CSL

Record = dict[str, Any]


def units(settings: Settings, runs: int) -> list[tuple[tuple[str, int], tuple[Any, ...]]]:
    return [((m, r), (settings, m, r)) for r in range(runs) for m in METHODS]


def run(settings: Settings, method: str, repetition: int) -> Record:
    """Mean recall and NSHD over both regimes at every number of rounds."""
    sem = random_sem(
        settings.n_nodes,
        seed=stream(settings.seed, "system", repetition),
        weights=settings.weights,
    )
    recall, nshd = [], []
    for n_rounds in settings.budgets:
        rng = stream(settings.seed, "sample rounds", n_rounds, repetition)
        errors = [
            graph_errors(true, found)
            for true, found in zip(
                sem.adjacency, _estimate(method, sem, n_rounds, rng), strict=True
            )
        ]
        recall.append(float(np.mean([e.recall for e in errors])))
        nshd.append(float(np.mean([e.nshd for e in errors])))
    return {"policy": method, "repetition": repetition, "recall": recall, "nshd": nshd}


def _estimate(
    method: str, sem: LinearSEM, n_rounds: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    n_nodes = sem.n_nodes
    if method == "CSL":
        interventions = rng.integers(0, 2, (n_rounds, n_nodes), dtype=np.uint8)
        data = Dataset(n_nodes)
        data.append(sem.sample(interventions, rng), interventions)
        return csl(data, noise_mean=sem.mechanism_mean, joint=False).adjacency
    found = []
    for regime in (0, 1):
        samples = sem.sample(np.full((n_rounds // 2, n_nodes), regime), rng)
        covariance = np.cov(samples, rowvar=False, bias=True)
        found.append(threshold_to_dag(golem(covariance).weights) != 0)
    return np.stack(found)


def collect(records: list[Record], settings: Settings) -> list[Record]:
    """One row per method and number of rounds."""
    return [
        {
            "method": method,
            "rounds": n_rounds,
            "recall": float(np.mean([r["recall"][i] for r in of])),
            "nshd": float(np.mean([r["nshd"][i] for r in of])),
        }
        for method in METHODS
        for of in [[r for r in records if r["policy"] == method]]
        for i, n_rounds in enumerate(settings.budgets)
    ]


def fewer(
    csl_recall: npt.NDArray[np.float64],  # (..., system, budget)
    golem_recall: npt.NDArray[np.float64],
    settings: Settings,
) -> npt.NDArray[np.float64]:
    """Share of GOLEM's rounds that CSL saves; at least, where GOLEM never gets there."""
    budgets = np.array(settings.budgets)
    target = csl_recall.mean(axis=-2)[..., settings.budgets.index(REFERENCE)]
    reached = golem_recall.mean(axis=-2) >= target[..., None]
    first = np.where(reached.any(axis=-1), reached.argmax(axis=-1), len(budgets) - 1)
    return 1 - REFERENCE / budgets[first]
