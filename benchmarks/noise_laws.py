"""Does `posterior-cd` keep its rate of false alarms whatever the law of the noise, and still see?

`python benchmarks/noise_laws.py [stationary|changing ...] [--nodes 10] [--runs 60] [--jobs 2]`, all
topics without a name. Policies have the settings of a new study: noise means and units unknown.
Laws keep mean and variance; "one law per node" takes them in turn. Where nothing changes, detectors
watch the same rounds side by side: each forgets what it alarms of, the policy is not told.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from causalarms.changes.detector import Alarm, Detector
from causalarms.changes.evidence import ChangeEvidence
from causalarms.changes.view import PREDICTION, View
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.simulation import NOISE_LAWS
from causalarms.simulation.experiment import Contestant, Experiment, run_unit
from causalarms.simulation.simulate import simulate
from causalarms.simulation.summary import detection

MIXED = "one law per node"
LAWS: dict[str, str | list[str]] = {name: name for name in NOISE_LAWS} | {MIXED: list(NOISE_LAWS)}
STATIONARY, CHANGING = "stationary", "changing"
FloatArray = npt.NDArray[np.float64]


class SideBySide(Detector):
    """Counts the alarms of several detectors and passes none on."""

    needs = (PREDICTION,)

    def __init__(self, detectors: dict[str, ChangeEvidence]) -> None:
        super().__init__(next(iter(detectors.values())).n_nodes)
        self.detectors = detectors
        self.alarms = dict.fromkeys(detectors, 0)

    def watch(
        self, round_: int, intervention: npt.NDArray[np.uint8], values: FloatArray, view: View
    ) -> list[Alarm]:
        for name, detector in self.detectors.items():
            for alarm in detector.watch(round_, intervention, values, view):
                self.alarms[name] += 1
                detector.forget(alarm.regime, alarm.node)
        return []

    def forget(self, regime: int, node: int) -> None:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        raise NotImplementedError


def false_alarms(law: str, n_nodes: int, run: int, kinds: list[str]) -> dict[str, int]:
    """Of every detector in 1000 rounds."""
    nobody = (Contestant("posterior"),)
    world = Experiment(n_nodes=n_nodes, noise=LAWS[law], contestants=nobody).world(run)
    watching = SideBySide(
        {
            f"{kind}, {rate}": ChangeEvidence(
                n_nodes, noise=kind, false_alarms_per_1000_rounds=rate
            )
            for kind in kinds
            for rate in (0.1, 1.0)
        }
    )
    policy = PosteriorPolicy(n_nodes, noise_scale="estimate", detector=watching)
    simulate(policy, world, horizon=1000, seed=run)
    return watching.alarms


def stationary(law: str, given: argparse.Namespace) -> Iterable[list[str]]:
    found = Parallel(n_jobs=given.jobs)(
        delayed(false_alarms)(law, given.nodes, run, given.kinds)
        for run in range(given.first, given.first + given.runs)
    )
    for name in found[0]:
        counts = np.array([alarms[name] for alarms in found])
        error = counts.std(ddof=1) / len(counts) ** 0.5
        yield [law, name, f"{counts.mean():.3f} +- {error:.3f}"]


def changing(law: str, given: argparse.Namespace) -> Iterable[list[str]]:
    experiment = Experiment(
        n_nodes=given.nodes,
        horizon=3 * given.every,
        changes=(given.every, 2 * given.every),
        knows_noise_mean=False,
        noise=LAWS[law],
        contestants=tuple(
            Contestant(
                "posterior-cd",
                f"{kind}, 0.1",
                {"noise": kind, "noise_scale": "estimate", "typing_errors": given.typing_errors},
            )
            for kind in given.kinds
        ),
    )
    for contestant in experiment.contestants:
        records: list[dict[str, Any]] = Parallel(n_jobs=given.jobs)(
            delayed(run_unit)(experiment, contestant, run)
            for run in range(given.first, given.first + given.runs)
        )
        yield [law, contestant.name, *measured(experiment, records)]


def measured(experiment: Experiment, records: list[dict[str, Any]]) -> list[str]:
    found = [detection(record, experiment.horizon) for record in records]
    per_run = np.array([f.false_alarms for f in found]) * 1000.0 / experiment.horizon
    error = per_run.std(ddof=1) / len(per_run) ** 0.5
    row = [f"{per_run.mean():.3f} +- {error:.3f}"]
    delays = [d for f in found for d in f.delays]
    played = sum(f.played for f in found)
    row += [
        f"{100 * len(delays) / played:.1f} % of {played}",
        f"{np.mean(delays):.1f}",
        f"{np.median(delays):.0f}",
    ]
    regret = np.array([record["regret"] for record in records])
    return [*row, f"{regret.mean():.0f} +- {regret.std(ddof=1) / len(regret) ** 0.5:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", default=[])
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1000, help="rounds between changes")
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--laws", nargs="+", default=list(LAWS))
    parser.add_argument("--kinds", nargs="+", default=["gaussian", "any"])
    parser.add_argument("--typing-errors", default="left out")
    given = parser.parse_args()
    console = Console(width=130)
    for topic in given.topics or (STATIONARY, CHANGING):
        headings = ["law", "noise=, asked", "false per 1000"]
        if topic == CHANGING:
            headings += ["detected", "mean delay", "median", "regret"]
        table = Table(title=f"{topic}, {given.nodes} nodes, {given.runs} runs")
        for heading in headings:
            table.add_column(heading, justify="right")
        for law in given.laws:
            for row in (stationary if topic == STATIONARY else changing)(law, given):
                print(*row, sep=" | ", flush=True)
                table.add_row(*row)
        console.print(table)


if __name__ == "__main__":
    main()
