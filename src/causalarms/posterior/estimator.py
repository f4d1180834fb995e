"""`GraphPosterior`: probabilities of edges under the scikit-learn contract."""

from __future__ import annotations

from typing import Any, Self

import networkx as nx
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from causalarms.checks import choice, fraction, integer, optional
from causalarms.errors import DataError
from causalarms.graphs.diagnostics import warn_of_constant_regimes
from causalarms.graphs.graph import Graph
from causalarms.graphs.inputs import (
    ESTIMATE,
    Edges,
    Rounds,
    Tiers,
    as_noise_mean,
    as_noise_scale,
    as_noise_std,
    as_rounds,
    edge_constraints,
    regimes_in,
)
from causalarms.limits import MAX_REGIMES
from causalarms.posterior.base import Draws, Posterior
from causalarms.posterior.chains import SampledPosterior
from causalarms.posterior.chains.convergence import warn_of_bad_chains
from causalarms.posterior.dag import (
    LIKELY,
    KeptGraph,
    keep_per_edge,
    keep_whole_graph,
    left_out_edges,
    warn_of_open_directions,
)
from causalarms.posterior.exact import ExactPosterior, exact_is_best
from causalarms.posterior.prior import MechanismPrior, warn_of_lost_digits
from causalarms.rng import Seed, generator
from causalarms.sem.regimes import existing
from causalarms.statistics.dataset import Dataset, Moments
from causalarms.statistics.units import noise_units

OUTSIDE_CORE = 8  # a fit has more time than a round of a study
MOST = 1e150  # units of the noise; sums of squares of more overflow
MOST_SWEEPS = 1_000_000
METHODS = ("auto", "exact", "sampled")


