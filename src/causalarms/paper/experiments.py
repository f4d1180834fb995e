"""What Sec. VI measures besides bandits, and the "67 % fewer samples" of the conclusions.

Graph identification (Sec. VI-A): CSL sees T rounds of uniformly random interventions; GOLEM and
DAGMA see T rounds of a = 0. Metrics are of B (regime 0), as in the paper; those of B' are recorded
for those that learn both. `GraphPosterior`, the default learner of this package, sees what CSL
sees.

Error of estimated rewards (Sec. VI-B): the paper does not say how the error is normalised or which
policy made the data. Here: rounds of uniformly random interventions; CSL (regimes apart, all
samples) after t rounds; the error is the mean over all 2^N interventions of |estimated - true
expected reward|, divided by the mean over them of |true - their average|. "FN error" means a
missing edge in either regime. Interventions whose learned B_a is cyclic have no estimate and are
left out.

Sample complexity (conclusions): the paper does not state the protocol. Here: the rounds each method
needs for the same accuracy of both graphs. CSL learns B and B' from one set of random
interventions; GOLEM needs half of its rounds at a = 0 and half at a = 1. The accuracy to reach is
CSL's mean recall over both regimes after 200 rounds.
"""

from __future__ import annotations

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, Interventions
from causalarms.graphs.continuous import threshold_to_dag
from causalarms.graphs.continuous.dagma import DAGMASettings, dagma
from causalarms.graphs.continuous.golem import golem
from causalarms.graphs.csl import CSLSettings, csl
from causalarms.graphs.graph import GraphErrors, graph_errors
from causalarms.models.linear import fit_weights, score_interventions
from causalarms.paper.settings import OUR_LEARNER, Settings
from causalarms.posterior.estimator import GraphPosterior
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.rewards import all_interventions
from causalarms.simulation.experiment import METRICS, Unit
from causalarms.simulation.results import Record
from causalarms.statistics.dataset import Dataset, Moments

METHODS = ("CSL", "CSL-nw", "GOLEM", "DAGMA", OUR_LEARNER)
COMPARED_BY_ROUNDS = ("CSL", "GOLEM")
REFERENCE = 200  # rounds of CSL
NAN = float("nan")


def _system(settings: Settings, n_nodes: int, key: str, *numbers: int) -> LinearSEM:
    return random_sem(n_nodes, seed=stream(settings.seed, key, *numbers), weights=settings.weights)


def _random_rounds(sem: LinearSEM, n_rounds: int, rng: np.random.Generator) -> Dataset:
    interventions = rng.integers(0, 2, (n_rounds, sem.n_nodes), dtype=np.uint8)
    return _rounds(sem.sample(interventions, rng), interventions)


def _rounds(values: FloatArray, interventions: Interventions) -> Dataset:
    data = Dataset(values.shape[1])
    data.append(values, interventions)
    return data


def _by_csl(sem: LinearSEM, data: Dataset, *, edge_weighting: bool = True) -> BoolArray:
    """The graphs of both regimes, (2, N, N)."""
    settings = CSLSettings(edge_weighting=edge_weighting)
    return csl(data, noise_mean=sem.mechanism_mean, settings=settings).adjacency


def _one_regime(
    method: str, sem: LinearSEM, regime: int, n_rounds: int, rng: np.random.Generator
) -> BoolArray:
    """The graph of one regime from rounds in which all nodes are in it, (N, N)."""
    samples = sem.sample(np.full((n_rounds, sem.n_nodes), regime, dtype=np.uint8), rng)
    covariance = np.cov(samples, rowvar=False, bias=True)
    least_squares = DAGMASettings(loss="least-squares")
    fitted = golem(covariance) if method == "GOLEM" else dagma(covariance, least_squares)
    found: BoolArray = threshold_to_dag(fitted.weights) != 0
    return found


def _errors(sem: LinearSEM, found: BoolArray) -> list[GraphErrors]:
    """By regime, of as many as were learned."""
    return [graph_errors(true, edges) for true, edges in zip(sem.adjacency, found, strict=False)]


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else NAN


# -- graph identification: one unit is one method, size and sample size of one repetition ----------


def graph_units(settings: Settings, runs: int) -> list[Unit]:
    return [
        (
            (_label(method, size, n_rounds), repetition),
            (settings, method, size, n_rounds, repetition),
        )
        for repetition in range(runs)
        for size in settings.sizes
        for n_rounds in settings.sample_sizes
        for method in METHODS
    ]


def _label(method: str, size: int, n_rounds: int) -> str:
    return f"{method} N={size} T={n_rounds}"


