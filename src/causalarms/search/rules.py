"""Constraints as arrays, the form in which kernels read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.search.factors import Factors, starts

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Box = Sequence[tuple[int, Iterable[int]]]  # factors, and for each the levels that are in it


class Rules(NamedTuple):
    """F factors with at most L levels on N nodes.

    A box is a forbidden combination: some factors, and levels of each; not all of these factors may
    be inside at once.
    """

    domain: BoolArray  # (F, L) levels that may be set
    cost: FloatArray  # (F, L)
    limit: int  # how many factors may leave level 0
    act_start: IntArray  # (N+1,) node i has the acting factors act_start[i] .. act_start[i+1]-1
    act_factor: IntArray
    act_stride: IntArray  # what one level is worth in the node's table
    table_start: IntArray  # (N+1,)
    table: IntArray  # regimes
    box_start: IntArray  # (B+1,)
    box_factor: IntArray
    box_levels: BoolArray  # (.., L) per factor of a box, the levels inside

    @property
    def n_boxes(self) -> int:
        return len(self.box_start) - 1


def rules_of(
    factors: Factors, domain: BoolArray, cost: FloatArray, limit: int, boxes: Sequence[Box]
) -> Rules:
    """The arrays of constraints that were checked."""
    inside = [(factor, levels) for box in boxes for factor, levels in box]
    box_levels = np.zeros((len(inside), domain.shape[1]), dtype=bool)
    for row, (_, levels) in enumerate(inside):
        box_levels[row, list(levels)] = True
    box_factor = np.array([factor for factor, _ in inside], dtype=np.int64)
    return Rules(domain, cost, limit, *factors.arrays, starts(boxes), box_factor, box_levels)


def keeps(rules: Rules, levels: npt.NDArray[np.integer]) -> BoolArray:
    """Which rows of levels (n, F) may be set."""
    factors = np.arange(len(rules.domain))
    kept = rules.domain[factors, levels].all(axis=1)
    kept &= (levels != 0).sum(axis=1) <= rules.limit
    for box in range(rules.n_boxes):
        span = range(rules.box_start[box], rules.box_start[box + 1])
        inside = [rules.box_levels[at, levels[:, rules.box_factor[at]]] for at in span]
        kept &= ~np.logical_and.reduce(inside)
    return kept
