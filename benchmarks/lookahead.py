"""`posterior` with decide="lookahead" beside "quantile" and `linsem-ts`, paired, N = 10.

`python benchmarks/lookahead.py [NAME ...] [--rounds 1500] [--runs 100] [--first 20005]
[--nothing-known] [--results FILE]`, all contestants without a name,
plays random_sem(10, seed=first + i); a file of results is gone on with. The constants of the
lookahead were chosen on seeds from 10_000. Regret is in units of best minus average reward.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from causalarms.policies.registry import make_policy
from causalarms.sem.ensembles import random_sem
from causalarms.simulation.simulate import simulate
from posterior_policy import ratio_interval, table

FIRST_SEED = 20_005  # those before were looked at when constants were chosen
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "quantile": ("posterior", {"decide": "quantile"}),
    "lookahead": ("posterior", {"decide": "lookahead"}),
    "lookahead, noise_shape 3": ("posterior", {"decide": "lookahead", "noise_shape": 3.0}),
    "linsem-ts": ("linsem-ts", {}),
}
MARKS = (20, 60, 300, 1500)
LAST = 100  # rounds; a run in which fewer than half of them are optimal is locked


def played(name: str, seed: int, rounds: int, nothing_known: bool) -> dict[str, Any]:
    """One run; `linsem-ts` is always told the graph and the noise means."""
    sem = random_sem(10, seed=seed)
    policy_name, settings = CONTESTANTS[name]
    told: dict[str, Any] = dict(settings)
    if policy_name == "linsem-ts":
        told |= {"graph": sem.adjacency, "noise_mean": sem.noise_mean}
    else:
        told |= {"noise_scale": "estimate"} if nothing_known else {"noise_mean": sem.noise_mean}
    policy = make_policy(policy_name, n_nodes=10, **told)
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
    names: list[str],
    seeds: range,
    rounds: int,
    nothing_known: bool,
    jobs: int,
    path: Path | None,
) -> list[dict[str, Any]]:
    """System by system, so that what is there when it is interrupted is paired."""
    done: list[dict[str, Any]] = []
    if path is not None and path.exists():
        done = [json.loads(line) for line in path.read_text().splitlines()]
    known = {(record["policy"], record["seed"]) for record in done}
    work = [(name, seed) for seed in seeds for name in names if (name, seed) not in known]
    found = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(played)(name, seed, rounds, nothing_known) for name, seed in work
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
    references = [name for name in ("quantile", "linsem-ts") if name in names]
    made = table(
        f"{title}, {len(seeds)} systems", "decides by", "mean", "median", "worst", "locked",
        "at 20 / 60 / 300", "seconds", *(f"of {name}" for name in references),
    )  # fmt: skip
    for name, mine in by_policy.items():
        values = regret[name][:, -1]
        ratios = []
        for other in references:
            reference = regret[other][:, -1]
            low, high = ratio_interval(values, reference)
            ratios.append(f"{values.mean() / reference.mean():.2f} ({low:.2f} - {high:.2f})")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--nothing-known", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    names = given.names or list(CONTESTANTS)
    seeds = range(given.first, given.first + given.runs)
    done = records(names, seeds, given.rounds, given.nothing_known, given.jobs, given.results)
    known = "means unknown, units estimated" if given.nothing_known else "means known, units 1"
    Console(width=150).print(summary(done, f"N = 10, T = {given.rounds}, {known}"))


if __name__ == "__main__":
    main()
