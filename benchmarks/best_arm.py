"""The best intervention by branch and bound: time, tree nodes and certificate by size and density.

`python benchmarks/best_arm.py [--systems 20]`; weights are sign * U(0.5, 2), noise means 1.
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

SIZES = (10, 20, 40, 60, 100)
DENSITIES = {"dense (p = 1/2)": None, "sparse (degree 3)": 3.0}


def best_arm_table(sizes: Iterable[int], systems: int) -> Table:
    """One row per kind of system; processor time of one thread."""
    table = Table(title=f"best intervention, {systems} systems per row", min_width=90)
    for heading in (
        "N",
        "edges",
        "constraint",
        "median",
        "largest",
        "tree nodes",
        "most",
        "proven",
    ):
        table.add_column(heading, justify="right")
    random_sem(5, seed=0).best_arm()  # compiled
    for n in sizes:
        for name, degree in DENSITIES.items():
            worlds = [random_sem(n, seed=seed, expected_degree=degree) for seed in range(systems)]
            for limit in (None, n // 4):
                table.add_row(str(n), name, *measured(worlds, limit))
    return table


def measured(worlds: list[LinearSEM], at_most: int | None) -> list[str]:
    times, nodes, proven = [], [], 0
    for sem in worlds:
        start = process_time()
        best = sem.best_arm(Constraints(at_most=at_most))
        times.append(process_time() - start)
        nodes.append(best.nodes)
        proven += best.exact
    return [
        "" if at_most is None else f"at most {at_most}",
        readable(float(np.median(times))),
        readable(max(times)),
        f"{np.median(nodes):.0f}",
        str(max(nodes)),
        f"{proven} of {len(worlds)}",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=20)
    Console(width=110).print(best_arm_table(SIZES, parser.parse_args().systems))
