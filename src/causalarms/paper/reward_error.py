"""Figure of Sec. VI-B: the error of estimated rewards with and without false negatives.

The paper does not say how the error is normalised or which policy made the data. Here: rounds of
uniformly random interventions; CSL (regimes apart, all samples) after t rounds; the error is the
mean over all 2^N interventions of |estimated - true expected reward|, divided by the mean over them
of |true - their average|. "FN error" means a missing edge in either regime. Interventions whose
learned B_a is cyclic have no estimate and are left out.
"""

from __future__ import annotations

import numpy as np

from causalarms.graphs.csl import CSLSettings, csl
from causalarms.graphs.graph import graph_errors
from causalarms.models.linear import fit_weights, score_interventions
from causalarms.paper.settings import Settings
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.rewards import all_interventions
from causalarms.simulation.experiment import Unit
from causalarms.simulation.results import Record
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.moments import Moments

LABEL = "CSL"


def units(settings: Settings, runs: int) -> list[Unit]:
    """One unit per repetition."""
    return [((LABEL, repetition), (settings, repetition)) for repetition in range(runs)]


def run(settings: Settings, repetition: int) -> Record:
    """Normalised errors and false negatives of one system at all times."""
    n_nodes = settings.n_nodes
    sem = random_sem(
        n_nodes, seed=stream(settings.seed, "system", repetition), weights=settings.weights
    )
    rng = stream(settings.seed, "reward rounds", repetition)
    interventions = rng.integers(0, 2, (max(settings.error_rounds), n_nodes), dtype=np.uint8)
    samples = sem.sample(interventions, rng)
    arms, truth = all_interventions(n_nodes), sem.all_expected_rewards()
    scale = np.abs(truth - truth.mean()).mean()
    errors, missing = [], []
    for n_rounds in settings.error_rounds:
        data = Dataset(n_nodes)
        data.append(samples[:n_rounds], interventions[:n_rounds])
        adjacency = csl(
            data, noise_mean=sem.mechanism_mean, settings=CSLSettings(joint=False)
        ).adjacency
        model = fit_weights(Moments.of(data), adjacency, noise_mean=sem.mechanism_mean)
        estimate = score_interventions(model, arms, sem.reward).mean
        errors.append(float(np.nanmean(np.abs(estimate - truth)) / scale))
        missing.append(
            any(
                graph_errors(true, found).false_negative
                for true, found in zip(sem.adjacency, adjacency, strict=True)
            )
        )
    return {"policy": LABEL, "repetition": repetition, "error": errors, "missing": missing}


def collect(records: list[Record], settings: Settings) -> list[Record]:
    """One row per time and group."""
    rows = []
    for number, n_rounds in enumerate(settings.error_rounds):
        for group in (False, True):
            values = np.array(
                [r["error"][number] for r in records if r["missing"][number] is group]
            )
            spread = values.std(ddof=1) if len(values) > 1 else float("nan")
            rows.append(
                {
                    "round": n_rounds,
                    "false_negatives": group,
                    "systems": len(values),
                    "error": float(values.mean()) if len(values) else float("nan"),
                    "error_se": float(spread / np.sqrt(len(values))) if len(values) else np.nan,
                    "median_error": float(np.median(values)) if len(values) else float("nan"),
                }
            )
    return rows
