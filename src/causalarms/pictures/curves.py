"""Regret and optimal share against time, one line per policy with its interval shaded.

Lines are means over systems, intervals those of the table: percentile bootstrap over systems. What
is measured per block of rounds is drawn as a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from causalarms.errors import DataError
from causalarms.files import printable
from causalarms.pictures import style
from causalarms.simulation.intervals import mean_band

FEWEST_FOR_INTERVAL = 2
FAR_APART = 30  # factor between policies beyond which regret is drawn on a logarithmic axis
LOG_MARGIN = 1.5  # factor below the smallest mean
PERCENT = 100.0
Records = Sequence[dict[str, Any]]


class Compared(Protocol):
    """What was compared: an `Experiment`, or the `Results` of a file."""

    @property
    def names(self) -> list[str]: ...
    @property
    def horizon(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def block(self) -> int: ...


def draw_regret(compared: Compared, records: Records) -> Figure:
    """Mean cumulative regret; logarithmic where policies differ by more than a factor 30."""
    curves = _curves(compared, records, "regret_curve")
    figure = _draw(compared, records, curves, _rounds(compared), "cumulative regret")
    _spread_out(figure, curves)
    return figure


def draw_normalised_regret(compared: Compared, records: Records) -> Figure:
    """Cumulative regret of every system in units of what random play loses there in the whole run.

    Systems differ a hundredfold in scale; so no single one decides the mean.
    """
    curves = {
        name: np.array([np.array(r["regret_curve"]) / _random_regret(r) for r in chosen])
        for name, chosen in _by_name(compared, records).items()
    }
    label = "regret / random play's in the run"
    figure = _draw(compared, records, curves, _rounds(compared), label)
    _spread_out(figure, curves)
    return figure


def draw_optimal_share(compared: Compared, records: Records) -> Figure:
    """Share of rounds with the best intervention, per block of rounds."""
    curves = {
        name: PERCENT * shares
        for name, shares in _curves(compared, records, "optimal_curve").items()
    }
    n_blocks = compared.horizon // compared.block
    edges = np.arange(n_blocks + 1) * compared.block
    label = f"optimal interventions per {compared.block} rounds [%]"
    figure = _draw(compared, records, curves, edges, label)
    figure.axes[0].set_ylim(-3, 103)
    return figure


def _curves(compared: Compared, records: Records, key: str) -> dict[str, npt.NDArray[np.float64]]:
    """By label, (systems, points)."""
    return {
        name: np.array([record[key] for record in chosen])
        for name, chosen in _by_name(compared, records).items()
    }


def _by_name(compared: Compared, records: Records) -> dict[str, list[dict[str, Any]]]:
    found = {name: [r for r in records if r["policy"] == name] for name in compared.names}
    return {name: chosen for name, chosen in found.items() if chosen}


def _random_regret(record: dict[str, Any]) -> float:
    if "random_regret" not in record:
        raise DataError(
            "the results are of an earlier version, which did not keep what random play loses: "
            "run them again into another file"
        )
    return max(float(record["random_regret"]), np.finfo(float).tiny)


def _rounds(compared: Compared) -> npt.NDArray[np.int64]:
    return np.arange(compared.step, compared.horizon + 1, compared.step)


def _spread_out(figure: Figure, curves: dict[str, npt.NDArray[np.float64]]) -> None:
    """A logarithmic axis where policies end far apart; straight near 0 where one loses nothing."""
    means = np.array([lines.mean(axis=0) for lines in curves.values()])
    finals = means[:, -1]
    positive = finals[finals > 0]
    if not len(positive) or positive.max() <= FAR_APART * positive.min():
        return
    axes = figure.axes[0]
    if len(positive) == len(finals):
        axes.set_yscale("log")
        axes.set_ylim(bottom=means[means > 0].min() / LOG_MARGIN)
    else:
        axes.set_yscale("symlog", linthresh=positive.min() / 10)
        axes.set_ylim(bottom=0.0)


def _draw(
    compared: Compared,
    records: Records,
    curves: dict[str, npt.NDArray[np.float64]],
    at: npt.NDArray[np.int64],
    label: str,
) -> Figure:
    """Points at the rounds `at`; blocks between them where there is one point fewer."""
    with style.figure_style():
        figure = Figure(figsize=(style.ONE_COLUMN, 2.9), layout="constrained")
        axes = figure.add_subplot()
        most = 0
        for name, lines in curves.items():
            value, low, high = mean_band(lines)
            blocks = len(value) == len(at) - 1
            if blocks:  # the last block ends where the last edge is
                value, low, high = (np.append(part, part[-1]) for part in (value, low, high))
            (line,) = axes.plot(
                at, value, label=printable(name), drawstyle="steps-post" if blocks else "default"
            )
            most = max(most, len(lines))
            if len(lines) >= FEWEST_FOR_INTERVAL:
                axes.fill_between(
                    at, low, high, color=line.get_color(), alpha=0.15, linewidth=0,
                    step="post" if blocks else None,
                )  # fmt: skip
        for change in _changes(records):
            axes.axvline(change, color=style.GREY, linestyle=":", linewidth=0.8)
        axes.set_xlabel("round")
        axes.set_ylabel(label)
        axes.set_xlim(0, compared.horizon)
        legend = figure.legend(loc="outside upper center", ncols=2)
        for text in legend.get_texts():
            text.set_parse_math(False)
        if most >= FEWEST_FOR_INTERVAL:
            style.say_runs(figure, f"mean of {most} runs, 95 % bootstrap intervals")
    return figure


def _changes(records: Records) -> list[int]:
    """Rounds after which all runs change."""
    each = [{change["after"] for change in record["changes"]} for record in records]
    return sorted(set.intersection(*each)) if each else []
