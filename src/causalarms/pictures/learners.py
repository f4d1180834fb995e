"""Learners side by side: a dot and its interval per learner and metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from causalarms.files import printable
from causalarms.pictures import style
from causalarms.simulation.compare_learners import LearnerSummary, summarise_learners

PANELS = {
    "false_negative": "graph false-negative rate",
    "precision": "precision",
    "recall": "recall",
    "seconds": "seconds of a fit, median",
}
ROW, FRAME = 0.24, 1.15  # inches: of a learner, of what is around them


def draw_learners(names: Sequence[str], records: Sequence[dict[str, Any]]) -> Figure:
    """The metrics of B with the intervals of the table."""
    rows = summarise_learners(names, records)
    with style.figure_style():
        size = (style.TWO_COLUMNS, FRAME + ROW * len(rows))
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(1, len(PANELS), sharey=True)
        for axes, (metric, label) in zip(panels, PANELS.items(), strict=True):
            _panel(axes, rows, metric)
            axes.set_xlabel(label)
        panels[0].set_yticks(range(len(rows)), [printable(row.learner) for row in rows])
        for text in panels[0].get_yticklabels():
            text.set_parse_math(False)
        panels[0].set_ylim(len(rows) - 0.5, -0.5)
        most = max(row.runs for row in rows)
        style.say_runs(figure, f"{most} runs, 95 % bootstrap intervals")
    return figure


def _panel(axes: Any, rows: Sequence[LearnerSummary], metric: str) -> None:
    for place, (row, look) in enumerate(zip(rows, _looks(len(rows)), strict=True)):
        value, low, high = getattr(row, metric)
        axes.plot([low, high], [place, place], color=look, linewidth=1.3, linestyle="-")
        axes.plot([value], [place], color=look, marker="o", ms=4)
    if metric == "seconds":
        _whole_decades(axes)
    else:
        axes.set_xlim(-0.03, 1.03)
    axes.grid(axis="x", color=style.PALE_GREY, linewidth=0.6)
    axes.set_axisbelow(True)


def _whole_decades(axes: Any) -> None:
    axes.set_xscale("log")
    low, high = axes.dataLim.intervalx
    axes.set_xlim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _looks(n: int) -> list[str]:
    colours = [str(entry["color"]) for entry in style.SERIES]
    return [colours[number % len(colours)] for number in range(n)]