def graph_run(settings: Settings, method: str, size: int, n_rounds: int, repetition: int) -> Record:
    """Learn one graph and compare it with the truth."""
    sem = _system(settings, size, "graph system", size, repetition)
    rng = stream(settings.seed, "graph rounds", size, n_rounds, repetition)
    if method.startswith("CSL"):
        data = _random_rounds(sem, n_rounds, rng)
        estimates = _by_csl(sem, data, edge_weighting=method == "CSL")
    elif method == OUR_LEARNER:
        data = _random_rounds(sem, n_rounds, rng)
        learner = GraphPosterior().fit(
            data.values, interventions=data.regimes, noise_mean=sem.mechanism_mean
        )
        estimates = learner.adjacency_
    else:
        estimates = _one_regime(method, sem, 0, n_rounds, rng)[None]
    record: Record = {
        "policy": _label(method, size, n_rounds),
        "repetition": repetition,
        "method": method,
        "nodes": size,
        "rounds": n_rounds,
    }
    for errors, suffix in zip(_errors(sem, estimates), ("", "_intervened"), strict=False):
        record |= {f"{metric}{suffix}": float(getattr(errors, metric)) for metric in METRICS}
    return record


def graph_means(settings: Settings, records: list[Record]) -> list[Record]:
    """One row per method, size and sample size: means and standard errors of the metrics."""
    rows = []
    for n_rounds in settings.sample_sizes:
        for method in METHODS:
            for size in settings.sizes:
                chosen = [r for r in records if r["policy"] == _label(method, size, n_rounds)]
                row: Record = {
                    "method": method, "rounds": n_rounds, "nodes": size, "runs": len(chosen),
                }  # fmt: skip
                for metric in METRICS:
                    values = np.array([r[metric] for r in chosen])
                    row |= {metric: float(values.mean()), f"{metric}_se": _standard_error(values)}
                rows.append(row)
    return rows


# -- error of estimated rewards: one unit is one repetition ----------------------------------------


def error_units(settings: Settings, runs: int) -> list[Unit]:
    return [(("CSL", repetition), (settings, repetition)) for repetition in range(runs)]


def error_run(settings: Settings, repetition: int) -> Record:
    """Normalised errors and false negatives of one system at all times."""
    sem = _system(settings, settings.n_nodes, "system", repetition)
    rng = stream(settings.seed, "reward rounds", repetition)
    data = _random_rounds(sem, max(settings.error_rounds), rng)
    arms, truth = all_interventions(sem.n_nodes), sem.all_expected_rewards()
    scale = np.abs(truth - truth.mean()).mean()
    errors, missing = [], []
    for n_rounds in settings.error_rounds:
        known = _rounds(data.values[:n_rounds], data.regimes[:n_rounds])
        adjacency = _by_csl(sem, known)
        model = fit_weights(Moments.of(known), adjacency, noise_mean=sem.mechanism_mean)
        estimate = score_interventions(model, arms, sem.reward).mean
        # nan: the learned graph has a cycle under this intervention, so there is no estimate
        errors.append(float(np.nanmean(np.abs(estimate - truth)) / scale))
        missing.append(any(found.false_negative for found in _errors(sem, adjacency)))
    return {"policy": "CSL", "repetition": repetition, "error": errors, "missing": missing}


def error_means(settings: Settings, records: list[Record]) -> list[Record]:
    """One row per time and group."""
    rows = []
    for number, n_rounds in enumerate(settings.error_rounds):
        for group in (False, True):
            values = np.array(
                [r["error"][number] for r in records if r["missing"][number] is group]
            )
            rows.append(
                {
                    "round": n_rounds,
                    "false_negatives": group,
                    "systems": len(values),
                    "error": float(values.mean()) if len(values) else NAN,
                    "error_se": _standard_error(values),
                    "median_error": float(np.median(values)) if len(values) else NAN,
                }
            )
    return rows


# -- sample complexity: one unit is one method of one repetition, with all numbers of rounds -------


def sample_units(settings: Settings, runs: int) -> list[Unit]:
    return [((m, r), (settings, m, r)) for r in range(runs) for m in COMPARED_BY_ROUNDS]


def sample_run(settings: Settings, method: str, repetition: int) -> Record:
    """Mean recall and NSHD over both regimes at every number of rounds."""
    sem = _system(settings, settings.n_nodes, "system", repetition)
    recall, nshd = [], []
    for n_rounds in settings.budgets:
        rng = stream(settings.seed, "sample rounds", n_rounds, repetition)
        if method == "CSL":
            found = _by_csl(sem, _random_rounds(sem, n_rounds, rng))
        else:
            half = n_rounds // 2
            found = np.stack([_one_regime(method, sem, regime, half, rng) for regime in (0, 1)])
        errors = _errors(sem, found)
        recall.append(float(np.mean([e.recall for e in errors])))
        nshd.append(float(np.mean([e.nshd for e in errors])))
    return {"policy": method, "repetition": repetition, "recall": recall, "nshd": nshd}


def sample_means(settings: Settings, records: list[Record]) -> list[Record]:
    """One row per method and number of rounds."""
    return [
        {
            "method": method,
            "rounds": n_rounds,
            "recall": float(np.mean([r["recall"][i] for r in of])),
            "nshd": float(np.mean([r["nshd"][i] for r in of])),
        }
        for method in COMPARED_BY_ROUNDS
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
    # if it is never reached, the largest number tried: a lower bound of what is saved
    first = np.where(reached.any(axis=-1), reached.argmax(axis=-1), len(budgets) - 1)
    return 1 - REFERENCE / budgets[first]
