"""The graphs of a system, one per regime: who causes whom naturally, and who otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from causalarms.errors import ModelError
from causalarms.files import printable
from causalarms.graphs.graph import Graph
from causalarms.limits import MAX_WEIGHTED_NODES
from causalarms.pictures import arrows, style
from causalarms.pictures.arrows import Edge, draw_arrow, line_width, visible_part
from causalarms.pictures.edge_table import draw_edge_table
from causalarms.pictures.geometry import MARGIN, Geometry, plan
from causalarms.pictures.labels import LABEL_SIZE, Labels, number, place_labels
from causalarms.pictures.legend import draw_legend, legend_handles, legend_rows
from causalarms.pictures.matrices import draw_matrices
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.nodes import node_index

__all__ = ["draw_graph", "draw_matrices", "draw_sem"]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

TOLERATED_OVERLAP = 0.12  # of a number's box, which is mostly air at its rim
NODE_LAYER, LABEL_LAYER = arrows.HEAD_LAYER + 1, arrows.HEAD_LAYER + 10
TITLE_ROOM, PANEL_TITLE_ROOM = 0.28, 0.24  # inches
LEGEND_ROOM, LEGEND_ROW = 0.34, 0.15


def draw_graph(
    graph: Graph,
    *,
    reward: str | None = None,
    truth: npt.ArrayLike | None = None,
    title: str | None = None,
) -> Figure:
    """One panel per regime with the same nodes at the same places; a table of more than four.

    With `truth`, an adjacency (R, N, N), edges are told apart as found, missed and extra. Edges
    into a mechanism without data are neither found nor missed. A node that does not have the
    regime of a panel is drawn pale there.
    """
    true_edges = None if truth is None else _adjacency(truth, graph)
    reward_node = None if reward is None else node_index(reward, graph.nodes)
    if graph.n_regimes > style.MOST_PANELS:
        return draw_edge_table(graph, reward=reward_node, truth=true_edges, title=title)
    shown = graph.adjacency if true_edges is None else graph.adjacency | true_edges
    union: BoolArray = np.any(shown & graph.exists[:, None, :], axis=0)
    regimes = range(graph.n_regimes)
    with style.figure_style():
        names = tuple(map(printable, graph.nodes))
        geometry = plan(names, union, n_panels=graph.n_regimes)
        panels = [_edges(graph, true_edges, regime, geometry) for regime in regimes]
        labels = _all_labels(panels, geometry)
        edges = [edge for edges in panels for edge in edges]
        per_panel = len(edges) // graph.n_regimes
        handles = legend_handles(
            edges=edges,
            per_panel=per_panel,
            compared=true_edges is not None,
            reward=reward is not None,
            unknown=not graph.known[graph.exists].all(),
            absent=not graph.exists.all(),
        )
        figure, all_axes = _panels(geometry, title, graph.regime_names, handles)
        for regime, axes in enumerate(all_axes):
            _draw_nodes(axes, geometry, graph.known[regime], graph.exists[regime], reward_node)
            for layer, edge in enumerate(panels[regime]):
                draw_arrow(axes, edge.line, edge.look, line_width(edge.strength, per_panel), layer)
            _draw_labels(axes, panels[regime], labels[regime])
        draw_legend(figure, handles)
    return figure


def draw_sem(sem: LinearSEM, *, title: str | None = None) -> Figure:
    """The true graphs of a system."""
    graph = Graph(
        nodes=sem.nodes,
        adjacency=sem.adjacency,
        weights=sem.weights,
        known=np.ones(sem.weights.shape[:2], dtype=bool),
        order=tuple(sem.nodes[node] for node in sem.order),
        measures={},
        regimes=sem.regimes,
    )
    return draw_graph(graph, reward=sem.nodes[sem.reward], title=title)


def _adjacency(given: npt.ArrayLike, graph: Graph) -> BoolArray:
    adjacency, shape = np.asarray(given), graph.adjacency.shape
    if adjacency.shape != shape:
        raise ModelError(f"truth must have shape {shape}, not {adjacency.shape}")
    return adjacency.astype(bool)


def _edges(graph: Graph, truth: BoolArray | None, regime: int, geometry: Geometry) -> list[Edge]:
    """Weak edges first: strong ones are drawn over them."""
    learned = graph.adjacency[regime] & graph.exists[regime]
    shown = (
        learned
        if truth is None
        else learned | (truth[regime] & graph.known[regime] & graph.exists[regime])
    )
    largest = np.abs(graph.weights[graph.adjacency & np.isfinite(graph.weights)]).max(initial=0)
    edges = []
    for parent, child in np.argwhere(shown).tolist():
        weight = float(graph.weights[regime, parent, child]) if learned[parent, child] else np.nan
        if truth is None:
            look = arrows.NEGATIVE if weight < 0 else arrows.POSITIVE
        elif not learned[parent, child]:
            look = arrows.MISSED
        else:
            look = arrows.FOUND if truth[regime, parent, child] else arrows.EXTRA
        line = visible_part(
            geometry.routes[parent, child],
            geometry.centres[parent],
            geometry.half_sizes[parent],
            geometry.centres[child],
            geometry.half_sizes[child],
        )
        strength = abs(weight) / largest if largest and np.isfinite(weight) else 0.3
        edges.append(Edge(line, look, strength, weight))
    return sorted(edges, key=lambda edge: edge.strength)


def _all_labels(panels: list[list[Edge]], geometry: Geometry) -> list[Labels]:
    """Numbers on all arrows of all panels or, where they would overlap, on none."""
    if len(geometry.names) <= MAX_WEIGHTED_NODES:
        labels = [_labels(edges, geometry, numbers=True) for edges in panels]
        if all(label.overlap <= TOLERATED_OVERLAP for label in labels):
            return labels
    return [_labels(edges, geometry, numbers=False) for edges in panels]


def _labels(edges: list[Edge], geometry: Geometry, *, numbers: bool) -> Labels:
    texts = {}
    for which, edge in enumerate(edges):
        has_number = numbers and np.isfinite(edge.weight)
        text = f"{edge.look.mark} {number(edge.weight)}" if has_number else edge.look.mark
        if text:
            texts[which] = text.strip()
    return place_labels([edge.line for edge in edges], texts, geometry.centres, geometry.half_sizes)


def _panels(
    geometry: Geometry, title: str | None, regimes: Sequence[str], handles: Sequence[Artist]
) -> tuple[Figure, list[Axes]]:
    width, height = geometry.panel
    one = height + PANEL_TITLE_ROOM
    title_room = TITLE_ROOM if title else 0.0
    n_columns = 1 if geometry.stacked else 2
    n_rows = -(-len(regimes) // n_columns)
    whole_width = n_columns * width
    legend_room = LEGEND_ROOM + LEGEND_ROW * (legend_rows(handles, whole_width) - 1)
    total = np.array([whole_width, n_rows * one + legend_room + title_room])
    figure = Figure(figsize=tuple(total))
    if title:
        figure.suptitle(title, y=1 - 0.08 / total[1], va="top", fontsize=style.TEXT_SIZE + 1)
    panels = []
    for place, regime in enumerate(regimes):
        row, column = divmod(place, n_columns)
        left, bottom = column * width, legend_room + (n_rows - 1 - row) * one
        axes = figure.add_axes(
            (left / total[0], bottom / total[1], width / total[0], height / total[1])
        )
        axes.set(xlim=(0, width), ylim=(0, height))  # one unit of data is one inch
        axes.set_axis_off()
        axes.text(
            MARGIN,
            height + 0.06,
            printable(regime),
            fontsize=style.TEXT_SIZE,
            fontweight="bold",
            va="bottom",
            parse_math=False,
        )
        panels.append(axes)
    return figure, panels


def _draw_nodes(
    axes: Axes, geometry: Geometry, known: BoolArray, exists: BoolArray, reward: int | None
) -> None:
    for node, (centre, half) in enumerate(zip(geometry.centres, geometry.half_sizes, strict=True)):
        is_known, is_there = bool(known[node]), bool(exists[node])
        face = style.REWARD if node == reward else style.NODE
        color = style.BLACK if is_known else style.UNKNOWN
        axes.add_patch(
            FancyBboxPatch(
                centre - half,
                width=2 * half[0],
                height=2 * half[1],
                boxstyle=f"round,pad=0,rounding_size={half[1]}",
                facecolor=face if is_known and is_there else style.WHITE,
                edgecolor=color if is_there else style.ABSENT,
                linewidth=1.4 if node == reward and is_there else 0.7,
                linestyle="-" if is_known or not is_there else (0, (2.5, 1.5)),
                zorder=NODE_LAYER,
            )
        )
        axes.text(
            centre[0],
            centre[1],
            geometry.names[node],
            ha="center",
            va="center_baseline",
            fontsize=geometry.name_size,
            fontweight="bold" if node == reward else "normal",
            color=color if is_there else style.ABSENT_TEXT,
            parse_math=False,
            zorder=NODE_LAYER + 1,
        )


def _draw_labels(axes: Axes, edges: list[Edge], labels: Labels) -> None:
    for which, text in labels.texts.items():
        axes.text(
            labels.centres[which][0],
            labels.centres[which][1],
            text,
            ha="center",
            va="center",
            fontsize=LABEL_SIZE,
            color=edges[which].look.ink,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": style.WHITE, "edgecolor": "none"},
            zorder=LABEL_LAYER,
        )
