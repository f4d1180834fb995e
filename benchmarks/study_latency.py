"""Latency of asking late in a study, time to open it, and bytes per round.

python benchmarks/study_latency.py --rounds 10000 --nodes 10 20
Rounds before the measured ones are imported in blocks, so that the file is as long as a study of
that age; the policy learns from all of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from causalarms import Study, random_sem
from causalarms.rng import stream
from causalarms.sem.linear_sem import LinearSEM

ASKS = 20  # measured at each age: one refresh of the default policy falls into them


def ask_and_tell(study: Study, sem: LinearSEM) -> float:
    """One round; how long asking took."""
    began = time.perf_counter()
    trial = study.ask()
    took = time.perf_counter() - began
    a = np.array([list(trial.intervention.values())], dtype=np.uint8)
    study.tell(trial, sem.sample(a, stream(7, "noise", trial.number))[0])
    return took


def fill(study: Study, sem: LinearSEM, until: int, by_asking: bool) -> None:
    """Rounds up to number `until`: asked one by one, or imported where that would take hours."""
    missing = until - len(study.ledger().trials)
    if by_asking:
        for _ in range(missing):
            ask_and_tell(study, sem)
    else:
        rng = stream(5, "past", until)
        a = rng.integers(0, 2, (missing, sem.n_nodes), dtype=np.uint8)
        x = sem.sample(a, rng)
        columns = {node: x[:, i].tolist() for i, node in enumerate(sem.nodes)}
        flags = {f"do:{node}": a[:, i].tolist() for i, node in enumerate(sem.nodes)}
        study.add_observations(columns | flags)


def measure(n_nodes: int, ages: list[int], folder: Path, by_asking: bool) -> list[dict[str, Any]]:
    sem = random_sem(n_nodes, seed=3)
    path = folder / f"{n_nodes}.db"
    records = []
    study = Study.create(
        path, nodes=sem.nodes, reward=sem.nodes[sem.reward], horizon=ages[-1] + 100, seed=1
    )
    for age in ages:
        fill(study, sem, age - ASKS, by_asking)
        for _ in range(2):  # the pending trial, then one that learns what was imported
            ask_and_tell(study, sem)
        times = np.array([ask_and_tell(study, sem) for _ in range(ASKS)])
        study.close()
        began = time.perf_counter()
        study = Study.open(path)
        opening = time.perf_counter() - began
        began = time.perf_counter()
        study.ask()
        first = time.perf_counter() - began
        records.append(
            {
                "nodes": n_nodes,
                "round": age,
                "rounds_were": "asked" if by_asking else "imported",
                "ask_median_ms": round(1e3 * float(np.median(times)), 2),
                "ask_worst_ms": round(1e3 * float(times.max()), 1),
                "open_s": round(opening, 3),
                "first_ask_after_open_s": round(first, 3),
                "bytes_per_round": round(path.stat().st_size / age),
            }
        )
        print(json.dumps(records[-1]), flush=True)
    study.close()
    return records


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--rounds", type=int, default=10_000)
    options = parser.parse_args()
    ages = [age for age in (100, 1000, 10_000) if age <= options.rounds]
    with tempfile.TemporaryDirectory() as folder:
        for n_nodes in options.nodes:
            measure(n_nodes, ages, Path(folder), by_asking=n_nodes < 15)


if __name__ == "__main__":
    main()
