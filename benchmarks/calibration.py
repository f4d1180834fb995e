"""Are the numbers of a study true, from the first rounds on?

`OMP_NUM_THREADS=1 python benchmarks/calibration.py [--kinds small paper] [--systems 200]
[--first 30000] [--gaps 0.05] [--shift] [--jobs 1] [--results FILE]`
Studies with default settings (or `--policy`) are asked what they believe at rounds 10, 30, 100 and
300, and every answer is compared with the exact truth.

small   3 to 6 nodes with 1 to 3 regimes each; means and noise differ by regime, units are
        arbitrary, and in every other system half of the edges are weak
paper   `random_sem(10)`; `--nodes 6` and `--weights uniform` are others

--gaps    a value is missing with this probability
--shift   2 to 4 factors of 2 to 4 levels shift nodes that nobody names; no node has a switch

"Right" is a recommendation that loses at most 1 % of the scale, which is best minus average reward
of all settings; that is also what the probability is asked for, and the stop rule (0.95, looked at
every 10 rounds). "Sure" is a claim of at least 0.95. "Covered": by the 95 % interval of the
recommended setting, and by those of `predict` in random settings, of the reward and of all nodes.
After ± is a standard error over systems; differences are paired.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from rich.console import Console

from causalarms import LinearSEM, Study, random_sem
from causalarms.errors import CausalArmsError, CausalArmsWarning, TooEarlyError
from causalarms.policies.stopping import StopRule
from causalarms.rng import stream
from causalarms.sem import random_shifted_sem
from causalarms.sem.ensembles import WEIGHT_DISTRIBUTIONS
from causalarms.simulation.monte_carlo import Engine, run_units
from causalarms.simulation.results import Record, ResultStore
from causalarms.study import report
from shared import (
    FloatArray,
    mean_and_error,
    proportion_error,
    rescaled,
    show_progress,
    study_settings,
    table,
)

SMALL, PAPER = KINDS = ("small", "paper")
CHECKPOINTS = (10, 30, 100, 300)
WITHIN = 0.01  # of the scale, and right
SURE = 0.95
LOOK_EVERY = 10  # rounds
PHASES = ((0, 20), (20, 60), (60, None))  # rounds in which a study stops
PREDICTIONS = 30
SMALL_NODES, SMALL_REGIMES = (3, 6), (1, 3)
WEAK = 0.2  # weights of weak edges, relative to others
LEAST_RANGE = 0.5  # of the expected reward, in deviations of the reward's noise
LEVEL_NAMES = ("red", "green", "blue", "white")


@dataclass(frozen=True)
class Case:
    """What all systems have in common; `settings` go to `Study.create`."""

    rounds: int
    nodes: int  # of paper
    weights: str  # of paper
    gaps: float
    shift: bool
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def checkpoints(self) -> list[int]:
        return sorted({*(point for point in CHECKPOINTS if point < self.rounds), self.rounds})


class System(NamedTuple):
    """The columns of factors that shift are the last nodes of `sem`; they are not measured."""

    sem: LinearSEM
    nodes: tuple[str, ...]
    factors: dict[str, Any]  # as `Study.create` is told


# -- systems ---------------------------------------------------------------------------------------


def small_system(seed: int, case: Case) -> System:
    rng = stream(seed, "calibration")
    weights = _half_weak if seed % 2 else "separated"
    while True:
        n = int(rng.integers(SMALL_NODES[0], SMALL_NODES[1] + 1))
        if case.shift:
            system = shifting(n, rng, weights)
        else:
            regimes = rng.integers(SMALL_REGIMES[0], SMALL_REGIMES[1] + 1, n)
            sem = random_sem(
                n,
                seed=rng,
                weights=weights,
                regimes=regimes,
                noise_mean=rng.normal(0, 1, (regimes.max(), n)),
                noise_std=2 ** rng.uniform(-1, 1, (regimes.max(), n)),
            )
            system = System(sem, sem.nodes, switches(sem))
        if system.factors and _moves(system):
            break
    scale, offset = np.ones(system.sem.n_nodes), np.zeros(system.sem.n_nodes)
    scale[:n] = 10 ** rng.uniform(-3, 3, n)
    offset[:n] = scale[:n] * rng.normal(0, 10, n)
    return system._replace(sem=rescaled(system.sem, offset, scale, system.sem.nodes))


def paper_system(seed: int, case: Case) -> System:
    if case.shift:
        return shifting(case.nodes, stream(seed, "calibration"), case.weights)
    sem = random_sem(case.nodes, seed=seed, weights=case.weights)
    return System(sem, sem.nodes, switches(sem))


SYSTEMS: dict[str, Callable[[int, Case], System]] = {SMALL: small_system, PAPER: paper_system}


def switches(sem: LinearSEM) -> dict[str, Any]:
    """Every regime of a node has parents of its own, and the study is told so."""
    counts = zip(sem.nodes, sem.regimes.tolist(), strict=True)
    return {
        node: {} if n == 2 else {"levels": list(range(n)), "effect": "free"}
        for node, n in counts
        if n > 1
    }


def shifting(n_nodes: int, rng: Generator, weights: Any) -> System:
    factors: dict[str, Any] = {}
    for number in range(int(rng.integers(2, 5))):
        n = int(rng.integers(2, 5))
        levels = LEVEL_NAMES[:n] if rng.random() < 0.5 else np.arange(1.0, n + 1).tolist()
        factors[f"factor {number}"] = {"levels": list(levels)}
    sem, _ = random_shifted_sem(n_nodes, factors, seed=rng, weights=weights)
    return System(sem, sem.nodes[:n_nodes], factors)


def _half_weak(rng: Generator, size: int) -> FloatArray:
    drawn = WEIGHT_DISTRIBUTIONS["separated"](rng, size)
    return np.where(rng.random(size) < 0.5, WEAK * drawn, drawn)


def _moves(system: System) -> bool:
    """Whether it matters what is set."""
    sem = system.sem
    rewards = sem.expected_reward(create_study(system, {}).settings.constraints.interventions())
    return bool(np.ptp(rewards) >= LEAST_RANGE * sem.mechanism_std[:, sem.reward].max())


def create_study(system: System, settings: dict[str, Any]) -> Study:
    reward = system.sem.nodes[system.sem.reward]
    return Study.create(None, nodes=system.nodes, reward=reward, factors=system.factors, **settings)


# -- playing ---------------------------------------------------------------------------------------


class Truth:
    """Of all settings of a system, in the order of `rows`."""

    def __init__(self, system: System, study: Study) -> None:
        self.rows = study.settings.constraints.interventions()
        self.nodes = system.nodes
        values = system.sem.mean(self.rows)
        self.reward = values[:, system.sem.reward]
        self.values = values[:, : len(system.nodes)]
        self.scale = float(self.reward.max() - self.reward.mean())
        self.loss = (self.reward.max() - self.reward) / self.scale
        self._numbers = {tuple(row): number for number, row in enumerate(self.rows.tolist())}

    def row(self, intervention: dict[str, int]) -> int:
        return self._numbers[tuple(intervention.values())]


def play(case: Case, kind: str, seed: int) -> Record:
    """The whole study of one system, with what was true at each checkpoint."""
    system = SYSTEMS[kind](seed, case)
    study = create_study(system, {"seed": seed} | case.settings)
    truth = Truth(system, study)
    rule = StopRule(probability=SURE, tolerance=WITHIN * truth.scale, every=LOOK_EVERY)
    looks: list[Record] = []
    stopped: Record | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CausalArmsWarning)  # of values missing or far off
        for round_ in range(1, case.rounds + 1):
            trial = study.ask()
            row = truth.rows[truth.row(trial.intervention)]
            values = system.sem.sample(row[None], stream(seed, "noise", round_))[0]
            lost = stream(seed, "gaps", round_).random(len(system.nodes)) < case.gaps
            study.tell(
                trial,
                {
                    node: None if gone else float(value)
                    for node, value, gone in zip(system.nodes, values, lost, strict=False)
                },
            )
            if stopped is None and round_ % rule.every == 0:
                stopped = stop(study, truth, rule, round_)
            if round_ in case.checkpoints:
                asked = stream(seed, "predictions", round_)
                looks += look(study, truth, rule.tolerance, round_, asked)
    return {"policy": kind, "repetition": seed, "looks": looks, "stopped": stopped}


def stop(study: Study, truth: Truth, rule: StopRule, round_: int) -> Record | None:
    """What is claimed and true when the rule is met; None if it is not."""
    try:
        best = report.best(study.beliefs(), tolerance=rule.tolerance)
    except TooEarlyError:
        return None
    if not rule.holds(best.expected_loss, best.probability):
        return None
    loss = float(truth.loss[truth.row(best.intervention)])
    return {"round": round_, "claimed": best.probability, "right": loss <= WITHIN}


def look(study: Study, truth: Truth, tolerance: float, round_: int, rng: Generator) -> list[Record]:
    """What is claimed next to what is true; nothing while it is too early to claim anything."""
    try:
        best = report.best(study.beliefs(), tolerance=tolerance)
        n = len(truth.rows)
        rows = rng.choice(n, min(PREDICTIONS, n), replace=False)
        predicted = report.predict(study.beliefs(), truth.rows[rows].tolist())
    except TooEarlyError:
        return []
    if not np.isfinite(best.probability):  # an average, no belief
        return []
    row = truth.row(best.intervention)
    low, high = (
        np.array([[getattr(p.expected[node], end) for node in truth.nodes] for p in predicted])
        for end in ("low", "high")
    )
    covered = (low <= truth.values[rows]) & (truth.values[rows] <= high)
    loss = float(truth.loss[row])
    return [
        {
            "round": round_,
            "claimed": best.probability,
            "right": loss <= WITHIN,
            "claimed loss": best.expected_loss / truth.scale,
            "loss": loss,
            "best covered": bool(best.low <= truth.reward[row] <= best.high),
            "reward covered": float(covered[:, truth.nodes.index(study.settings.reward)].mean()),
            "nodes covered": float(covered.mean()),
        }
    ]


# -- tables ----------------------------------------------------------------------------------------


def show(records: list[Record], kind: str, console: Console) -> None:
    made = table(
        f"{kind}, {len(records)} systems; numbers in %", "round", "", "claimed", "right",
        "claimed - right", "where sure (right)", "loss, claimed", "true", "claimed - true",
        "best covered", "reward", "all nodes",
    )  # fmt: skip
    looks = [each for record in records for each in record["looks"]]
    for round_ in sorted({each["round"] for each in looks}):
        mine = [each for each in looks if each["round"] == round_]
        column = {key: 100 * np.array([float(each[key]) for each in mine]) for key in mine[0]}
        sure = column["claimed"] >= 100 * SURE
        made.add_row(
            str(round_),
            str(len(mine)),
            f"{column['claimed'].mean():.1f}",
            f"{column['right'].mean():.1f}",
            mean_and_error(column["claimed"] - column["right"]),
            claims(column["claimed"][sure], column["right"][sure]),
            f"{column['claimed loss'].mean():.1f}",
            f"{column['loss'].mean():.1f}",
            mean_and_error(column["claimed loss"] - column["loss"]),
            *(mean_and_error(column[f"{each} covered"]) for each in ("best", "reward", "nodes")),
        )
    console.print(made)
    show_stops(records, kind, console)


def claims(claimed: FloatArray, right: FloatArray) -> str:
    if not len(claimed):
        return ""
    return f"{claimed.mean():.0f} ({right.mean():.0f}) of {len(claimed)}"


def show_stops(records: list[Record], kind: str, console: Console) -> None:
    made = table(
        f"{kind}: stopped at {SURE}",
        "rounds", "stopped", "claimed", "right",
    )  # fmt: skip
    for after, until in ((0, None), *PHASES):
        stops = [
            record["stopped"]
            for record in records
            if record["stopped"] and after < record["stopped"]["round"] <= (until or np.inf)
        ]
        claimed, right = (
            100 * np.array([float(each[key]) for each in stops]) for key in ("claimed", "right")
        )
        words = f"{after + 1} - {until}" if until else f"from {after + 1}"
        numbers = ["", ""]
        if stops:
            error = 100 * proportion_error(right > 0)
            numbers = [f"{claimed.mean():.1f}", f"{right.mean():.1f} ± {error:.1f}"]
        made.add_row(words, f"{len(stops)} of {len(records)}", *numbers)
    console.print(made)


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--systems", type=int, default=200, help="of each kind")
    parser.add_argument("--first", type=int, default=30_000, help="the first system's seed")
    parser.add_argument("--rounds", type=int, default=CHECKPOINTS[-1])
    parser.add_argument("--nodes", type=int, default=10, help="of paper")
    parser.add_argument(
        "--weights", choices=WEIGHT_DISTRIBUTIONS, default="separated", help="of paper"
    )
    parser.add_argument("--gaps", type=float, default=0.0, help="probability of a missing value")
    parser.add_argument("--shift", action="store_true", help="factors that shift, no switches")
    parser.add_argument("--policy", metavar="NAME,setting=value...", help="else the study's own")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, help="JSON lines; continues from there")
    given = parser.parse_args(words)
    if given.systems < 1 or given.rounds < LOOK_EVERY or not 0 <= given.gaps < 1:
        parser.error(f"at least one system and {LOOK_EVERY} rounds, and gaps from 0 to below 1")
    return given


def main(words: Sequence[str] | None = None) -> None:
    given = arguments(words)
    seeds = range(given.first, given.first + given.systems)
    try:
        case = Case(
            given.rounds, given.nodes, given.weights, given.gaps, given.shift,
            study_settings(given.policy, changes=False, horizon=None),
        )  # fmt: skip
        store = ResultStore(given.results, asdict(case))
        units = [((kind, seed), (case, kind, seed)) for seed in seeds for kind in given.kinds]
        run_units(
            play, units, store=store, engine=Engine(n_jobs=given.jobs), on_result=show_progress
        )
    except CausalArmsError as error:
        sys.exit(f"error: {error}")
    console = Console(width=150)
    for kind in given.kinds:
        records = store.in_order([kind], seeds.stop)
        show([each for each in records if each["repetition"] in seeds], kind, console)


if __name__ == "__main__":
    main()
