"""Does a study keep its promises in a plant with units of its own, at default settings?

`OMP_NUM_THREADS=1 python benchmarks/plants.py [--plants 40] [--jobs 2] [--results FILE]`
Every plant (`process_plants.py`) has 12 nodes in physical units and 7 switches, and is run for 300
runs through `causalarms.Study` as somebody would who knows nothing but the documentation
(`plant_runs.py`). Every number shown is compared with the exact truth. Two variants of each plant:

clean   nothing changes or is missing, every switch acts on one node, one run at a time
messy   a switch acts on two nodes. Switches cost about 5 % of the range of the reward, 1 % of all
        cells are missing, batches of 4 come back late and out of order, and a mechanism of the best
        position changes halfway; the study is created with changes=True

Numbers are means over plants with their standard errors, of net rewards, over the range between the
best and the worst position of the switches where they are in %. "Close" is within 2 % of the best.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from causalarms.errors import CausalArmsError
from causalarms.simulation.monte_carlo import Engine, run_units
from causalarms.simulation.results import Record, ResultStore
from plant_runs import CHECKPOINTS, VARIANTS, Case, create_study, run_plant

WIDTH = 150


class Measure(NamedTuple):
    name: str
    text: str
    unit: str = "%"  # shares are stored as such, times in seconds
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
        share = (values.sum() + 1) / (n + 2)  # not 0 where all plants agree
        return Statistic(mean, float(np.sqrt(share * (1 - share) / n)), n)
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


def cell(unit: str, found: Statistic) -> str:
    if found.value is None:
        return "-"
    factor, digits = {"%": (100, 1), "ms": (1000, 1), "": (1, 2)}[unit]
    text = f"{factor * found.value:.{digits}f}"
    if found.standard_error is not None:
        text += f" ± {factor * found.standard_error:.{digits}f}"
    return text


def study_settings(policy: str | None, changes: bool, horizon: int | None) -> dict[str, Any]:
    """For `Study.create`: nothing but what was asked for."""
    settings: dict[str, Any] = {} if horizon is None else {"horizon": horizon}
    name, *pairs = policy.split(",") if policy else [""]
    if changes:
        settings["changes"] = True
    if name:
        settings["policy"] = name
    if pairs:
        settings["policy_settings"] = dict(map(setting, pairs))
    return settings


def setting(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise CausalArmsError(f"--policy: {pair!r} is not setting=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def show_progress(done: int, total: int, record: Record | None) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} studies", end=end, file=sys.stderr, flush=True)


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plants", type=int, default=40)
    parser.add_argument("--runs", type=int, default=CHECKPOINTS[-1], help="of each plant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--variant", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--policy", metavar="NAME,setting=value...", help="else the study's own")
    parser.add_argument("--changes", action="store_true", help="with detection of changes")
    parser.add_argument("--horizon", type=int, help="told to the study; else its own")
    parser.add_argument(
        "--results", type=Path, help="JSON lines, one per study; goes on from there"
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
    records = [r for r in store.in_order(given.variant) if r["repetition"] < given.plants]
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
    Console(width=WIDTH).print(table(found, f"{given.plants} plants, {what}"))


if __name__ == "__main__":
    main()
