"""Is a mechanism that changes slowly noticed, and what does it cost?

`python benchmarks/drift.py [--nodes 6] [--runs 40] [--over 1 30 100 300] [--jobs 1]`. After round
300 the weights of three mechanisms move in equal steps, over so many rounds, to those of
`switching_world`; the system then stays. `posterior-cd` has the settings of a new study with
changes=True, `posterior` those of one without. An alarm of a changed mechanism from the first step
to 300 rounds after the last one counts. Mechanisms that no round of that time played are not
counted. Regret is of the 300 rounds after the last step, in units of best minus average reward
there; the last column is the share of runs that play a best intervention in most of the last 50
rounds.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console

from causalarms.policies.registry import make_policy
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.simulate import simulate
from causalarms.simulation.world import World, switching_world
from causalarms.study.settings import chosen_policy
from posterior_policy import table

START, AFTER, LAST = 300, 300, 50
FIRST_SEED = 40_000


def drifting_world(sem: LinearSEM, over: int, rng: np.random.Generator) -> World:
    """In steps after rounds START, START + 1, ...; the same ends for every length."""
    last = switching_world(sem, [START], rng).systems[-1]
    systems = [sem]
    for step in range(1, over):
        part = step / over
        weights = sem.weights + part * (last.weights - sem.weights)
        systems.append(
            LinearSEM(
                weights=weights,
                noise_mean=sem.noise_mean,
                noise_std=sem.noise_std,
                nodes=sem.nodes,
                reward=sem.reward,
            )
        )
    return World([*systems, last], list(range(START, START + over)))


def played(changes: bool, over: int, n_nodes: int, seed: int) -> dict[str, Any]:
    sem = random_sem(n_nodes, seed=seed)
    world = drifting_world(sem, over, stream(seed, "drift"))
    name, settings = chosen_policy(None, None, changes=changes)
    policy = make_policy(name, n_nodes=n_nodes, **settings)
    end = START + over + AFTER
    trace = simulate(policy, world, horizon=end, seed=seed)
    changed = set(World([sem, world.systems[-1]], [START]).changes[0].mechanisms)
    since = trace.interventions[START:]
    counted = {(r, i) for r, i in changed if (since[:, i] == r).any()}
    found: dict[tuple[int, int], int] = {}
    false = 0
    for alarm in policy.alarms:
        named = set(alarm.mechanisms(policy.regimes))
        if alarm.round > START and named & changed:
            for mechanism in named & counted:
                found.setdefault(mechanism, alarm.round - START)
        else:
            false += 1
    last = world.systems[-1]
    best = float(last.expected_reward(last.best_intervention()[None])[0])
    regret = trace.regret[-1] - trace.regret[START + over - 1]
    return {
        "counted": len(counted),
        "delays": list(found.values()),
        "false": false,
        "regret": float(regret / (best - last.average_reward())),
        "right": bool(trace.optimal[-LAST:].mean() > 0.5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--over", type=int, nargs="+", default=[1, 30, 100, 300])
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    made = table(
        f"N = {given.nodes}, {given.runs} systems", "over", "changes=", "noticed", "median delay",
        "other alarms per run", "regret after it", "median", "right at the end",
    )  # fmt: skip
    for over in given.over:
        for changes in (True, False):
            runs = Parallel(n_jobs=given.jobs)(
                delayed(played)(changes, over, given.nodes, FIRST_SEED + k)
                for k in range(given.runs)
            )
            delays = [delay for run in runs for delay in run["delays"]]
            regret = np.array([run["regret"] for run in runs])
            error = regret.std(ddof=1) / len(regret) ** 0.5
            made.add_row(
                str(over),
                str(changes),
                f"{100 * len(delays) / sum(run['counted'] for run in runs):.0f} %",
                f"{np.median(delays):.0f}" if delays else "",
                f"{np.mean([run['false'] for run in runs]):.2f}",
                f"{regret.mean():.1f} +- {error:.1f}",
                f"{np.median(regret):.1f}",
                f"{100 * np.mean([run['right'] for run in runs]):.0f} %",
            )
    Console(width=130).print(made)


if __name__ == "__main__":
    main()
