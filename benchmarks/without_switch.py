"""What it is worth to tell a policy which nodes have no switch.

`python benchmarks/without_switch.py [--runs 40] [--horizon 300] [--jobs 1]`. Random systems of ten
nodes, of which three or six have no switch. Told: `regimes=` says so, such a node has one mechanism
that every round informs. Not told: it has a switch that does nothing, which the policy sets as it
likes, and two mechanisms with half of the rounds each. Paired: the same systems and the same noise.
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from rich.console import Console

from causalarms import LinearSEM, make_policy, random_sem
from causalarms.rng import stream
from causalarms.simulation.simulate import simulate
from posterior_policy import ratio_interval, table
from told_units import TOLD

N_NODES = 10
FloatArray = npt.NDArray[np.float64]
KNOWLEDGE: dict[str, dict[str, Any]] = {
    "noise means known": {"noise_mean": 1.0},
    "nothing known": {"noise_scale": "estimate"},
}


def pair(n_without: int, repetition: int) -> tuple[LinearSEM, LinearSEM]:
    """A system, and the same with idle switches."""
    rng = stream(0, "without switch", n_without, repetition)
    regimes = np.full(N_NODES, 2)
    regimes[rng.choice(N_NODES, n_without, replace=False)] = 1
    sem = random_sem(N_NODES, seed=rng, regimes=regimes)
    weights = sem.weights.copy()
    weights[1][:, regimes == 1] = weights[0][:, regimes == 1]
    return sem, LinearSEM(weights=weights, noise_mean=sem.noise_mean, order=sem.order)


def run(n_without: int, repetition: int, horizon: int, told: dict[str, Any]) -> FloatArray:
    """Regret and seconds, told and not."""
    found = []
    for sem in pair(n_without, repetition):
        policy = make_policy("posterior", n_nodes=N_NODES, regimes=sem.regimes, **(TOLD | told))
        start = perf_counter()
        trace = simulate(policy, sem, horizon=horizon, seed=repetition)
        found.append((float(trace.regret[-1]), perf_counter() - start))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--horizon", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    shown = table(
        f"regret of `posterior` after {arguments.horizon} rounds, {arguments.runs} systems",
        "knowledge", "without switch", "told", "not told", "told / not told", "95 %",
        "seconds told", "not told",
    )  # fmt: skip
    for words, told in KNOWLEDGE.items():
        for n_without in (3, 6):
            results = np.array(
                Parallel(n_jobs=arguments.jobs)(
                    delayed(run)(n_without, repetition, arguments.horizon, told)
                    for repetition in range(arguments.runs)
                )
            )  # (runs, told or not, regret and seconds)
            (mine, other), (fast, slow) = results[:, :, 0].T, results[:, :, 1].T
            low, high = ratio_interval(mine, other)
            shown.add_row(
                words, str(n_without), f"{mine.mean():.0f}", f"{other.mean():.0f}",
                f"{mine.mean() / other.mean():.2f}", f"{low:.2f}-{high:.2f}",
                f"{fast.mean():.1f}", f"{slow.mean():.1f}",
            )  # fmt: skip
    Console(width=120).print(shown)


if __name__ == "__main__":
    main()
