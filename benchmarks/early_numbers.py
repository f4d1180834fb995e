"""Are the numbers of a study true from the first rounds on?

`python benchmarks/early_numbers.py [--nodes 6 10] [--runs 200] [--weights separated]
[--results FILE]`. The policy of a new study plays random_sem(N, seed=30000 + i); at rounds 10, 20,
30, 100 and 300 it is asked what `best()` and `predict()` ask, with as many draws. Loss is in per
cent of best minus average reward. Beside the probability of being the best stands the share of
systems in which it was; both also among those that claim at least 0.9. A result file is gone on
with.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console

from causalarms.models.belief import summary
from causalarms.policies.registry import make_policy
from causalarms.policies.stopping import StopRule
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.rewards import intervention_of
from causalarms.simulation.simulate import OPTIMAL_WITHIN, simulate
from causalarms.study.settings import chosen_policy
from posterior_policy import table

ROUNDS = (10, 20, 30, 100, 300)
FIRST_SEED = 30_000
PREDICTED = 20  # random interventions
STOP = StopRule(probability=0.95, tolerance=OPTIMAL_WITHIN)


def looked_at(n_nodes: int, seed: int, weights: str, more: dict[str, Any]) -> list[dict[str, Any]]:
    """What is claimed at each of the rounds, beside what is true."""
    sem = random_sem(n_nodes, seed=seed, weights=weights)
    name, settings = chosen_policy(None, more, changes=False)
    policy = make_policy(name, n_nodes=n_nodes, **settings)
    rows = intervention_of(np.arange(2**n_nodes), n_nodes)
    truth = sem.expected_reward(rows)
    best, scale = float(truth.max()), float(truth.max() - truth.mean())
    asked = rows[stream(seed, "asked").integers(len(rows), size=PREDICTED)]
    nothing = np.zeros(len(rows))
    found: list[dict[str, Any]] = []
    stopped: list[bool] = []

    def look(round_: int, *_: object) -> None:
        if round_ % STOP.every == 0 and not stopped:
            said = STOP.look(policy)
            if said is not None and STOP.met(said):
                stopped.append(
                    best - float(sem.expected_reward(said.intervention[None])[0]) <= OPTIMAL_WITHIN
                )
        if round_ not in ROUNDS:
            return
        belief = policy.belief()
        if belief is None:
            return
        choice = belief.best(rows, sem.reward, nothing, tolerance=OPTIMAL_WITHIN)
        true = float(truth[choice.row])
        predicted = summary(belief.expected(asked))
        values = sem.mean(asked)
        inside = (predicted.low <= values) & (values <= predicted.high)
        found.append(
            {
                "nodes": n_nodes,
                "seed": seed,
                "round": round_,
                "claimed": choice.probability,
                "right": best - true <= OPTIMAL_WITHIN,
                "claimed loss": choice.expected_loss / scale,
                "loss": (best - true) / scale,
                "covered": bool(choice.reward.low <= true <= choice.reward.high),
                "reward covered": float(inside[:, sem.reward].mean()),
                "all covered": float(inside.mean()),
            }
        )

    simulate(policy, sem, horizon=ROUNDS[-1], seed=seed, on_round=look)
    found[-1]["stopped"] = stopped
    return found


def rows_of(records: list[dict[str, Any]], n_nodes: int) -> list[list[str]]:
    made = []
    for round_ in ROUNDS:
        mine = [r for r in records if r["round"] == round_ and r["nodes"] == n_nodes]
        keys = [key for key in mine[0] if key != "stopped"]
        column = {key: np.array([float(r[key]) for r in mine]) for key in keys}
        sure = column["claimed"] >= 0.9
        surely = [f"{column[key][sure].mean():.2f}" for key in ("claimed", "right") if sure.any()]
        made.append(
            [
                str(n_nodes),
                str(round_),
                f"{column['claimed'].mean():.2f} ({_mean(column['right'])})",
                f"{surely[0]} ({surely[1]}) of {sure.sum()}" if surely else "",
                f"{100 * column['claimed loss'].mean():.1f} ({100 * column['loss'].mean():.1f})",
                *(
                    f"{_mean(100 * column[key], digits=0)} %"
                    for key in ("covered", "reward covered", "all covered")
                ),
            ]
        )
    return made


def _mean(values: Any, digits: int = 2) -> str:
    error = values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():.{digits}f} +- {error:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[6, 10])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--weights", default="separated")
    parser.add_argument("--decide", default="")
    parser.add_argument("--noise-shape", type=float)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    more: dict[str, Any] = {"decide": given.decide} if given.decide else {}
    if given.noise_shape is not None:
        more["noise_shape"] = given.noise_shape
    records: list[dict[str, Any]] = []
    if given.results is not None and given.results.exists():
        records = [json.loads(line) for line in given.results.read_text().splitlines()]
    known = {(record["nodes"], record["seed"]) for record in records}
    seeds = range(FIRST_SEED, FIRST_SEED + given.runs)
    work = [(n, seed) for n in given.nodes for seed in seeds if (n, seed) not in known]
    for found in Parallel(n_jobs=given.jobs, return_as="generator")(
        delayed(looked_at)(n, seed, given.weights, more) for n, seed in work
    ):
        records += found
        if given.results is not None:
            with given.results.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in found)
    made = table(
        f"{given.runs} systems", "nodes", "round", "probability (right)", "where at least 0.9",
        "loss, % (true)", "best covered", "reward covered", "all nodes covered",
    )  # fmt: skip
    for n_nodes in given.nodes:
        for row in rows_of(records, n_nodes):
            made.add_row(*row)
    console = Console(width=140)
    console.print(made)
    for n_nodes in given.nodes:
        ends = [r["stopped"] for r in records if r["nodes"] == n_nodes and "stopped" in r]
        right = [found[0] for found in ends if found]
        console.print(
            f"{n_nodes} nodes, stopped at a probability of 0.95: {len(right)} of {len(ends)} runs, "
            f"{100 * np.mean(right):.0f} % of them at a best intervention"
        )


if __name__ == "__main__":
    main()
