"""Arrows of a graph picture: their look, their way around nodes, their ends and their numbers.

Lengths are inches. Routes are chosen once for the edges of all regimes, so that an edge looks the
same in all panels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from sklearn.isotonic import isotonic_regression

from causalarms.arrays import FloatArray, IntArray
from causalarms.limits import MAX_SEPARATED_EDGES
from causalarms.pictures import style
from causalarms.pictures.style import text_size

THINNEST, THICKEST = 0.7, 2.2  # points
FULL_WIDTH_ARROWS = 35  # in a panel; more are drawn thinner
WHITE_RIM = 1.0  # points of white around a line
HEAD_LAYER = 1000  # over all shafts

# How far a curve stands off its chord, as a fraction of its length; straight is tried first.
BENDS = (0.0, *(sign * step / 100 for step in (6, 10, 15, 20, 26, 33, 41, 50) for sign in (1, -1)))
POINTS = 49  # of a curve
NODE_DISTANCE = 0.07  # wanted between an arrow and a foreign node
BORDER = 0.08  # kept free inside a panel's border
PARALLEL_DISTANCE = 0.065  # nearer than this, two arrows look like one

# Costs of a route, in no unit: an arrow that leaves the panel or touches a foreign node is wrong,
# one along another arrow is hard to follow, a bent one is merely less pretty.
OUTSIDE_COST, TOUCH_COST, MERGE_COST, BEND_COST = 1000, 60, 6, 3
OTHER_BEND_COST = 25  # per bend that differs from the one chosen before the ends were spread

TIP_GAP = 0.015  # between a node and the tip of an arrow
HEAD_ROOM, TAIL_ROOM = 0.085, 0.045  # along the rim of a node
RIM_POINTS = 240

LABEL_ROUNDS = 6
CLASH_COST = 30.0
LABEL_SIZE = 6.0  # points
LABEL_PAD = 0.012  # of white around a number


@dataclass(frozen=True)
class EdgeLook:
    """How a kind of edge is drawn.

    name     in the legend
    color    of line and head
    dashes   as matplotlib's linestyle
    mark     precedes its number
    """

    name: str
    color: str
    dashes: Any
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
    strength: float  # |weight| as a fraction of the picture's largest
    weight: float  # nan if there is none


def line_width(strength: float, n_edges: int) -> float:
    """Points; `strength` is |weight| as a fraction of the largest; all are thinner among many."""
    thinning = np.clip(np.sqrt(FULL_WIDTH_ARROWS / max(n_edges, 1)), 0.4, 1.0)
    return float(thinning * (THINNEST + (THICKEST - THINNEST) * strength))


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
        (middle, style.WHITE, "-", width + WHITE_RIM),
        (shaft, look.color, look.dashes, width),
    ):
        drawn = Line2D(
            *part.T, color=color, linestyle=dashes, lw=thickness, zorder=layer, clip_on=False
        )
        drawn.set(solid_capstyle="butt", dash_capstyle="butt")
        axes.add_line(drawn)
    corners = np.array([tip, back + aside, back + 0.2 * heading * head, back - aside])
    axes.add_patch(Polygon(corners, facecolor=look.color, lw=0, zorder=HEAD_LAYER))


# -- routes: straight if they can be, bent if they would run into another node ---------------------


def choose_routes(
    centres: FloatArray, half_sizes: FloatArray, edges: IntArray, room: tuple[float, float]
) -> FloatArray:
    """Curves (edge, POINTS, 2) from rim to rim.

    First from centre to centre, which tells where curves meet the rims. Spreading their ends
    there shifts them a little; a curve that thereby came too near to a node is bent away.

    centres      of the nodes, (N, 2)
    half_sizes   of the nodes, (N, 2)
    edges        (edge, 2), parent and child
    room         width and height of the panel
    """
    ends = centres[edges]  # (edge, [tail, head], 2)
    lengths = np.hypot(*(ends[:, 1] - ends[:, 0]).T)
    curves = np.zeros((len(edges), POINTS, 2))
    bends = np.zeros(len(edges))
    done: list[int] = []
    for edge in np.argsort(lengths, kind="stable"):  # short ones have the least freedom
        # dense graphs: too many pairs of curves to compare
        placed = curves[done] if len(edges) <= MAX_SEPARATED_EDGES else curves[:0]
        options, obstacles = _options(ends[edge], centres, half_sizes, edges[edge], room)
        tidiness = [
            MERGE_COST * _merging(option, placed) + BEND_COST * abs(bend)
            for option, bend in zip(options, BENDS, strict=True)
        ]
        # rounded, so that rounding errors do not decide between mirror images
        best = int(np.argmin(np.round(obstacles + tidiness, 9)))
        curves[edge], bends[edge] = options[best], BENDS[best]
        done.append(int(edge))
    ends = spread_ends(curves, edges, centres, half_sizes)
    for edge, bend in enumerate(bends):
        options, obstacles = _options(ends[edge], centres, half_sizes, edges[edge], room)
        change = OTHER_BEND_COST * np.abs(np.array(BENDS) - bend)
        curves[edge] = options[int(np.argmin(np.round(obstacles + change, 9)))]
    return curves


def _options(
    ends: FloatArray,
    centres: FloatArray,
    half_sizes: FloatArray,
    own: IntArray,
    room: tuple[float, float],
) -> tuple[list[FloatArray], FloatArray]:
    """Curves of all bends between two ends, and what each costs for what is in its way."""
    foreign = np.delete(np.arange(len(centres)), own)
    options = [bent(ends[0], ends[1], bend) for bend in BENDS]
    costs = [
        TOUCH_COST * _invasion(option, centres[foreign], half_sizes[foreign])
        + OUTSIDE_COST * _outside(option, room)
        for option in options
    ]
    return options, np.array(costs)


def bent(begin: FloatArray, end: FloatArray, bend: float) -> FloatArray:
    """A parabola that stands off its chord by `bend` of the chord's length, (POINTS, 2)."""
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
    return float((np.clip(1 - nearest / NODE_DISTANCE, 0, None)).sum())


