"""Expected rewards of all 2^N interventions against one inverse for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table

from causalarms import LinearSEM, random_sem
from causalarms.sem.rewards import intervention_of
from timing import median_time, readable


def one_inverse_each(sem: LinearSEM, interventions: Any) -> list[float]:
    unit = np.eye(sem.n_nodes)
    return [
        float((np.linalg.inv(unit - sem.post_intervention_weights(a)).T @ sem.noise_mean)[-1])
        for a in interventions
    ]


def rewards_table(quick: bool) -> Table:
    table = Table(
        title="expected rewards of all interventions (aim: 100 ms at N = 20)", min_width=80
    )
    for heading in ("N", "interventions", "time", "one inverse each", "ratio"):
        table.add_column(heading, justify="right")
    for n in (10, 16) if quick else (10, 20):
        systems = [random_sem(n, seed=seed, expected_degree=4.5) for seed in range(8)]
        fast = median_time(LinearSEM.all_expected_rewards, [(sem,) for sem in systems])
        some = min(2**n, 2000)  # the rest by proportion
        rows = intervention_of(np.linspace(0, 2**n - 1, some).astype(int), n)
        each = median_time(one_inverse_each, [(sem, rows) for sem in systems[:4]]) * 2**n / some
        table.add_row(str(n), str(2**n), readable(fast), readable(each), f"{each / fast:.0f}")
    table.caption = "above 2000 interventions, the inverses are timed on 2000 and extrapolated"
    return table
