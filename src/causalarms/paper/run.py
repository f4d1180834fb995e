"""Run the parts of the reproduction; write figures, data and report into one folder.

Every reading of the paper has a folder of its own in it, by its distribution of the weights, and
the report has both. Finished units are kept in `raw/`, one file per part, so an interrupted run
goes on where it was and more runs can be added later. A folder with results of other settings is
refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from causalarms.checks import choice, integer
from causalarms.errors import DataError
from causalarms.extras import has_extra
from causalarms.files import Mark, read_text, refuse_study, write_atomically, write_output
from causalarms.limits import SYSTEM_BYTES
from causalarms.paper import experiments, headlines
from causalarms.paper.figures import draw_bandit, draw_graph_metric, draw_reward_error, draw_samples
from causalarms.paper.headlines import Headline
from causalarms.paper.report import Reading, write_report
from causalarms.paper.settings import MADE_BY, READINGS, Settings
from causalarms.pictures.style import save_figure
from causalarms.simulation.experiment import Experiment, Unit, run_unit
from causalarms.simulation.monte_carlo import Engine, run_units
from causalarms.simulation.results import Record, ResultStore
from causalarms.tables.write import columns_text, parquet_bytes

OWN_FILES = (  # what is written into the folder of a reading
    "raw/*.jsonl", "figures/*.png", "figures/*.pdf",
    *(f"data/*_{kind}.{ending}" for kind in ("units", "means", "curves")
      for ending in ("csv", "parquet")),
)  # fmt: skip
SETTINGS = "settings.json"
RUN_COLUMNS = (
    "policy", "repetition", "regret", "simple_regret", "optimal_share", "final_optimal_share",
    "lasting_optimum", "explored", "mean_last_gap", "linear_regret",
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """One set of runs, and what comes of it.

    name        of its file in `raw/`
    title       for people
    run         makes the record of a unit
    units       of so many runs: key and arguments of each
    figures     how each of its figures is drawn, by name
    headlines   the numbers that the paper states
    tables      the data behind the figures, by name of the file
    """

    name: str
    title: str
    run: Callable[..., Record]
    units: Callable[[Settings, int], list[Unit]]
    figures: dict[str, Callable[[Settings, list[Record]], Figure]]
    headlines: Callable[[Settings, list[Record]], list[Headline]]
    tables: Callable[[Settings, list[Record]], dict[str, list[Record]]]


# The reading, the part, and how many of its units are done
OnProgress = Callable[[Settings, Part, int, int], None]


class Reproduction(NamedTuple):
    """What was measured and written."""

    readings: list[Reading]
    files: list[Path]


def reproduce(
    folder: Path,
    *,
    runs: int,
    readings: Sequence[Settings] = (),
    figures: Sequence[str] = (),
    engine: Engine | None = None,
    on_progress: OnProgress | None = None,
) -> Reproduction:
    """All figures and headline numbers, or the named figures and the numbers behind them.

    folder        what is written goes here; finished units in it are not run again
    runs          random systems; the paper uses 100
    readings      settings that differ in the weights; none: the paper's text and its program
    figures       names of figures; none: all
    engine        where units run; None: all cores of this machine
    on_progress   `on_progress(settings, part, done, total)` is called at the start and after every
                  unit
    """
    readings = readings or [Settings(weights=weights) for weights in READINGS]
    integer("runs", runs, minimum=1)
    wanted = [choice("figure", name, tuple(FIGURES)) for name in figures] or list(FIGURES)
    _refuse_foreign(folder)
    for settings in readings:
        _claim(folder / settings.weights, settings)
    run = _Run(runs, wanted, engine or Engine(), on_progress)
    found = [run.reading(folder / settings.weights, settings) for settings in readings]
    return Reproduction(found, run.files + write_report(folder, found))


@dataclass
class _Run:
    """What all readings share, and the files that were written."""

    runs: int
    figures: list[str]
    engine: Engine
    on_progress: OnProgress | None
    files: list[Path] = field(default_factory=list)

    def reading(self, folder: Path, settings: Settings) -> Reading:
        """Run the parts under one reading of the paper."""
        found: list[Headline] = []
        seconds: dict[str, float] = {}
        images: dict[str, Path] = {}
        for part in PARTS:
            names = [name for name in self.figures if FIGURES[name] is part]
            if not names:
                continue
            start = time.perf_counter()
            records = self._records(part, folder, settings)
            found += part.headlines(settings, records)
            for name, rows in part.tables(settings, records).items():
                self.files += write_table(rows, folder / "data" / name)
            for name in names:
                figure = part.figures[name](settings, records)
                pictures = [
                    save_figure(figure, folder / "figures" / f"{name}{ending}", made_by=MADE_BY)
                    for ending in (".png", ".pdf")
                ]
                images[name] = pictures[0]
                self.files += pictures
            seconds[part.name] = time.perf_counter() - start
        found += headlines.abstract_headlines(found)
        return Reading(settings, self.runs, found, images, seconds)

    def _records(self, part: Part, folder: Path, settings: Settings) -> list[Record]:
        units = part.units(settings, self.runs)
        store = ResultStore(folder / "raw" / f"{part.name}.jsonl", settings.as_dict())

        def on_result(done: int, total: int, record: Record | None) -> None:
            if self.on_progress is not None:
                self.on_progress(settings, part, done, total)

        run_units(part.run, units, store=store, engine=self.engine, on_result=on_result)
        labels = list(dict.fromkeys(key[0] for key, _ in units))
        return store.in_order(labels, self.runs)


def start_over(folder: Path, readings: Sequence[Settings]) -> None:
    """Claim the folder of another reproduction: what that wrote is removed, and nothing else.

    folder     of the other reproduction
    readings   that begin in it
    """
    claimed = {folder / settings.weights / SETTINGS: settings for settings in readings}
    claimed = {path: settings for path, settings in claimed.items() if path.exists()}
    for path in claimed:
        if _settings(path).keys() != Settings().as_dict().keys():
            raise DataError(f"{path} holds no settings of a reproduction; choose another folder")
    own = [p for path in claimed for pattern in OWN_FILES for p in path.parent.glob(pattern)]
    # all are looked at before the first is removed
    for found in own:
        refuse_study(found)
    for found in own:
        found.unlink()
    for path, settings in claimed.items():
        _write_settings(path, settings)


def _refuse_foreign(folder: Path) -> None:
    """A folder that holds anything must hold a reading."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is not a folder; choose another name")
    known = any((folder / weights / SETTINGS).exists() for weights in READINGS)
    if not known and folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty and holds no reproduction; choose another folder")


