"""How `posterior` decides, by "knowledge-gradient" and by "quantile", next to `linsem-ts`; paired.

`python benchmarks/knowledge_gradient.py [NAME ...] [--rounds 1500] [--runs 100] [--first 20100]
[--nodes 10]
[--told nothing|means|units|both] [--weights separated|uniform] [--degree D] [--regimes 2]
[--results FILE]`, all contestants but the last without a name, plays random_sem(N, seed=first + i);
a file of results is continued. `linsem-ts` is always told the graph and the noise means, and so is
`linsem-quantile`, which has less regret and is the better measure of what could be reached.
`csl-ucb-joint` is told the means unless nothing or only the units are told.
`knowledge-gradient-graph` is `knowledge-gradient` that is told the graph as well: what is left is
the price of everything else.
Its constants were chosen on seeds from 10_000. Regret is in units of best minus average reward, but
for the last columns.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from causalarms.errors import CausalArmsError
from causalarms.policies.registry import make_policy
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.monte_carlo import Engine, run_units
from causalarms.simulation.results import Record, ResultStore
from causalarms.simulation.simulate import simulate
from shared import ratio_interval, show_progress, table
from told_units import TOLD

FloatArray = npt.NDArray[np.float64]
FIRST_SEED = 20_100  # seeds before were looked at when constants were chosen


CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "quantile": ("posterior", {"decide": "quantile"}),
    "knowledge-gradient": ("posterior", {"decide": "knowledge-gradient"}),
    "csl-ucb-joint": ("csl-ucb-joint", {}),
    "linsem-ts": ("linsem-ts", {}),
    "linsem-quantile": ("linsem-quantile", {}),
    "knowledge-gradient-graph": ("posterior", {"decide": "knowledge-gradient"}),
}
REFERENCES = ("quantile", "linsem-ts", "linsem-quantile")
TOLD_GRAPH = "knowledge-gradient-graph"
MARKS = (20, 60, 300, 1500)
MEANS, UNITS = ("means", "both"), ("units", "both")
LAST = 100  # rounds; a run in which fewer than half of them are optimal is locked


class Systems(NamedTuple):
    """Which systems, for how long, and what is told of them."""

    nodes: int
    rounds: int
    told: str
    weights: str
    degree: float | None
    regimes: int

    def make(self, seed: int) -> LinearSEM:
        return random_sem(
            self.nodes,
            seed=seed,
            weights=self.weights,
            expected_degree=self.degree,
            regimes=self.regimes,
        )

    def told_to(self, name: str, sem: LinearSEM) -> dict[str, Any]:
        policy, _ = CONTESTANTS[name]
        if policy in ("linsem-ts", "linsem-quantile"):
            return {"graph": sem.adjacency, "noise_mean": sem.noise_mean}
        told: dict[str, Any] = {"noise_mean": sem.noise_mean} if self.told in MEANS else {}
        if policy == "csl-ucb-joint":
            return told | {"horizon": self.rounds}
        if name == TOLD_GRAPH:
            told |= {"allowed": sem.adjacency, "required": sem.adjacency}
        units = 1.0 if self.told in UNITS else "estimate"
        return TOLD | told | {"noise_scale": units}


def played(name: str, seed: int, systems: Systems) -> Record:
    sem = systems.make(seed)
    policy_name, settings = CONTESTANTS[name]
    told = systems.told_to(name, sem)
    policy = make_policy(
        policy_name, n_nodes=systems.nodes, regimes=sem.regimes, **(told | settings)
    )
    rounds = systems.rounds
    start = process_time()
    trace = simulate(policy, sem, horizon=rounds, seed=seed)
    seconds = process_time() - start
    best = float(sem.expected_reward(sem.best_intervention()[None])[0])
    regret = trace.regret / (best - sem.average_reward())
    return {
        "policy": name,
        "repetition": seed,
        "regret": [float(regret[min(mark, rounds) - 1]) for mark in MARKS],
        "raw": float(trace.regret[-1]),
        "locked": bool(trace.optimal[-LAST:].mean() < 0.5),
        "seconds": seconds,
    }


def summary(done: list[Record], title: str) -> Table:
    """All have played the same systems."""
    names = [name for name in CONTESTANTS if any(r["policy"] == name for r in done)]
    by_policy = {name: [r for r in done if r["policy"] == name] for name in names}
    regret = {name: np.array([r["regret"] for r in mine]) for name, mine in by_policy.items()}
    raw = {name: np.array([r["raw"] for r in mine]) for name, mine in by_policy.items()}
    references = [name for name in REFERENCES if name in names]
    made = table(
        f"{title}, {len(done) // len(names)} systems",
        "decides by", "mean", "median", "worst", "locked", "at 20 / 60 / 300", "seconds",
        *(f"of {name}" for name in references),
        *(f"raw, of {name}" for name in references),
    )  # fmt: skip
    for name, mine in by_policy.items():
        values = regret[name][:, -1]
        ratios = [ratio(values, regret[other][:, -1]) for other in references]
        ratios += [ratio(raw[name], raw[other]) for other in references]
        made.add_row(
            name,
            f"{values.mean():.1f}",
            f"{np.median(values):.1f}",
            f"{values.max():.0f}",
            str(sum(r["locked"] for r in mine)),
            " / ".join(f"{value:.1f}" for value in regret[name].mean(axis=0)[:3]),
            f"{np.mean([r['seconds'] for r in mine]):.1f}",
            *ratios,
        )
    return made


def ratio(mine: FloatArray, reference: FloatArray) -> str:
    low, high = ratio_interval(mine, reference)
    return f"{mine.mean() / reference.mean():.2f} ({low:.2f} - {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=", ".join(CONTESTANTS))
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--told", choices=("nothing", "means", "units", "both"), default="nothing")
    parser.add_argument("--weights", default="separated")
    parser.add_argument("--degree", type=float, help="mean number of neighbours (half of all)")
    parser.add_argument("--regimes", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    systems = Systems(
        given.nodes, given.rounds, given.told, given.weights, given.degree, given.regimes
    )
    seeds = range(given.first, given.first + given.runs)
    names = given.names or [name for name in CONTESTANTS if name != TOLD_GRAPH]
    units = [((name, seed), (name, seed, systems)) for seed in seeds for name in names]
    try:
        store = ResultStore(given.results, systems._asdict())
        engine = Engine(n_jobs=given.jobs)
        run_units(played, units, store=store, engine=engine, on_result=show_progress)
    except CausalArmsError as error:
        sys.exit(f"error: {error}")
    done = [each for each in store.in_order(names, seeds.stop) if each["repetition"] in seeds]
    Console(width=190).print(
        summary(done, ", ".join(f"{k} {v}" for k, v in systems._asdict().items()))
    )


if __name__ == "__main__":
    main()
