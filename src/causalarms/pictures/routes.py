"""The way of every arrow: straight where it can be, bent where it would run into another node.

Lengths are inches. Routes are chosen once for the edges of both regimes, so that an edge looks the
same in both panels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.limits import MAX_SEPARATED_EDGES
from causalarms.pictures.ports import spread_ends

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

BENDS = (0.0, *(sign * step / 100 for step in (6, 10, 15, 20, 26, 33, 41, 50) for sign in (1, -1)))
POINTS = 49
AIR = 0.07  # wanted between an arrow and a foreign node
RIM = 0.08  # inches kept free inside a panel's border
PARALLEL_AIR = 0.065  # nearer than this, two arrows look like one


def choose_routes(
    centres: FloatArray, half_sizes: FloatArray, edges: IntArray, room: tuple[float, float]
) -> FloatArray:
    """Curves (edge, POINTS, 2) from rim to rim, inside a panel of the size `room`.

    First from centre to centre, which tells where curves meet the rims. Spreading their ends
    there shifts them a little; a curve that thereby came too near to a node is bent away.
    """
    ends = centres[edges]  # (edge, [tail, head], 2)
    lengths = np.hypot(*(ends[:, 1] - ends[:, 0]).T)
    curves = np.zeros((len(edges), POINTS, 2))
    bends = np.zeros(len(edges))
    done: list[int] = []
    for edge in np.argsort(lengths, kind="stable"):  # short ones have the least freedom
        beside = curves[done] if len(edges) <= MAX_SEPARATED_EDGES else curves[:0]
        options = [bent(ends[edge, 0], ends[edge, 1], bend) for bend in BENDS]
        obstacles = _obstacles(options, centres, half_sizes, edges[edge], room)
        tidiness = [
            6 * _merging(option, beside) + 3 * abs(bend)
            for option, bend in zip(options, BENDS, strict=True)
        ]
        best = int(np.argmin(np.round(obstacles + tidiness, 9)))
        curves[edge], bends[edge] = options[best], BENDS[best]
        done.append(int(edge))
    ends = spread_ends(curves, edges, centres, half_sizes)
    for edge, bend in enumerate(bends):
        options = [bent(ends[edge, 0], ends[edge, 1], other) for other in BENDS]
        obstacles = _obstacles(options, centres, half_sizes, edges[edge], room)
        change = 25 * np.abs(np.array(BENDS) - bend)
        curves[edge] = options[int(np.argmin(np.round(obstacles + change, 9)))]
    return curves


def _obstacles(
    options: list[FloatArray],
    centres: FloatArray,
    half_sizes: FloatArray,
    own: IntArray,
    room: tuple[float, float],
) -> FloatArray:
    foreign = np.delete(np.arange(len(centres)), own)
    return np.array(
        [
            60 * _invasion(option, centres[foreign], half_sizes[foreign])
            + 1000 * _outside(option, room)
            for option in options
        ]
    )


def bent(begin: FloatArray, end: FloatArray, bend: float) -> FloatArray:
    """A parabola whose control point stands off the chord by `bend` of its length, (POINTS, 2)."""
    along = end - begin
    control = (begin + end) / 2 + 2 * bend * np.array([-along[1], along[0]])
    t = np.linspace(0, 1, POINTS)[:, None]
    return (1 - t) ** 2 * begin + 2 * t * (1 - t) * control + t**2 * end


def distance_to_boxes(
    points: FloatArray, centres: FloatArray, half_sizes: FloatArray
) -> FloatArray:
    """From every point to every box, (point, box); 0 inside."""
    beyond = np.clip(np.abs(points[:, None] - centres[None]) - half_sizes[None], 0, None)
    return np.hypot(beyond[..., 0], beyond[..., 1])


def _invasion(curve: FloatArray, centres: FloatArray, half_sizes: FloatArray) -> float:
    if not len(centres):
        return 0.0
    nearest = distance_to_boxes(curve, centres, half_sizes).min(axis=0)
    return float((np.clip(1 - nearest / AIR, 0, None)).sum())


def _outside(curve: FloatArray, room: tuple[float, float]) -> float:
    excess = np.clip(RIM - curve, 0, None) + np.clip(curve + RIM - np.array(room), 0, None)
    return float(excess.max())


def _merging(curve: FloatArray, others: FloatArray) -> float:
    """The length, in shares of the curve, along which it runs beside another one."""
    if not len(others):
        return 0.0
    middle = slice(POINTS // 6, -POINTS // 6, 3)
    heading = np.gradient(curve, axis=0)[middle]
    heading /= np.hypot(heading[:, 0], heading[:, 1])[:, None]
    other_heading = np.gradient(others, axis=1)
    other_heading /= np.hypot(other_heading[..., 0], other_heading[..., 1])[..., None]
    gap = curve[middle][None, :, None] - others[:, None]  # (other, point, point, 2)
    near = np.hypot(gap[..., 0], gap[..., 1]) < PARALLEL_AIR
    alike = np.abs(np.einsum("pc,oqc->opq", heading, other_heading)) > 0.95
    return float((near & alike).any(axis=(0, 2)).mean())
