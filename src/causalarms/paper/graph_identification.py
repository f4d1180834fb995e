"""Figures of Sec. VI-A: graph-FN rate, precision, recall and NSHD against the graph size.

CSL sees T rounds of uniformly random interventions; GOLEM and DAGMA see T rounds of a = 0.
Metrics are of B (regime 0), as in the paper; those of B' are recorded for CSL.
"""

from __future__ import annotations

import numpy as np

from causalarms.arrays import BoolArray
from causalarms.graphs.continuous.dagma import DAGMASettings, dagma
from causalarms.graphs.continuous.golem import golem
from causalarms.graphs.continuous.numerics import threshold_to_dag
from causalarms.graphs.csl import CSLSettings, csl
from causalarms.graphs.graph import graph_errors
from causalarms.paper.settings import Settings
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.experiment import METRICS, Unit
from causalarms.simulation.results import Record
from causalarms.statistics.dataset import Dataset

METHODS = ("CSL", "CSL-nw", "GOLEM", "DAGMA")


def units(settings: Settings, runs: int) -> list[Unit]:
    """One unit: one method, size and sample size of one repetition."""
    return [
        (
            (label(method, size, n_rounds), repetition),
            (settings, method, size, n_rounds, repetition),
        )
        for repetition in range(runs)
        for size in settings.sizes
        for n_rounds in settings.sample_sizes
        for method in METHODS
    ]


def label(method: str, size: int, n_rounds: int) -> str:
    """What a unit is called in the results file."""
    return f"{method} N={size} T={n_rounds}"


def run(settings: Settings, method: str, size: int, n_rounds: int, repetition: int) -> Record:
    """Learn one graph and compare it with the truth."""
    sem = random_sem(
        size,
        seed=stream(settings.seed, "graph system", size, repetition),
        weights=settings.weights,
    )
    rng = stream(settings.seed, "graph rounds", size, n_rounds, repetition)
    if method.startswith("CSL"):
        estimates = learn_by_csl(sem, n_rounds, rng, edge_weighting=method == "CSL")
    else:
        estimates = learn_one_regime(method, sem, 0, n_rounds, rng)[None]
    record: Record = {
        "policy": label(method, size, n_rounds),
        "repetition": repetition,
        "method": method,
        "nodes": size,
        "rounds": n_rounds,
    }
    for regime, estimate in enumerate(estimates):
        errors = graph_errors(sem.adjacency[regime], estimate)
        suffix = "" if regime == 0 else "_intervened"
        record |= {f"{metric}{suffix}": float(getattr(errors, metric)) for metric in METRICS}
    return record


def learn_by_csl(
    sem: LinearSEM, n_rounds: int, rng: np.random.Generator, *, edge_weighting: bool = True
) -> BoolArray:
    """The graphs of both regimes from rounds of random interventions, (2, N, N).

    sem              the system that is sampled
    n_rounds         how many rounds
    rng              draws interventions and noise
    edge_weighting   False: CSL-nw of the paper
    """
    interventions = rng.integers(0, 2, (n_rounds, sem.n_nodes), dtype=np.uint8)
    data = Dataset(sem.n_nodes)
    data.append(sem.sample(interventions, rng), interventions)
    settings = CSLSettings(joint=False, edge_weighting=edge_weighting)
    fit = csl(data, noise_mean=sem.mechanism_mean, settings=settings)
    return fit.adjacency


def learn_one_regime(
    method: str, sem: LinearSEM, regime: int, n_rounds: int, rng: np.random.Generator
) -> BoolArray:
    """The graph of one regime from rounds in which all nodes are in it, (N, N).

    method     GOLEM or DAGMA
    sem        the system that is sampled
    regime     0 (natural) or 1
    n_rounds   how many rounds
    rng        draws the noise
    """
    samples = sem.sample(np.full((n_rounds, sem.n_nodes), regime, dtype=np.uint8), rng)
    covariance = np.cov(samples, rowvar=False, bias=True)
    least_squares = DAGMASettings(loss="least-squares")
    fitted = golem(covariance) if method == "GOLEM" else dagma(covariance, least_squares)
    found: BoolArray = threshold_to_dag(fitted.weights) != 0
    return found


def collect(records: list[Record], settings: Settings) -> list[Record]:
    """One row per method, size and sample size: means and standard errors of the metrics."""
    rows = []
    for n_rounds in settings.sample_sizes:
        for method in METHODS:
            for size in settings.sizes:
                chosen = [r for r in records if r["policy"] == label(method, size, n_rounds)]
                row: Record = {
                    "method": method, "rounds": n_rounds, "nodes": size, "runs": len(chosen),
                }  # fmt: skip
                for metric in METRICS:
                    values = np.array([r[metric] for r in chosen])
                    row[metric] = float(values.mean())
                    spread = values.std(ddof=1) if len(values) > 1 else float("nan")
                    row[f"{metric}_se"] = float(spread / np.sqrt(len(values)))
                rows.append(row)
    return rows
