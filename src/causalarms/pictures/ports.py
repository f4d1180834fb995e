"""Where arrows touch their nodes: spread along the rim, so that no head hides another one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import isotonic_regression

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

HEAD_ROOM, TAIL_ROOM = 0.085, 0.045  # inches of rim
RIM_POINTS = 240


def distance_to_capsule(points: FloatArray, centre: FloatArray, half: FloatArray) -> FloatArray:
    """From points (..., 2) to a node's rim; negative inside."""
    beyond = np.abs(points - centre)
    flat = max(half[0] - half[1], 0.0)
    return np.hypot(np.clip(beyond[..., 0] - flat, 0, None), beyond[..., 1]) - half[1]


def spread_ends(
    curves: FloatArray, edges: IntArray, centres: FloatArray, half_sizes: FloatArray
) -> FloatArray:
    """For every edge its two ends on the rims, (edge, 2, 2); the order around a node is kept."""
    ends = np.empty((len(edges), 2, 2))
    for node, (centre, half) in enumerate(zip(centres, half_sizes, strict=True)):
        touching = np.argwhere(edges == node)  # (end, [edge, 0 for its tail or 1 for its head])
        if not len(touching):
            continue
        rim, at = _rim(half)
        wish = np.array(
            [_leaves_at(curves[e][:: 1 - 2 * side], centre, half, rim, at) for e, side in touching]
        )
        room = np.where(touching[:, 1] == 1, HEAD_ROOM, TAIL_ROOM)
        spread = _apart(wish, room, float(at[-1]))
        places = np.column_stack([np.interp(spread, at, rim[:, k]) for k in (0, 1)])
        ends[touching[:, 0], touching[:, 1]] = centre + places
    return ends


def _rim(half: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points of a capsule around the origin, and the way along the rim to each of them."""
    angle = np.linspace(-np.pi, np.pi, RIM_POINTS)
    flat = max(half[0] - half[1], 0.0)
    rim = half[1] * np.column_stack([np.cos(angle), np.sin(angle)])
    rim[:, 0] += flat * np.clip(4 * np.cos(angle), -1, 1)
    steps = np.hypot(*np.diff(rim, axis=0).T)
    return rim, np.concatenate([[0.0], np.cumsum(steps)])


def _leaves_at(
    curve: FloatArray, centre: FloatArray, half: FloatArray, rim: FloatArray, at: FloatArray
) -> float:
    outside = distance_to_capsule(curve, centre, half) > 0
    point = curve[int(np.argmax(outside))] - centre
    return float(at[int(np.argmin(np.hypot(*(rim - point).T)))])


def _apart(wish: FloatArray, room: FloatArray, round_trip: float) -> FloatArray:
    """The places nearest to the wished ones, in least squares, that leave everybody room."""
    room = room * min(1.0, 0.95 * round_trip / room.sum())
    order = np.argsort(wish, kind="stable")
    gaps = np.diff(wish[order], append=wish[order[0]] + round_trip)
    order = np.roll(order, -int(np.argmax(gaps)) - 1)  # cut the ring at its widest gap
    unrolled = wish[order] + round_trip * (wish[order] < wish[order[0]])
    needed = np.concatenate([[0.0], np.cumsum((room[order][1:] + room[order][:-1]) / 2)])
    places = np.empty(len(wish))
    places[order] = isotonic_regression(unrolled - needed) + needed
    return places % round_trip
