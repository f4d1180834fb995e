"""What every posterior can be asked, however it sums over orders, and how it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention, Interventions
from causalarms.posterior.mechanism import ScoreTables
from causalarms.posterior.prior import KernelPrior
from causalarms.posterior.weights import PointEstimate
from causalarms.sem.regimes import Counts, existing
from causalarms.statistics.dataset import Moments
from causalarms.statistics.units import Units

if TYPE_CHECKING:  # the package of chains imports this module
    from causalarms.posterior.chains.convergence import Diagnostics


AUTO, EXACT, SAMPLED = METHODS = ("auto", "exact", "sampled")


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

    def under(self, row: Intervention) -> Draws:
        """Draws with one regime of every node: the mechanisms that an intervention plays."""
        seen = self.in_force(row)[:, None]  # (n, 1, N)
        return Draws(
            self.order,
            np.take_along_axis(self.adjacency, seen[:, :, None], axis=1),
            np.take_along_axis(self.weights, seen[:, :, None], axis=1),
            np.take_along_axis(self.intercept, seen, axis=1),
            np.take_along_axis(self.noise_std, seen, axis=1),
        )

    def existing(self, regimes: Counts) -> BoolArray:
        """Which mechanisms there are, (R, N), or with `by` (n, R, N)."""
        there = existing(regimes)
        return there if self.by is None else there[:, self.by].transpose(1, 0, 2)

    def first(self, n: int) -> Draws:
        """The first n draws, for computations that take long with each."""
        order, adjacency, weights, intercept, noise_std, by = self
        part = Draws(order[:n], adjacency[:n], weights[:n], intercept[:n], noise_std[:n])
        return part if by is None else part._replace(by=by[:n])

    def in_units_of_data(self, units: Units, regimes: Counts | None = None) -> Draws:
        """From units of the prior; `regimes` (N,) says how many each node has."""
        if units.trivial:
            return self
        weights = units.weights(self.weights)
        intercept = units.intercept(self.intercept, weights)
        if regimes is not None:  # the shift of the units is not an intercept of a missing regime
            intercept = np.where(self.existing(regimes), intercept, 0.0)
        noise_std = self.noise_std * units.scale
        return self._replace(weights=weights, intercept=intercept, noise_std=noise_std)

    def given_context(self, context: Sequence[int], known: Mapping[int, float]) -> Draws:
        """The draws with the context at its mean given the values that are known, by node.

        `context` are nodes of one regime that no factor moves and that nothing but context causes.
        In each draw they are jointly normal, N(m, S). If some of them are known before a trial,
        x_O, the others have the mean m_U + S_UO S_OO^-1 (x_O - m_O). Expected rewards are linear in
        them, so that the mean is all that is needed: it takes the place of their mechanisms.
        """
        every = sorted(context)
        seen = [every.index(node) for node in sorted(known)]
        rest = [k for k in range(len(every)) if k not in seen]
        values = np.array([known[every[k]] for k in seen])
        weights, intercept = self.weights.copy(), self.intercept.copy()
        for d in range(len(self.order)):
            into = self.weights[d, 0][np.ix_(every, every)].T  # [child, parent]
            carried = np.linalg.inv(np.eye(len(every)) - into)
            mean = carried @ self.intercept[d, 0, every]
            spread = (carried * self.noise_std[d, 0, every] ** 2) @ carried.T
            moved = np.linalg.lstsq(spread[np.ix_(seen, seen)], values - mean[seen], rcond=None)[0]
            mean[rest] += spread[np.ix_(rest, seen)] @ moved
            mean[seen] = values
            intercept[d][:, every] = mean
            weights[d][:, :, every] = 0.0
        return self._replace(weights=weights, intercept=intercept)


class OrderedGraph(NamedTuple):
    """An order and a graph per regime inside it, with their joint log posterior probability."""

    order: IntArray  # (N,)
    adjacency: BoolArray  # (R, N, N)
    log_probability: float


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
