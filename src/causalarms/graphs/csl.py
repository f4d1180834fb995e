"""Causal Sub-graph Learning (Sec. III, Algorithm 1).

Every mechanism regresses its node on all remaining candidate parents. An edge j -> i is scored by
I_w = I(r_i; x_j) - log|b_ji|, the edge-weighted mutual information of residual and candidate. The
edge with the largest score in the whole graph is removed and its column is fitted again, until no
cycle is left. The work is done once per mechanism (`Chain`).

The paper learns B and B' apart, and so is the default. A union with a cycle makes some B_a cyclic;
`joint=True` is ours: all regimes have one order, edges of any are removed until the union is
acyclic. CSL-nw (`edge_weighting=False`) leaves out the -log|b| term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray
from causalarms.errors import DataError
from causalarms.kernels import kernel
from causalarms.sem.regimes import existing, mechanism_name
from causalarms.statistics.dataset import Dataset, gram_matrix
from causalarms.statistics.mutual_information import kraskov, psi_table
from causalarms.statistics.normal_equations import Regression, SingularError, regress
from causalarms.statistics.units import Units


class CSLSettings(NamedTuple):
    """How edges are scored and removed."""

    joint: bool = False  # regimes apart, as in the paper; True: one order for all regimes
    edge_weighting: bool = True  # False: CSL-nw
    neighbors: int = 5  # of the mutual-information estimate
    squares: bool = False  # Kraskov's first estimator instead of his second
    min_samples: int | npt.NDArray[np.int64] = 1  # a mechanism with fewer stays unknown; or (N,)


class Removal(NamedTuple):
    """One rejected edge."""

    regime: int
    parent: int
    child: int
    score: float


@dataclass(frozen=True)
class CSLFit:
    """What CSL found; columns of mechanisms without samples are nan and not `known`.

    Regimes that a node does not have are zero, and not `known`.
    """

    adjacency: BoolArray  # (R, N, N)
    weights: FloatArray  # (R, N, N)
    scores: FloatArray  # (R, N, N), nan if the edge was removed
    intercept: FloatArray  # (R, N), the noise means, given or estimated
    noise_std: FloatArray  # (R, N)
    known: BoolArray  # (R, N)
    order: list[int] | None  # parents before children; None if the regimes mix into a cycle
    history: list[Removal]


def csl(
    data: Dataset,
    *,
    noise_mean: FloatArray | None,  # (R, N), None: an intercept per mechanism
    allowed: BoolArray | None = None,  # (R, N, N), None: all edges
    required: BoolArray | None = None,  # (R, N, N), None: no edge
    settings: CSLSettings | None = None,
    on_removal: Callable[[Removal, int], None] | None = None,  # the removal, nodes in order so far
    chains: dict[tuple[int, int], Chain] | None = None,  # by (regime, node), changed in place
) -> CSLFit:
    """Learn the graphs of all regimes.

    `chains` of an earlier call with the same settings are used again for mechanisms without new
    samples; the others are computed again.
    """
    settings = settings or CSLSettings()
    n_nodes = data.n_nodes
    n_regimes = len(data.counts)
    if allowed is None:
        allowed = np.broadcast_to(~np.eye(n_nodes, dtype=bool), (n_regimes, n_nodes, n_nodes))
    required = np.zeros_like(allowed) if required is None else required
    known = data.counts >= np.maximum(settings.min_samples, 1)
    chains = {} if chains is None else chains
    for regime, node in np.argwhere(known).tolist():
        stale = chains.get((regime, node))
        if stale is None or not stale.describes(data):
            chains[regime, node] = Chain(
                data,
                regime,
                node,
                candidates=np.flatnonzero(allowed[regime, :, node]),
                fixed=required[regime, :, node],
                noise_mean=None if noise_mean is None else float(noise_mean[regime, node]),
                settings=settings,
            )
    length = np.zeros(known.shape, dtype=np.int64)  # how much of each chain is removed
    top = np.full(known.shape, -np.inf)
    for regime, node in np.argwhere(known).tolist():
        top[regime, node] = chains[regime, node].top(0)[1]
    history: list[Removal] = []
    every = list(range(n_regimes))
    # Algorithm 1 is run once for every regime in the paper, and here once for all together if
    # `joint` is True: then the union of the learned graphs has no cycle.
    for regimes in [every] if settings.joint else [[regime] for regime in every]:
        multiplicity = np.where(known[:, None, :], allowed, False)[regimes].sum(axis=0)
        graph = ShrinkingGraph(multiplicity)
        while not graph.acyclic:
            # required edges have no cycle, so some edge of every cycle may go: never all -inf
            which, child = divmod(int(np.argmax(top[regimes])), n_nodes)
            regime = regimes[which]
            chain = chains[regime, child]
            parent, score = chain.top(length[regime, child])
            graph.remove(parent, child)
            history.append(Removal(regime, parent, child, score))
            length[regime, child] += 1
            top[regime, child] = chain.top(length[regime, child])[1]
            if on_removal is not None:
                on_removal(history[-1], len(graph.order))
    links = {
        (regime, node): chains[regime, node].link(length[regime, node])
        for regime, node in np.argwhere(known).tolist()
    }
    return _collect(links, known, existing(data.n_regimes), noise_mean, history)


class Link(NamedTuple):
    """One mechanism after some of its candidate parents were removed."""

    regression: Regression  # in units that are safe to compute with
    parents: npt.NDArray[np.int64]
    scores: FloatArray
    intercept: float  # in the units of the data; nan if the noise mean is given
    noise_std: float


class Chain:
    """The order in which one mechanism loses its candidate parents.

    A mechanism's scores depend on its own samples and remaining parents only, and the edge it
    loses next is always the one it scores highest. So that order is the mechanism's own; the rest
    of the graph decides only how far it is followed. It is found step by step, when needed.
    """

    def __init__(
        self,
        data: Dataset,
        regime: int,
        node: int,
        *,
        candidates: npt.NDArray[np.int64],
        fixed: BoolArray,
        noise_mean: float | None,
        settings: CSLSettings,
    ) -> None:
        self._mechanism = regime, node
        self._fixed = fixed  # (N,) parents that are never removed
        self._settings = settings
        self._intercept = noise_mean is None
        rows = data.rows_of(regime, node)
        self._rows = _signature(rows)
        name = self._name = mechanism_name(data.nodes, regime, node, int(data.n_regimes[node]))
        # One sample more than the regression has unknowns, and k others around every sample.
        needed = max(len(candidates) + self._intercept + 1, settings.neighbors + 1)
        if len(rows) < needed:
            capped = "" if data.cap is None else f", and max_samples={data.cap} keeps no more"
            raise DataError(
                f"{name} has {len(rows)} samples for {len(candidates)} candidate parents; at "
                f"least {needed} are needed (k={settings.neighbors} neighbours{capped})"
            )
        center = np.mean if self._intercept else None
        self._data = data
        self._units = Units.safe(data.values[rows], data.nodes, center=center)
        samples = self._samples()
        mean = None if noise_mean is None else noise_mean / float(self._units.scale[node])
        try:
            regression = regress(gram_matrix(samples), node, candidates, mean)
        except SingularError as error:
            column = (*data.nodes, "(constant)")[error.column]
            raise DataError(
                f"{name}: over its {len(rows)} samples {column!r} is a linear combination of the "
                "other candidate parents"
            ) from error
        self._links = [self._link(regression)]

    def describes(self, data: Dataset) -> bool:
        """Whether the mechanism still has the samples this chain was made from."""
        return self._rows == _signature(data.rows_of(*self._mechanism))

    def link(self, n_removed: int) -> Link:
        """The mechanism after `n_removed` removals."""
        while len(self._links) <= n_removed:
            parent, _ = self.top(len(self._links) - 1)
            self._links.append(self._link(self._links[-1].regression.without(parent)))
        return self._links[n_removed]

    def top(self, n_removed: int) -> tuple[int, float]:
        """The parent to lose next and its score; -inf if none may go."""
        link = self.link(n_removed)
        scores = np.where(self._fixed[link.parents], -np.inf, link.scores)
        if not len(scores):
            return -1, -np.inf
        best = int(np.argmax(scores))
        return int(link.parents[best]), float(scores[best])

    def _samples(self) -> FloatArray:
        """(N, n), made when needed: rounds are stored once, not once per mechanism."""
        rows = self._data.rows_of(*self._mechanism)
        return np.ascontiguousarray(self._units.apply(self._data.values[rows]).T)

    def _link(self, regression: Regression) -> Link:
        n_parents = len(regression.columns) - self._intercept
        parents, weights = regression.columns[:n_parents], regression.weights[:n_parents]
        # an intercept, known or fitted, shifts the residual and changes no mutual information
        samples = self._samples()
        residual = residuals(samples, self._mechanism[1], parents, weights)
        if not np.isfinite(residual).all():
            raise DataError(f"{self._name}: its values are too far apart to compute with")
        scores = residual_information(
            samples,
            np.argsort(samples[parents], axis=1),
            parents,
            residual,
            np.argsort(residual),
            self._settings.neighbors,
            self._settings.squares,
            psi_table(len(residual)),
        )
        # I_w = I(r; x_j) - log|b_ji| of Sec. III; CSL-nw is the first term alone
        if self._settings.edge_weighting:
            with np.errstate(divide="ignore"):  # a weight of exactly 0 is the first to go
                scores = scores - np.log(np.abs(weights))
        shift, node = self._units.shift, self._mechanism[1]
        scale = float(self._units.scale[node])
        intercept = np.nan
        if self._intercept:
            intercept = regression.weights[-1] * scale + (shift[node] - shift[parents] @ weights)
        return Link(regression, parents, scores, intercept, regression.residual_std * scale)


class ShrinkingGraph:
    """A directed graph that only loses edges, and whether it is acyclic yet.

    Nodes without parents are peeled off for good, so that all removals together cost one
    topological sort. Parallel edges are counted: one per regime.

    >>> graph = ShrinkingGraph(np.array([[0, 1], [1, 0]]))
    >>> graph.acyclic
    False
    >>> graph.remove(1, 0)
    >>> graph.acyclic, graph.order
    (True, [0, 1])
    """

    def __init__(self, multiplicity: npt.ArrayLike) -> None:
        self._edges = np.array(multiplicity, dtype=np.int64)  # (N, N) [parent, child]
        self._unplaced_parents = (self._edges > 0).sum(axis=0)
        self._placed = np.zeros(len(self._edges), dtype=bool)
        self.order: list[int] = []  # parents before children, as far as known
        for node in range(len(self._edges)):
            self._place_from(node)

    @property
    def acyclic(self) -> bool:
        return len(self.order) == len(self._edges)

    def remove(self, parent: int, child: int) -> None:
        """Take away one of the edges parent -> child."""
        if self._edges[parent, child] < 1:
            raise ValueError(f"there is no edge {parent} -> {child} to remove")
        self._edges[parent, child] -= 1
        if self._edges[parent, child] == 0 and not self._placed[parent]:
            self._unplaced_parents[child] -= 1
            self._place_from(child)

    def _place_from(self, node: int) -> None:
        waiting = [node]
        while waiting:
            node = waiting.pop()
            if self._placed[node] or self._unplaced_parents[node]:
                continue
            self._placed[node] = True
            self.order.append(node)
            children = np.flatnonzero(self._edges[node])
            self._unplaced_parents[children] -= 1
            waiting.extend(children[::-1].tolist())


def _signature(rows: npt.NDArray[np.int64]) -> tuple[int, int, int]:
    """Rows of a mechanism only come at the end and go at the start, so the ends tell them apart."""
    return (len(rows), int(rows[0]), int(rows[-1])) if len(rows) else (0, 0, 0)


def _collect(
    links: dict[tuple[int, int], Link],
    known: BoolArray,
    exist: BoolArray,
    noise_mean: FloatArray | None,
    history: list[Removal],
) -> CSLFit:
    shape = (*known.shape, known.shape[1])
    unknown = exist & ~known
    weights = np.zeros(shape)
    np.copyto(weights, np.nan, where=unknown[:, None, :])
    scores = np.full(shape, np.nan)
    adjacency = np.zeros(shape, dtype=bool)
    intercept = np.where(unknown, np.nan, 0.0)
    noise_std = np.where(unknown, np.nan, 0.0)
    for (regime, node), link in links.items():
        parents = link.parents
        adjacency[regime, parents, node] = True
        weights[regime, parents, node] = link.regression.weights[: len(parents)]
        scores[regime, parents, node] = link.scores
        intercept[regime, node] = link.intercept if noise_mean is None else noise_mean[regime, node]
        noise_std[regime, node] = link.noise_std
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
    orders: npt.NDArray[np.int64],  # (parents, n) that sort them
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
            samples[j], residual, orders[position], residual_order, neighbors, squares, psi
        )
    return information
