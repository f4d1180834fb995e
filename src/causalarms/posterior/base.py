"""What every posterior can be asked, however it sums over orders, and how it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention, Interventions
from causalarms.posterior.mechanism import ScoreTables
from causalarms.posterior.prior import KernelPrior
from causalarms.sem.regimes import Counts, existing
from causalarms.statistics.dataset import Moments

if TYPE_CHECKING:  # the package of chains imports this module
    from causalarms.posterior.chains.convergence import Diagnostics


class Draws(NamedTuple):
    """n draws of everything that is unknown, jointly; unknown noise means are the intercepts.

    A node follows the mechanism of its own regime. In some draws it may be free: it has a mechanism
    per level of a factor, and follows the regime of the factor's first column. `by` says so; its
    mechanisms then stand in the rows of that column's regimes.
    """

    order: IntArray  # (n, N)
    adjacency: BoolArray  # (n, R, N, N)
    weights: FloatArray  # (n, R, N, N)
    intercept: FloatArray  # (n, R, N)
    noise_std: FloatArray  # (n, R, N)
    by: IntArray | None = None  # (n, N), the node whose regime each follows; None: its own

    def seen(self, d: int, rows: Interventions) -> Interventions:
        """Which of its mechanisms every node follows in draw d under interventions, (.., N)."""
        # `take` and not an index: kernels are compiled again for every other layout
        return rows if self.by is None else np.take(rows, self.by[d], axis=-1)

    def in_force(self, row: Intervention) -> IntArray:
        """Which of its mechanisms every node follows under an intervention, (n, N)."""
        regimes = row.astype(np.int64)
        return np.tile(regimes, (len(self.order), 1)) if self.by is None else regimes[self.by]

    def mechanism(self, node: int, row: Intervention) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What a node follows under an intervention: weights (n, N), intercept and noise (n,)."""
        if self.by is None:
            regime = row[node]
            own = self.weights[:, regime, :, node]
            return own, self.intercept[:, regime, node], self.noise_std[:, regime, node]
        draw, seen = np.arange(len(self.by)), row[self.by[:, node]]
        followed = self.weights[draw, seen, :, node]
        return followed, self.intercept[draw, seen, node], self.noise_std[draw, seen, node]

    def existing(self, regimes: Counts) -> BoolArray:
        """Which mechanisms there are, (R, N), or with `by` (n, R, N)."""
        there = existing(regimes)
        return there if self.by is None else there[:, self.by].transpose(1, 0, 2)


class OrderedGraph(NamedTuple):
    """An order and a graph per regime inside it, with their joint log posterior probability."""

    order: IntArray  # (N,)
    adjacency: BoolArray  # (R, N, N)
    log_probability: float


class PointEstimate(NamedTuple):
    """Posterior means of weights and intercepts given a graph; 1/noise_std^2 is that of 1/s^2."""

    weights: FloatArray  # (R, N, N)
    intercept: FloatArray  # (R, N)
    noise_std: FloatArray  # (R, N)


class Posterior(Protocol):
    """The posterior over orders, graphs, weights and noise of all mechanisms, given moments."""

    n_nodes: int
    regimes: Counts
    kernel_prior: KernelPrior
    n_bytes: int  # of its tables

    @property
    def gram(self) -> FloatArray:
        """The moments this is the posterior of, (R, N, N+1, N+1)."""

    @property
    def tables(self) -> ScoreTables | None:
        """Scores of all parent sets; None if orders are sampled."""

    @property
    def diagnostics(self) -> Diagnostics | None:
        """How well the chains agree; None if nothing is sampled."""

    @property
    def log_evidence(self) -> float:
        """Log probability density of the data; nan if orders are sampled."""

    @property
    def edge_probability(self) -> FloatArray:
        """Posterior probability of every edge, (R, N, N)."""

    @property
    def free_probability(self) -> FloatArray:
        """How likely each factor gives each node a mechanism per level, (F, N)."""

    def update(self, moments: Moments) -> int:
        """Take over these moments; returns how many mechanisms have changed."""

    def retire(self, regime: int, node: int) -> None:
        """The mechanism was replaced: another one produces what comes next."""

    def probability_within(self, kept: BoolArray) -> float:
        """Posterior probability that no edge lies outside `kept` (R, N, N)."""

    def most_probable(self) -> OrderedGraph:
        """The most probable order and graphs, jointly."""

    def draw(self, rng: np.random.Generator, n: int = 1) -> Draws:
        """Draws of order, parents, weights, intercepts and noise."""

    def estimate(self, adjacency: BoolArray) -> PointEstimate:
        """Posterior means of weights and intercepts given the graphs (R, N, N)."""

    def state(self) -> dict[str, Any]:
        """Plain arrays and scalars from which `restore` continues with the same bits."""

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of a posterior made with the same settings."""
