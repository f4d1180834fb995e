"""How `posterior` decides, by "knowledge-gradient" and by "quantile", next to `linsem-ts`; paired.

`python benchmarks/knowledge_gradient.py [NAME ...] [--rounds 1500] [--runs 100] [--first 20100]
[--nodes 10]
[--told nothing|means|units|both] [--weights separated|uniform] [--degree D] [--regimes 2]
[--results FILE]`, all contestants but the last without a name, plays random_sem(N, seed=first + i);
a file of results is continued. `linsem-ts` is always told the graph and the noise means,
`csl-ucb` the means unless nothing or only the units are told. `knowledge-gradient-graph` is
`knowledge-gradient` that is told the graph as well: what is left is the price of everything else.
Its constants were chosen on seeds from 10_000. Regret is in units of best minus average reward, but
for the last columns.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from causalarms.policies.registry import make_policy
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.simulate import simulate
from shared import ratio_interval, table
from told_units import TOLD

FloatArray = npt.NDArray[np.float64]
FIRST_SEED = 20_100  # seeds before were looked at when constants were chosen
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "quantile": ("posterior", {"decide": "quantile"}),
    "knowledge-gradient": ("posterior", {"decide": "knowledge-gradient"}),
    "csl-ucb": ("csl-ucb", {}),
    "linsem-ts": ("linsem-ts", {}),
    "knowledge-gradient-graph": ("posterior", {"decide": "knowledge-gradient"}),
}
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
        if policy == "linsem-ts":
            return {"graph": sem.adjacency, "noise_mean": sem.noise_mean}
        told: dict[str, Any] = {"noise_mean": sem.noise_mean} if self.told in MEANS else {}
        if policy == "csl-ucb":
            return told | {"horizon": self.rounds}
        if name == TOLD_GRAPH:
            told |= {"allowed": sem.adjacency, "required": sem.adjacency}
        units = 1.0 if self.told in UNITS else "estimate"
        return TOLD | told | {"noise_scale": units}


def played(name: str, seed: int, systems: Systems) -> dict[str, Any]:
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
        "seed": seed,
        "regret": [float(regret[min(mark, rounds) - 1]) for mark in MARKS],
        "raw": float(trace.regret[-1]),
        "locked": bool(trace.optimal[-LAST:].mean() < 0.5),
        "seconds": seconds,
    }


def records(
    names: list[str], seeds: range, systems: Systems, jobs: int, path: Path | None
) -> list[dict[str, Any]]:
    """System by system, so that what is there when it is interrupted is paired."""
    done: list[dict[str, Any]] = []
    if path is not None and path.exists():
        done = [json.loads(line) for line in path.read_text().splitlines()]
    known = {(record["policy"], record["seed"]) for record in done}
    work = [(name, seed) for seed in seeds for name in names if (name, seed) not in known]
    found = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(played)(name, seed, systems) for name, seed in work
    )
    for record in found:
        done.append(record)
        if path is not None:
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
    return done


def summary(done: list[dict[str, Any]], title: str) -> Table:
    """Of the systems that all contestants in the results have played."""
    names = [name for name in CONTESTANTS if any(r["policy"] == name for r in done)]
    seeds = set.intersection(*({r["seed"] for r in done if r["policy"] == name} for name in names))
    by_policy = {
        name: sorted(
            (r for r in done if r["policy"] == name and r["seed"] in seeds),
            key=lambda record: int(record["seed"]),
        )
        for name in names
    }
    regret = {name: np.array([r["regret"] for r in mine]) for name, mine in by_policy.items()}
    raw = {name: np.array([r["raw"] for r in mine]) for name, mine in by_policy.items()}
    references = [name for name in ("quantile", "linsem-ts") if name in names]
    made = table(
        f"{title}, {len(seeds)} systems", "decides by", "mean", "median", "worst", "locked",
        "at 20 / 60 / 300", "seconds", *(f"of {name}" for name in references),
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
    parser.add_argument("names", nargs="*", default=[])
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
    done = records(names, seeds, systems, given.jobs, given.results)
    Console(width=190).print(
        summary(done, ", ".join(f"{k} {v}" for k, v in systems._asdict().items()))
    )


if __name__ == "__main__":
    main()
