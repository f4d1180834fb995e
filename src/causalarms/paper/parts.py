"""The parts of the reproduction: what to run, which figures and numbers come of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from causalarms.paper import (
    figures,
    graph_identification,
    headlines,
    reward_error,
    sample_complexity,
)
from causalarms.paper.headlines import Headline
from causalarms.paper.settings import Settings
from causalarms.paper.tidy import curve_rows, unit_rows, write_table
from causalarms.simulation.experiment import Experiment, run_unit

Record = dict[str, Any]
Unit = tuple[tuple[str, int], tuple[Any, ...]]


@dataclass(frozen=True)
class Part:
    """One set of runs."""

    name: str
    title: str
    run: Callable[..., Record]
    units: Callable[[Settings, int], list[Unit]]
    figures: dict[str, Callable[[Settings, list[Record]], Figure]]
    headlines: Callable[[Settings, list[Record]], list[Headline]]
    tables: Callable[[Settings, list[Record], Path], list[Path]]


def _graph_figure(metric: str, settings: Settings, records: list[Record]) -> Figure:
    rows = graph_identification.collect(records, settings)
    return figures.draw_graph_metric(rows, settings, metric)


def _graph_tables(settings: Settings, records: list[Record], folder: Path) -> list[Path]:
    shared = [{k: v for k, v in r.items() if not k.endswith("_intervened")} for r in records]
    return write_table(shared, folder / "graph_units") + write_table(
        graph_identification.collect(records, settings), folder / "graph_means"
    )


def _error_tables(settings: Settings, records: list[Record], folder: Path) -> list[Path]:
    rows = [
        {"repetition": r["repetition"], "round": t, "error": error, "false_negatives": missing}
        for r in records
        for t, error, missing in zip(settings.error_rounds, r["error"], r["missing"], strict=True)
    ]
    return write_table(rows, folder / "reward_error_units") + write_table(
        reward_error.collect(records, settings), folder / "reward_error_means"
    )


def _bandit_units(
    make: Callable[[Settings], Experiment], settings: Settings, runs: int
) -> list[Unit]:
    experiment = make(settings)
    return [
        ((contestant.name, repetition), (experiment, contestant, repetition))
        for repetition in range(runs)
        for contestant in experiment.contestants
    ]


def _bandit_figure(
    make: Callable[[Settings], Experiment], what: str, settings: Settings, records: list[Record]
) -> Figure:
    return figures.draw_bandit(make(settings), records, what)


def _bandit_tables(
    make: Callable[[Settings], Experiment],
    name: str,
    settings: Settings,
    records: list[Record],
    folder: Path,
) -> list[Path]:
    experiment = make(settings)
    return write_table(unit_rows(records), folder / f"{name}_units") + write_table(
        curve_rows(records, experiment.step, experiment.block), folder / f"{name}_curves"
    )


PARTS: Sequence[Part] = (
    Part(
        "graphs",
        "graph identification",
        graph_identification.run,
        graph_identification.units,
        {
            "graph_fn": partial(_graph_figure, "false_negative"),
            "precision": partial(_graph_figure, "precision"),
            "recall": partial(_graph_figure, "recall"),
            "nshd": partial(_graph_figure, "nshd"),
        },
        lambda settings, records: headlines.graph_headlines(records, settings),
        _graph_tables,
    ),
    Part(
        "reward_error",
        "error of estimated rewards",
        reward_error.run,
        reward_error.units,
        {
            "reward_error": lambda settings, records: figures.draw_reward_error(
                reward_error.collect(records, settings)
            )
        },
        lambda settings, records: headlines.reward_headlines(records, settings),
        _error_tables,
    ),
    Part(
        "samples",
        "rounds needed",
        sample_complexity.run,
        sample_complexity.units,
        {
            "samples": lambda settings, records: figures.draw_samples(
                sample_complexity.collect(records, settings), len(records) // 2
            )
        },
        lambda settings, records: headlines.sample_headlines(records, settings),
        lambda settings, records, folder: write_table(
            sample_complexity.collect(records, settings), folder / "samples_means"
        ),
    ),
    Part(
        "stationary",
        "stationary bandits",
        run_unit,
        partial(_bandit_units, Settings.stationary),
        {
            "regret": partial(_bandit_figure, Settings.stationary, "regret"),
            "optimal_share": partial(_bandit_figure, Settings.stationary, "optimal_share"),
        },
        lambda settings, records: headlines.stationary_headlines(records),
        partial(_bandit_tables, Settings.stationary, "stationary"),
    ),
    Part(
        "changing",
        "non-stationary bandits",
        run_unit,
        partial(_bandit_units, Settings.changing),
        {
            "regret_changing": partial(_bandit_figure, Settings.changing, "regret"),
            "optimal_share_changing": partial(_bandit_figure, Settings.changing, "optimal_share"),
        },
        lambda settings, records: headlines.changing_headlines(records, settings.changing_horizon),
        partial(_bandit_tables, Settings.changing, "changing"),
    ),
)

FIGURES = {figure: part for part in PARTS for figure in part.figures}
