"""Does `posterior-cd` keep its rate of false alarms whatever the law of the noise, and still see?

`python benchmarks/noise_laws.py [stationary|changing ...] [--nodes 10] [--runs 60] [--jobs 2]`, all
topics without a name. Policies have the settings of a new study: noise means and units unknown.
Laws keep mean and variance; "one law per node" takes them in turn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from broken_worlds import NOISE
from causalarms.sem.rewards import propagate
from causalarms.simulation.detection import detection
from causalarms.simulation.experiment import Contestant, Experiment, run_unit
from causalarms.simulation.world import World

MIXED = "one law per node"
LAWS = (*NOISE, MIXED)
STATIONARY, CHANGING = "stationary", "changing"
FloatArray = npt.NDArray[np.float64]


class LawWorld(World):
    """Systems whose noise follows a law of `broken_worlds.py`."""

    law: str

    def play(
        self, round_: int, intervention: npt.NDArray[np.uint8], rng: np.random.Generator
    ) -> FloatArray:
        sem = self.systems[self.number_at(round_)]
        noise = np.empty(self.n_nodes)
        for node in range(self.n_nodes):
            law = list(NOISE)[node % len(NOISE)] if self.law == MIXED else self.law
            noise[node] = NOISE[law](rng, (1,))[0]
        exogenous = sem.noise_mean + sem.noise_std * noise
        return propagate(sem.weights, sem.order, intervention[None], exogenous[None])[0]


@dataclass(frozen=True)
class LawExperiment(Experiment):
    law: str = "Gaussian"

    def world(self, repetition: int) -> World:
        plain = super().world(repetition)
        world = LawWorld(plain.systems, plain.change_points)
        world.law = self.law
        return world


def contestants(rates: Iterable[float], kinds: Iterable[str]) -> tuple[Contestant, ...]:
    return tuple(
        Contestant(
            "posterior-cd",
            f"{kind}, {rate}",
            {"false_alarms_per_1000_rounds": rate, "noise": kind, "noise_scale": "estimate"},
        )
        for kind in kinds
        for rate in rates
    )


def of_law(topic: str, law: str, n_nodes: int, kinds: list[str], every: int) -> LawExperiment:
    if topic == STATIONARY:
        return LawExperiment(
            n_nodes=n_nodes, horizon=1000, knows_noise_mean=False, law=law,
            contestants=contestants((0.1, 1.0), kinds),
        )  # fmt: skip
    return LawExperiment(
        n_nodes=n_nodes, horizon=3 * every, changes=(every, 2 * every),
        knows_noise_mean=False, law=law, contestants=contestants((0.1,), kinds),
    )  # fmt: skip


def measured(experiment: LawExperiment, records: list[dict[str, Any]]) -> list[str]:
    found = [detection(record, experiment.horizon) for record in records]
    per_run = np.array([f.false_alarms for f in found]) * 1000.0 / experiment.horizon
    error = per_run.std(ddof=1) / len(per_run) ** 0.5
    row = [f"{per_run.mean():.3f} +- {error:.3f}"]
    if experiment.changes:
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
    parser.add_argument("--laws", nargs="+", default=list(LAWS))
    parser.add_argument("--kinds", nargs="+", default=["gaussian", "any"])
    given = parser.parse_args()
    console = Console(width=130)
    for topic in given.topics or (STATIONARY, CHANGING):
        headings = ["law", "noise=, asked", "false per 1000"]
        if topic == CHANGING:
            headings += ["detected", "mean delay", "median"]
        table = Table(title=f"{topic}, {given.nodes} nodes, {given.runs} runs")
        for heading in (*headings, "regret"):
            table.add_column(heading, justify="right")
        for law in given.laws:
            experiment = of_law(topic, law, given.nodes, given.kinds, given.every)
            for contestant in experiment.contestants:
                records: list[dict[str, Any]] = Parallel(n_jobs=given.jobs)(
                    delayed(run_unit)(experiment, contestant, run) for run in range(given.runs)
                )
                row = (law, contestant.name, *measured(experiment, records))
                print(*row, sep=" | ", flush=True)
                table.add_row(*row)
        console.print(table)


if __name__ == "__main__":
    main()
