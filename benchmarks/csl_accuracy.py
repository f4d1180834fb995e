"""Accuracy of CSL on random systems: the table of graph errors by size, rounds and variant.

    python benchmarks/csl_accuracy.py [RUNS]

Systems are random_sem(N, seed=s) for s = 0, 1, ...; rounds are of uniformly random interventions;
metrics are of B (regime 0), as in the paper.
"""

from __future__ import annotations

import sys

import numpy as np
from joblib import Parallel, delayed

from causalarms.graphs.csl import csl
from causalarms.graphs.graph import graph_errors
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.statistics.dataset import Dataset

VARIANTS: dict[str, dict[str, bool]] = {
    "literal": {"joint": False},
    "joint": {},
    "joint, squares": {"squares": True},
    "CSL-nw": {"joint": False, "edge_weighting": False},
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
        fit = csl(data, noise_mean=sem.mechanism_mean, **settings)  # type: ignore[arg-type]
        found[name] = [float(v) for v in graph_errors(sem.adjacency[0], fit.adjacency[0])]
    return found


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
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


if __name__ == "__main__":
    main()
