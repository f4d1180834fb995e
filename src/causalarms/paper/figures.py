"""The figures of Sec. VI from records, in one style; stars are the paper's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from causalarms.paper.experiments import (
    COMPARED_BY_ROUNDS,
    METHODS,
    error_means,
    graph_means,
    sample_means,
)
from causalarms.paper.settings import PAPER_RUNS, STATED, Settings
from causalarms.pictures import style
from causalarms.pictures.curves import draw_optimal_share, draw_regret
from causalarms.simulation.experiment import Experiment
from causalarms.simulation.results import Record

COLORS = dict(
    zip(
        METHODS,
        (style.BLUE, style.SKY_BLUE, style.VERMILLION, style.GREEN, style.PURPLE),
        strict=True,
    )
)
MARKERS = dict(zip(METHODS, "osv^D", strict=True))
STAR: dict[str, Any] = {"marker": "*", "ms": 6, "mec": "black", "mew": 0.4}
GRAPH_LABELS = {
    "false_negative": "graph false-negative rate",
    "precision": "precision",
    "recall": "recall",
    "nshd": "normalized SHD",
}
PERCENT = 100.0
STANDARD_ERRORS = 1.96  # of a 95 % interval


def draw_graph_metric(metric: str, settings: Settings, records: list[Record]) -> Figure:
    """One metric against the graph size, T = 200 dashed and T = 400 solid."""
    rows = graph_means(settings, records)
    stated = STATED.get(metric, {})
    # CSL-nw is far off in all but the first figure; the paper states its graph-FN rate only
    shown = [m for m in METHODS if metric == "false_negative" or m != "CSL-nw"]
    lines = dict(zip(settings.sample_sizes, ("--", "-"), strict=False))
    with style.one_panel(2.8, "number of nodes N", GRAPH_LABELS[metric]) as (figure, axes):
        for n_rounds, line in lines.items():
            for method in shown:
                chosen = [r for r in rows if r["method"] == method and r["rounds"] == n_rounds]
                value = np.array([r[metric] for r in chosen])
                error = STANDARD_ERRORS * np.array([r[f"{metric}_se"] for r in chosen])
                ends = np.array([value - error, value + error])
                style.draw_band(
                    axes, [r["nodes"] for r in chosen], value,
                    ends if metric == "nshd" else ends.clip(0, 1), alpha=0.12,
                    color=COLORS[method], linestyle=line, marker=MARKERS[method], ms=3.5,
                )  # fmt: skip
        edge = max(settings.sizes) + 0.7
        for method, average in stated.items():
            axes.plot([edge], [average / PERCENT], color=COLORS[method], **STAR)
        axes.set_xticks(settings.sizes)
        handles = [
            Line2D([], [], color=COLORS[m], marker=MARKERS[m], ms=3.5, label=m) for m in shown
        ]
        handles += [
            Line2D([], [], color=style.GREY, linestyle=line, label=f"T = {n_rounds}")
            for n_rounds, line in lines.items()
        ]
        if stated:
            label = "paper's average"
            handles.append(Line2D([], [], color=style.WHITE, linestyle="", label=label, **STAR))
        figure.legend(handles=handles, loc="outside upper center", ncols=4, handlelength=2.2)
        _say_runs(figure, rows[0]["runs"])
    return figure


def draw_reward_error(settings: Settings, records: list[Record]) -> Figure:
    """Error of estimated rewards against time, with and without false negatives."""
    rows = error_means(settings, records)
    with style.one_panel(2.6, "round", "normalized reward error") as (figure, axes):
        for group, label, color, line in (
            (True, "with FN errors", style.VERMILLION, "--"),
            (False, "without FN errors", style.BLUE, "-"),
        ):
            chosen = [r for r in rows if r["false_negatives"] is group and r["systems"]]
            value = np.array([r["error"] for r in chosen])
            error = STANDARD_ERRORS * np.nan_to_num([r["error_se"] for r in chosen])
            style.draw_band(
                axes, [r["round"] for r in chosen], value, (value - error, value + error),
                color=color, linestyle=line, marker="o", ms=3, label=label,
            )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.legend()
        _say_runs(figure, len(records))
    return figure


def draw_samples(settings: Settings, records: list[Record]) -> Figure:
    """Recall of both graphs against the rounds spent on them; not a figure of the paper."""
    rows = sample_means(settings, records)
    with style.one_panel(2.6, "rounds spent on both graphs", "recall, both regimes") as (
        figure,
        axes,
    ):
        for method, line in zip(COMPARED_BY_ROUNDS, ("-", "--"), strict=True):
            chosen = [r for r in rows if r["method"] == method]
            axes.plot(
                [r["rounds"] for r in chosen], [r["recall"] for r in chosen], line,
                color=COLORS[method], marker=MARKERS[method], ms=3.5, label=method,
            )  # fmt: skip
        axes.legend()
        _say_runs(figure, len(records) // len(COMPARED_BY_ROUNDS))
    return figure


def draw_bandit(
    make: Callable[[Settings], Experiment], what: str, settings: Settings, records: list[Record]
) -> Figure:
    """Cumulative regret or optimal fraction; stars mark the stated final fractions."""
    experiment = make(settings)
    draw = draw_regret if what == "regret" else draw_optimal_share
    figure = draw(experiment, records)
    axes = figure.axes[0]
    if what == "regret":
        axes.set_yscale("log")
        axes.set_ylim(bottom=30)
    elif not experiment.changes:
        for line in axes.lines:
            stated = STATED["final_optimal_share"].get(str(line.get_label()))
            if stated is not None:
                axes.plot(
                    [experiment.horizon], [stated], color=line.get_color(), clip_on=False,
                    zorder=5, **STAR,
                )  # fmt: skip
    # the style of the figure ended with its drawing
    with style.figure_style():
        _say_runs(figure, len({r["repetition"] for r in records}))
    return figure


def _say_runs(figure: Figure, runs: int) -> None:
    words = f"{runs} systems, 95 % intervals"
    if runs < PAPER_RUNS:
        words += f" (the paper: {PAPER_RUNS})"
    style.say_runs(figure, words)
