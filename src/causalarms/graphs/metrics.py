"""Errors of an estimated graph exactly as Sec. VI-A of the paper defines them.

All take adjacency or weight matrices [parent, child]; any non-zero entry is an edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError

BoolArray = npt.NDArray[np.bool_]


class GraphErrors(NamedTuple):
    """`false_negative` is the indicator whose mean over runs is the graph-FN rate."""

    false_negative: bool
    precision: float
    recall: float
    nshd: float


def graph_errors(truth: npt.ArrayLike, estimate: npt.ArrayLike) -> GraphErrors:
    """Compare two graphs of one regime.

    An empty estimate has precision 1 (nothing it says is wrong), an empty truth recall 1.

    >>> graph_errors([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    GraphErrors(false_negative=True, precision=0.0, recall=0.0, nshd=0.25)
    """
    true, guess = _edges(truth), _edges(estimate)
    if true.shape != guess.shape:
        raise DataError(f"graphs of {true.shape} and {guess.shape} cannot be compared")
    hits = int((true & guess).sum())
    missed = true & ~guess
    reversed_edges = missed & guess.T
    distance = (guess & ~true).sum() + missed.sum() - reversed_edges.sum()
    return GraphErrors(
        false_negative=bool(missed.any()),
        precision=float(hits / guess.sum()) if guess.any() else 1.0,
        recall=float(hits / true.sum()) if true.any() else 1.0,
        nshd=float(distance / len(true) ** 2),
    )


def varsortability(adjacency: npt.ArrayLike, variances: npt.ArrayLike) -> float:
    """Share of directed paths along which the variance grows (Reisach et al. 2021).

    Near 1, the order of the variances alone gives the causal order away; nan without an edge.
    Paths are counted once per length, ties as one half.
    """
    edges, variance = _edges(adjacency), np.asarray(variances, dtype=float)
    paths = np.eye(len(edges), dtype=bool)
    grows = total = 0.0
    for _ in range(len(edges) - 1):
        paths = (paths.astype(int) @ edges.astype(int)) > 0
        start, end = np.nonzero(paths)
        grows += (variance[start] < variance[end]).sum()
        grows += 0.5 * (variance[start] == variance[end]).sum()
        total += len(start)
    return float(grows / total) if total else float("nan")


def _edges(matrix: npt.ArrayLike) -> BoolArray:
    given = np.asarray(matrix)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise DataError(f"a graph is a square matrix, not {given.shape}")
    return given != 0
