"""Where the number of an arrow goes: on its line, off nodes, other numbers and other lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from causalarms.pictures.routes import distance_to_boxes

FloatArray = npt.NDArray[np.float64]

ROUNDS = 6
CLASH_COST = 30.0
LABEL_SIZE = 6.0  # points
PAD = 0.012  # inches of white around a number
POINTS_PER_INCH = 72.0


def text_size(text: str, points: float, *, bold: bool = False) -> tuple[float, float]:
    """Width and height in inches."""
    font = FontProperties(size=points, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return width / POINTS_PER_INCH, points / POINTS_PER_INCH


def number(value: float) -> str:
    """Two or three digits.

    >>> number(-0.8765), number(0.0345), number(2.0), number(12.34), number(0.999)
    ('−0.88', '0.03', '2.0', '12.3', '1.0')
    """
    size = abs(value)
    if size < 0.095:
        digits = f"{value:.1g}"
    elif size < 0.995:
        digits = f"{value:.2f}"
    else:
        digits = f"{value:.1f}" if size < 9.95 else f"{value:.3g}"
    return digits.replace("-", "\u2212")


class Labels(NamedTuple):
    """Texts and their centres by the position of their line in the given list."""

    texts: dict[int, str]
    centres: dict[int, FloatArray]
    overlap: float  # the worst of a label with a node or a label, as a share of its box


def place_labels(
    lines: list[FloatArray],
    texts: dict[int, str],
    node_centres: FloatArray,
    node_half_sizes: FloatArray,
) -> Labels:
    """Greedy improvement: one label at a time moves along its line to the best place."""
    which = list(texts)
    if not which:
        return Labels({}, {}, 0.0)
    halves = np.array([text_size(texts[line], LABEL_SIZE) for line in which]) / 2 + PAD
    choices = [_along(lines[line]) for line in which]  # (choice, 2) each
    fixed = [
        _fixed_cost(line, choice, half, lines, node_centres, node_half_sizes)
        for line, choice, half in zip(which, choices, halves, strict=True)
    ]
    at = np.array([int(np.argmin(cost)) for cost in fixed])
    centres = np.array([choice[k] for choice, k in zip(choices, at, strict=True)])
    everyone = np.arange(len(which))
    for _ in range(ROUNDS):
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
    """The shared area of boxes as a share of the first one's, (centre, other)."""
    gap = np.abs(centres[:, None] - others[None])
    shared = np.clip(half + other_halves[None] - gap, 0, 2 * half)
    return shared.prod(axis=2) / (4 * half.prod())
