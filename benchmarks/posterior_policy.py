"""The policy `posterior`: regret beside others, whole runs by size, stopping, batches.

`python benchmarks/posterior_policy.py [regret|sizes|stopping|batches ...] [--runs 100] [--jobs 2]`,
all topics without a name. Systems are those of `causalarms simulate`; `--results` keeps runs of
`regret` in a file, so that it can be interrupted.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from causalarms import make_policy, random_sem
from causalarms.limits import MAX_TABLE_NODES
from causalarms.policies.stopping import StopRule
from causalarms.rng import stream
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.experiment import Contestant, Experiment
from causalarms.simulation.monte_carlo import monte_carlo
from causalarms.simulation.simulate import simulate
from told_units import TOLD

REFERENCE = "linsem-ts"
EARLY, LATE = 60, 50  # rounds
FloatArray = npt.NDArray[np.float64]


def table(title: str, *headings: str) -> Table:
    made = Table(title=title)
    for heading in headings:
        made.add_column(heading, justify="right")
    return made


def ratio_interval(mine: FloatArray, reference: FloatArray) -> tuple[float, float]:
    """95 % of the ratio of means over resampled systems, the same systems for both."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(mine), size=(10_000, len(mine)))
    ratios = mine[rows].mean(axis=1) / reference[rows].mean(axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def regret(runs: int, jobs: int, results: Path | None) -> list[Table]:
    """Paired: the same systems and noise for all policies."""
    tables = []
    for known in (True, False):
        contestants = [
            Contestant("posterior", settings=TOLD),
            Contestant("csl-ucb"),
        ]
        if known:
            contestants += [
                Contestant(REFERENCE),
                Contestant("ga-lcb"),
            ]
        experiment = Experiment(knows_noise_mean=known, contestants=tuple(contestants))
        path = None if results is None else results.with_suffix(f".{known}.jsonl")
        records = monte_carlo(experiment, runs=runs, n_jobs=jobs, path=path)
        by_policy = {
            c.name: np.array([r["regret"] for r in records if r["policy"] == c.name])
            for c in contestants
        }
        if known:
            reference = by_policy[REFERENCE]
        made = table(
            f"N = 10, T = 1500, {runs} systems, noise means {'known' if known else 'unknown'}",
            "policy", "mean", "median", "95th percentile", "worst", "optimal at the end",
            "linear runs", f"mean / {REFERENCE}",
        )  # fmt: skip
        for contestant in contestants:
            values = by_policy[contestant.name]
            mine = [r for r in records if r["policy"] == contestant.name]
            low, high = ratio_interval(values, reference)
            made.add_row(
                contestant.name,
                f"{values.mean():.0f}",
                f"{np.median(values):.0f}",
                f"{np.quantile(values, 0.95):.0f}",
                f"{values.max():.0f}",
                f"{100 * np.mean([r['final_optimal_share'] for r in mine]):.1f} %",
                str(sum(r["linear_regret"] for r in mine)),
                f"{values.mean() / reference.mean():.2f} ({low:.2f} - {high:.2f})",
            )
        tables.append(made)
    return tables


def sizes() -> Table:
    """Whole runs of both ways to decide, with the time of every ask and tell; medians and worst."""
    made = table(
        "on one core", "nodes", "system", "decide", "rounds", "seconds", "early: ask", "tell",
        "late: ask", "tell", "worst", "gap in the last 50 rounds",
    )  # fmt: skip
    for n_nodes, degree, rounds in (
        (6, None, 300), (10, None, 1500), (16, None, 150), (20, 4, 200), (30, 4, 150), (50, 4, 120),
    ):  # fmt: skip
        sem = random_sem(n_nodes, seed=0, expected_degree=degree)
        system = "dense" if degree is None else f"degree {degree}"
        for decide in ("quantile", "lookahead") if n_nodes <= MAX_TABLE_NODES else ("quantile",):
            timed(sem, decide, 3)  # once to compile
            asks, tells, gap = timed(sem, decide, rounds)
            spans = (asks[:EARLY], tells[:EARLY], asks[-LATE:], tells[-LATE:])
            made.add_row(
                str(n_nodes), system, decide, str(rounds), f"{asks.sum() + tells.sum():.1f}",
                *(f"{1000 * np.median(span):.1f} ms" for span in spans),
                f"{1000 * max(asks.max(), tells.max()):.0f} ms", f"{100 * gap:.2f} %",
            )  # fmt: skip
    return made


def timed(sem: LinearSEM, decide: str, rounds: int) -> tuple[FloatArray, FloatArray, float]:
    """Seconds of every ask and tell, and what the last rounds lose of best minus average."""
    told: dict[str, Any] = TOLD | {"noise_mean": sem.noise_mean, "decide": decide}
    policy = make_policy("posterior", n_nodes=sem.n_nodes, **told)
    best = sem.expected_reward(sem.best_intervention()[None])[0]
    noise, seconds, gaps = stream(0, "noise"), [], []
    for t in range(rounds):
        start = perf_counter()
        a = policy.ask(stream(0, "policy", t))
        asked = perf_counter() - start
        x = sem.sample(a[None], noise)[0]
        start = perf_counter()
        policy.tell(a, x)
        seconds.append((asked, perf_counter() - start))
        gaps.append(best - sem.expected_reward(a[None])[0])
    asks, tells = np.array(seconds).T
    return asks, tells, float(np.mean(gaps[-LATE:]) / (best - sem.average_reward()))


def _stopped(seed: int, rule: StopRule) -> tuple[int, float, float, float, bool]:
    sem = random_sem(10, seed=stream(0, "system", seed))
    policy = make_policy("posterior", n_nodes=10, noise_mean=sem.noise_mean, **TOLD)
    trace = simulate(policy, sem, horizon=1500, seed=seed, stop=rule)
    advice = trace.recommendation
    assert advice is not None
    rewards = sem.all_expected_rewards()
    loss = float(rewards.max() - sem.expected_reward(advice.intervention[None])[0])
    return (
        len(trace.gap), loss, advice.expected_loss, advice.probability, rule.met(advice),
    )  # fmt: skip


def stopping(runs: int, jobs: int) -> Table:
    """What stop rules promise and what was true when they stopped."""
    made = table(
        f"stopping, N = 10, {runs} systems, at most 1500 rounds", "rule", "stopped",
        "rounds, median", "probability, promised", "true", "loss, promised", "true",
    )  # fmt: skip
    for rule in (
        StopRule(probability=0.8), StopRule(probability=0.95), StopRule(expected_loss=0.5),
        StopRule(expected_loss=0.1),
    ):  # fmt: skip
        found = Parallel(n_jobs=jobs)(delayed(_stopped)(seed, rule) for seed in range(runs))
        done = [run for run in found if run[4]]
        name = (
            f"probability {rule.probability}"
            if rule.probability
            else f"expected loss {rule.expected_loss}"
        )
        made.add_row(
            name,
            f"{len(done)} of {runs}",
            f"{np.median([run[0] for run in done]):.0f}",
            f"{np.mean([run[3] for run in done]):.2f}",
            f"{np.mean([run[1] < 1e-9 for run in done]):.2f}",
            f"{np.mean([run[2] for run in done]):.3f}",
            f"{np.mean([run[1] for run in done]):.3f}",
        )
    return made


def _batched(seed: int, size: int) -> tuple[float, float]:
    sem = random_sem(10, seed=stream(0, "system", seed))
    policy = make_policy("posterior", n_nodes=10, noise_mean=sem.noise_mean, **TOLD)
    trace = simulate(policy, sem, horizon=600, seed=seed, batch=size)
    return float(trace.regret[-1]), float(trace.optimal[-100:].mean())


def batches(runs: int, jobs: int) -> Table:
    """The price of asking several at once, in the same number of rounds."""
    made = table(
        f"batches, N = 10, 600 rounds, {runs} systems", "batch", "mean regret", "median",
        "optimal in the last 100",
    )  # fmt: skip
    for size in (1, 2, 5, 10, 20):
        found = np.array(
            Parallel(n_jobs=jobs)(delayed(_batched)(seed, size) for seed in range(runs))
        )
        made.add_row(
            str(size),
            f"{found[:, 0].mean():.0f}",
            f"{np.median(found[:, 0]):.0f}",
            f"{100 * found[:, 1].mean():.1f} %",
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    topics = given.topics or ["regret", "sizes", "stopping", "batches"]
    console = Console(width=130)
    if "regret" in topics:
        for made in regret(given.runs, given.jobs, given.results):
            console.print(made)
    if "sizes" in topics:
        console.print(sizes())
    if "stopping" in topics:
        console.print(stopping(given.runs, given.jobs))
    if "batches" in topics:
        console.print(batches(given.runs, given.jobs))


if __name__ == "__main__":
    main()
