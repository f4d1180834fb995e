"""The figures of Sec. VI from collected tables, in one style; stars are the paper's values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from causalarms.paper.graph_identification import METHODS
from causalarms.paper.settings import PAPER_RUNS, Settings
from causalarms.pictures import style
from causalarms.pictures.curves import draw_optimal_share, draw_regret
from causalarms.simulation.experiment import Experiment
from causalarms.simulation.results import Record

COLORS = dict(
    zip(METHODS, (style.BLUE, style.SKY_BLUE, style.VERMILLION, style.GREEN), strict=True)
)
MARKERS = dict(zip(METHODS, "osv^", strict=True))
GRAPH_LABELS = {
    "false_negative": "graph false-negative rate",
    "precision": "precision",
    "recall": "recall",
    "nshd": "normalized SHD",
}
STATED_AVERAGES = {
    "precision": {"GOLEM": 0.935, "DAGMA": 0.909, "CSL": 0.967},
    "recall": {"GOLEM": 0.927, "DAGMA": 0.938, "CSL": 0.996},
    "false_negative": {"CSL-nw": 1.0},
}
STATED_FINAL = {"vanilla UCB": 47.2, "GOLEM-MAB": 71.0, "CSL-UCB": 79.0, "LinSEM-TS": 94.2}


def draw_graph_metric(rows: Sequence[Record], settings: Settings, metric: str) -> Figure:
    """One metric against the graph size, T = 200 dashed and T = 400 solid."""
    # CSL-nw is far off in all but the first figure; the paper states its graph-FN rate only
    shown = METHODS if metric == "false_negative" else tuple(m for m in METHODS if m != "CSL-nw")
    with style.figure_style():
        figure = Figure(figsize=(style.ONE_COLUMN, 2.8), layout="constrained")
        axes = figure.add_subplot()
        for n_rounds, line in zip(settings.sample_sizes, ("--", "-"), strict=False):
            for method in shown:
                chosen = [r for r in rows if r["method"] == method and r["rounds"] == n_rounds]
                at = np.array([r["nodes"] for r in chosen])
                value = np.array([r[metric] for r in chosen])
                error = 1.96 * np.array([r[f"{metric}_se"] for r in chosen])
                color = COLORS[method]
                axes.plot(at, value, color=color, linestyle=line, marker=MARKERS[method], ms=3.5)
                low, high = value - error, value + error
                if metric != "nshd":
                    low, high = low.clip(0, 1), high.clip(0, 1)
                axes.fill_between(at, low, high, color=color, alpha=0.12, linewidth=0)
        edge = max(settings.sizes) + 0.7
        for method, stated in STATED_AVERAGES.get(metric, {}).items():
            axes.plot(
                [edge], [stated], marker="*", ms=6, color=COLORS[method], mec="black", mew=0.4
            )
        axes.set_xlabel("number of nodes N")
        axes.set_ylabel(GRAPH_LABELS[metric])
        axes.set_xticks(settings.sizes)
        _graph_legend(figure, settings, shown, stated=metric in STATED_AVERAGES)
        _say_runs(figure, rows[0]["runs"])
    return figure


def draw_reward_error(rows: Sequence[Record]) -> Figure:
    """Error of estimated rewards against time, with and without false negatives."""
    with style.figure_style():
        figure = Figure(figsize=(style.ONE_COLUMN, 2.6), layout="constrained")
        axes = figure.add_subplot()
        for group, label, color, line in (
            (True, "with FN errors", style.VERMILLION, "--"),
            (False, "without FN errors", style.BLUE, "-"),
        ):
            chosen = [r for r in rows if r["false_negatives"] is group and r["systems"]]
            at = np.array([r["round"] for r in chosen])
            value = np.array([r["error"] for r in chosen])
            error = 1.96 * np.nan_to_num([r["error_se"] for r in chosen])
            axes.plot(at, value, color=color, linestyle=line, marker="o", ms=3, label=label)
            axes.fill_between(
                at, value - error, value + error, color=color, alpha=0.15, linewidth=0
            )
        axes.set_xlabel("round")
        axes.set_ylabel("normalized reward error")
        axes.set_ylim(bottom=0)
        axes.legend()
        systems = sum(r["systems"] for r in rows if r["round"] == rows[0]["round"])
        _say_runs(figure, systems)
    return figure


def draw_samples(rows: Sequence[Record], runs: int) -> Figure:
    """Recall of both graphs against the rounds spent on them; not a figure of the paper."""
    with style.figure_style():
        figure = Figure(figsize=(style.ONE_COLUMN, 2.6), layout="constrained")
        axes = figure.add_subplot()
        for method, line in (("CSL", "-"), ("GOLEM", "--")):
            chosen = [r for r in rows if r["method"] == method]
            axes.plot(
                [r["rounds"] for r in chosen], [r["recall"] for r in chosen], line,
                color=COLORS[method], marker=MARKERS[method], ms=3.5, label=method,
            )  # fmt: skip
        axes.set_xlabel("rounds spent on both graphs")
        axes.set_ylabel("recall, both regimes")
        axes.legend()
        _say_runs(figure, runs)
    return figure


def draw_bandit(experiment: Experiment, records: Sequence[Record], what: str) -> Figure:
    """Cumulative regret or optimal fraction; stars mark the stated final fractions."""
    draw = draw_regret if what == "regret" else draw_optimal_share
    figure = draw(experiment, records)
    axes = figure.axes[0]
    if what == "regret":
        axes.set_yscale("log")
        axes.set_ylim(bottom=30)
    elif not experiment.changes:
        for line in axes.lines:
            stated = STATED_FINAL.get(str(line.get_label()))
            if stated is not None:
                axes.plot(
                    [experiment.horizon], [stated], marker="*", ms=6,
                    color=line.get_color(), mec="black", mew=0.4, clip_on=False, zorder=5,
                )  # fmt: skip
    with style.figure_style():
        _say_runs(figure, len({r["repetition"] for r in records}))
    return figure


def _graph_legend(
    figure: Figure, settings: Settings, shown: tuple[str, ...], *, stated: bool
) -> None:
    handles = [Line2D([], [], color=COLORS[m], marker=MARKERS[m], ms=3.5, label=m) for m in shown]
    handles += [
        Line2D([], [], color=style.GREY, linestyle=line, label=f"T = {n_rounds}")
        for n_rounds, line in zip(settings.sample_sizes, ("--", "-"), strict=False)
    ]
    if stated:
        star = Line2D(
            [], [], color=style.WHITE, marker="*", ms=6, mec="black", mew=0.4, linestyle="",
            label="paper's average",
        )  # fmt: skip
        handles.append(star)
    figure.legend(handles=handles, loc="outside upper center", ncols=4, handlelength=2.2)


def _say_runs(figure: Figure, runs: int) -> None:
    words = f"{runs} systems, 95 % intervals"
    if runs < PAPER_RUNS:
        words += f" (the paper: {PAPER_RUNS})"
    style.say_runs(figure, words)
