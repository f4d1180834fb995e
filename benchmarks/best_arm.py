"""The best intervention by branch and bound: time, certificate, and what plain ascents find.

`python benchmarks/best_arm.py [--systems 20]`; weights are sign * U(0.5, 2), noise means 1. In the
systems called small, the weights into a node are divided by the root of their number: rewards stay
bounded, nothing is proven for dense systems of 60 nodes and more, and the climbs must be good.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from causalarms import LinearSEM, random_sem
from causalarms.sem import Constraints
from timing import readable

SIZES = (10, 20, 60, 100)
DENSITIES = {"dense (p = 1/2)": None, "sparse (degree 3)": 3.0}
ASCENTS = (20, 200)
HEADINGS = (
    "N", "edges", "weights", "constraint", "median", "largest", "proven", "gap", "20", "200",
)  # fmt: skip


def best_arm_table(sizes: Iterable[int], systems: int) -> Table:
    """One row per kind of system; processor time of one thread.

    The columns 20 and 200 say by how much the best of so many plain coordinate ascents lies below
    the answer, and the gap by how much another intervention may be better: medians, in units of
    best minus average reward.
    """
    table = Table(title=f"best intervention, {systems} systems per row", min_width=100)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    random_sem(5, seed=0).best_arm()  # compiled
    for n in sizes:
        for name, degree in DENSITIES.items():
            worlds = [random_sem(n, seed=seed, expected_degree=degree) for seed in range(systems)]
            table.add_row(str(n), name, "large", "", *measured(worlds, None))
            table.add_row("", "", "", f"at most {n // 4}", *measured(worlds, n // 4))
            small = [shrunk(sem) for sem in worlds]
            table.add_row("", "", "small", "", *measured(small, None))
    return table


def shrunk(sem: LinearSEM) -> LinearSEM:
    """The same system with rewards that stay bounded."""
    n_parents = np.maximum(1, (sem.weights != 0).sum(axis=1, keepdims=True))
    return sem.replace(weights=sem.weights / np.sqrt(n_parents))


def measured(worlds: list[LinearSEM], at_most: int | None) -> list[str]:
    times, gaps, proven = [], [], 0
    below: dict[int, list[float]] = {starts: [] for starts in ASCENTS}
    for sem in worlds:
        start = process_time()
        best = sem.best_arm(Constraints(at_most=at_most))
        times.append(process_time() - start)
        proven += best.exact
        scale = max(best.value - sem.average_reward(), 1e-300)
        gaps.append(best.gap / scale)
        if at_most is None:
            found = plain_ascents(sem, max(ASCENTS), np.random.default_rng(0))
            for starts in ASCENTS:
                below[starts].append((best.value - found[:starts].max()) / scale)
    return [
        readable(float(np.median(times))),
        readable(max(times)),
        f"{proven} of {len(worlds)}",
        f"{np.median(gaps):.2g}",
        *(f"{np.median(b):.1%} ({min(b):.1%})" if b else "" for b in below.values()),
    ]


def plain_ascents(sem: LinearSEM, starts: int, rng: np.random.Generator) -> np.ndarray:
    """Values of coordinate ascents from random interventions, all of them side by side."""
    weights, mean = sem.weights, sem.mechanism_mean
    a = rng.integers(0, 2, (starts, sem.n_nodes)).astype(np.uint8)
    x = sem.mean(a)
    while True:
        value = x[:, sem.reward]
        flow = np.zeros(x.shape)
        flow[:, sem.reward] = 1.0
        for k in sem.order[::-1]:
            gain = mean[1, k] - mean[0, k] + x @ (weights[1, :, k] - weights[0, :, k])
            gain *= flow[:, k]
            a[:, k] = np.where(gain == 0, a[:, k], gain > 0)
            flow += flow[:, k, None] * weights[a[:, k], :, k]
        x = sem.mean(a)
        if not (x[:, sem.reward] > value + 1e-12 * np.abs(value)).any():
            return np.maximum(value, x[:, sem.reward])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=20)
    Console(width=130).print(best_arm_table(SIZES, parser.parse_args().systems))
