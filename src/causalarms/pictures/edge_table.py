"""The table of edges as a picture: for graphs of more regimes than panels fit a page."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from causalarms.files import printable
from causalarms.graphs.graph import Graph
from causalarms.pictures import arrows, style
from causalarms.pictures.labels import number, text_size

BoolArray = npt.NDArray[np.bool_]

MOST_ROWS, MOST_REGIMES = 150, 20  # a longer table is for the .csv
LONGEST_NAME, LONGEST_REGIME = 24, 14
ROW, GAP, MARGIN = 0.19, 0.16, 0.15  # inches
NO_EDGE, NO_DATA, MISSED = "\u2022", "?", "missed"


class Cell(NamedTuple):
    text: str
    color: str | tuple[float, ...]
    bold: bool = False


def draw_edge_table(
    graph: Graph,
    *,
    reward: int | None = None,
    truth: BoolArray | None = None,
    title: str | None = None,
) -> Figure:
    """A row per edge of any regime, a column per regime with its weight and, if any, probability.

    Rows go by child, in the order of the graph; a child without any parent has a row of its own.
    """
    rows = _rows(graph, truth)
    regimes = list(range(min(graph.n_regimes, MOST_REGIMES)))
    cells = [[_cell(graph, truth, r, parent, child) for r in regimes] for parent, child in rows]
    kept = rows[:MOST_ROWS]
    header = ["parent", "child", *(_short(graph.regime_names[r], LONGEST_REGIME) for r in regimes)]
    names = [
        [
            "none" if p is None else _short(graph.nodes[p], LONGEST_NAME),
            _short(graph.nodes[c], LONGEST_NAME),
        ]
        for p, c in kept
    ]
    with style.figure_style():
        texts = [
            [*pair, *(cell.text for cell in line)] for pair, line in zip(names, cells, strict=False)
        ]
        widths = [
            max(text_size(text, style.TEXT_SIZE, bold=True)[0] for text in column) + GAP
            for column in zip(header, *texts, strict=True)
        ]
        notes = _notes(graph, len(rows), compared=truth is not None, reward=reward is not None)
        head = 0.3 if title else 0.05
        wide = max(sum(widths), *(text_size(n, style.SMALL_TEXT_SIZE)[0] for n in notes))
        width = wide + 2 * MARGIN
        height = (len(kept) + 1) * ROW + head + ROW * (len(notes) + 0.5) + MARGIN
        figure = Figure(figsize=(width, height))
        if title:
            figure.suptitle(title, y=1 - 0.08 / height, va="top", fontsize=style.TEXT_SIZE + 1)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(0, height))  # one unit of data is one inch
        axes.set_axis_off()
        lefts = MARGIN + np.concatenate([[0], np.cumsum(widths)])
        top = height - head
        _draw_header(axes, header, lefts, top)
        _shade(axes, [child for _, child in kept], lefts, top)
        for place, (pair, line) in enumerate(zip(names, cells, strict=False)):
            y = top - (place + 1.5) * ROW
            is_reward = kept[place][1] == reward
            for column, name in enumerate(pair):
                bold = column == 1 and is_reward
                color = style.UNKNOWN if column == 0 and kept[place][0] is None else style.BLACK
                _write(axes, lefts[column], y, Cell(name, color, bold), "left")
            for column, cell in enumerate(line, start=2):
                _write(axes, lefts[column + 1] - GAP / 2, y, cell, "right")
        for place, note in enumerate(notes):
            y = top - (len(kept) + 2 + place) * ROW
            axes.text(
                MARGIN, y, note, va="center", fontsize=style.SMALL_TEXT_SIZE, parse_math=False
            )
    return figure


def _rows(graph: Graph, truth: BoolArray | None) -> list[tuple[int | None, int]]:
    """(parent, child) of every edge, strong ones first within a child."""
    shown = graph.adjacency if truth is None else graph.adjacency | truth & graph.known[:, None, :]
    union: BoolArray = np.any(shown & graph.exists[:, None, :], axis=0)
    strength = np.abs(np.where(graph.adjacency, np.nan_to_num(graph.weights), 0.0)).max(axis=0)
    rows: list[tuple[int | None, int]] = []
    for child in (graph.nodes.index(node) for node in graph.order or graph.nodes):
        parents = np.flatnonzero(union[:, child])
        ranked = parents[np.argsort(-strength[parents, child], kind="stable")].tolist()
        rows += [(parent, child) for parent in ranked] or [(None, child)]
    return rows


def _cell(
    graph: Graph, truth: BoolArray | None, regime: int, parent: int | None, child: int
) -> Cell:
    if not graph.exists[regime, child]:
        return Cell("", style.ABSENT_TEXT)
    if not graph.known[regime, child]:
        return Cell(NO_DATA, style.UNKNOWN)
    if parent is None:
        return Cell(NO_EDGE, style.UNKNOWN)
    edge = (regime, parent, child)
    true = truth is not None and bool(truth[edge])
    if not graph.adjacency[edge]:
        return Cell(MISSED, style.BLACK, bold=True) if true else Cell(NO_EDGE, style.UNKNOWN)
    weight = float(graph.weights[edge])
    text = number(weight)
    if "probability" in graph.measures:
        text += f" ({100 * graph.measures['probability'][edge]:.0f} %)"
    if truth is not None and not true:
        return Cell(f"{arrows.EXTRA.mark} {text}", arrows.EXTRA.ink)
    return Cell(text, style.NEGATIVE if weight < 0 else style.POSITIVE)


def _notes(graph: Graph, n_rows: int, *, compared: bool, reward: bool) -> list[str]:
    notes = ["weights" + (" (probabilities)" if "probability" in graph.measures else "")]
    notes[0] += f"; {NO_EDGE} no edge in that regime"
    if compared:
        notes[0] += f"; {arrows.EXTRA.mark} extra"
    if not graph.known[graph.exists].all():
        notes[0] += f"; {NO_DATA} mechanism unknown: no data"
    if not graph.exists.all():
        notes[0] += "; empty: the child does not have that regime"
    if reward:
        notes[0] += "; bold: the reward"
    if n_rows > MOST_ROWS:
        notes.append(f"{n_rows - MOST_ROWS} more rows: save the graph as .csv")
    if graph.n_regimes > MOST_REGIMES:
        notes.append(f"{graph.n_regimes - MOST_REGIMES} more regimes: save the graph as .csv")
    return notes


def _draw_header(axes: Axes, header: list[str], lefts: npt.NDArray[np.float64], top: float) -> None:
    for column, name in enumerate(header):
        at, side = (lefts[column], "left") if column < 2 else (lefts[column + 1] - GAP / 2, "right")
        _write(axes, at, top - ROW / 2, Cell(name, style.BLACK, bold=True), side)
    axes.plot([lefts[0], lefts[-1]], [top - ROW, top - ROW], color=style.BLACK, lw=0.6)


def _shade(axes: Axes, children: list[int], lefts: npt.NDArray[np.float64], top: float) -> None:
    """Every other child has a grey ground."""
    first = [k for k, child in enumerate(children) if not k or child != children[k - 1]]
    for begin, end in list(pairwise([*first, len(children)]))[1::2]:
        axes.add_patch(
            Rectangle(
                (lefts[0] - GAP / 4, top - (end + 1) * ROW),
                lefts[-1] - lefts[0] + GAP / 4,
                (end - begin) * ROW,
                facecolor=style.PALE_GREY,
                lw=0,
                zorder=0,
            )
        )


def _write(axes: Axes, x: float, y: float, cell: Cell, side: str) -> None:
    axes.text(
        x,
        y,
        cell.text,
        ha=side,
        va="center_baseline",
        fontsize=style.TEXT_SIZE,
        fontweight="bold" if cell.bold else "normal",
        color=cell.color,
        parse_math=False,
    )


def _short(name: str, longest: int) -> str:
    name = printable(name)
    return name if len(name) <= longest else name[: longest - 1] + "\u2026"
