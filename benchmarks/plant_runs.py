"""One plant run as an engineer would run it, and the truth of what the study showed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from causalarms import Study
from causalarms.errors import CausalArmsError, CausalArmsWarning
from causalarms.rng import stream
from causalarms.sem.rewards import all_interventions, index_of
from causalarms.study.ledger import Trial
from process_plants import N_SWITCHES, Plant, Truth, clean_plant, messy_plant

CLEAN, MESSY = VARIANTS = ("clean", "messy")
CHECKPOINTS = (30, 100, 300)
BATCH = 4
WORKERS = ("first line", "second line")  # each has one batch in flight
LAST = 20  # runs at the end of which one sees what is played
PREDICTIONS = 30
SURE = 0.95
WARM_UP = 120  # runs after which all that asking needs is compiled


@dataclass(frozen=True)
class Case:
    """How every plant is run; `settings` go to `Study.create`."""

    runs: int = CHECKPOINTS[-1]
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def checkpoints(self) -> list[int]:
        """Numbers of runs told."""
        return sorted({*(point for point in CHECKPOINTS if point < self.runs), self.runs})

    def plant(self, variant: str, number: int) -> Plant:
        if variant == CLEAN:
            return clean_plant(self.seed, number)
        return messy_plant(self.seed, number, changes_at=self.runs // 2)

    def settings_of(self, variant: str) -> dict[str, Any]:
        """Whoever knows that mechanisms may change says so, unless a policy is named."""
        watch = variant == MESSY and "policy" not in self.settings
        return ({"changes": True} if watch else {}) | self.settings

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def create_study(plant: Plant, settings: dict[str, Any]) -> Study:
    """What the engineer says about the plant: names, the reward, switches and their costs."""
    return Study.create(
        None,
        nodes=plant.nodes,
        reward=plant.reward,
        factors={switch.name: {"acts_on": switch.acts_on} for switch in plant.switches},
        costs={switch.name: switch.cost for switch in plant.switches if switch.cost},
        **settings,
    )


def run_plant(case: Case, variant: str, number: int) -> dict[str, Any]:
    """The whole study of one plant, with what was true at each checkpoint."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CausalArmsWarning)  # of values missing or far off
        _warm_up(case, variant)
        desk = _desk(case, variant, number)
        points = [
            {"runs": told} | desk.measured()
            for told in PACES[variant](desk, case.runs)
            if told in case.checkpoints
        ]
    return {"policy": variant, "repetition": number, "points": points}


def _desk(case: Case, variant: str, number: int) -> Desk:
    plant = case.plant(variant, number)
    return Desk(plant, create_study(plant, {"seed": number} | case.settings_of(variant)))


_WARM: set[str] = set()


def _warm_up(case: Case, variant: str) -> None:
    """Once per process: what is compiled or loaded in the first runs is not time for asking."""
    if variant not in _WARM:
        _WARM.add(variant)
        short = replace(case, runs=min(case.runs, WARM_UP))
        for _ in PACES[variant](_desk(short, variant, 0), short.runs):
            pass


