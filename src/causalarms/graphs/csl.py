"""Causal Sub-graph Learning (Sec. III, Algorithm 1).

Every mechanism regresses its node on all remaining candidate parents; an edge j -> i is scored by
I_w = I(r_i; x_j) - log|b_ji|, the edge-weighted mutual information of residual and candidate. The
largest score in the whole graph is removed, that column is refitted, until no cycle is left.

Literal: B and B' apart, as in the paper. Joint: both regimes share an order (a union with a cycle
makes some B_a cyclic), so edges of either regime are removed until the union is acyclic.
CSL-nw leaves out the -log|b| term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.graphs.acyclicity import ShrinkingGraph
from causalarms.graphs.regime_names import mechanism_name
from causalarms.kernels import kernel
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.moments import gram_matrix
from causalarms.statistics.mutual_information import kraskov, psi_table
from causalarms.statistics.regression import Regression, SingularError, regress

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


class Removal(NamedTuple):
    """One rejected edge."""

    regime: int
    parent: int
    child: int
    score: float


@dataclass(frozen=True)
class CSLFit:
    """What CSL found; columns of mechanisms without samples are nan and not `known`."""

    adjacency: BoolArray  # (2, N, N)
    weights: FloatArray  # (2, N, N)
    scores: FloatArray  # (2, N, N), nan where no edge is left
    intercept: FloatArray  # (2, N), the noise means, given or estimated
    noise_std: FloatArray  # (2, N)
    known: BoolArray  # (2, N)
    order: list[int] | None  # parents before children; None where the regimes mix into a cycle
    history: list[Removal]


def csl(
    data: Dataset,
    *,
    noise_mean: FloatArray | None,  # (2, N), None: an intercept per mechanism
    allowed: BoolArray | None = None,  # (2, N, N)
    required: BoolArray | None = None,
    joint: bool = True,
    edge_weighting: bool = True,
    neighbors: int = 5,
    squares: bool = False,
    min_samples: int = 1,
    on_removal: Callable[[Removal, int], None] | None = None,
) -> CSLFit:
    """Learn both regimes' graphs. Mechanisms with fewer than `min_samples` stay unknown."""
    n_nodes = data.n_nodes
    allowed = _complete(n_nodes) if allowed is None else allowed
    required = np.zeros_like(allowed) if required is None else required
    known = data.counts >= max(min_samples, 1)
    scorer = _Scorer(data, noise_mean, edge_weighting, neighbors, squares)
    columns = {
        (regime, node): scorer.start(regime, node, np.flatnonzero(allowed[regime, :, node]))
        for regime, node in np.argwhere(known).tolist()
    }
    scores = np.full((2, n_nodes, n_nodes), np.nan)
    for (regime, node), column in columns.items():
        scores[regime, column.parents, node] = column.scores
    history: list[Removal] = []
    removable = np.where(required, -np.inf, np.nan_to_num(scores, nan=-np.inf, posinf=np.inf))
    for regimes in [[0, 1]] if joint else [[0], [1]]:
        graph = ShrinkingGraph((~np.isnan(scores[regimes])).sum(axis=0))
        while not graph.acyclic:
            which, parent, child = np.unravel_index(
                np.argmax(removable[regimes]), (len(regimes), n_nodes, n_nodes)
            )
            regime = regimes[which]
            removal = Removal(regime, int(parent), int(child), scores[regime, parent, child])
            column = columns[regime, removal.child] = scorer.without(
                columns[regime, removal.child], removal.parent
            )
            graph.remove(removal.parent, removal.child)
            history.append(removal)
            scores[regime, :, child] = np.nan
            scores[regime, column.parents, child] = column.scores
            removable[regime, :, child] = -np.inf
            free = column.parents[~required[regime, column.parents, child]]
            removable[regime, free, child] = scores[regime, free, child]
            if on_removal is not None:
                on_removal(removal, len(graph.order))
    return _collect(columns, scores, known, noise_mean, history)


@dataclass(frozen=True)
class _Column:
    """One mechanism under pruning."""

    regime: int
    node: int
    regression: Regression
    parents: npt.NDArray[np.int64]
    scores: FloatArray
    samples: FloatArray  # (N, n): one contiguous row per node
    orders: npt.NDArray[np.int64]  # (N, n): what sorts them


