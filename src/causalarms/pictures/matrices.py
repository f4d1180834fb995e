"""Heat maps of the weights, parent by child: the picture for systems too large for arrows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle

from causalarms.errors import ModelError
from causalarms.graphs.graph import Graph
from causalarms.graphs.regime_names import REGIME_NAMES
from causalarms.limits import MAX_NUMBERED_NODES
from causalarms.pictures import style
from causalarms.pictures.labels import number, text_size
from causalarms.plain_text import printable

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

EXTRA, MISSED = "-", ":"  # frames of wrong cells
NAME_SIZE = 6.0  # points
TITLE_ROOM, BAR_ROOM, EDGE_ROOM = 0.3, 0.62, 0.12  # inches


def draw_matrices(
    graph: Graph, truth_weights: npt.ArrayLike | None = None, *, title: str | None = None
) -> Figure:
    """One map per regime; below them, where given, the true weights (2, N, N).

    Cells learned wrongly are framed: dotted where an edge is missed, solid where one is extra.
    """
    n_nodes = len(graph.nodes)
    truth = None if truth_weights is None else _weights(truth_weights, n_nodes)
    learned = np.where(graph.adjacency, np.nan_to_num(graph.weights), 0.0)
    largest = max(np.abs(learned).max(initial=0), 0 if truth is None else np.abs(truth).max())
    largest = float(largest) or 1.0
    with style.figure_style():
        figure, axes = _grid(graph.nodes, n_rows=1 if truth is None else 2, title=title)
        for regime in (0, 1):
            image = _draw_map(axes[0][regime], learned[regime], graph.nodes, largest)
            _hatch_unknown(axes[0][regime], graph.known[regime])
            if truth is not None:
                wrong = (graph.adjacency[regime] != (truth[regime] != 0)) & graph.known[regime]
                _frame(axes[0][regime], wrong & graph.adjacency[regime], EXTRA)
                _frame(axes[0][regime], wrong & ~graph.adjacency[regime], MISSED)
                _draw_map(axes[1][regime], truth[regime], graph.nodes, largest)
        prefixes = [""] if truth is None else ["learned, ", "true, "]
        for row, prefix in zip(axes, prefixes, strict=True):
            for panel, regime_name in zip(row, REGIME_NAMES, strict=True):
                panel.set_title(prefix + regime_name, fontweight="bold", loc="left", pad=4)
            row[0].set_ylabel("parent")
        for panel in axes[-1]:
            panel.set_xlabel("child")
        bar = figure.colorbar(image, cax=figure.axes[-1])
        bar.set_label("weight")
        if truth is not None:
            _frame_legend(figure)
    return figure


def _weights(given: npt.ArrayLike, n_nodes: int) -> FloatArray:
    weights = np.asarray(given, dtype=float)
    if weights.shape != (2, n_nodes, n_nodes):
        raise ModelError(
            f"truth_weights must have shape (2, {n_nodes}, {n_nodes}), not {weights.shape}"
        )
    return weights


def _grid(
    nodes: tuple[str, ...], *, n_rows: int, title: str | None
) -> tuple[Figure, list[list[Axes]]]:
    """Square panels of equal size; the last axes of the figure are the colour bar's."""
    names = max(text_size(name, NAME_SIZE)[0] for name in nodes) + 0.1
    left = names + 0.25
    side = (style.TWO_COLUMNS - 2 * left - BAR_ROOM - EDGE_ROOM) / 2
    side = min(side, 0.34 * len(nodes) + 0.4)
    below = names + 0.12
    width = 2 * (left + side) + EDGE_ROOM + BAR_ROOM
    title_room = TITLE_ROOM if title else 0.05
    height = n_rows * (side + below + TITLE_ROOM) + title_room + 0.2 + 0.15 * (n_rows - 1)
    figure = Figure(figsize=(width, height))
    if title:
        figure.suptitle(title, y=1 - 0.08 / height, va="top", fontsize=style.TEXT_SIZE + 1)
    rows = []
    for row in range(n_rows):
        bottom = height - title_room - (row + 1) * (side + TITLE_ROOM) - row * below
        rows.append(
            [
                figure.add_axes(
                    (
                        (left + column * (left + side)) / width,
                        bottom / height,
                        side / width,
                        side / height,
                    )
                )
                for column in (0, 1)
            ]
        )
    bar_left = (2 * (left + side) + 0.12) / width
    top = height - title_room - TITLE_ROOM
    figure.add_axes((bar_left, bottom / height, 0.11 / width, (top - bottom) / height))
    return figure, rows


def _draw_map(axes: Axes, weights: FloatArray, nodes: tuple[str, ...], largest: float) -> AxesImage:
    n_nodes, nodes = len(nodes), tuple(map(printable, nodes))
    image = axes.imshow(weights, cmap=style.DIVERGING, vmin=-largest, vmax=largest)
    axes.set_xticks(range(n_nodes), nodes, rotation=90, fontsize=NAME_SIZE, parse_math=False)
    axes.set_yticks(range(n_nodes), nodes, fontsize=NAME_SIZE, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(style.GREY)
    grid = np.arange(0.5, n_nodes - 1)
    axes.hlines(grid, -0.5, n_nodes - 0.5, color=style.PALE_GREY, lw=0.4)
    axes.vlines(grid, -0.5, n_nodes - 0.5, color=style.PALE_GREY, lw=0.4)
    for parent, child in np.argwhere(weights).tolist():
        weight = float(weights[parent, child])
        numbered = n_nodes <= MAX_NUMBERED_NODES
        text = number(weight) if numbered else "\u2212" if weight < 0 else ""
        axes.text(
            child,
            parent,
            text,
            ha="center",
            va="center_baseline",
            fontsize=NAME_SIZE if numbered else 5.0,
            color=style.WHITE if weight > 0.6 * largest else style.BLACK,
        )
    return image


def _hatch_unknown(axes: Axes, known: BoolArray) -> None:
    for child in np.flatnonzero(~known).tolist():
        axes.add_patch(
            Rectangle(
                (child - 0.5, -0.5),
                1,
                len(known),
                facecolor=style.WHITE,
                edgecolor=style.UNKNOWN,
                hatch="////",
                lw=0,
            )
        )
        axes.text(
            child,
            (len(known) - 1) / 2,
            "no data",
            rotation=90,
            ha="center",
            va="center",
            fontsize=NAME_SIZE,
            color=style.BLACK,
            bbox={"boxstyle": "square,pad=0.15", "facecolor": style.WHITE, "edgecolor": "none"},
        )


def _frame(axes: Axes, cells: BoolArray, linestyle: str) -> None:
    for parent, child in np.argwhere(cells):
        axes.add_patch(
            Rectangle(
                (child - 0.42, parent - 0.42),
                0.84,
                0.84,
                fill=False,
                edgecolor=style.BLACK,
                linestyle=linestyle,
                lw=1.0,
            )
        )


def _frame_legend(figure: Figure) -> None:
    handles = [
        Patch(facecolor="none", edgecolor=style.BLACK, linestyle=linestyle, lw=1.0, label=label)
        for label, linestyle in (("missed edge", MISSED), ("extra edge", EXTRA))
    ]
    figure.legend(handles=handles, loc="lower right", ncols=2, handlelength=1.0, handleheight=1.0)