class GraphPosterior(BaseEstimator):  # type: ignore[misc]
    """The posterior over a graph per regime, all of one order: exact up to 20 nodes, else sampled.

    miss_probability_per_edge      (0.5) of every edge missing in `adjacency_`, the posterior
                                   probability that it exists is at most this: the sparsest such
                                   DAG. 0.05 misses few edges, and keeps many that are not there
    miss_probability_whole_graph   (None) instead: the probability that any edge is missing is at
                                   most this, kept by as few of the most probable edges as possible
    edge_probability   prior probability of an edge (0.5), or "adaptive": see `MechanismPrior`
    weight_scale, noise_shape, intercept_scale   prior of a mechanism, likewise
    noise_scale        the units of the prior: "estimate", the spread of a node given all others,
                       so that nothing depends on the units of the data; or about what the noise's
                       standard deviation is, a number or one per node
    noise_std          the noise's standard deviation where it is known, (N,) or (R, N)
    forbidden, required, tiers   prior knowledge by name, enforced exactly in all regimes
    memory_limit       bytes for the tables (None: 1 GiB), checked before they are made
    method             "exact", "sampled" (chains over orders, `SampledPosterior`), or "auto": exact
                       where its tables fit the limit, which 1 GiB does for 20 nodes
    n_sweeps           length of the chains, where sampled; as many before that are forgotten
    random_state       seed of the chains, where sampled

    Both promises are posterior probabilities: they hold as far as the model (linear, Gaussian, no
    hidden common cause) and the prior do, and only for mechanisms that have data. A DAG cannot
    keep both directions of an edge: where the data leave directions open, no DAG honours a small
    tolerance. Then `promise_kept_` is False and a warning says so, `left_out_` lists the edges
    above the tolerance that were given up, and the promise holds for edges along `order_`. What
    the graph misses all in all is always reported: `whole_graph_miss_probability_` is the
    probability that it lacks any edge. With an unknown noise mean and regimes that never vary,
    directions come from the prior and not from the data: a warning names the nodes. Sampled
    probabilities have errors that chains show where they disagree: `diagnostics_` says by how much
    (None: exact), and a warning names the worst edge where that is too much. What chains cannot
    show is the error of few candidate parents, see `SampledPosterior`.

    Fitted: `edge_probability_` (R, N, N), `log_evidence_`, `adjacency_` and, given it, the
    posterior means `weights_` (R, N, N) and `intercept_` (R, N), `noise_std_`, `known_`, `order_`,
    `most_probable_` (a `Graph`), `largest_dropped_probability_`, `posterior_`, `graph_`, `result_`,
    `diagnostics_`. `log_evidence_` is nan where sampled.
    Columns of mechanisms without samples are unknown: nan in `weights_`, False in `known_`; their
    probabilities are those of the prior and the order.

    >>> from causalarms import random_sem
    >>> sem = random_sem(5, seed=2)
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(0, 2, (300, 5))
    >>> model = GraphPosterior()
    >>> model = model.fit(sem.sample(A, rng), interventions=A, noise_mean=sem.noise_mean)
    >>> bool((model.adjacency_ == sem.adjacency).all())
    True
    >>> model.draw(rng, 3).weights.shape
    (3, 2, 5, 5)
    """

    def __init__(
        self,
        *,
        miss_probability_per_edge: float = LIKELY,
        miss_probability_whole_graph: float | None = None,
        edge_probability: float | str = 0.5,
        weight_scale: float = 1.5,
        noise_shape: float = 0.5,
        intercept_scale: float = 100.0,
        noise_scale: npt.ArrayLike = ESTIMATE,
        noise_std: npt.ArrayLike | None = None,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        tiers: Tiers | None = None,
        memory_limit: int | None = None,
        method: str = "auto",
        n_sweeps: int = 500,
        random_state: Seed = 0,
    ) -> None:
        self.miss_probability_per_edge = miss_probability_per_edge
        self.miss_probability_whole_graph = miss_probability_whole_graph
        self.edge_probability = edge_probability
        self.weight_scale = weight_scale
        self.noise_shape = noise_shape
        self.intercept_scale = intercept_scale
        self.noise_scale = noise_scale
        self.noise_std = noise_std
        self.forbidden = forbidden
        self.required = required
        self.tiers = tiers
        self.memory_limit = memory_limit
        self.method = method
        self.n_sweeps = n_sweeps
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        interventions: Any = None,
        noise_mean: Any = None,
        regimes: Any = None,
    ) -> Self:
        """Learn from samples (n, N) and `interventions`, regimes (n, N): arrays or frames by name.

        `noise_mean` of shape (N,) or (R, N) is used where it is known; None puts an intercept
        into every mechanism, so that an intervention may shift a node's mean. `regimes` says how
        many regimes each node has; None: two, or as many as the interventions show. A node
        without a switch, regimes 1, has one mechanism that all rounds inform.
        """
        rounds = as_rounds(X, interventions, most_regimes=MAX_REGIMES)
        return self.fit_rounds(rounds, noise_mean, regimes)

    def fit_rounds(self, rounds: Rounds, noise_mean: Any = None, regimes: Any = None) -> Self:
        """Learn from `rounds` that are checked already (`as_rounds`).

        `noise_mean` and `regimes` are those of `fit`.
        """
        prior = self._prior()
        values, rows, nodes = rounds
        counts = regimes_in(rounds, regimes)
        n_regimes = int(counts.max())
        mean = as_noise_mean(noise_mean, nodes, n_regimes)
        std = as_noise_std(self.noise_std, nodes, n_regimes=n_regimes)
        allowed, required = edge_constraints(
            nodes, forbidden=self.forbidden, required=self.required, tiers=self.tiers
        )
        if mean is None:  # a known mean that is not zero tells directions apart without regimes
            warn_of_constant_regimes(rows, nodes, counts)
        units = noise_units(
            values, rows, as_noise_scale(self.noise_scale, nodes), nodes, center=mean is None
        )
        data = Dataset(len(nodes), nodes=nodes, regimes=counts)
        with np.errstate(all="ignore"):
            z = units.apply(values)
        if (np.abs(z) > MOST).any():
            node = nodes[int(np.argmax(np.abs(z).max(axis=0)))]
            raise DataError(
                f"the values of node {node!r} are too large to compute with in units of "
                "noise_scale: use 'estimate'"
            )
        # In units of the noise from here on: the prior is said in them.
        data.append(z, rows)
        posterior = self._posterior(
            Moments.of(data),
            noise_mean=None if mean is None else mean / units.scale,
            noise_std=None if std is None else std / units.scale,
            prior=prior,
            allowed=allowed,
            required=required,
            memory_limit=self.memory_limit,
        )
        self.nodes_, self.n_features_in_ = nodes, len(nodes)
        self.posterior_, self._units = posterior, units
        self.known_ = data.counts > 0
        self.regimes_ = counts
        self.edge_probability_ = posterior.edge_probability
        # the density of the data as given, not of the data in units of the noise
        self.log_evidence_ = posterior.log_evidence - float(
            (data.counts * np.log(units.scale)).sum()
        )
        kept = self._kept()
        self._keep(kept)
        warn_of_open_directions(kept, self.left_out_)
        self.diagnostics_ = posterior.diagnostics
        # The exact posterior has at most 20 nodes, along which values do not grow that far.
        if self.diagnostics_ is not None:
            warn_of_lost_digits(posterior.gram, nodes)
            warn_of_bad_chains(self.diagnostics_, nodes, n_regimes)
        return self

    def draw(self, random_state: Seed = None, n: int = 1) -> Draws:
        """`n` draws of order, graphs, weights, intercepts and noise; `random_state` is their seed.

        Exact and independent of each other, or, where sampled, of the orders that chains kept. Of
        mechanisms without data too: those come from the prior, given the drawn order.
        """
        check_is_fitted(self)
        found = self.posterior_.draw(generator(random_state), n)
        weights = self._units.weights(found.weights)
        intercept = self._units.intercept(found.intercept, weights)
        return found._replace(
            weights=weights,
            intercept=np.where(existing(self.regimes_), intercept, 0.0),
            noise_std=found.noise_std * self._units.scale,
        )

    @property
    def graph_(self) -> nx.DiGraph:
        """All regimes of `result_` in one networkx graph."""
        return self.result_.to_networkx()

    def _posterior(self, moments: Moments, **settings: Any) -> Posterior:
        n_nodes = moments.counts.shape[1]
        fits = exact_is_best(n_nodes, self.memory_limit, len(moments.counts))
        if self.method == "exact" or (self.method == "auto" and fits):
            return ExactPosterior(n_nodes, moments, **settings)
        return SampledPosterior(
            n_nodes,
            moments,
            n_outside_core=OUTSIDE_CORE,
            n_sweeps=self.n_sweeps,
            seed=self.random_state,
            **settings,
        )

    def _kept(self) -> KeptGraph:
        if self.miss_probability_whole_graph is None:
            return keep_per_edge(self.posterior_, self.miss_probability_per_edge, self.known_)
        return keep_whole_graph(self.posterior_, self.miss_probability_whole_graph, self.known_)

    def _keep(self, kept: KeptGraph) -> None:
        self.adjacency_ = kept.adjacency
        self.order_ = [self.nodes_[i] for i in kept.order]
        self.promise_kept_ = kept.honoured
        self.left_out_ = left_out_edges(kept, self.nodes_, self.edge_probability_)
        self.largest_dropped_probability_ = kept.largest_dropped
        self.whole_graph_miss_probability_ = kept.misses
        self.weights_, self.intercept_, self.noise_std_ = self._estimates(kept.adjacency)
        self.result_ = self._graph(kept.adjacency, kept.order)
        best = self.posterior_.most_probable()
        self.most_probable_ = self._graph(best.adjacency & self.known_[:, None, :], best.order)

    def _estimates(
        self, adjacency: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        found = self.posterior_.estimate(adjacency)
        weights = self._units.weights(found.weights)
        exist = existing(self.regimes_)
        intercept = np.where(exist, self._units.intercept(found.intercept, weights), 0.0)
        unknown = exist & ~self.known_
        return (
            np.where(unknown[:, None, :], np.nan, weights),
            np.where(unknown, np.nan, intercept),
            np.where(unknown, np.nan, found.noise_std * self._units.scale),
        )

    def _graph(self, adjacency: npt.NDArray[np.bool_], order: npt.NDArray[np.int64]) -> Graph:
        return Graph(
            nodes=self.nodes_,
            adjacency=adjacency,
            weights=self._estimates(adjacency)[0],
            known=self.known_,
            order=tuple(self.nodes_[i] for i in order),
            measures={"probability": self.edge_probability_},
            regimes=self.regimes_,
        )

    def _prior(self) -> MechanismPrior:
        whole_graph = self.miss_probability_whole_graph
        fraction("miss_probability_per_edge", self.miss_probability_per_edge, ends="[)")
        optional(fraction, "miss_probability_whole_graph", whole_graph, ends="[)")
        optional(integer, "memory_limit", self.memory_limit, minimum=1)
        choice("method", self.method, METHODS)
        integer("n_sweeps", self.n_sweeps, minimum=1, maximum=MOST_SWEEPS)
        return MechanismPrior(
            edge_probability=self.edge_probability,
            weight_scale=self.weight_scale,
            noise_shape=self.noise_shape,
            intercept_scale=self.intercept_scale,
        )
