"""The graphs of a system, one per regime: who causes whom naturally, and who otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Polygon, Rectangle

from causalarms.arrays import BoolArray, FloatArray
from causalarms.errors import ModelError
from causalarms.files import printable
from causalarms.graphs.graph import Graph
from causalarms.limits import MAX_LARGE_NODES, MAX_WEIGHTED_NODES
from causalarms.pictures import arrows, style
from causalarms.pictures.arrows import (
    LABEL_SIZE,
    Edge,
    EdgeLook,
    Labels,
    choose_routes,
    draw_arrow,
    line_width,
    place_labels,
    visible_part,
)
from causalarms.pictures.edge_table import draw_edge_table
from causalarms.pictures.layout import assign_layers, layered_layout
from causalarms.pictures.style import POINTS_PER_INCH, number, shortened, text_size, write
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import node_index

TOLERATED_OVERLAP = 0.12  # of a number's box, which is mostly air at its rim
UNKNOWN_DASHES = (0, (2.5, 1.5))
NODE_LAYER, LABEL_LAYER = arrows.HEAD_LAYER + 1, arrows.HEAD_LAYER + 10

# inches
TITLE_ROOM, PANEL_TITLE_ROOM = 0.28, 0.24
LEGEND_ROOM, LEGEND_ROW = 0.34, 0.15
ARROW_ROOM = 0.42  # between the nodes of two layers
MARGIN = 0.12

LONGEST_NAME = 16  # letters
MAX_LAYERS_SIDE_BY_SIDE = 5  # that fit a single column
HANDLE, HANDLE_PAD, SPACING = 2.6, 0.8, 1.4  # of the legend, in sizes of its letters


def draw_graph(
    graph: Graph,
    *,
    reward: str | None = None,
    truth: npt.ArrayLike | None = None,
    title: str | None = None,
) -> Figure:
    """One panel per regime with the same nodes at the same places; a table of more than four.

    A node that does not have the regime of a panel is drawn pale there. Factors are rectangles
    and context hexagons, at the left.

    graph    what was learned
    reward   name of the node that is drawn as the reward
    truth    an adjacency (R, N, N): edges are told apart as found, missed and extra; edges into a
             mechanism without data are neither found nor missed
    title    above all panels
    """
    true_edges = None if truth is None else _adjacency(truth, graph)
    reward_node = None if reward is None else node_index(reward, graph.nodes)
    if graph.n_regimes > style.MOST_PANELS:
        return draw_edge_table(graph, reward=reward_node, truth=true_edges, title=title)
    shown = graph.adjacency if true_edges is None else graph.adjacency | true_edges
    # one layout for all regimes: a node is at the same place in all panels
    union: BoolArray = np.any(shown & graph.exists[:, None, :], axis=0)
    regimes = range(graph.n_regimes)
    with style.figure_style():
        geometry = plan(graph.nodes, union, n_panels=graph.n_regimes, roots=_roots(graph))
        panels = [_edges(graph, true_edges, regime, geometry) for regime in regimes]
        labels = _all_labels(panels, geometry)
        edges = [edge for edges in panels for edge in edges]
        per_panel = len(edges) // graph.n_regimes
        handles = _legend_handles(
            graph, edges, per_panel, compared=truth is not None, reward=reward is not None
        )
        figure, all_axes = _panels(geometry, title, graph.regime_names, handles)
        for regime, axes in enumerate(all_axes):
            _draw_nodes(axes, geometry, graph, regime, reward_node)
            for layer, edge in enumerate(panels[regime]):
                draw_arrow(axes, edge.line, edge.look, line_width(edge.strength, per_panel), layer)
            _draw_labels(axes, panels[regime], labels[regime])
        _draw_legend(figure, handles)
    return figure


def draw_sem(sem: LinearSEM, *, title: str | None = None) -> Figure:
    """The true graphs of a system.

    sem     the system
    title   above all panels
    """
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
    # over all regimes: a width means the same weight in every panel
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
        # a missed edge has no weight: a thin line
        strength = abs(weight) / largest if largest and np.isfinite(weight) else 0.3
        edges.append(Edge(line, look, strength, weight))
    return sorted(edges, key=lambda edge: edge.strength)


def _all_labels(panels: list[list[Edge]], geometry: Geometry) -> list[Labels]:
    """Numbers on all arrows of all panels or, if they would overlap, on none."""
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
    legend_room = LEGEND_ROOM + LEGEND_ROW * (_legend_rows(handles, whole_width) - 1)
    total = np.array([whole_width, n_rows * one + legend_room + title_room])
    figure = Figure(figsize=tuple(total))
    style.set_title(figure, title)
    panels = []
    for place, regime in enumerate(regimes):
        row, column = divmod(place, n_columns)
        left, bottom = column * width, legend_room + (n_rows - 1 - row) * one
        axes = figure.add_axes(
            (left / total[0], bottom / total[1], width / total[0], height / total[1])
        )
        axes.set(xlim=(0, width), ylim=(0, height))  # one unit of data is one inch
        axes.set_axis_off()
        write(axes, MARGIN, height + 0.06, printable(regime), bold=True, va="bottom")
        panels.append(axes)
    return figure, panels


def _roots(graph: Graph) -> list[int]:
    return [graph.nodes.index(node) for node in (*graph.factors, *graph.context)]


def _draw_nodes(
    axes: Axes, geometry: Geometry, graph: Graph, regime: int, reward: int | None
) -> None:
    faces = dict.fromkeys(graph.factors, style.FACTOR) | dict.fromkeys(graph.context, style.CONTEXT)
    for node, (centre, half) in enumerate(zip(geometry.centres, geometry.half_sizes, strict=True)):
        is_known, is_there = bool(graph.known[regime, node]), bool(graph.exists[regime, node])
        name = graph.nodes[node]
        face = style.REWARD if node == reward else faces.get(name, style.NODE)
        color = style.BLACK if is_known else style.UNKNOWN
        how: dict[str, Any] = {
            "facecolor": face if is_known and is_there else style.WHITE,
            "edgecolor": color if is_there else style.ABSENT,
            "linewidth": 1.4 if node == reward and is_there else 0.7,
            "linestyle": "-" if is_known or not is_there else UNKNOWN_DASHES,
            "zorder": NODE_LAYER,
        }
        corner = centre - half
        if name in graph.factors:
            axes.add_patch(Rectangle(corner, 2 * half[0], 2 * half[1], **how))
        elif name in graph.context:
            axes.add_patch(Polygon(centre + half * _hexagon(half), **how))
        else:
            round_ends = f"round,pad=0,rounding_size={half[1]}"
            axes.add_patch(
                FancyBboxPatch(corner, 2 * half[0], 2 * half[1], boxstyle=round_ends, **how)
            )
        write(
            axes, centre[0], centre[1], geometry.names[node], size=geometry.name_size,
            bold=node == reward, color=color if is_there else style.ABSENT_TEXT,
            ha="center", va="center_baseline", zorder=NODE_LAYER + 1,
        )  # fmt: skip


def _hexagon(half: FloatArray) -> FloatArray:
    """The corners in units of the half sizes, (6, 2); its ends are as steep as an arrow head."""
    flat = 1 - 0.6 * half[1] / half[0]
    return np.array([[-1, 0], [-flat, 1], [flat, 1], [1, 0], [flat, -1], [-flat, -1]])


def _draw_labels(axes: Axes, edges: list[Edge], labels: Labels) -> None:
    for which, text in labels.texts.items():
        x, y = labels.centres[which]
        write(
            axes, x, y, text, size=LABEL_SIZE, color=edges[which].look.ink,
            ha="center", va="center", zorder=LABEL_LAYER,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": style.WHITE, "edgecolor": "none"},
        )  # fmt: skip


# -- inches: sizes of nodes and panels -------------------------------------------------------------


@dataclass(frozen=True)
class Geometry:
    """Everything the panels share. Lengths are inches from a panel's lower left corner."""

    names: tuple[str, ...]
    name_size: float  # points
    centres: FloatArray  # (N, 2)
    half_sizes: FloatArray  # (N, 2)
    panel: tuple[float, float]
    stacked: bool
    routes: dict[tuple[int, int], FloatArray]


