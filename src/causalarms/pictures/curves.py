"""Pictures of results: policies against time, and learners next to each other.

Lines and dots are means over systems, intervals those of the table: percentile bootstrap over
systems. What is measured per block of rounds is drawn as a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from causalarms.arrays import FloatArray, IntArray
from causalarms.errors import DataError
from causalarms.files import printable
from causalarms.pictures import style
from causalarms.simulation.experiment import LEARNERS, Experiment
from causalarms.simulation.results import Record, Results, read_results
from causalarms.simulation.summary import LearnerSummary, by_name, mean_band, summarise_learners

Records = Sequence[Record]

MIN_RUNS_FOR_INTERVAL = 2
LOG_FACTOR = 30  # between policies beyond which regret is drawn on a logarithmic axis
LOG_MARGIN = 1.5  # factor below the smallest mean
PERCENT = 100.0

PANELS = {
    "false_negative": "graph false-negative rate",
    "precision": "precision",
    "recall": "recall",
    "seconds": "seconds of a fit, median",
}
ROW, FRAME = 0.24, 1.15  # inches: of a learner, of what is around them


Compared = Experiment | Results


def draw_regret(compared: Compared, records: Records) -> Figure:
    """Mean cumulative regret; logarithmic if policies differ by more than a factor 30.

    compared   an `Experiment`, or the `Results` of a file
    records    of its units
    """
    return _draw_regret(compared, records, "cumulative regret", lambda record: 1.0)


def draw_normalised_regret(compared: Compared, records: Records) -> Figure:
    """Cumulative regret of every system in units of what random play loses there in the whole run.

    Systems differ a hundredfold in scale; so no single one decides the mean.

    compared   an `Experiment`, or the `Results` of a file
    records    of its units
    """
    return _draw_regret(compared, records, "regret / random play's in the run", _random_regret)


def draw_optimal_share(compared: Compared, records: Records) -> Figure:
    """Fraction of rounds with the best intervention, per block of rounds.

    compared   an `Experiment`, or the `Results` of a file
    records    of its units
    """
    curves = _curves(compared, records, lambda r: PERCENT * np.array(r["optimal_curve"]))
    edges = np.arange(compared.horizon // compared.block + 1) * compared.block
    label = f"optimal interventions per {compared.block} rounds [%]"
    figure = _draw(compared, records, curves, edges, label)
    figure.axes[0].set_ylim(-3, 103)
    return figure


def _draw_regret(
    compared: Compared, records: Records, label: str, unit: Callable[[Record], float]
) -> Figure:
    curves = _curves(compared, records, lambda r: np.array(r["regret_curve"]) / unit(r))
    rounds = np.arange(compared.step, compared.horizon + 1, compared.step)
    figure = _draw(compared, records, curves, rounds, label)
    _spread_out(figure, curves)
    return figure


def _curves(
    compared: Compared, records: Records, curve: Callable[[Record], FloatArray]
) -> dict[str, FloatArray]:
    """By label, (systems, points)."""
    return {
        name: np.array([curve(record) for record in chosen])
        for name, chosen in by_name(compared.names, records).items()
    }


def _random_regret(record: Record) -> float:
    return max(float(record["random_regret"]), np.finfo(float).tiny)


def _spread_out(figure: Figure, curves: dict[str, FloatArray]) -> None:
    """A logarithmic axis if policies end far apart; straight near 0 if one loses nothing."""
    means = np.array([lines.mean(axis=0) for lines in curves.values()])
    finals = means[:, -1]
    positive = finals[finals > 0]
    if not len(positive) or positive.max() <= LOG_FACTOR * positive.min():
        return
    axes = figure.axes[0]
    if len(positive) == len(finals):
        axes.set_yscale("log")
        axes.set_ylim(bottom=means[means > 0].min() / LOG_MARGIN)
    else:
        axes.set_yscale("symlog", linthresh=positive.min() / 10)
        axes.set_ylim(bottom=0.0)


def _draw(
    compared: Compared, records: Records, curves: dict[str, FloatArray], at: IntArray, label: str
) -> Figure:
    """Points at the rounds `at`; blocks between them if there is one point fewer."""
    with style.one_panel(2.9, "round", label) as (figure, axes):
        most = max(map(len, curves.values()), default=0)
        for name, lines in curves.items():
            band = mean_band(lines)
            blocks = band.shape[1] == len(at) - 1
            if blocks:  # the last block ends at the last edge
                band = np.column_stack([band, band[:, -1]])
            ends = band[1:] if len(lines) >= MIN_RUNS_FOR_INTERVAL else None
            style.draw_band(axes, at, band[0], ends, blocks=blocks, label=printable(name))
        # only changes that all runs have: users' worlds may change at different times
        for change in _changes(records):
            axes.axvline(change, color=style.GREY, linestyle=":", linewidth=0.8)
        axes.set_xlim(0, compared.horizon)
        legend = figure.legend(loc="outside upper center", ncols=2)
        for text in legend.get_texts():
            text.set_parse_math(False)
        if most >= MIN_RUNS_FOR_INTERVAL:
            style.say_runs(figure, f"mean of {most} runs, 95 % bootstrap intervals")
    return figure


def _changes(records: Records) -> list[int]:
    """Rounds after which all runs change."""
    each = [{change["after"] for change in record["changes"]} for record in records]
    return sorted(set.intersection(*each)) if each else []


# -- learners: a dot and its interval per learner and metric ---------------------------------------


def draw_learners(names: Sequence[str], records: Records) -> Figure:
    """The metrics of B with the intervals of the table.

    names     labels of the learners, from top to bottom
    records   of the units, as `compare_learners` returns them
    """
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


def _panel(axes: Axes, rows: Sequence[LearnerSummary], metric: str) -> None:
    for place, (row, color) in enumerate(zip(rows, cycle(style.SERIES.by_key()["color"]))):
        value, low, high = getattr(row, metric)
        axes.plot([low, high], [place, place], color=color, linewidth=1.3, linestyle="-")
        axes.plot([value], [place], color=color, marker="o", ms=4)
    if metric == "seconds":  # from decade to decade
        axes.set_xscale("log")
        low, high = np.log10(axes.dataLim.intervalx)
        axes.set_xlim(10 ** np.floor(low), 10 ** np.ceil(high))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(-0.03, 1.03)
    axes.grid(axis="x", color=style.PALE_GREY, linewidth=0.6)
    axes.set_axisbelow(True)


# -- results files ---------------------------------------------------------------------------------

CURVES: dict[str, Callable[..., Figure]] = {
    "regret": draw_regret,
    "normalised-regret": draw_normalised_regret,
    "optimal-share": draw_optimal_share,
}


def draw_results(
    results: str | Path | Results, what: str | None = None, *, names: Sequence[str] | None = None
) -> Figure:
    """A picture of results.

    results   a results file, or what `read_results` found in one
    what      `regret` (default), `normalised-regret` or `optimal-share` of policies; learners have
              one picture
    names     labels to draw, in this order; None: all
    """
    found = results if isinstance(results, Results) else read_results(results)
    chosen = found if names is None else _chosen(found, names)
    if found.settings.get("kind") == LEARNERS:
        if what is not None:
            raise DataError(f"these are results of learners: there is no picture {what!r} of them")
        return draw_learners(chosen.names, chosen.records)
    if not {"horizon", "step", "block"} <= set(found.settings):
        raise DataError("these results are not of policies or learners: nothing can be drawn")
    what = "regret" if what is None else what
    if what not in CURVES:
        raise DataError(f"there is no picture {what!r}; there are {', '.join(CURVES)}")
    return CURVES[what](chosen, chosen.records)


def _chosen(found: Results, names: Sequence[str]) -> Results:
    unknown = [name for name in names if name not in found.names]
    if unknown:
        raise DataError(
            f"there are no results of {unknown[0]!r}; there are {', '.join(found.names)}"
        )
    place = {name: number for number, name in enumerate(names)}
    records = [record for record in found.records if record["policy"] in place]
    return Results(found.settings, sorted(records, key=lambda r: place[r["policy"]]))
