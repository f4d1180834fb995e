"""The legend of a graph picture: only what the picture holds."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from causalarms.pictures import arrows, style
from causalarms.pictures.arrows import Edge, EdgeLook, line_width
from causalarms.pictures.labels import number


def draw_legend(
    figure: Figure, *, edges: list[Edge], compared: bool, reward: bool, unknown: bool
) -> None:
    """Kinds of edges, the scale of widths, kinds of nodes, in one row at the foot."""
    kinds = (
        (arrows.FOUND, arrows.MISSED, arrows.EXTRA)
        if compared
        else (arrows.POSITIVE, arrows.NEGATIVE)
    )
    looks = {edge.look for edge in edges}
    handles: list[Artist] = [_edge_handle(look) for look in kinds if look in looks or compared]
    handles += _width_handles(edges)
    if reward:
        handles.append(Patch(facecolor=style.REWARD, edgecolor=style.BLACK, lw=1.2, label="reward"))
    if unknown:
        handles.append(
            Patch(
                facecolor=style.WHITE,
                edgecolor=style.UNKNOWN,
                lw=0.8,
                linestyle=(0, (2.5, 1.5)),
                label="mechanism unknown: no data",
            )
        )
    if handles:
        figure.legend(
            handles=handles,
            loc="lower center",
            ncols=len(handles),
            handlelength=2.6,
            columnspacing=1.4,
            borderaxespad=0.3,
        )


def _edge_handle(look: EdgeLook) -> Line2D:
    mark = f" ({look.mark})" if look.mark else ""
    return Line2D([], [], color=look.color, linestyle=look.dashes, lw=1.5, label=look.name + mark)


def _width_handles(edges: list[Edge]) -> list[Line2D]:
    weighted = [edge for edge in edges if np.isfinite(edge.weight)]
    if len(weighted) < 2:
        return []
    ends = min(weighted, key=lambda e: e.strength), max(weighted, key=lambda e: e.strength)
    return [
        Line2D(
            [],
            [],
            color=style.GREY,
            lw=line_width(edge.strength, len(edges) // 2),
            label=f"|weight| = {number(abs(edge.weight))}",
        )
        for edge in ends
    ]