def _outside(curve: FloatArray, room: tuple[float, float]) -> float:
    excess = np.clip(BORDER - curve, 0, None) + np.clip(curve + BORDER - np.array(room), 0, None)
    return float(excess.max())


def _merging(curve: FloatArray, others: FloatArray) -> float:
    """The fraction of the curve along which it runs next to another one."""
    if not len(others):
        return 0.0
    # near a common node all curves run next to each other
    middle = slice(POINTS // 6, -POINTS // 6, 3)
    heading = np.gradient(curve, axis=0)[middle]
    heading /= np.hypot(heading[:, 0], heading[:, 1])[:, None]
    other_heading = np.gradient(others, axis=1)
    other_heading /= np.hypot(other_heading[..., 0], other_heading[..., 1])[..., None]
    gap = curve[middle][None, :, None] - others[:, None]  # (other, point, point, 2)
    near = np.hypot(gap[..., 0], gap[..., 1]) < PARALLEL_DISTANCE
    alike = np.abs(np.einsum("pc,oqc->opq", heading, other_heading)) > 0.95
    return float((near & alike).any(axis=(0, 2)).mean())


# -- ends: spread along the rims of nodes, so that no head hides another one -----------------------


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
    in_end = np.flatnonzero(distance_to_capsule(fine, end, end_half) <= TIP_GAP)
    first = in_begin.max(initial=0)
    last = in_end[in_end > first].min(initial=len(fine) - 1)
    # nodes that touch leave nothing: a stump in the middle shows that there is an arrow
    return _resampled(fine[first : last + 1], 100) if last - first > 1 else fine[195:205]


def spread_ends(
    curves: FloatArray, edges: IntArray, centres: FloatArray, half_sizes: FloatArray
) -> FloatArray:
    """The two ends of every edge on the rims, (edge, 2, 2); the order around a node is kept."""
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
    # less the room that is needed so far, places must only not decrease: isotonic regression
    needed = np.concatenate([[0.0], np.cumsum((room[order][1:] + room[order][:-1]) / 2)])
    places = np.empty(len(wish))
    places[order] = isotonic_regression(unrolled - needed) + needed
    return places % round_trip


def distance_to_capsule(points: FloatArray, centre: FloatArray, half: FloatArray) -> FloatArray:
    """From points to a node's rim; negative inside."""
    beyond = np.abs(points - centre)
    flat = max(half[0] - half[1], 0.0)
    return np.hypot(np.clip(beyond[..., 0] - flat, 0, None), beyond[..., 1]) - half[1]


def _resampled(line: FloatArray, n_points: int) -> FloatArray:
    length = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    at = np.linspace(0, length[-1], n_points)
    return np.column_stack([np.interp(at, length, line[:, k]) for k in (0, 1)])


# -- labels: on their line, off nodes, other numbers and other lines -------------------------------


class Labels(NamedTuple):
    """Texts and their centres by the position of their line in the given list."""

    texts: dict[int, str]
    centres: dict[int, FloatArray]
    overlap: float  # the worst of a label with a node or a label, as a fraction of its box


def place_labels(
    lines: list[FloatArray],
    texts: dict[int, str],
    node_centres: FloatArray,
    node_half_sizes: FloatArray,
) -> Labels:
    """Greedy improvement: one label at a time moves along its line to the best place.

    lines             of all arrows, (point, 2) each
    texts             of those that have one, by the position of the line
    node_centres      (N, 2)
    node_half_sizes   (N, 2)
    """
    which = list(texts)
    if not which:
        return Labels({}, {}, 0.0)
    halves = np.array([text_size(texts[line], LABEL_SIZE) for line in which]) / 2 + LABEL_PAD
    choices = [_along(lines[line]) for line in which]  # (choice, 2) each
    fixed = [
        _fixed_cost(line, choice, half, lines, node_centres, node_half_sizes)
        for line, choice, half in zip(which, choices, halves, strict=True)
    ]
    at = np.array([int(np.argmin(cost)) for cost in fixed])
    centres = np.array([choice[k] for choice, k in zip(choices, at, strict=True)])
    everyone = np.arange(len(which))
    for _ in range(LABEL_ROUNDS):
        before = centres.copy()
        for label in everyone:
            others = everyone != label
            clash = _overlap(choices[label], halves[label], centres[others], halves[others])
            cost = fixed[label] + CLASH_COST * clash.sum(axis=1)
            centres[label] = choices[label][int(np.argmin(np.round(cost, 9)))]
        if np.array_equal(before, centres):
            break
    worst = 0.0
    for label in everyone:
        here, others = centres[[label]], everyone != label
        on_labels = _overlap(here, halves[label], centres[others], halves[others])
        on_nodes = _overlap(here, halves[label], node_centres, node_half_sizes)
        worst = max(worst, float(on_labels.max(initial=0)), float(on_nodes.max(initial=0)))
    return Labels(texts, dict(zip(which, centres, strict=True)), worst)


def _along(line: FloatArray) -> FloatArray:
    return line[len(line) // 8 : -max(len(line) // 5, 1) : 2]  # not on the tail, not on the head


def _fixed_cost(
    which: int,
    choices: FloatArray,
    half: FloatArray,
    lines: list[FloatArray],
    node_centres: FloatArray,
    node_half_sizes: FloatArray,
) -> FloatArray:
    on_nodes = _overlap(choices, half, node_centres, node_half_sizes + 0.02).sum(axis=1)
    foreign = [line for other, line in enumerate(lines) if other != which]
    on_lines = np.zeros(len(choices))
    for line in foreign:
        on_lines += distance_to_boxes(line, choices, np.tile(half, (len(choices), 1))).min(0) < 0.01
    from_middle = np.abs(np.linspace(-1, 1, len(choices)))
    return CLASH_COST * 2 * on_nodes + 2 * on_lines + 0.3 * from_middle


def _overlap(
    centres: FloatArray, half: FloatArray, others: FloatArray, other_halves: FloatArray
) -> FloatArray:
    """The shared area of boxes as a fraction of the first one's, (centre, other)."""
    gap = np.abs(centres[:, None] - others[None])
    shared = np.clip(half + other_halves[None] - gap, 0, 2 * half)
    return shared.prod(axis=2) / (4 * half.prod())
