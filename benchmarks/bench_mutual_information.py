"""Kraskov's estimate: the kernel, the plain loop over samples, and scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table
from sklearn.feature_selection._mutual_info import _compute_mi_cc

from causalarms.statistics.mutual_information import mutual_information, mutual_information_plain
from timing import growth_exponent, median_time, readable

SIZES = (100, 400, 1600, 6400)


def pairs(n: int, how_many: int) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(n)
    found: list[tuple[Any, ...]] = []
    for _ in range(how_many):
        x = rng.normal(size=n)
        found.append((x, 0.5 * x + rng.normal(size=n)))
    return found


def scikit_learn(x: Any, y: Any) -> Any:
    return _compute_mi_cc(x, y, 5)


def mutual_information_table(quick: bool) -> Table:
    sizes = SIZES[:-1] if quick else SIZES
    table = Table(title="mutual information, k = 5, fresh samples in every call")
    for heading in ("n", "time", "plain", "ratio (aim 100 at 400)"):
        table.add_column(heading, justify="right")
    for heading in ("scikit-learn", "ratio (aim 20 at 400)"):
        table.add_column(heading, justify="right")
    times = {}
    for n in sizes:
        few = 6 if n > 2000 else 15
        fast = median_time(mutual_information, pairs(n, 60 if quick else 200))
        plain = median_time(mutual_information_plain, pairs(n, few if n <= 2000 else 4))
        theirs = median_time(scikit_learn, pairs(n, few))
        times[n] = fast
        table.add_row(
            str(n),
            readable(fast),
            readable(plain),
            f"{plain / fast:.0f}",
            readable(theirs),
            f"{theirs / fast:.0f}",
        )
    ends = (400, sizes[-1])
    exponent = growth_exponent(ends, [times[n] for n in ends])
    table.caption = f"growth exponent from 400 to {ends[1]}: {exponent:.2f} (aim at most 1.25)"
    return table
