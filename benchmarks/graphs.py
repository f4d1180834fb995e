"""How well graphs are learned.

`python benchmarks/graphs.py csl|learners|weak [options]`; each has --help.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from causalarms import CSL, GraphPosterior, LinearSEM, random_sem
from causalarms.graphs.continuous import threshold_to_dag
from causalarms.graphs.continuous.dagma import DAGMASettings, dagma
from causalarms.graphs.continuous.golem import golem
from causalarms.graphs.csl import CSLSettings, csl
from causalarms.graphs.graph import graph_errors
from causalarms.posterior.dag import keep_per_edge, keep_whole_graph
from causalarms.rng import stream
from causalarms.statistics.dataset import Dataset
from shared import run_part

VARIANTS = {
    "CSL": CSLSettings(),
    "joint": CSLSettings(joint=True),
    "joint, squares": CSLSettings(joint=True, squares=True),
    "CSL-nw": CSLSettings(edge_weighting=False),
}
SIZES = (6, 8, 10, 12, 14)
ROUNDS = (200, 400)


def errors(size: int, n_rounds: int, seed: int) -> dict[str, list[float]]:
    sem = random_sem(size, seed=seed)
    rng = stream(seed, "rounds", size, n_rounds)
    regimes = rng.integers(0, 2, (n_rounds, size), dtype=np.uint8)
    data = Dataset(size)
    data.append(sem.sample(regimes, rng), regimes)
    found = {}
    for name, settings in VARIANTS.items():
        fit = csl(data, noise_mean=sem.mechanism_mean, settings=settings)
        found[name] = [float(v) for v in graph_errors(sem.adjacency[0], fit.adjacency[0])]
    return found


def main_csl() -> None:
    """Accuracy of CSL on random systems: the table of graph errors by size, rounds and variant.

        python benchmarks/graphs.py csl [--runs 100]

    Systems are random_sem(N, seed=s) for s = 0, 1, ...; rounds are of uniformly random
    interventions; metrics are of B (regime 0), as in the paper.
    """
    parser = argparse.ArgumentParser(
        description=main_csl.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100, help="number of systems")
    runs = parser.parse_args().runs
    print(f"{runs} systems; graph-FN rate / precision / recall / NSHD of B")
    for size in SIZES:
        for n_rounds in ROUNDS:
            records = Parallel(n_jobs=-1)(
                delayed(errors)(size, n_rounds, seed) for seed in range(runs)
            )
            for name in VARIANTS:
                mean = np.mean([record[name] for record in records], axis=0)
                cells = " / ".join(f"{value:.3f}" for value in mean)
                print(f"N={size:2d} T={n_rounds} {name:15s} {cells}", flush=True)


Array = npt.NDArray[Any]

PER_EDGE = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5)
WHOLE_GRAPH = (0.01, 0.05, 0.1, 0.3)
METRICS = ("precision", "recall")


class Found(NamedTuple):
    """A learned graph: (2, N, N), or (1, N, N) of B alone; `said` is its own chance of a miss."""

    method: str
    adjacency: Array
    said: float = float("nan")


def from_random_rounds(X: Array, A: Array, noise_mean: Array) -> Iterator[Found]:
    for name, joint in (("CSL", False), ("CSL, joint", True)):
        fit = CSL(joint=joint).fit(X, interventions=A, noise_mean=noise_mean)
        yield Found(name, fit.adjacency_)
    model = GraphPosterior(noise_scale=1.0).fit(X, interventions=A, noise_mean=noise_mean)
    for tolerance in PER_EDGE:
        kept = keep_per_edge(model.posterior_, tolerance, model.known_)
        yield Found(f"posterior, per edge {tolerance:g}", kept.adjacency, kept.misses)
    for tolerance in WHOLE_GRAPH:
        kept = keep_whole_graph(model.posterior_, tolerance, model.known_)
        yield Found(f"posterior, whole graph {tolerance:g}", kept.adjacency, kept.misses)


def from_natural_rounds(X: Array) -> Iterator[Found]:
    covariance = np.cov(X, rowvar=False, bias=True)
    for name, fit in (
        ("GOLEM", golem(covariance)),
        ("DAGMA, least squares", dagma(covariance, DAGMASettings(loss="least-squares"))),
        ("DAGMA, likelihood", dagma(covariance, DAGMASettings(loss="likelihood"))),
    ):
        yield Found(name, (threshold_to_dag(fit.weights) != 0)[None])


def learned(sem: LinearSEM, n_rounds: int, seed: int) -> Iterator[Found]:
    n = sem.n_nodes
    rng = stream(seed, "rounds", n, n_rounds)
    A = rng.integers(0, 2, (n_rounds, n), dtype=np.uint8)
    yield from from_random_rounds(sem.sample(A, rng), A, sem.noise_mean)
    yield from from_natural_rounds(sem.sample(np.zeros_like(A), rng))


def row(truths: list[Array], found: list[Found]) -> list[str]:
    natural = [graph_errors(t[0], f.adjacency[0]) for t, f in zip(truths, found, strict=True)]
    cells = [f"{np.mean([e.false_negative for e in natural]):.3f}", "-", "-"]
    if len(found[0].adjacency) == 2:
        missed = [(t & ~f.adjacency).any() for t, f in zip(truths, found, strict=True)]
        cells[1] = f"{np.mean(missed):.3f}"
    if not np.isnan(found[0].said):
        cells[2] = f"{np.mean([f.said for f in found]):.3f}"
    return cells + [f"{np.mean([getattr(e, m) for e in natural]):.3f}" for m in METRICS]


def main_learners() -> None:
    """What the posterior's tolerance buys: missed and surplus edges next to CSL, GOLEM and DAGMA.

    `OMP_NUM_THREADS=1 python benchmarks/graphs.py learners [--systems 100] [--sizes 6 10 14]
    [--rounds 200 400] [--weights separated]`; about 7 minutes on one core, 6 of them for N = 14.

    Systems and rounds of the paper: edges with probability 1/2, noise N(1, 1) with known mean and
    unknown variance, T rounds of uniformly random interventions for CSL and the posterior. GOLEM
    and DAGMA cannot use such rounds: they get T rounds without any intervention, and learn B only.
    Graph-FN is the fraction of systems in which any true edge is missing: of B, as in the paper,
    and of either graph. "said" is what the posterior itself expected of the latter. Precision and
    recall are of B.
    """
    parser = argparse.ArgumentParser(
        description=main_learners.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=[6, 10, 14])
    parser.add_argument("--rounds", type=int, nargs="+", default=[200, 400])
    parser.add_argument("--weights", default="separated", choices=("separated", "uniform"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the learners' remarks on single systems
    console = Console(width=110)
    for n in arguments.sizes:
        for n_rounds in arguments.rounds:
            truths, results = [], dict[str, list[Found]]()
            for seed in range(arguments.systems):
                sem = random_sem(n, seed=seed, weights=arguments.weights)
                truths.append(sem.adjacency)
                for found in learned(sem, n_rounds, seed):
                    results.setdefault(found.method, []).append(found)
            table = Table(
                title=f"N = {n}, T = {n_rounds}, {arguments.weights} weights, "
                f"{arguments.systems} systems"
            )
            table.add_column("method", min_width=30)
            for heading in ("graph-FN of B", "of B or B'", "said", *METRICS):
                table.add_column(heading, justify="right")
            for method, each in results.items():
                table.add_row(method, *row(truths, each))
            console.print(table)


WEIGHT_ENDS = (0.0, 0.1, 0.3, 0.5, 1.0, 2.0)
WEAK = 0.5  # no weight of the authors' program is weaker


def main_weak() -> None:
    """Which edges are missed: fractions of edges of B that are found, by the size of the weight.

    `OMP_NUM_THREADS=1 python benchmarks/graphs.py weak [--systems 12]`: weights of U(-2, 2), N = 6,
    10 and 14, T = 400. "missed" is the fraction of the missed edges that are weaker than 0.5.
    """
    parser = argparse.ArgumentParser(
        description=main_weak.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=12, help="number of systems of each size")
    runs = parser.parse_args().systems
    warnings.simplefilter("ignore")
    edges: dict[str, list[tuple[float, bool]]] = {}
    for n in (6, 10, 14):
        for seed in range(runs):
            sem = random_sem(n, seed=seed, weights="uniform")
            true, sizes = sem.adjacency[0], np.abs(sem.weights[0])
            for found in learned(sem, 400, seed):
                edges.setdefault(found.method, []).extend(
                    zip(sizes[true].tolist(), found.adjacency[0][true].tolist(), strict=True)
                )
    ends = list(pairwise(WEIGHT_ENDS))
    table = Table(title=f"{runs} systems of each size, {len(edges['CSL'])} edges")
    for heading in ("method", *(f"{low:g} - {high:g}" for low, high in ends), "missed"):
        table.add_column(heading, justify="right")
    for method, pairs in edges.items():
        size, is_found = np.array(pairs).T
        cells = [is_found[(size >= low) & (size < high)].mean() for low, high in ends]
        cells.append((size[is_found == 0] < WEAK).mean())
        table.add_row(method, *(f"{cell:.3f}" for cell in cells))
    Console(width=110).print(table)


def main() -> None:
    run_part(__doc__, {"csl": main_csl, "learners": main_learners, "weak": main_weak})


if __name__ == "__main__":
    main()
