"""The policy `posterior`: regret, sizes, stopping, batches, and nodes without a switch.

`python benchmarks/posterior_policy.py policy|without-switch [options]`; each has --help.
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

from causalarms import LinearSEM, make_policy, random_sem
from causalarms.limits import MAX_TABLE_NODES
from causalarms.policies.stopping import StopRule
from causalarms.rng import stream
from causalarms.simulation.experiment import Contestant, Experiment
from causalarms.simulation.monte_carlo import monte_carlo
from causalarms.simulation.simulate import simulate
from shared import ratio_interval, run_part, table
from told_units import TOLD

REFERENCE = "linsem-ts"
EARLY, LATE = 60, 50  # rounds
FloatArray = npt.NDArray[np.float64]


def regret(runs: int, jobs: int, results: Path | None) -> list[Table]:
    """Paired: the same systems and noise for all policies."""
    tables = []
    for known in (True, False):
        contestants = [
            Contestant("posterior", settings=TOLD),
            Contestant("csl-ucb-joint"),
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
        for decide in (
            ("quantile", "knowledge-gradient") if n_nodes <= MAX_TABLE_NODES else ("quantile",)
        ):
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


def main_policy() -> None:
    """The policy `posterior`: regret next to others, whole runs by size, stopping, batches.

    `python benchmarks/posterior_policy.py policy [regret|sizes|stopping|batches ...] [--runs 100]
    [--jobs 2]`, all topics without a name. Systems are those of `causalarms simulate`; `--results`
    keeps runs of `regret` in a file, so that it can be interrupted.
    """
    parser = argparse.ArgumentParser(
        description=main_policy.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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


N_NODES = 10
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
        policy = make_policy("posterior", n_nodes=N_NODES, regimes=sem.regimes, **told)
        start = perf_counter()
        trace = simulate(policy, sem, horizon=horizon, seed=repetition)
        found.append((float(trace.regret[-1]), perf_counter() - start))
    return np.array(found)


def main_without_switch() -> None:
    """What it is worth to tell a policy which nodes have no switch.

    `python benchmarks/posterior_policy.py without-switch [--runs 40] [--horizon 300] [--jobs 1]`.
    Random systems of ten nodes, of which three or six have no switch. Told: `regimes=` says so,
    such a node has one mechanism that every round informs. Not told: it has a switch that does
    nothing, which the policy sets as it likes, and two mechanisms with half of the rounds each.
    Paired: the same systems and the same noise.
    """
    parser = argparse.ArgumentParser(
        description=main_without_switch.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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


def main() -> None:
    run_part(__doc__, {"policy": main_policy, "without-switch": main_without_switch})


if __name__ == "__main__":
    main()