def plan(
    nodes: Sequence[str], union: BoolArray, *, n_panels: int = 2, roots: Sequence[int] = ()
) -> Geometry:
    """Lay out the edges of all regimes together; a single panel has the whole width."""
    n_nodes = len(nodes)
    names = tuple(shortened(node, LONGEST_NAME) for node in nodes)
    name_size = style.TEXT_SIZE if n_nodes <= MAX_LARGE_NODES else style.SMALL_TEXT_SIZE
    half_sizes = np.array([_half_size(name, name_size) for name in names])
    in_layer = np.bincount(assign_layers(union, roots))
    widest, tallest = 2 * half_sizes.max(axis=0)
    width_needed = len(in_layer) * widest + (len(in_layer) - 1) * ARROW_ROOM + 2 * MARGIN
    column = style.TWO_COLUMNS / 2
    stacked = n_panels == 1 or len(in_layer) > MAX_LAYERS_SIDE_BY_SIDE or width_needed > column
    crowded = n_nodes > MAX_LARGE_NODES
    width = max(style.TWO_COLUMNS, 0.0 if crowded else width_needed) if stacked else column
    height = max(
        1.3 + 0.13 * n_nodes, in_layer.max() * (tallest + (0.1 if crowded else 0.25)) + 2 * MARGIN
    )
    height = min(height, 4.2) if stacked else height
    inset = half_sizes.max(axis=0) + MARGIN
    inside = np.array([width, height]) - 2 * inset
    unit = layered_layout(
        union, aspect=inside[0] / inside[1], node_width=(widest + MARGIN) / inside[1], roots=roots
    )
    centres = inset + inside * unit
    edges = np.argwhere(union)
    curves = choose_routes(centres, half_sizes, edges, (width, height))
    return Geometry(
        names=names,
        name_size=name_size,
        centres=centres,
        half_sizes=half_sizes,
        panel=(float(width), float(height)),
        stacked=bool(stacked),
        routes={(int(p), int(c)): curve for (p, c), curve in zip(edges, curves, strict=True)},
    )


