"""One arrow: the visible part of its route, its line, its head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon

from causalarms.pictures import style
from causalarms.pictures.ports import distance_to_capsule

FloatArray = npt.NDArray[np.float64]

GAP = 0.015  # inches between a node and the tip of an arrow
RIM = 1.0  # points of white around a line
THINNEST, THICKEST = 0.7, 2.2  # points
FULL_WIDTH = 35  # arrows in a panel; more are drawn thinner
HEAD_LAYER = 1000  # over all shafts


@dataclass(frozen=True)
class EdgeLook:
    """How a kind of edge is drawn; `mark` precedes its number."""

    name: str
    color: str
    dashes: Any  # as matplotlib's linestyle
    mark: str = ""

    @property
    def ink(self) -> tuple[float, ...]:
        """The colour of its numbers: darker, as small type needs contrast."""
        return tuple(0.65 * part for part in to_rgb(self.color))


POSITIVE = EdgeLook("positive weight", style.POSITIVE, "-")
NEGATIVE = EdgeLook("negative weight", style.NEGATIVE, (0, (3.2, 1.3)))
FOUND = EdgeLook("found", style.FOUND, "-")
MISSED = EdgeLook("missed", style.MISSED, (0, (1, 1.2)))
EXTRA = EdgeLook("extra", style.EXTRA, (0, (5, 1, 1, 1)), mark="\u2717")


class Edge(NamedTuple):
    """An arrow of one panel."""

    line: FloatArray  # (point, 2), outside its nodes
    look: EdgeLook
    strength: float  # |weight| as a share of the picture's largest
    weight: float  # nan where there is none


def line_width(strength: float, n_edges: int) -> float:
    """Points; `strength` is |weight| as a share of the largest one, all thinner in a thicket."""
    thinning = np.clip(np.sqrt(FULL_WIDTH / max(n_edges, 1)), 0.4, 1.0)
    return float(thinning * (THINNEST + (THICKEST - THINNEST) * strength))


def visible_part(
    route: FloatArray,
    begin: FloatArray,
    begin_half: FloatArray,
    end: FloatArray,
    end_half: FloatArray,
) -> FloatArray:
    """The route outside its two nodes, finely sampled at equal steps."""
    fine = _resampled(route, 400)
    in_begin = np.flatnonzero(distance_to_capsule(fine, begin, begin_half) <= 0)
    in_end = np.flatnonzero(distance_to_capsule(fine, end, end_half) <= GAP)
    first = in_begin.max(initial=0)
    last = in_end[in_end > first].min(initial=len(fine) - 1)
    return _resampled(fine[first : last + 1], 100) if last - first > 1 else fine[195:205]


def draw_arrow(axes: Axes, line: FloatArray, look: EdgeLook, width: float, layer: float) -> None:
    """Later layers pass over earlier ones, which a white rim sets off."""
    head = 0.06 + 0.022 * width
    steps = np.hypot(*np.diff(line, axis=0).T)
    to_tip = steps.sum() - np.concatenate([[0], np.cumsum(steps)])
    tip, neck = line[-1], line[int(np.searchsorted(-to_tip, -head))]
    heading = (tip - neck) / max(np.hypot(*(tip - neck)), 1e-9)
    aside = np.array([-heading[1], heading[0]]) * head * 0.42
    back = tip - heading * head
    shaft = np.vstack([line[to_tip > head], back + 0.3 * heading * head])  # ends inside the head
    middle = shaft[len(shaft) // 8 : -len(shaft) // 8]  # at nodes a rim would cut neighbours off
    for part, color, dashes, thickness in (
        (middle, style.WHITE, "-", width + RIM),
        (shaft, look.color, look.dashes, width),
    ):
        axes.add_line(
            Line2D(
                part[:, 0],
                part[:, 1],
                color=color,
                linestyle=dashes,
                lw=thickness,
                zorder=layer,
                solid_capstyle="butt",
                dash_capstyle="butt",
                clip_on=False,
            )
        )
    corners = np.array([tip, back + aside, back + 0.2 * heading * head, back - aside])
    axes.add_patch(Polygon(corners, facecolor=look.color, lw=0, zorder=HEAD_LAYER))


def _resampled(line: FloatArray, n_points: int) -> FloatArray:
    length = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    at = np.linspace(0, length[-1], n_points)
    return np.column_stack([np.interp(at, length, line[:, k]) for k in (0, 1)])
