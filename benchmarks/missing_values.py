"""What missing values cost: regret and coverage with some share of all cells missing at random.

`python benchmarks/missing_values.py [--runs 40] [--rounds 300] [--first 40000] [--jobs 1]`. Random
systems of twelve nodes with 2.5 neighbours each, seven nodes with a switch, in the settings of a
new study: nothing known, units estimated. "learn": rounds with gaps are learned from; "drop": they
are left out, as all other policies do. Paired: the same systems, noise and missing cells. Regret is
in units of the best minus the average reward of a round. Intervals are those that `predict` (of
random settings) and `best` show, after 30, 100 and all rounds; 95 % of them should hold the truth.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from rich.console import Console

from causalarms import LinearSEM, make_policy, random_sem
from causalarms.models.belief import summary
from causalarms.policies.base import Policy
from causalarms.rng import stream
from causalarms.sem.rewards import all_interventions
from posterior_policy import ratio_interval, table

N_NODES, N_SWITCHES, DEGREE = 12, 7, 2.5
SHARES = (0.0, 0.01, 0.05, 0.2)
LEARN, DROP = "learn", "drop"
LOOKS = (30, 100)
PREDICTIONS = 30
FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.uint8]


def system(seed: int) -> tuple[LinearSEM, Rows, float]:
    """A system in which settings matter, all its settings, and the best minus the average."""
    for attempt in range(100):
        rng = stream(seed, "missing values", attempt)
        regimes = np.ones(N_NODES, dtype=np.int64)
        regimes[rng.choice(N_NODES, N_SWITCHES, replace=False)] = 2
        sem = random_sem(N_NODES, seed=rng, regimes=regimes, expected_degree=DEGREE)
        rows = all_interventions(N_NODES, regimes)
        rewards = sem.expected_reward(rows)
        if np.ptp(rewards) > 0.1:
            return sem, rows, float(rewards.max() - rewards.mean())
    raise RuntimeError(f"no system of seed {seed} can be improved")


def covered(policy: Policy, sem: LinearSEM, rows: Rows, seed: int) -> dict[str, list[bool]]:
    """Whether the truth lies in what `predict` and `best` would show."""
    belief = policy.belief()
    if belief is None:
        return {"predict": [], "best": []}
    some = stream(seed, "predicted").choice(len(rows), PREDICTIONS, replace=False)
    shown = summary(belief.rewards(rows[some], policy.reward))
    truth = sem.expected_reward(rows[some])
    best = belief.best(rows, policy.reward, np.zeros(len(rows)))
    reward = float(sem.expected_reward(rows[best.row][None])[0])
    return {
        "predict": ((shown.low <= truth) & (truth <= shown.high)).tolist(),
        "best": [bool(best.reward.low <= reward <= best.reward.high)],
    }


def run(
    seed: int, share: float, gaps: str, rounds: int, settings: dict[str, Any]
) -> dict[str, Any]:
    sem, rows, scale = system(seed)
    policy = make_policy(
        "posterior", n_nodes=N_NODES, reward=sem.reward, regimes=sem.regimes,
        **{"noise_scale": "estimate", "decide": "auto", "gaps": gaps, **settings},
    )  # fmt: skip
    noise, holes = stream(seed, "noise"), stream(seed, "holes")
    top = float(sem.expected_reward(rows).max())
    lost = np.zeros(rounds)
    found: dict[str, list[bool]] = {"predict": [], "best": []}
    began = perf_counter()
    for t in range(rounds):
        a = policy.suggest(stream(seed, "policy", t)).intervention
        x = sem.sample(a[None], noise)[0]
        x[holes.random(N_NODES) < share] = np.nan
        lost[t] = (top - sem.expected_reward(a[None])[0]) / scale
        if gaps == LEARN or not np.isnan(x).any():
            policy.tell(a, x)
        if t + 1 in (*LOOKS, rounds):
            for name, hits in covered(policy, sem, rows, seed).items():
                found[name] += hits
    return {
        "seed": seed, "share": share, "gaps": gaps, "regret": float(lost.sum()),
        "early": float(lost[: LOOKS[-1]].sum()), "seconds": perf_counter() - began,
        **{f"{name}_hits": int(sum(hits)) for name, hits in found.items()},
        **{f"{name}_tries": len(hits) for name, hits in found.items()},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--first", type=int, default=40_000, help="seed of the first system")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--settings", type=json.loads, default={}, help="of the policy, as JSON")
    parser.add_argument("--only", choices=(LEARN, DROP))
    parser.add_argument("--keep", type=Path, help="a file for one line of JSON per run")
    arguments = parser.parse_args()
    cases = [(share, gaps) for share in SHARES for gaps in (LEARN, DROP)]
    cases = [c for c in cases if arguments.only in (None, c[1]) and (c[0] > 0 or c[1] == LEARN)]
    made = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")(
        delayed(run)(arguments.first + k, *case, arguments.rounds, arguments.settings)
        for k in range(arguments.runs)
        for case in cases
    )
    results = []
    for result in made:
        results.append(result)
        if arguments.keep is not None:
            with arguments.keep.open("a") as file:
                file.write(json.dumps(result) + "\n")
    Console(width=140).print(shown(results))


def shown(results: list[dict[str, Any]]) -> Any:
    """The table, relative to complete data."""
    by_case: dict[tuple[float, str], dict[int, dict[str, Any]]] = {}
    for r in results:
        by_case.setdefault((r["share"], r["gaps"]), {})[r["seed"]] = r
    whole = by_case[0.0, LEARN]
    made = table(
        f"regret and coverage of the default of a study, {len(whole)} systems",
        "missing", "gaps", "regret", "to complete", "95 %", "predict covers", "best covers",
        "seconds",
    )  # fmt: skip
    for (share, gaps), runs in sorted(by_case.items()):
        seeds = sorted(set(runs) & set(whole))
        mine = np.array([runs[s]["regret"] for s in seeds])
        other = np.array([whole[s]["regret"] for s in seeds])
        low, high = ratio_interval(mine, other)
        cover = [
            sum(r[f"{name}_hits"] for r in runs.values())
            / max(sum(r[f"{name}_tries"] for r in runs.values()), 1)
            for name in ("predict", "best")
        ]
        made.add_row(
            f"{share:.0%}", gaps, f"{mine.mean():.1f}", f"{mine.mean() / other.mean():.2f}",
            f"{low:.2f}-{high:.2f}", f"{cover[0]:.1%}", f"{cover[1]:.1%}",
            f"{np.mean([r['seconds'] for r in runs.values()]):.1f}",
        )  # fmt: skip
    return made


if __name__ == "__main__":
    main()
