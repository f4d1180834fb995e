"""`GraphPosterior`: probabilities of edges under the scikit-learn contract."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import networkx as nx
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.checks import choice, fraction, integer, number, optional
from causalarms.errors import CausalArmsWarning, DataError, MemoryLimitError, SettingError
from causalarms.graphs.diagnostics import MechanismCheck, check_mechanisms, warn_of_constant_regimes
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
from causalarms.posterior.base import AUTO, EXACT, METHODS, SAMPLED, Draws, Posterior
from causalarms.posterior.chains import SampledPosterior
from causalarms.posterior.chains.convergence import warn_of_bad_chains, warn_of_lost_digits
from causalarms.posterior.dag import (
    LIKELY,
    KeptGraph,
    keep_per_edge,
    keep_whole_graph,
    left_out_edges,
    warn_of_open_directions,
)
from causalarms.posterior.exact import ExactPosterior, exact_is_best
from causalarms.posterior.prior import FactorColumns, MechanismPrior
from causalarms.posterior.roots import BetweenNodes, Roots
from causalarms.rng import Seed, generator
from causalarms.sem.regimes import existing, node_index
from causalarms.statistics.dataset import Dataset, Moments
from causalarms.statistics.units import Units, noise_units
from causalarms.tables.cells import FactorLevels, factor_levels
from causalarms.tables.rounds import columns_of

OUTSIDE_CORE = 8  # a fit has more time than a round of a study
MAX_VALUE_IN_UNITS = 1e150  # units of the noise; sums of squares of more overflow
MAX_SWEEPS = 1_000_000
# of `weight_scale`; the largest first, since estimates given a graph are of the first scale
SCALES_WITH_FACTORS = (16.0, 4.0, 1.0)


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
    noise_std          the noise's standard deviation if it is known, (N,) or (R, N)
    excluded, required, tiers   prior knowledge by name, enforced exactly in all regimes; edges
                       may begin at a factor
    context            nodes that only context causes, and no factor moves, such as the weather
    memory_limit       bytes for the tables (None: 1 GiB), checked before they are made
    method             "exact", "sampled" (chains over orders, `SampledPosterior`), or "auto": exact
                       if its tables fit the limit, which those of 20 nodes do with 1 GiB
    n_sweeps           length of the chains, if sampled; as many before that are forgotten
    random_state       seed of the chains, if sampled

    Factors (`fit`) are roots of the graph. Which nodes they shift is learned, exactly and together
    with the graph: `effects_` has the probabilities by factor and node. The promises are then about
    edges between nodes. Nodes may be shifted by far more than their noise: of `weight_scale` and 4
    and 16 times that every mechanism weighs which fits.

    Both promises are posterior probabilities: they hold as far as the model (linear, Gaussian, no
    hidden common cause) and the prior do, and only for mechanisms that have data. A DAG cannot
    keep both directions of an edge: if the data leave directions open, no DAG honours a small
    tolerance. Then `promise_kept_` is False and a warning says so, `left_out_` lists the edges
    above the tolerance that were given up, and the promise holds for edges along `order_`. What
    the graph misses all in all is always reported: `whole_graph_miss_probability_` is the
    probability that it lacks any edge. With an unknown noise mean and regimes that never vary,
    directions come from the prior and not from the data: a warning names the nodes. Sampled
    probabilities have errors that chains show when they disagree: `diagnostics_` says by how much
    (None: exact), and a warning names the worst edge if that is too much. What chains cannot
    show is the error of few candidate parents, see `SampledPosterior`.

    Fitted: `edge_probability_` (R, N, N), `log_evidence_`, `adjacency_` and, given it, the
    posterior means `weights_` (R, N, N) and `intercept_` (R, N), `noise_std_`, `known_`, `order_`,
    `most_probable_` (a `Graph`), `largest_dropped_probability_`, `posterior_`, `graph_`, `result_`,
    `diagnostics_`. `log_evidence_` is nan if sampled. With F factors all arrays have F more
    nodes, the roots, named in `nodes_`: their weight is what the last level adds to a node,
    compared with the first, and intercepts are those at the first levels. `effects_` and
    `factor_levels_` are by factor; `posterior_` and `draw` know a factor as one or several columns
    behind the nodes, `system_nodes_`.
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
    >>> load = np.repeat([1, 2, 4], 40)
    >>> heat = 2 * load + rng.normal(size=120)
    >>> X = np.column_stack([heat, heat + rng.normal(size=120)])
    >>> list(GraphPosterior().fit(X, factors={"load": load}).graph_.edges)
    [('x0', 'x1'), ('load', 'x0')]
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
        excluded: Edges | None = None,
        required: Edges | None = None,
        tiers: Tiers | None = None,
        context: Sequence[str | int] | None = None,
        memory_limit: int | None = None,
        method: str = AUTO,
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
        self.excluded = excluded
        self.required = required
        self.tiers = tiers
        self.context = context
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
        factors: Any = None,
    ) -> Self:
        """Learn from samples (n, N) and `interventions`, regimes (n, N): arrays or frames by name.

        `noise_mean` of shape (N,) or (R, N) is used if it is known; None puts an intercept
        into every mechanism, so that an intervention may shift a node's mean. `regimes` says how
        many regimes each node has; None: two, or as many as the interventions show. A node
        without a switch, regimes 1, has one mechanism that all rounds inform.

        `factors` is {name: level of every row} or a frame, of what was set and is not a node: it
        is learned which nodes they shift. Numbers have a straight or bent effect, text has an
        effect per level. With factors, nodes have the regimes that the interventions show.
        """
        rounds = as_rounds(X, interventions, most_regimes=MAX_REGIMES)
        levels = None if factors is None else factor_levels(columns_of(factors, "factors"))
        if levels is not None and regimes is None:
            regimes = rounds.regimes.max(axis=0).astype(np.int64) + 1
        return self.fit_rounds(rounds, noise_mean, regimes, levels)

    def fit_rounds(
        self,
        rounds: Rounds,
        noise_mean: Any = None,
        regimes: Any = None,
        factors: FactorLevels | None = None,
    ) -> Self:
        """Learn from `rounds` that are checked already (`as_rounds`).

        `noise_mean` and `regimes` are those of `fit`, and so are `factors` as `factor_levels`.
        """
        prior = self._prior(with_factors=factors is not None)
        values, rows, nodes = rounds
        counts = regimes_in(rounds, regimes)
        roots = Roots(nodes, counts, factors)
        self._refuse_with_factors(noise_mean, len(values), factors)
        n_regimes = int(counts.max())
        mean = as_noise_mean(noise_mean, nodes, n_regimes)
        std = as_noise_std(self.noise_std, nodes, n_regimes=n_regimes)
        allowed, required = edge_constraints(
            roots.names,
            excluded=self.excluded,
            required=self.required,
            tiers=self.tiers,
            context=self.context,
            n_roots=roots.n_roots,
        )
        self._refuse_moved_context(rounds)
        # a known mean that is not zero tells directions apart without regimes, and so do factors
        if mean is None and factors is None:
            warn_of_constant_regimes(rows, nodes, counts)
        system = roots.rounds(rounds, factors)
        units = self._noise_units(rounds, system, roots, center=mean is None)
        data = Dataset(len(system.nodes), nodes=system.nodes, regimes=roots.system_regimes)
        with np.errstate(all="ignore"):
            z = units.apply(system.values)
        if (np.abs(z) > MAX_VALUE_IN_UNITS).any():
            node = nodes[int(np.argmax(np.abs(z).max(axis=0)))]
            raise DataError(
                f"the values of node {node!r} are too large to compute with in units of "
                "noise_scale: use 'estimate'"
            )
        # In units of the noise from here on: the prior is said in them.
        data.append(z, system.regimes)
        pairs = roots.shows_pairs(system.values)
        columns = roots.columns(allowed, required, pairs=pairs)
        posterior = self._posterior(
            Moments.of(data),
            columns,
            noise_mean=None if mean is None else mean / units.scale,
            noise_std=None if std is None else roots.padded(std) / units.scale,
            prior=prior,
            allowed=roots.edges(allowed),
            required=roots.edges(required),
            memory_limit=self.memory_limit,
        )
        self.nodes_, self.n_features_in_ = roots.names, len(nodes)
        self.system_nodes_ = roots.system_nodes
        self.posterior_, self._units, self._roots = posterior, units, roots
        self.known_ = roots.known(data.counts)
        self.regimes_ = roots.regimes
        self.edge_probability_ = roots.shown(posterior.edge_probability)
        self.factor_levels_ = {} if factors is None else dict(factors.levels)
        self.effects_ = {
            name: dict(zip(nodes, row[: len(nodes)].tolist(), strict=True))
            for name, row in zip(
                self.factor_levels_, self.edge_probability_.max(axis=0)[len(nodes) :], strict=True
            )
        }
        # the density of the data as given, not of the data in units of the noise
        self.log_evidence_ = posterior.log_evidence - float(
            (data.counts * np.log(units.scale)).sum()
        )
        kept = self._kept()
        self._keep(kept)
        warn_of_open_directions(kept, self.left_out_)
        for text in roots.hidden_pairs(posterior.gram, self._adjacency) if pairs else ():
            warnings.warn(text, CausalArmsWarning, stacklevel=3)
        self.diagnostics_ = posterior.diagnostics
        # The exact posterior has at most 20 nodes, along which values do not grow that far.
        if self.diagnostics_ is not None:
            warn_of_lost_digits(posterior.gram, nodes)
            warn_of_bad_chains(self.diagnostics_, nodes, n_regimes)
        return self

    def draw(self, random_state: Seed = None, n: int = 1) -> Draws:
        """`n` draws of order, graphs, weights, intercepts and noise; `random_state` is their seed.

        Exact and independent of each other, or, if sampled, of the orders that chains kept. Of
        mechanisms without data too: those come from the prior, given the drawn order. With factors
        they are of `system_nodes_`, and the intercepts of columns are their values by level.
        """
        check_is_fitted(self)
        found = self.posterior_.draw(generator(random_state), n)
        return found.in_units_of_data(self._units, self._roots.system_regimes)

    def check_mechanisms(
        self, rounds: Rounds, factors: FactorLevels | None = None
    ) -> list[MechanismCheck]:
        """How well the mechanisms of `adjacency_` fit `rounds` and `factors` (`fit_rounds`)."""
        check_is_fitted(self)
        weights = self._system_estimates(self._adjacency)[0]
        known = np.zeros(weights.shape[:2], dtype=bool)
        n = self.n_features_in_
        known[: len(self.known_), :n] = self.known_[:, :n]
        return check_mechanisms(
            *self._roots.rounds(rounds, factors),
            self._adjacency,
            weights,
            known,
            self.result_.regime_names,
        )

    @property
    def graph_(self) -> nx.DiGraph:
        """All regimes of `result_` in one networkx graph."""
        return self.result_.to_networkx()

    def _noise_units(self, rounds: Rounds, system: Rounds, roots: Roots, *, center: bool) -> Units:
        """Units of the nodes; columns of factors have no noise and stay as they are."""
        values, rows, nodes = rounds
        scale = as_noise_scale(self.noise_scale, nodes)
        if scale is None and roots.n_roots:
            # What factors explain is not noise.
            values = roots.alone(system.values)
            rows = np.pad(rows, ((0, 0), (0, values.shape[1] - len(nodes))))
        units = noise_units(values, rows, scale, nodes, center=center)
        n, more = len(nodes), len(system.nodes) - len(nodes)
        return Units(
            shift=np.append(units.shift[:n], np.zeros(more)),
            scale=np.append(units.scale[:n], np.ones(more)),
        )

    def _refuse_with_factors(
        self, noise_mean: Any, n_rows: int, factors: FactorLevels | None
    ) -> None:
        if factors is None:
            return
        names = ", ".join(factors.names)
        if len(factors.numbers) != n_rows:
            raise DataError(
                f"factors ({names}) have {len(factors.numbers)} rows for {n_rows} rows of samples"
            )
        for given, what in (
            (noise_mean, "noise_mean"),
            (self.miss_probability_whole_graph, "miss_probability_whole_graph"),
        ):
            if given is not None:
                raise SettingError(f"{what} cannot be used with factors ({names}): leave it out")
        if self.method == SAMPLED:
            raise SettingError(
                f"method 'sampled' cannot learn what factors act on ({names}): use 'exact'"
            )

    def _refuse_moved_context(self, rounds: Rounds) -> None:
        for node in () if self.context is None else self.context:
            moved = np.flatnonzero(rounds.regimes[:, node_index(node, rounds.nodes)])
            if len(moved):
                raise SettingError(
                    f"node {node!r} is context, and there is an intervention on it in row "
                    f"{moved[0]}: context is what nobody moves"
                )

    def _posterior(
        self, moments: Moments, columns: FactorColumns | None, **settings: Any
    ) -> Posterior:
        n_nodes = moments.counts.shape[1]
        if columns is not None:
            try:
                return ExactPosterior(n_nodes, moments, columns=columns, **settings)
            except MemoryLimitError as error:
                raise SettingError(
                    f"{error}, and so does every factor: leave out nodes or factors"
                ) from None
        fits = exact_is_best(n_nodes, self.memory_limit, len(moments.counts))
        if self.method == EXACT or (self.method == AUTO and fits):
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
        """The graph of the measured nodes; no edge from a factor can close a cycle."""
        known = self.known_[:, : self.n_features_in_]
        between = BetweenNodes(self.posterior_, self._roots)
        if self.miss_probability_whole_graph is None:
            return keep_per_edge(between, self.miss_probability_per_edge, known)
        return keep_whole_graph(between, self.miss_probability_whole_graph, known)

    def _keep(self, kept: KeptGraph) -> None:
        n, roots = self.n_features_in_, self._roots
        probability = self.posterior_.edge_probability
        self._adjacency = roots.graph(kept.adjacency)
        # of mechanisms without data nothing is said
        acting = probability[:, n:, :n] * roots.padded(self.known_)[:, None, :n]
        # A graph has one mechanism per regime: of a node that may be free, it is the one that is
        # shifted, which has columns of pairs. Edges of factors are kept by the probability shown.
        shifted = np.where(roots.is_pair[:, None], 1.0 - roots.free(self.posterior_), 1.0)
        self._adjacency[:, n:, :n] = acting > self.miss_probability_per_edge * shifted
        order = np.append(np.arange(n, len(self.nodes_)), kept.order)  # causes before effects
        self.adjacency_ = roots.shown(self._adjacency)
        self.order_ = [self.nodes_[i] for i in order]
        self.promise_kept_ = kept.honoured
        self.left_out_ = left_out_edges(kept, self.nodes_, self.edge_probability_)
        dropped = np.where(self._adjacency[:, n:, :n], 0.0, acting)
        self.largest_dropped_probability_ = max(kept.largest_dropped, dropped.max(initial=0.0))
        self.whole_graph_miss_probability_ = kept.misses
        self.weights_, self.intercept_, self.noise_std_ = self._estimates(self._adjacency)
        self.result_ = self._graph(self._adjacency, order)
        best = self.posterior_.most_probable()
        self.most_probable_ = self._graph(best.adjacency, roots.order(best.order))

    def _system_estimates(self, adjacency: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        found = self.posterior_.estimate(adjacency)
        weights = self._units.weights(found.weights)
        intercept = self._units.intercept(found.intercept, weights)
        return weights, intercept, found.noise_std * self._units.scale

    def _estimates(self, adjacency: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        weights, intercept, noise_std = self._system_estimates(adjacency)
        exist = existing(self.regimes_)
        unknown = exist & ~self.known_
        return (
            np.where(unknown[:, None, :], np.nan, self._roots.weights(weights)),
            np.where(
                unknown, np.nan, np.where(exist, self._roots.intercept(intercept, weights), 0.0)
            ),
            np.where(unknown, np.nan, self._roots.of_nodes(noise_std)),
        )

    def _graph(self, adjacency: BoolArray, order: IntArray) -> Graph:
        return Graph(
            nodes=self.nodes_,
            adjacency=self._roots.shown(adjacency) & self.known_[:, None, :],
            weights=self._estimates(adjacency)[0],
            known=self.known_,
            order=tuple(self.nodes_[i] for i in order),
            measures={"probability": self.edge_probability_},
            regimes=self.regimes_,
        )

    def _prior(self, *, with_factors: bool) -> MechanismPrior:
        whole_graph = self.miss_probability_whole_graph
        fraction("miss_probability_per_edge", self.miss_probability_per_edge, ends="[)")
        optional(fraction, "miss_probability_whole_graph", whole_graph, ends="[)")
        optional(integer, "memory_limit", self.memory_limit, minimum=1)
        choice("method", self.method, METHODS)
        integer("n_sweeps", self.n_sweeps, minimum=1, maximum=MAX_SWEEPS)
        # checked as it was given, before it is multiplied
        number("weight_scale", self.weight_scale, above=0.0)
        scales = tuple(k * self.weight_scale for k in SCALES_WITH_FACTORS)
        return MechanismPrior(
            edge_probability=self.edge_probability,
            weight_scale=scales if with_factors else self.weight_scale,
            noise_shape=self.noise_shape,
            intercept_scale=self.intercept_scale,
        )