def _claim(folder: Path, settings: Settings) -> None:
    """Write the settings into the folder of a reading, or refuse one that holds others."""
    path = folder / SETTINGS
    record = settings.as_dict()
    if path.exists():
        theirs = _settings(path)
        if theirs != record:
            names = sorted(k for k in {*theirs, *record} if theirs.get(k) != record.get(k))
            raise DataError(
                f"{folder} holds results of other settings (they differ in {', '.join(names)}); "
                "choose another folder, or say --overwrite to start over in this one"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty and holds no reproduction; choose another folder")
    else:
        _write_settings(path, settings)


def _write_settings(path: Path, settings: Settings) -> None:
    write_atomically(path, json.dumps(settings.as_dict(), indent=1) + "\n")


def _settings(path: Path) -> Record:
    try:
        record = json.loads(read_text(path, SYSTEM_BYTES))
    except (ValueError, RecursionError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not isinstance(record, dict):
        raise DataError(f"{path} holds no settings of a reproduction; choose another folder")
    return record


# -- tables: the data behind the figures as CSV and Parquet ----------------------------------------


def write_table(rows: Sequence[Record], path: Path) -> list[Path]:
    """CSV and, if pyarrow is installed, Parquet: the same bytes for the same settings."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    text = columns_text(columns)
    mark = Mark(f"`{MADE_BY}`", text.partition("\n")[0].encode())
    written = [write_output(path.with_suffix(".csv"), text, mark, force=None)]
    if not has_extra("parquet"):
        return written
    content = parquet_bytes(columns, MADE_BY)
    mark = Mark(f"`{MADE_BY}`", b"PAR1", MADE_BY.encode())
    return [*written, write_output(path.with_suffix(".parquet"), content, mark, force=None)]


def _graph_tables(settings: Settings, records: list[Record]) -> dict[str, list[Record]]:
    return {
        # only CSL learns both regimes, and all rows of a table have the same columns
        "graph_units": [
            {k: v for k, v in r.items() if not k.endswith("_intervened")} for r in records
        ],
        "graph_means": experiments.graph_means(settings, records),
    }


def _error_tables(settings: Settings, records: list[Record]) -> dict[str, list[Record]]:
    rows = [
        {"repetition": r["repetition"], "round": t, "error": error, "false_negatives": missing}
        for r in records
        for t, error, missing in zip(settings.error_rounds, r["error"], r["missing"], strict=True)
    ]
    means = experiments.error_means(settings, records)
    return {"reward_error_units": rows, "reward_error_means": means}


def _sample_tables(settings: Settings, records: list[Record]) -> dict[str, list[Record]]:
    return {"samples_means": experiments.sample_means(settings, records)}


def _bandit_tables(
    name: str, make: Callable[[Settings], Experiment], settings: Settings, records: list[Record]
) -> dict[str, list[Record]]:
    """One row per run without its curves, and one per run and point of a curve."""
    step, block = make(settings).step, make(settings).block
    units = [{key: r[key] for key in RUN_COLUMNS} | {"alarms": len(r["alarms"])} for r in records]
    curves = [
        {
            "policy": r["policy"],
            "repetition": r["repetition"],
            "round": t,
            "regret": regret,
            # rounds after the last complete block count to it
            "optimal_share": r["optimal_curve"][min((t - 1) // block, len(r["optimal_curve"]) - 1)],
        }
        for r in records
        for number, regret in enumerate(r["regret_curve"], start=1)
        for t in [number * step]
    ]
    return {f"{name}_units": units, f"{name}_curves": curves}


# -- parts -----------------------------------------------------------------------------------------


def _bandit_part(
    name: str,
    title: str,
    make: Callable[[Settings], Experiment],
    found: Callable[[Settings, list[Record]], list[Headline]],
    suffix: str = "",
) -> Part:
    """Policies in the systems of an experiment."""
    return Part(
        name,
        title,
        run_unit,
        lambda settings, runs: make(settings).units(runs),
        {
            f"{what}{suffix}": partial(draw_bandit, make, what)
            for what in ("regret", "optimal_share")
        },
        found,
        partial(_bandit_tables, name, make),
    )


PARTS: Sequence[Part] = (
    Part(
        "graphs",
        "graph identification",
        experiments.graph_run,
        experiments.graph_units,
        {
            "graph_fn": partial(draw_graph_metric, "false_negative"),
            "precision": partial(draw_graph_metric, "precision"),
            "recall": partial(draw_graph_metric, "recall"),
            "nshd": partial(draw_graph_metric, "nshd"),
        },
        headlines.graph_headlines,
        _graph_tables,
    ),
    Part(
        "reward_error",
        "error of estimated rewards",
        experiments.error_run,
        experiments.error_units,
        {"reward_error": draw_reward_error},
        headlines.reward_headlines,
        _error_tables,
    ),
    Part(
        "samples",
        "rounds needed",
        experiments.sample_run,
        experiments.sample_units,
        {"samples": draw_samples},
        headlines.sample_headlines,
        _sample_tables,
    ),
    _bandit_part(
        "stationary", "stationary bandits", Settings.stationary, headlines.stationary_headlines
    ),
    _bandit_part(
        "changing",
        "non-stationary bandits",
        Settings.changing,
        headlines.changing_headlines,
        suffix="_changing",
    ),
)

FIGURES = {figure: part for part in PARTS for figure in part.figures}
