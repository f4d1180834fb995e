"""Regret and optimal share against time, one line per policy with its interval shaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from causalarms.pictures import style
from causalarms.plain_text import printable
from causalarms.simulation.experiment import Experiment

FEWEST_FOR_INTERVAL = 3
PERCENT = 100.0


def draw_regret(experiment: Experiment, records: Sequence[dict[str, Any]]) -> Figure:
    """Mean cumulative regret; logarithmic where policies differ by more than a factor 30."""
    rounds = np.arange(experiment.step, experiment.horizon + 1, experiment.step)
    figure = _draw(experiment, records, "regret_curve", rounds, "cumulative regret")
    finals = [
        np.mean([record["regret"] for record in records if record["policy"] == contestant.name])
        for contestant in experiment.contestants
    ]
    positive = [float(value) for value in finals if value > 0]
    if positive and max(positive) > 30 * min(positive):
        figure.axes[0].set_yscale("symlog", linthresh=max(min(positive) / 10, 1e-3))
    return figure


def draw_optimal_share(experiment: Experiment, records: Sequence[dict[str, Any]]) -> Figure:
    """Share of rounds with the best intervention, per block of rounds."""
    n_blocks = experiment.horizon // experiment.block
    middles = (np.arange(n_blocks) + 0.5) * experiment.block
    label = "optimal interventions [%]"
    figure = _draw(experiment, records, "optimal_curve", middles, label, scale=PERCENT)
    figure.axes[0].set_ylim(-3, 103)
    return figure


def _draw(
    experiment: Experiment,
    records: Sequence[dict[str, Any]],
    key: str,
    at: Any,
    label: str,
    scale: float = 1.0,
) -> Figure:
    with style.figure_style():
        figure = Figure(figsize=(style.ONE_COLUMN, 2.9), layout="constrained")
        axes = figure.add_subplot()
        for contestant in experiment.contestants:
            curves = scale * np.array(
                [record[key] for record in records if record["policy"] == contestant.name]
            )
            if not len(curves):
                continue
            average = curves.mean(axis=0)
            (line,) = axes.plot(at, average, label=printable(contestant.name))
            if len(curves) >= FEWEST_FOR_INTERVAL:
                error = 1.96 * curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
                low, high = (average - error).clip(min=0), average + error
                if scale == PERCENT:
                    high = high.clip(max=scale)
                axes.fill_between(at, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        for change in experiment.changes:
            axes.axvline(change, color=style.GREY, linestyle=":", linewidth=0.8)
        axes.set_xlabel("round")
        axes.set_ylabel(label)
        axes.set_xlim(0, experiment.horizon)
        legend = figure.legend(loc="outside upper center", ncols=2)
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure
