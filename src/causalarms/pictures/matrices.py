"""Heat maps of the weights, parent by child: the picture for systems too large for arrows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle

from causalarms.arrays import BoolArray, FloatArray
from causalarms.errors import ModelError
from causalarms.files import printable
from causalarms.graphs.graph import Graph
from causalarms.limits import MAX_NUMBERED_NODES
from causalarms.pictures import style
from causalarms.pictures.edge_table import draw_edge_table
from causalarms.pictures.style import number, text_size

EXTRA, MISSED = "-", ":"  # frames of wrong cells
NAME_SIZE = 6.0  # points
TITLE_ROOM, BAR_ROOM, EDGE_ROOM = 0.3, 0.62, 0.12  # inches


def draw_matrices(
    graph: Graph, truth_weights: npt.ArrayLike | None = None, *, title: str | None = None
) -> Figure:
    """One map per regime, two in a row; more than four regimes give a table of edges.

    graph           what was learned
    truth_weights   the true weights (R, N, N), drawn below; cells learned wrongly are framed,
                    dotted if an edge is missed and solid if one is extra
    title           above all maps
    """
    truth = None if truth_weights is None else _weights(truth_weights, graph)
    if graph.n_regimes > style.MOST_PANELS:
        true_edges = None if truth is None else truth != 0
        return draw_edge_table(graph, truth=true_edges, title=title)
    learned = np.where(graph.adjacency, np.nan_to_num(graph.weights), 0.0)
    largest = max(np.abs(learned).max(initial=0), 0 if truth is None else np.abs(truth).max())
    largest = float(largest) or 1.0
    n_columns = min(graph.n_regimes, 2)
    n_rows = -(-graph.n_regimes // n_columns)
    with style.figure_style():
        figure, grid = _grid(
            graph.nodes,
            n_rows=n_rows if truth is None else 2 * n_rows,
            n_columns=n_columns,
            title=title,
        )
        above, below = grid[: n_rows * n_columns], grid[n_rows * n_columns :]
        for regime, (name, axes) in enumerate(zip(graph.regime_names, above, strict=False)):
            known, exists = graph.known[regime], graph.exists[regime]
            image = _draw_map(axes, learned[regime] * exists, graph.nodes, largest)
            _hatch(axes, exists & ~known, "no data")
            _hatch(axes, ~exists, "no such regime")
            prefix = "" if truth is None else "learned, "
            _set_title(axes, prefix + name)
            if truth is not None:
                wrong = (graph.adjacency[regime] != (truth[regime] != 0)) & known & exists
                _frame(axes, wrong & graph.adjacency[regime], EXTRA)
                _frame(axes, wrong & ~graph.adjacency[regime], MISSED)
                _draw_map(below[regime], truth[regime] * exists, graph.nodes, largest)
                _hatch(below[regime], ~exists, "no such regime")
                _set_title(below[regime], "true, " + name)
        for part in (above, below):
            for unused in part[graph.n_regimes :]:
                unused.remove()
        used = [part[: graph.n_regimes] for part in (above, below) if part]
        for part in used:
            for axes in part[::n_columns]:
                axes.set_ylabel("parent")
        for axes in used[-1][-n_columns:]:
            axes.set_xlabel("child")
        bar = figure.colorbar(image, cax=figure.axes[-1])
        bar.set_label("weight")
        if truth is not None:
            _frame_legend(figure)
    return figure


def _set_title(axes: Axes, text: str) -> None:
    axes.set_title(printable(text), fontweight="bold", loc="left", pad=4, parse_math=False)


def _weights(given: npt.ArrayLike, graph: Graph) -> FloatArray:
    weights, shape = np.asarray(given, dtype=float), graph.weights.shape
    if weights.shape != shape:
        raise ModelError(f"truth_weights must have shape {shape}, not {weights.shape}")
    return weights


def _grid(
    nodes: tuple[str, ...], *, n_rows: int, n_columns: int, title: str | None
) -> tuple[Figure, list[Axes]]:
    """Square panels of equal size, row by row; the last axes of the figure are the colour bar's."""
    names = max(text_size(name, NAME_SIZE)[0] for name in nodes) + 0.1
    left = names + 0.25
    side = (style.TWO_COLUMNS - 2 * left - BAR_ROOM - EDGE_ROOM) / 2
    side = min(side, 0.34 * len(nodes) + 0.4)
    below = names + 0.12
    width = n_columns * (left + side) + EDGE_ROOM + BAR_ROOM
    title_room = TITLE_ROOM if title else 0.05
    height = n_rows * (side + below + TITLE_ROOM) + title_room + 0.2 + 0.15 * (n_rows - 1)
    figure = Figure(figsize=(width, height))
    style.set_title(figure, title)
    panels = []
    for row in range(n_rows):
        bottom = height - title_room - (row + 1) * (side + TITLE_ROOM) - row * below
        panels += [
            figure.add_axes(
                (
                    (left + column * (left + side)) / width,
                    bottom / height,
                    side / width,
                    side / height,
                )
            )
            for column in range(n_columns)
        ]
    bar_left = (n_columns * (left + side) + 0.12) / width
    top = height - title_room - TITLE_ROOM
    figure.add_axes((bar_left, bottom / height, 0.11 / width, (top - bottom) / height))
    return figure, panels


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


def _hatch(axes: Axes, children: BoolArray, why: str) -> None:
    """Cover columns of which nothing can be said."""
    for child in np.flatnonzero(children).tolist():
        axes.add_patch(
            Rectangle(
                (child - 0.5, -0.5),
                1,
                len(children),
                facecolor=style.WHITE,
                edgecolor=style.UNKNOWN,
                hatch="////",
                lw=0,
            )
        )
        axes.text(
            child,
            (len(children) - 1) / 2,
            why,
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
