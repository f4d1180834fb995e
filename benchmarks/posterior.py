"""The exact posterior over graphs: time and memory, calibration.

`OMP_NUM_THREADS=1 python benchmarks/posterior.py [speed|calibration ...] [--systems 40]`,
all topics without a name; errors of graphs are in `graph_identification.py`.
Systems are of the paper's ensemble: edges with probability 1/2, weights sign * U(0.5, 2), noise
N(1, 1) with known mean and unknown variance, rounds of uniformly random interventions.
"""

from __future__ import annotations

import argparse
import resource
import warnings
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from causalarms import LinearSEM, random_sem
from causalarms.posterior.exact import ExactPosterior, table_bytes
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.moments import Moments
from timing import readable

Array = npt.NDArray[Any]

BINS = 10


def rounds(n_nodes: int, n_rounds: int, seed: int) -> tuple[LinearSEM, Array, Array, Moments]:
    sem = random_sem(n_nodes, seed=seed)
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n_rounds, n_nodes)).astype(np.uint8)
    X = sem.sample(A, rng)
    data = Dataset(n_nodes)
    data.append(X, A)
    return sem, X, A, Moments.of(data)


def table(title: str, *headings: str) -> Table:
    made = Table(title=title, min_width=90)
    for heading in headings:
        made.add_column(heading, justify="right")
    return made


def speed(n_systems: int) -> Table:
    """Processor time; `one round` rescores the N mechanisms that one more round touches."""
    found = table(
        "time of a refresh, 400 rounds",
        *("N", "all mechanisms", "one round", "edge probabilities", "draw", "best graph"),
        *("tables, MB", "process at its peak, MB"),
    )
    for n in (10, 13, 15, 17, 18, 20):
        sem, X, A, moments = rounds(n, 400, 1)
        rng = np.random.default_rng(0)
        warm = ExactPosterior(4)
        _ = warm.draw(rng), warm.edge_probability, warm.most_probable()
        posterior = ExactPosterior(n, noise_mean=sem.noise_mean)
        times: list[float] = []

        def clocked(call: Any, repetitions: int = 1, times: list[float] = times) -> None:
            start = process_time()
            for _ in range(repetitions):
                call()
            times.append((process_time() - start) / repetitions)

        clocked(lambda p=posterior, m=moments: p.update(m))
        moments.add(X[0], A[0])
        clocked(lambda p=posterior, m=moments: p.update(m))
        clocked(lambda p=posterior: p.edge_probability)
        clocked(lambda p=posterior, r=rng: p.draw(r), 50)
        clocked(posterior.most_probable)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        megabytes = table_bytes(n) / 1e6
        found.add_row(str(n), *map(readable, times), f"{megabytes:.1f}", f"{peak:.0f}")
    return found


def calibration(n_systems: int) -> Table:
    """Among edges given probability p, the fraction that exists; the reward is known to be last."""
    n = 10
    sink = np.ones((n, n), dtype=bool)
    sink[n - 1] = False
    found = table(
        f"calibration, N = {n}, {n_systems} systems: edges, said, true",
        *("bin", "T = 50", "T = 100", "T = 200"),
    )
    cells = []
    for n_rounds in (50, 100, 200):
        said, true = [], []
        for seed in range(n_systems):
            sem, _, _, moments = rounds(n, n_rounds, seed)
            posterior = ExactPosterior(n, moments, noise_mean=sem.noise_mean, allowed=sink)
            there = np.broadcast_to(sink & ~np.eye(n, dtype=bool), (2, n, n))
            said.append(posterior.edge_probability[there])
            true.append(sem.adjacency[there])
        p, t = np.concatenate(said), np.concatenate(true)
        number = np.minimum((p * BINS).astype(int), BINS - 1)
        cells.append(
            [
                f"{(number == k).sum():6d}  {p[number == k].mean():.3f}  "
                f"{t[number == k].mean():.3f}"
                if (number == k).any()
                else "-"
                for k in range(BINS)
            ]
        )
    for k in range(BINS):
        found.add_row(f"{k / BINS:.1f} - {(k + 1) / BINS:.1f}", *(c[k] for c in cells))
    return found


TOPICS = {"speed": speed, "calibration": calibration}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", help=f"some of {', '.join(TOPICS)}")
    parser.add_argument("--systems", type=int, default=40)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the posterior's remarks on single systems
    console = Console(width=110)
    for topic in arguments.topics or TOPICS:
        console.print(TOPICS[topic](arguments.systems))


if __name__ == "__main__":
    main()
