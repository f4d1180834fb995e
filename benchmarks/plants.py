"""Does a study keep its promises in a plant with units of its own, at default settings?

`OMP_NUM_THREADS=1 python benchmarks/plants.py [--plants 40] [--jobs 2] [--results FILE]`
Every plant (`process_plants.py`) has 12 nodes in physical units and 7 switches, and is run for 300
runs through `causalarms.Study` as somebody would who knows nothing but the documentation
(see `Desk`). Every number shown is compared with the exact truth. Two variants of each plant:

clean   nothing changes or is missing, every switch acts on one node, one run at a time
messy   a switch acts on two nodes. Switches cost about 5 % of the range of the reward, 1 % of all
        cells are missing, batches of 4 come back late and out of order, and a mechanism of the best
        position changes halfway; the study is created with changes=True

clean-untold and messy-untold are the same plants for `--variant`; nobody says what the switches act
on, so the study has to learn it. They are compared with the plants that are told.

Numbers are means over plants with their standard errors, of net rewards, over the range between the
best and the worst position of the switches where they are in %. "Close" is within 2 % of the best.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from causalarms import Study
from causalarms.errors import CausalArmsError, CausalArmsWarning
from causalarms.rng import stream
from causalarms.sem.rewards import all_interventions, index_of
from causalarms.simulation.monte_carlo import Engine, run_units
from causalarms.simulation.results import Record, ResultStore
from causalarms.study.records import Trial
from process_plants import N_SWITCHES, Plant, Truth, clean_plant, messy_plant
from shared import proportion_error, ratio_interval, show_progress, study_settings

CLEAN, MESSY = VARIANTS = ("clean", "messy")
UNTOLD = "-untold"  # added to the name of a variant
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
        if base_of(variant) == CLEAN:
            plant = clean_plant(self.seed, number)
        else:
            plant = messy_plant(self.seed, number, changes_at=self.runs // 2)
        return plant if variant in VARIANTS else plant.unlabelled()

    def settings_of(self, variant: str) -> dict[str, Any]:
        """Whoever knows that mechanisms may change says so, unless a policy is named."""
        watch = base_of(variant) == MESSY and "policy" not in self.settings
        return ({"changes": True} if watch else {}) | self.settings

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def base_of(variant: str) -> str:
    """The variant in which it is known what switches act on."""
    return variant.removesuffix(UNTOLD)


def create_study(plant: Plant, settings: dict[str, Any]) -> Study:
    """What the engineer says about the plant: names, the reward, switches and their costs."""
    return Study.create(
        None,
        nodes=plant.nodes,
        reward=plant.reward,
        factors={
            switch.name: {} if switch.label else {"acts_on": switch.acts_on}
            for switch in plant.switches
        },
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
            {"runs": runs} | desk.measured()
            for runs in PACES[base_of(variant)](desk, case.runs)
            if runs in case.checkpoints
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
        for _ in PACES[base_of(variant)](_desk(short, variant, 0), short.runs):
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
        return int(index_of([levels[switch.name] == "on" for switch in self.plant.switches]))

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
        """As a fraction of what random play loses in as many runs."""
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


FIRST_COLUMN, COLUMN = 48, 17  # width, in characters


class Measure(NamedTuple):
    name: str
    text: str
    unit: str = "%"  # fractions are stored as such, times in seconds
    over: str = "mean"  # what is taken over the plants: mean, median, max


MEASURES = (
    Measure("regret", "regret, of random play's"),
    Measure("last_close", "played in the last 20 runs: close"),
    Measure("best_close", "best(): close"),
    Measure("best_is_best", "best(): the very best"),
    Measure("best_probability", "  claimed probability of that"),
    Measure("best_sure_and_wrong", "  claimed >= 95 % and not close"),
    Measure("best_loss", "best(): loss"),
    Measure("best_loss_claimed", "  claimed"),
    Measure("best_covered", "best(): 95 % interval covers"),
    Measure("best_width", "  width of the interval, median", over="median"),
    Measure("refused", "predict: refused"),
    Measure("reward_covered", "predict: 95 % intervals of the reward cover"),
    Measure("reward_width", "  width of the intervals, median", over="median"),
    Measure("nodes_covered", "predict: 95 % intervals of all nodes cover"),
    Measure("problem", "learning stopped by an error"),
    Measure("alarms", "alarms", ""),
    Measure("far_values", "values called far", ""),
    Measure("ask_median", "an ask, median", "ms", over="median"),
    Measure("ask_worst", "an ask, worst of all plants", "ms", over="max"),
)


class Statistic(NamedTuple):
    """Over the plants where there is a number; only means have a standard error."""

    value: float | None
    standard_error: float | None
    plants: int


def statistic(measure: Measure, points: list[Record]) -> Statistic:
    given = [point[measure.name] for point in points]
    if measure.name == "problem":
        given = [problem is not None for problem in given]
    values = np.array([value for value in given if value is not None], dtype=float)
    n = len(values)
    if not n:
        return Statistic(None, None, 0)
    if measure.over != "mean":
        return Statistic(float(getattr(np, measure.over)(values)), None, n)
    mean = float(values.mean())
    if all(isinstance(value, bool) for value in given):
        return Statistic(mean, proportion_error(values), n)
    return Statistic(mean, float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else None, n)


def summary(records: list[Record]) -> dict[str, dict[int, dict[str, Statistic]]]:
    """By variant, number of runs and measure."""
    found: dict[str, dict[int, dict[str, Statistic]]] = {}
    for variant in dict.fromkeys(record["policy"] for record in records):
        by_runs: dict[int, list[Record]] = {}
        for record in records:
            for point in record["points"] if record["policy"] == variant else ():
                by_runs.setdefault(point["runs"], []).append(point)
        found[variant] = {
            runs: {measure.name: statistic(measure, points) for measure in MEASURES}
            for runs, points in by_runs.items()
        }
    return found


def table(found: dict[str, dict[int, dict[str, Statistic]]], title: str) -> Table:
    made = Table(title=title)
    made.add_column("", no_wrap=True)
    columns = [(variant, runs) for variant, each in found.items() for runs in each]
    for variant, runs in columns:
        made.add_column(f"{variant}\n{runs} runs", justify="right", no_wrap=True)
    for measure in MEASURES:
        cells = [
            cell(measure.unit, found[variant][runs][measure.name]) for variant, runs in columns
        ]
        made.add_row(measure.text + (f", {measure.unit}" if measure.unit else ""), *cells)
    return made


def ratios(records: list[Record]) -> list[str]:
    """Regret where nobody says what switches act on, next to the same plants told."""
    regret: dict[tuple[str, int], dict[int, float]] = {}
    for record in records:
        for point in record["points"]:
            each = regret.setdefault((record["policy"], point["runs"]), {})
            each[record["repetition"]] = point["regret"]
    lines = []
    for (variant, runs), mine in regret.items():
        reference = regret.get((base_of(variant), runs), {})
        both = sorted(set(mine) & set(reference))
        if variant not in VARIANTS and both:
            pair = np.array([[each[number] for number in both] for each in (mine, reference)])
            low, high = ratio_interval(*pair)
            ratio = pair[0].mean() / pair[1].mean()
            lines.append(f"{variant}, {runs} runs: {ratio:.2f} ({low:.2f} - {high:.2f}) of told")
    return lines


def cell(unit: str, found: Statistic) -> str:
    if found.value is None:
        return "-"
    factor, digits = {"%": (100, 1), "ms": (1000, 1), "": (1, 2)}[unit]
    text = f"{factor * found.value:.{digits}f}"
    if found.standard_error is not None:
        text += f" ± {factor * found.standard_error:.{digits}f}"
    return text


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plants", type=int, default=40)
    parser.add_argument("--runs", type=int, default=CHECKPOINTS[-1], help="of each plant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--variant",
        nargs="+",
        choices=[*VARIANTS, *(each + UNTOLD for each in VARIANTS)],
        default=VARIANTS,
    )
    parser.add_argument("--policy", metavar="NAME,setting=value...", help="else the study's own")
    parser.add_argument("--changes", action="store_true", help="with detection of changes")
    parser.add_argument("--horizon", type=int, help="told to the study; else its own")
    parser.add_argument(
        "--results", type=Path, help="JSON lines, one per study; continues from there"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(words)
    if given.plants < 1 or given.runs < 2:
        parser.error("at least one plant and two runs")
    return given


def main(words: Sequence[str] | None = None) -> None:
    given = arguments(words)
    try:
        settings = study_settings(given.policy, given.changes, given.horizon)
        case = Case(given.runs, given.seed, settings)
        for variant in given.variant:  # refuse wrong settings before the first plant
            create_study(case.plant(variant, 0), case.settings_of(variant))
        store = ResultStore(given.results, case.as_dict())
        units = [
            ((variant, number), (case, variant, number))
            for number in range(given.plants)
            for variant in given.variant
        ]
        engine = Engine(n_jobs=given.jobs)
        run_units(run_plant, units, store=store, engine=engine, on_result=show_progress)
    except CausalArmsError as error:
        sys.exit(f"error: {error}")
    records = store.in_order(given.variant, given.plants)
    found = summary(records)
    if given.json:
        plain = {
            variant: {
                runs: {name: value._asdict() for name, value in each.items()}
                for runs, each in points.items()
            }
            for variant, points in found.items()
        }
        print(json.dumps({"settings": case.as_dict(), "plants": given.plants, "found": plain}))
        return
    what = json.dumps(settings) if settings else "default settings"
    width = FIRST_COLUMN + COLUMN * sum(len(points) for points in found.values())
    Console(width=width).print(table(found, f"{given.plants} plants, {what}"))
    for line in ratios(records):
        print(f"regret of {line}")


if __name__ == "__main__":
    main()