def _half_size(name: str, points: float) -> tuple[float, float]:
    width, height = text_size(name, points, bold=True)
    half_height = 0.95 * height
    return max(width / 2 + 0.07, 1.15 * half_height), half_height


# -- legend: only what the picture holds -----------------------------------------------------------


def _legend_handles(
    graph: Graph, edges: list[Edge], per_panel: int, *, compared: bool, reward: bool
) -> list[Artist]:
    """Kinds of edges, the scale of widths, kinds of nodes."""
    kinds = (
        (arrows.FOUND, arrows.MISSED, arrows.EXTRA)
        if compared
        else (arrows.POSITIVE, arrows.NEGATIVE)
    )
    looks = {edge.look for edge in edges}
    handles: list[Artist] = [_edge_handle(look) for look in kinds if look in looks or compared]
    handles += _width_handles(edges, per_panel)
    if reward:
        handles.append(Patch(facecolor=style.REWARD, edgecolor=style.BLACK, lw=1.2, label="reward"))
    handles += [
        Line2D(
            [], [], linestyle="none", marker=marker, markersize=6, markerfacecolor=face,
            markeredgecolor=style.BLACK, markeredgewidth=0.7, label=label,
        )
        for there, marker, face, label in (
            (graph.factors, "s", style.FACTOR, "factor: set by a person"),
            (graph.context, "H", style.CONTEXT, "context: no factor moves it"),
        )
        if there
    ]  # fmt: skip
    pale: dict[str, Any] = {"facecolor": style.WHITE, "lw": 0.8}
    if not graph.known[graph.exists].all():
        label = "mechanism unknown: no data"
        handles.append(
            Patch(edgecolor=style.UNKNOWN, linestyle=UNKNOWN_DASHES, label=label, **pale)
        )
    if not graph.exists.all():
        handles.append(Patch(edgecolor=style.ABSENT, label="node without this regime", **pale))
    return handles


def _legend_rows(handles: Sequence[Artist], width: float) -> int:
    """How many rows the legend needs in so many inches."""
    em = style.SMALL_TEXT_SIZE / POINTS_PER_INCH
    texts = sum(text_size(str(h.get_label()), style.SMALL_TEXT_SIZE)[0] for h in handles)
    needed = texts + len(handles) * (HANDLE + HANDLE_PAD) * em + (len(handles) - 1) * SPACING * em
    return 1 if needed <= width - em else 2


def _draw_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Draw the legend at the foot, in one row or two."""
    if handles:
        rows = _legend_rows(handles, figure.get_figwidth())
        figure.legend(
            handles=handles,
            loc="lower center",
            ncols=-(-len(handles) // rows),
            handlelength=HANDLE,
            handletextpad=HANDLE_PAD,
            columnspacing=SPACING,
            borderaxespad=0.3,
        )


def _edge_handle(look: EdgeLook) -> Line2D:
    mark = f" ({look.mark})" if look.mark else ""
    return Line2D([], [], color=look.color, linestyle=look.dashes, lw=1.5, label=look.name + mark)


def _width_handles(edges: list[Edge], per_panel: int) -> list[Line2D]:
    weighted = [edge for edge in edges if np.isfinite(edge.weight)]
    if len(weighted) < 2:
        return []
    ends = min(weighted, key=lambda e: e.strength), max(weighted, key=lambda e: e.strength)
    return [
        Line2D(
            [],
            [],
            color=style.GREY,
            lw=line_width(edge.strength, per_panel),
            label=f"|weight| = {number(abs(edge.weight))}",
        )
        for edge in ends
    ]
