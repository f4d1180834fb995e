"""The "67 % fewer samples" of the conclusions, whose protocol the paper does not state.

Here: the rounds each method needs for the same accuracy of both graphs. CSL learns B and B' from
one set of random interventions; GOLEM needs half of its rounds at a = 0 and half at a = 1. The
accuracy to reach is CSL's mean recall over both regimes after 200 rounds.
"""

from __future__ import annotations

import numpy as np

from causalarms.arrays import BoolArray, FloatArray
from causalarms.graphs.graph import graph_errors
from causalarms.paper.graph_identification import learn_by_csl, learn_one_regime
from causalarms.paper.settings import Settings
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.experiment import Unit
from causalarms.simulation.results import Record

METHODS = ("CSL", "GOLEM")
REFERENCE = 200  # rounds of CSL


def units(settings: Settings, runs: int) -> list[Unit]:
    """One unit: one method of one repetition, with all numbers of rounds."""
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


def _estimate(method: str, sem: LinearSEM, n_rounds: int, rng: np.random.Generator) -> BoolArray:
    if method == "CSL":
        return learn_by_csl(sem, n_rounds, rng)
    half = n_rounds // 2
    return np.stack([learn_one_regime(method, sem, regime, half, rng) for regime in (0, 1)])


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


def fewer(csl_recall: FloatArray, golem_recall: FloatArray, settings: Settings) -> FloatArray:
    """Fraction of GOLEM's rounds that CSL saves; a lower bound if GOLEM never gets there.

    csl_recall     (..., system, budget)
    golem_recall   (..., system, budget)
    settings       of the reproduction
    """
    budgets = np.array(settings.budgets)
    target = csl_recall.mean(axis=-2)[..., settings.budgets.index(REFERENCE)]
    reached = golem_recall.mean(axis=-2) >= target[..., None]
    first = np.where(reached.any(axis=-1), reached.argmax(axis=-1), len(budgets) - 1)
    return 1 - REFERENCE / budgets[first]
