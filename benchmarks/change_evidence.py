"""Change detection at a stated rate of false alarms: the overshoot, and rates in whole runs.

`python benchmarks/change_evidence.py [overshoot|stationary|changing ...] [--runs 200] [--jobs 2]`,
all topics without a name. `stationary` and `changing` play the policy `posterior-cd` in the paper's
ensemble with 10 nodes; false alarms are asked for at 0.1 per 1000 rounds of the whole system.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from causalarms.changes.evidence import ALTERNATIVES, WEIGHT_CHANGES, Evidence, add_score
from causalarms.kernels import kernel
from causalarms.simulation.detection import detection
from causalarms.simulation.experiment import Contestant, Experiment
from causalarms.simulation.monte_carlo import monte_carlo
from causalarms.simulation.summary import summarise
from told_units import TOLD_CD

N_NODES = 10
SCORES_AT_ONCE = 1_000_000


@kernel
def count_alarms(
    scores: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],  # (scores, N)
    n_predictors: int,
    level: float,
) -> int:
    n_alternatives = len(ALTERNATIVES) + len(WEIGHT_CHANGES) * values.shape[1]
    sums, gains = np.zeros(n_alternatives), np.zeros(n_alternatives)
    evidence = Evidence(sums, gains, np.zeros(n_alternatives, np.int64), np.zeros((2, 0)))
    predictors = np.arange(values.shape[1]) < n_predictors
    found = 0
    for t in range(len(scores)):
        total = add_score(evidence, t, scores[t], scores[t], predictors, values[t], 1.0)
        if total >= level:
            found += 1
            sums[:] = 0.0
            gains[:] = 0.0
    return found


def overshoot() -> Table:
    """E[R at a false alarm] / A, by the number of predictors and how large they are."""
    table = Table(title="mean rounds to a false alarm / alarm level 1000")
    for heading in ("predictors", "their mean", "their spread", "ratio", "standard error"):
        table.add_column(heading, justify="right")
    for n_predictors, mean, spread in (
        (0, 0, 1), (1, 0, 1), (4, 0, 1), (9, 0, 1), (4, 3, 3), (9, 3, 3), (4, 0, 10), (9, 10, 10),
    ):  # fmt: skip
        rng = np.random.default_rng(n_predictors)
        alarms = 0
        repetitions = 6 if n_predictors < 5 else 3
        for _ in range(repetitions):
            center = mean * rng.standard_normal(N_NODES)
            values = center + spread * rng.standard_normal((SCORES_AT_ONCE, N_NODES))
            scores = rng.standard_normal(SCORES_AT_ONCE)
            alarms += count_alarms(scores, values, n_predictors, 1000.0)
        ratio = repetitions * SCORES_AT_ONCE / alarms / 1000.0
        table.add_row(
            str(n_predictors), str(mean), str(spread), f"{ratio:.2f}", f"{ratio / alarms**0.5:.2f}"
        )
    return table


def stationary(runs: int, jobs: int, seed: int) -> Table:
    """False alarms where nothing changes."""
    asked = (0.1, 1.0)
    experiment = Experiment(
        seed=seed,
        contestants=tuple(
            Contestant("posterior-cd", f"{rate}", TOLD_CD | {"false_alarms_per_1000_rounds": rate})
            for rate in asked
        ),
    )
    records = monte_carlo(experiment, runs=runs, n_jobs=jobs)
    table = Table(title=f"{runs} stationary runs of {experiment.horizon} rounds")
    for heading in ("asked per 1000 rounds", "measured", "95 % interval", "linear runs"):
        table.add_column(heading, justify="right")
    for rate in asked:
        mine = [record for record in records if record["policy"] == f"{rate}"]
        per_run = np.array([len(record["alarms"]) for record in mine])
        scale = 1000.0 / experiment.horizon
        mean, error = per_run.mean() * scale, per_run.std(ddof=1) / len(mine) ** 0.5 * scale
        table.add_row(
            f"{rate}",
            f"{mean:.3f}",
            f"{mean - 1.96 * error:.3f} - {mean + 1.96 * error:.3f}",
            str(sum(record["linear_regret"] for record in mine)),
        )
    return table


def changing(runs: int, jobs: int, seed: int) -> Table:
    """The paper's changes of three mechanisms after rounds 1000 and 2000."""
    experiment = Experiment(
        horizon=3000,
        changes=(1000, 2000),
        seed=seed,
        contestants=(
            Contestant("posterior-cd", settings=TOLD_CD),
            Contestant("linsem-ts", "linsem-ts restarted", {"restarts": "true"}),
            Contestant("csl-ucb-cd"),
        ),
    )
    records = monte_carlo(experiment, runs=runs, n_jobs=jobs)
    table = Table(title=f"{runs} runs of 3000 rounds, changes after 1000 and 2000")
    for heading in (
        "policy", "detected", "mean delay", "median", "false per 1000", "optimal", "regret",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for row in summarise(experiment, records):
        mine = [record for record in records if record["policy"] == row.policy]
        delays = [d for r in mine for d in detection(r, experiment.horizon).delays]
        table.add_row(
            row.policy,
            f"{100 * row.detected:.1f} %",
            f"{row.delay:.1f}",
            f"{np.median(delays):.0f}" if delays else "",
            f"{row.false_alarms / 3:.3f}",
            f"{100 * row.optimal_share.value:.1f} %",
            f"{row.regret.value:.0f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    topics = given.topics or ["overshoot", "stationary", "changing"]
    console = Console(width=110)
    if "overshoot" in topics:
        console.print(overshoot())
    if "stationary" in topics:
        console.print(stationary(given.runs, given.jobs, given.seed))
    if "changing" in topics:
        console.print(changing(min(given.runs, 100), given.jobs, given.seed))


if __name__ == "__main__":
    main()
