"""The table of edges as a picture: for graphs of more regimes than panels fit a page."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from causalarms.arrays import BoolArray, FloatArray
from causalarms.graphs.graph import Graph
from causalarms.pictures import arrows, style
from causalarms.pictures.style import number, shortened, text_size, write

MOST_ROWS, MOST_REGIMES = 150, 20  # the .csv holds longer tables
LONGEST_NAME, LONGEST_REGIME = 24, 14
ROW, GAP, MARGIN = 0.19, 0.16, 0.15  # inches
NO_EDGE, NO_DATA, MISSED = "\u2022", "?", "missed"


class Cell(NamedTuple):
    """One entry of the table."""

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

    graph    what was learned
    reward   the node whose name is bold
    truth    an adjacency (R, N, N): edges are told apart as found, missed and extra
    title    above the table
    """
    rows = _rows(graph, truth)
    kept, regimes = rows[:MOST_ROWS], range(min(graph.n_regimes, MOST_REGIMES))
    names = [shortened(graph.regime_names[r], LONGEST_REGIME) for r in regimes]
    lines = [[Cell(name, style.BLACK, bold=True) for name in ("parent", "child", *names)]]
    for parent, child in kept:
        cells = [_cell(graph, truth, r, parent, child) for r in regimes]
        to = Cell(shortened(graph.nodes[child], LONGEST_NAME), style.BLACK, child == reward)
        if parent is None:
            lines.append([Cell("none", style.UNKNOWN), to, *cells])
        else:
            name = shortened(graph.nodes[parent], LONGEST_NAME)
            lines.append([Cell(name, style.BLACK), to, *cells])
    with style.figure_style():
        widths = [
            # bold type is wider, and any cell may be bold
            max(text_size(cell.text, style.TEXT_SIZE, bold=True)[0] for cell in column) + GAP
            for column in zip(*lines, strict=True)
        ]
        notes = _notes(graph, len(rows), compared=truth is not None, reward=reward is not None)
        head = 0.3 if title else 0.05
        wide = max(sum(widths), *(text_size(n, style.SMALL_TEXT_SIZE)[0] for n in notes))
        width = wide + 2 * MARGIN
        height = len(lines) * ROW + head + ROW * (len(notes) + 0.5) + MARGIN
        figure = Figure(figsize=(width, height))
        style.set_title(figure, title)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(0, height))  # one unit of data is one inch
        axes.set_axis_off()
        lefts = MARGIN + np.concatenate([[0], np.cumsum(widths)])
        top = height - head
        axes.plot([lefts[0], lefts[-1]], [top - ROW, top - ROW], color=style.BLACK, lw=0.6)
        _shade(axes, [child for _, child in kept], lefts, top)
        for place, line in enumerate(lines):
            for column, cell in enumerate(line):
                # names from the left, numbers from the right
                at, side = (
                    (lefts[column], "left")
                    if column < 2
                    else (lefts[column + 1] - GAP / 2, "right")
                )
                write(
                    axes, at, top - (place + 0.5) * ROW, cell.text, bold=cell.bold,
                    color=cell.color, ha=side, va="center_baseline",
                )  # fmt: skip
        for place, note in enumerate(notes):
            y = top - (len(lines) + 1 + place) * ROW
            write(axes, MARGIN, y, note, size=style.SMALL_TEXT_SIZE, va="center")
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


def _shade(axes: Axes, children: list[int], lefts: FloatArray, top: float) -> None:
    """Every other child has a grey background."""
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