@dataclass(frozen=True)
class _Scorer:
    """Regress and score the columns of one dataset."""

    data: Dataset
    noise_mean: FloatArray | None
    edge_weighting: bool
    neighbors: int
    squares: bool

    def start(self, regime: int, node: int, parents: npt.NDArray[np.int64]) -> _Column:
        samples = np.ascontiguousarray(self.data.samples(regime, node).T)
        n_samples = samples.shape[1]
        needed = max(len(parents) + (self.noise_mean is None) + 1, self.neighbors + 1)
        if n_samples < needed:
            raise DataError(
                f"{mechanism_name(self.data.nodes, regime, node)} has {n_samples} samples for "
                f"{len(parents)} candidate parents; at least {needed} are needed"
            )
        try:
            regression = regress(gram_matrix(samples), node, parents, self._mean(regime, node))
        except SingularError as error:
            names = (*self.data.nodes, "(constant)")
            raise DataError(
                f"{mechanism_name(self.data.nodes, regime, node)}: over its {n_samples} samples "
                f"{names[error.column]!r} is a linear combination of the other candidate parents"
            ) from error
        return self._scored(regime, node, regression, samples, np.argsort(samples, axis=1))

    def without(self, column: _Column, parent: int) -> _Column:
        regression = column.regression.without(parent)
        return self._scored(column.regime, column.node, regression, column.samples, column.orders)

    def _scored(
        self,
        regime: int,
        node: int,
        regression: Regression,
        samples: FloatArray,
        orders: npt.NDArray[np.int64],
    ) -> _Column:
        n_parents = len(regression.columns) - (self.noise_mean is None)
        parents = regression.columns[:n_parents]
        weights = regression.weights[:n_parents]
        # an intercept, known or fitted, shifts the residual and no dependence with it
        residual = residuals(samples, node, parents, weights)
        scores = residual_information(
            samples,
            orders,
            parents,
            residual,
            np.argsort(residual),
            self.neighbors,
            self.squares,
            psi_table(len(residual)),
        )
        if self.edge_weighting:
            with np.errstate(divide="ignore"):  # a weight of exactly 0 is the first to go
                scores = scores - np.log(np.abs(weights))
        return _Column(regime, node, regression, parents, scores, samples, orders)

    def _mean(self, regime: int, node: int) -> float | None:
        return None if self.noise_mean is None else float(self.noise_mean[regime, node])


@kernel
def residuals(
    samples: FloatArray, node: int, parents: npt.NDArray[np.int64], weights: FloatArray
) -> FloatArray:
    """x_i - w . x_P over the samples, the paper's residual up to its sign."""
    rest = samples[node].copy()
    for position in range(len(parents)):
        weight, parent = weights[position], samples[parents[position]]
        for t in range(len(rest)):
            rest[t] -= weight * parent[t]
    return rest


@kernel
def residual_information(
    samples: FloatArray,
    orders: npt.NDArray[np.int64],
    parents: npt.NDArray[np.int64],
    residual: FloatArray,
    residual_order: npt.NDArray[np.int64],
    neighbors: int,
    squares: bool,
    psi: FloatArray,
) -> FloatArray:
    """I(r; x_j) for every candidate parent j."""
    information = np.empty(len(parents))
    for position, j in enumerate(parents):
        information[position] = kraskov(
            samples[j], residual, orders[j], residual_order, neighbors, squares, psi
        )
    return information


def _complete(n_nodes: int) -> BoolArray:
    return np.broadcast_to(~np.eye(n_nodes, dtype=bool), (2, n_nodes, n_nodes))


def _collect(
    columns: dict[tuple[int, int], _Column],
    scores: FloatArray,
    known: BoolArray,
    noise_mean: FloatArray | None,
    history: list[Removal],
) -> CSLFit:
    n_nodes = known.shape[1]
    weights = np.zeros((2, n_nodes, n_nodes))
    np.copyto(weights, np.nan, where=~known[:, None, :])
    intercept = np.full((2, n_nodes), np.nan)
    noise_std = np.full((2, n_nodes), np.nan)
    for (regime, node), column in columns.items():
        regression = column.regression
        weights[regime, column.parents, node] = regression.weights[: len(column.parents)]
        intercept[regime, node] = (
            regression.weights[-1] if noise_mean is None else noise_mean[regime, node]
        )
        noise_std[regime, node] = regression.residual_std
    adjacency = ~np.isnan(scores)
    union = ShrinkingGraph(adjacency.sum(axis=0))
    return CSLFit(
        adjacency=adjacency,
        weights=weights,
        scores=scores,
        intercept=intercept,
        noise_std=noise_std,
        known=known,
        order=union.order if union.acyclic else None,
        history=history,
    )
