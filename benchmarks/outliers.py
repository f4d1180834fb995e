"""What one typing error costs: regret and claims of studies with and without it, paired.

`python benchmarks/outliers.py [--nodes 6] [--systems 30] [--rounds 400] [--first 0]`. Policies have
the settings of a new study. One value is replaced, in a node before the reward or in the reward, in
round 5, 20 or 150. Regret is beside the same run without the error.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.policies.registry import make_policy
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem

KEPT, LEFT_OUT = "kept", "left out"
FloatArray = npt.NDArray[np.float64]


class Error(NamedTuple):
    where: str  # "node" or "reward"
    round: int
    value: float


class Run(NamedTuple):
    regret: float
    claimed: float  # probability that the recommended intervention is the best
    true: bool
    left_out: int
    found: bool  # the error is among them


def play(n: int, seed: int, rounds: int, typing_errors: str, error: Error | None) -> Run:
    sem = random_sem(n, seed=stream(seed, "system"))
    settings = {"noise_scale": "estimate", "typing_errors": typing_errors}
    policy = make_policy("posterior", n_nodes=n, reward=sem.reward, **settings)
    noise, regret = stream(seed, "noise"), 0.0
    best = float(sem.expected_reward(sem.best_intervention()[None])[0])
    others = [node for node in range(n) if node != sem.reward]
    node = int(stream(seed, "error").choice(others))
    for t in range(1, rounds + 1):
        a = policy.ask(stream(seed, "policy", t))
        regret += best - float(sem.expected_reward(a[None])[0])
        x = sem.sample(a[None], noise)[0]
        if error is not None and t == error.round:
            x[node if error.where == "node" else sem.reward] = error.value
        policy.tell(a, x)
    advice = policy.recommend(stream(seed, "advice"))  # type: ignore[attr-defined]
    loss = best - float(sem.expected_reward(advice.intervention[None])[0])
    out = [round_ for round_, *_ in policy.left_out]
    found = error is not None and error.round in out
    return Run(regret, advice.probability, loss < 1e-9, len(out), found)


def row(name: str, runs: list[Run], plain: list[Run]) -> str:
    mine, beside = (np.array([run.regret for run in each]) for each in (runs, plain))
    picks = np.random.default_rng(0).integers(len(mine), size=(4000, len(mine)))
    low, high = np.quantile(mine[picks].mean(axis=1) / beside[picks].mean(axis=1), [0.025, 0.975])
    return (
        f"{name:34s} ratio {mine.mean() / beside.mean():5.2f} ({low:.2f} - {high:.2f})"
        f"  median of ratios {np.median(mine / beside):5.2f}"
        f"  claimed {np.mean([run.claimed for run in runs]):.2f}"
        f"  true {np.mean([run.true for run in runs]):.2f}"
        f"  left out {np.mean([run.left_out for run in runs]):.2f}"
        f"  found {np.mean([run.found for run in runs]):.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--systems", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--values", type=float, nargs="+", default=[1e3, 1e15])
    parser.add_argument("--where", nargs="+", default=["node", "reward"])
    parser.add_argument("--kinds", nargs="+", default=[KEPT, LEFT_OUT])
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.systems)

    def all_runs(kind: str, error: Error | None) -> list[Run]:
        return [play(given.nodes, seed, given.rounds, kind, error) for seed in seeds]

    print(f"{given.nodes} nodes, {given.systems} systems, {given.rounds} rounds")
    plain = all_runs(KEPT, None)
    print(row("no error, kept", plain, plain), flush=True)
    print(row("no error, left out", all_runs(LEFT_OUT, None), plain), flush=True)
    for value in given.values:
        for where in given.where:
            for round_ in (5, 20, 150):
                for kind in given.kinds:
                    runs = all_runs(kind, Error(where, round_, value))
                    print(row(f"{value:g} in {where}, {round_}, {kind}", runs, plain), flush=True)


if __name__ == "__main__":
    main()
