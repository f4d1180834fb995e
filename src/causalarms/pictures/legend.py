"""The legend of a graph picture: only what the picture holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from causalarms.pictures import arrows, style
from causalarms.pictures.arrows import Edge, EdgeLook, line_width
from causalarms.pictures.labels import POINTS_PER_INCH, number, text_size

HANDLE, HANDLE_PAD, SPACING = 2.6, 0.8, 1.4  # of a letter's size


def legend_handles(
    *,
    edges: list[Edge],
    per_panel: int,
    compared: bool,
    reward: bool,
    unknown: bool,
    absent: bool,
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
    if absent:
        handles.append(
            Patch(
                facecolor=style.WHITE,
                edgecolor=style.ABSENT,
                lw=0.8,
                label="node without this regime",
            )
        )
    return handles


def legend_rows(handles: Sequence[Artist], width: float) -> int:
    """How many rows the legend needs in so many inches."""
    em = style.SMALL_TEXT_SIZE / POINTS_PER_INCH
    texts = sum(text_size(str(h.get_label()), style.SMALL_TEXT_SIZE)[0] for h in handles)
    needed = texts + len(handles) * (HANDLE + HANDLE_PAD) * em + (len(handles) - 1) * SPACING * em
    return 1 if needed <= width - em else 2


def draw_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """At the foot, in one row or two."""
    if handles:
        rows = legend_rows(handles, figure.get_figwidth())
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