class Desk:
    """Carries trials out in the plant and keeps account of them."""

    def __init__(self, plant: Plant, study: Study) -> None:
        self.plant = plant
        self.study = study
        self.played: dict[int, int] = {}  # run told -> row of the truth
        self.seconds: list[float] = []  # of every ask

    def ask(self, n: int, worker: str) -> list[Trial]:
        began = time.perf_counter()
        trials = self.study.ask(n, worker)
        self.seconds.append(time.perf_counter() - began)
        return [trials] if n == 1 else trials

    def tell(self, trial: Trial) -> None:
        row = self.row(trial.levels)
        values = self.plant.measure(trial.number, all_interventions(N_SWITCHES)[row])
        self.study.tell(trial, values)
        self.played[trial.number] = row

    def row(self, levels: dict[str, Any]) -> int:
        """Of the truth."""
        return index_of([levels[switch.name] == "on" for switch in self.plant.switches])

    def measured(self) -> dict[str, Any]:
        truth = self.plant.truth(len(self.played) - 1)
        last = [self.played[run] for run in sorted(self.played)[-LAST:]]
        return {
            "regret": self._regret(),
            "last_close": float(truth.close[last].mean()),
            **self._best(truth),
            **self._predictions(truth),
            "alarms": len(self.study.alarms()),
            "far_values": len(self.study.far_values()),
            "problem": self.study.problem,
            "ask_median": float(np.median(self.seconds)),
            "ask_worst": max(self.seconds),
        }

    def _regret(self) -> float:
        """As a share of what random play loses in as many runs."""
        lost = random = 0.0
        for run, row in self.played.items():
            loss = self.plant.truth(run).loss
            lost += float(loss[row])
            random += float(loss.mean())
        return lost / random

    def _best(self, truth: Truth) -> dict[str, Any]:
        best = self.study.best()
        row = self.row(best.levels)
        close, loss = bool(truth.close[row]), float(truth.loss[row])
        return {
            "best_close": close,
            "best_sure_and_wrong": best.probability >= SURE and not close,
            "best_is_best": loss <= 1e-9 * truth.range,
            "best_probability": _number(best.probability),
            "best_covered": bool(best.low <= truth.reward[row] <= best.high),
            "best_width": (best.high - best.low) / truth.range,
            "best_loss_claimed": _number(best.expected_loss / truth.range),
            "best_loss": loss / truth.range,
        }

    def _predictions(self, truth: Truth) -> dict[str, Any]:
        rng = stream(self.plant.seed, "predictions", len(self.played))
        rows = rng.choice(2**N_SWITCHES, PREDICTIONS, replace=False)
        reward = self.plant.nodes.index(self.plant.reward)
        covered, width = [], []
        for row, said in self._said(rows.tolist()):
            expected = [said["expected"][node] for node in self.plant.nodes]
            low, high = np.array([[each["low"], each["high"]] for each in expected]).T
            covered.append((low <= truth.values[row]) & (truth.values[row] <= high))
            width.append((high[reward] - low[reward]) / truth.range)
        answered = np.array(covered).reshape(-1, len(self.plant.nodes))
        return {
            "refused": 1 - len(answered) / len(rows),
            "reward_covered": _mean(answered[:, reward]),
            "reward_width": _mean(width),
            "nodes_covered": _mean(answered),
        }

    def _said(self, rows: list[int]) -> list[tuple[int, dict[str, Any]]]:
        """Predictions for those positions that are not refused."""
        wanted = []
        for row in rows:
            on = zip(self.plant.switches, all_interventions(N_SWITCHES)[row], strict=True)
            wanted.append([switch.name for switch, position in on if position])
        try:
            return list(zip(rows, self.study.predict(wanted), strict=True))
        except CausalArmsError:  # which may be for one of them only
            return [] if len(rows) == 1 else [s for row in rows for s in self._said([row])]


def one_by_one(desk: Desk, runs: int) -> Iterator[int]:
    """How many runs were told, after each."""
    for told in range(1, runs + 1):
        (trial,) = desk.ask(1, WORKERS[0])
        desk.tell(trial)
        yield told


def late(desk: Desk, runs: int) -> Iterator[int]:
    """Two batches in flight; either may come back first, its results in any order."""
    rng = stream(desk.plant.seed, "late")
    flying: dict[str, list[Trial]] = {}
    asked = told = 0
    while told < runs:
        for worker in WORKERS:
            size = min(BATCH, runs - asked)
            if worker not in flying and size:
                flying[worker] = desk.ask(size, worker)
                asked += size
        back = flying.pop(str(rng.choice(sorted(flying))))
        for place in rng.permutation(len(back)):
            desk.tell(back[place])
            told += 1
            yield told


PACES = {CLEAN: one_by_one, MESSY: late}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None
