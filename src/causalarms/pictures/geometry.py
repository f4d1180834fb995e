"""Inches of a graph picture: sizes of nodes and panels, and the way of every arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from causalarms.graphs.layout import assign_layers, layered_layout
from causalarms.limits import MAX_LARGE_NODES
from causalarms.pictures import style
from causalarms.pictures.labels import text_size
from causalarms.pictures.routes import choose_routes

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

LONGEST_NAME = 16
SIDE_BY_SIDE = 5  # layers that fit a single column
ARROW_ROOM = 0.42  # between the nodes of two layers
MARGIN = 0.12


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


def plan(nodes: Sequence[str], union: BoolArray, *, n_panels: int = 2) -> Geometry:
    """Lay out the edges of all regimes together; a single panel has the whole width."""
    n_nodes = len(nodes)
    names = tuple(_shortened(node) for node in nodes)
    name_size = style.TEXT_SIZE if n_nodes <= MAX_LARGE_NODES else style.SMALL_TEXT_SIZE
    half_sizes = np.array([_half_size(name, name_size) for name in names])
    in_layer = np.bincount(assign_layers(union))
    widest, tallest = 2 * half_sizes.max(axis=0)
    width_needed = len(in_layer) * widest + (len(in_layer) - 1) * ARROW_ROOM + 2 * MARGIN
    column = style.TWO_COLUMNS / 2
    stacked = n_panels == 1 or len(in_layer) > SIDE_BY_SIDE or width_needed > column
    crowded = n_nodes > MAX_LARGE_NODES
    width = max(style.TWO_COLUMNS, 0.0 if crowded else width_needed) if stacked else column
    height = max(
        1.3 + 0.13 * n_nodes, in_layer.max() * (tallest + (0.1 if crowded else 0.25)) + 2 * MARGIN
    )
    height = min(height, 4.2) if stacked else height
    inset = half_sizes.max(axis=0) + MARGIN
    inside = np.array([width, height]) - 2 * inset
    unit = layered_layout(
        union, aspect=inside[0] / inside[1], node_width=(widest + MARGIN) / inside[1]
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


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "\u2026"


def _half_size(name: str, points: float) -> tuple[float, float]:
    width, height = text_size(name, points, bold=True)
    half_height = 0.95 * height
    return max(width / 2 + 0.07, 1.15 * half_height), half_height
