"""Joint CSL fits: growth in the number of nodes and in the number of rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table

from causalarms import CSL, random_sem
from timing import growth_exponent, median_time, readable

DEGREE = 4.5  # of the paper's ensemble at N = 10; denser large systems have values without bound
PER_NODE = 22  # rounds per node, 220 at N = 10: every mechanism has more samples than candidates


def rounds(n_nodes: int, n_rounds: int, how_many: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for seed in range(how_many):
        sem = random_sem(n_nodes, seed=seed, expected_degree=DEGREE)
        rng = np.random.default_rng(seed)
        A = rng.integers(0, 2, (n_rounds, n_nodes))
        found.append((sem.sample(A, rng), A, sem.noise_mean))
    return found


def fit(X: Any, A: Any, noise_mean: Any) -> None:
    CSL().fit(X, interventions=A, noise_mean=noise_mean)


def csl_in_nodes(quick: bool) -> Table:
    sizes = (10, 20, 30) if quick else (10, 20, 30, 50)
    fixed = PER_NODE * sizes[-1]
    table = Table(
        title="joint CSL fit by number of nodes (aim: 30 ms at N = 10 with 220 rounds)",
        min_width=80,
    )
    for heading in ("N", "rounds", "time", f"time with {fixed} rounds"):
        table.add_column(heading, justify="right")
    times, fixed_times = [], []
    for n in sizes:
        how_many = 2 if n >= 50 else 4 if n >= 30 else 11
        times.append(median_time(fit, rounds(n, PER_NODE * n, how_many)))
        same = n == sizes[-1]
        fixed_times.append(times[-1] if same else median_time(fit, rounds(n, fixed, how_many)))
        row = (n, PER_NODE * n, readable(times[-1]), readable(fixed_times[-1]))
        table.add_row(*map(str, row))
    table.caption = (
        f"growth exponent in N: {growth_exponent(sizes, fixed_times):.2f} at {fixed} rounds, "
        f"{growth_exponent(sizes, times):.2f} with the rounds growing along"
    )
    return table


def csl_in_rounds(quick: bool) -> Table:
    sizes = (220, 440, 880) if quick else (220, 440, 880, 1760, 3520)
    table = Table(title="joint CSL fit by number of rounds, N = 10", min_width=80)
    table.add_column("rounds", justify="right")
    table.add_column("time", justify="right")
    times = []
    for n in sizes:
        times.append(median_time(fit, rounds(10, n, 11)))
        table.add_row(str(n), readable(times[-1]))
    table.caption = f"growth exponent in t: {growth_exponent(sizes, times):.2f}"
    return table
