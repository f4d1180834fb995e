"""`CSL`, `GOLEM` and `DAGMA` under the scikit-learn contract.

A `fit` checks its input, learns in units that are safe to compute with, and keeps the result in
the units of the data. CSL learns from rounds of any interventions. GOLEM and DAGMA see one weight
matrix at a time: B from the rounds in which no node was intervened on, B' from the rounds in which
all were. Rounds of any other intervention mix mechanisms and are not used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import e
from typing import Any, ClassVar, Self

import networkx as nx
import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.checks import choice, flag, integer, number, optional
from causalarms.errors import CausalArmsWarning, DataError, IdentifiabilityWarning, SettingError
from causalarms.graphs.continuous import (
    LARGEST_RATE,
    WEIGHT_THRESHOLD,
    GradientFit,
    threshold_to_dag,
)
from causalarms.graphs.continuous.dagma import DAGMASettings, Loss, dagma
from causalarms.graphs.continuous.golem import GOLEMSettings, golem
from causalarms.graphs.csl import CSLSettings, Removal, csl
from causalarms.graphs.diagnostics import warn_of_constant_regimes, warn_of_few_samples
from causalarms.graphs.graph import Graph, varsortability
from causalarms.graphs.inputs import (
    Edges,
    Rounds,
    Tiers,
    as_noise_mean,
    as_rounds,
    edge_constraints,
    regimes_in,
)
from causalarms.limits import MAX_REGIMES
from causalarms.rng import generator, stream
from causalarms.sem.regimes import REGIME_NAMES, Counts, existing, topological_order
from causalarms.statistics.dataset import KEPT, Dataset
from causalarms.statistics.mutual_information import ESTIMATORS
from causalarms.statistics.units import Units, common_scale, warn_of_wide_scales

RESAMPLED_FRACTION = 1 - 1 / e  # of distinct rounds in a bootstrap sample of full size


class _GraphLearner(BaseEstimator):  # type: ignore[misc]
    """What the learners keep alike."""

    adjacency_: BoolArray  # (R, N, N)
    weights_: FloatArray  # (R, N, N)
    intercept_: FloatArray  # (R, N)
    noise_std_: FloatArray  # (R, N)
    known_: BoolArray  # (R, N)

    @property
    def graph_(self) -> nx.DiGraph:
        """All regimes in one networkx graph."""
        return self.result_.to_networkx()

    def _keep_graph(
        self,
        nodes: tuple[str, ...],
        order: Sequence[int] | IntArray | None,
        measures: dict[str, FloatArray],
        regimes: Counts | None = None,
    ) -> None:
        self.n_features_in_, self.nodes_ = len(nodes), nodes
        self.order_ = None if order is None else [nodes[i] for i in order]
        self.result_ = Graph(
            nodes=nodes,
            adjacency=self.adjacency_,
            weights=self.weights_,
            known=self.known_,
            order=None if self.order_ is None else tuple(self.order_),
            measures=measures,
            regimes=regimes,
        )


class CSL(_GraphLearner):
    """Learn who causes what from rounds under soft interventions (Sec. III of the paper).

    joint            False learns the regimes apart, as the paper; True, ours, gives them one order
    edge_weighting   False is CSL-nw: scores without -log|b|
    k                neighbours of the mutual-information estimate
    mutual_information   "rectangles" (Kraskov's second estimator) or "squares" (the first)
    max_samples, keep    use at most this many samples per mechanism, the "oldest" or "newest"
    excluded, required, tiers   prior knowledge by name, enforced exactly in all regimes
    on_few_samples   a mechanism with too few samples: "raise", or leave it "unknown"
    n_bootstrap      refits on part of the rounds, for `stability_`
    n_jobs           processes for the refits: None one, -1 one per core
    random_state     seed of the resamples

    Fitted: `adjacency_` and `weights_` (R, N, N), `intercept_` and `noise_std_` (R, N), `known_`
    (R, N), `scores_`, `order_`, `history_`, `stability_`, `varsortability_`, `graph_` (networkx)
    and `result_` (a `Graph`, which saves itself).
    Columns of mechanisms without samples are unknown: nan in `weights_`, False in `known_`.

    >>> from causalarms import random_sem
    >>> sem = random_sem(5, seed=2)
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(0, 2, (300, 5))
    >>> X = sem.sample(A, rng)
    >>> apart = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    >>> joint = CSL(joint=True).fit(X, interventions=A, noise_mean=sem.noise_mean)
    >>> bool((joint.adjacency_ == sem.adjacency).all())
    True
    >>> bool((apart.adjacency_ >= sem.adjacency).all())  # no edge is missed, but two are too many
    True
    """

    def __init__(
        self,
        *,
        joint: bool = False,
        edge_weighting: bool = True,
        k: int = 5,
        mutual_information: str = "rectangles",
        max_samples: int | None = None,
        keep: str = "oldest",
        excluded: Edges | None = None,
        required: Edges | None = None,
        tiers: Tiers | None = None,
        on_few_samples: str = "raise",
        n_bootstrap: int = 0,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.joint = joint
        self.edge_weighting = edge_weighting
        self.k = k
        self.mutual_information = mutual_information
        self.max_samples = max_samples
        self.keep = keep
        self.excluded = excluded
        self.required = required
        self.tiers = tiers
        self.on_few_samples = on_few_samples
        self.n_bootstrap = n_bootstrap
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        interventions: Any = None,
        noise_mean: Any = None,
        on_removal: Callable[[Removal, int], None] | None = None,
        regimes: Any = None,
    ) -> Self:
        """Learn from samples (n, N), an array or a frame with node names.

        interventions   regimes of the nodes, (n, N), or a frame by name; None: all natural
        noise_mean      (N,) or (R, N) if it is known; None estimates an intercept per mechanism
        on_removal      called as `on_removal(removal, nodes_ordered)` after every rejected edge
        regimes         how many each node has; None: two, and other regimes are refused
        """
        rounds = as_rounds(X, interventions, most_regimes=2 if regimes is None else MAX_REGIMES)
        return self.fit_rounds(rounds, noise_mean, on_removal, regimes)

    def fit_rounds(
        self,
        rounds: Rounds,
        noise_mean: Any = None,
        on_removal: Callable[[Removal, int], None] | None = None,
        regimes: Any = None,
    ) -> Self:
        """Learn from `rounds` that are checked already (`as_rounds`).

        `noise_mean`, `on_removal` and `regimes` are those of `fit`; without `regimes`, a node has
        as many as the rounds show.
        """
        self.check_settings()
        values, rows, nodes = rounds
        counts = regimes_in(rounds, regimes)
        mean = as_noise_mean(noise_mean, nodes, int(counts.max()))
        common = common_scale(values, nodes)
        values = values / common
        allowed, required = edge_constraints(
            nodes, excluded=self.excluded, required=self.required, tiers=self.tiers
        )
        warn_of_constant_regimes(rows, nodes, counts)
        warn_of_wide_scales(values, nodes)
        # an intercept makes the origin irrelevant, and near it Gram moments are accurate
        shift = values.mean(axis=0) if mean is None else np.zeros(len(nodes))
        data = Dataset(
            len(nodes), nodes=nodes, cap=self.max_samples, keep=self.keep, regimes=counts
        )
        data.append(values - shift, rows)
        needed = np.maximum(allowed.sum(axis=0) + (mean is None) + 1, self.k + 1)  # (N,)
        rule = CSLSettings(
            joint=self.joint,
            edge_weighting=self.edge_weighting,
            neighbors=self.k,
            squares=self.mutual_information == "squares",
            min_samples=needed,
        )
        known: dict[str, Any] = {
            "noise_mean": None if mean is None else mean / common,
            "allowed": np.broadcast_to(allowed, (int(counts.max()), *allowed.shape)),
            "required": np.broadcast_to(required, (int(counts.max()), *allowed.shape)),
        }
        leave_unknown = self.on_few_samples == "unknown"
        fit = csl(
            data,
            **known,
            settings=rule if leave_unknown else rule._replace(min_samples=1),
            on_removal=on_removal,
        )
        self.stability_: FloatArray | None = None
        if self.n_bootstrap:
            seed = int(generator(self.random_state).integers(2**62))
            refits = Parallel(n_jobs=self.n_jobs)(
                delayed(_refit)(data, known | {"settings": rule}, stream(seed, "resample", number))
                for number in range(self.n_bootstrap)
            )
            self.stability_ = _stability(refits)
        if leave_unknown:
            warn_of_few_samples(data.counts, needed, nodes)
        units = Units(shift * common, np.full(len(nodes), common))
        self.adjacency_ = fit.adjacency
        self.weights_ = units.weights(fit.weights)
        intercept = units.intercept(fit.intercept, self.weights_)
        self.intercept_ = np.where(existing(counts), intercept, 0.0)
        self.noise_std_ = fit.noise_std * units.scale
        self.known_, self.regimes_ = fit.known, counts
        self.scores_, self.history_ = fit.scores, fit.history
        measures = {"score": fit.scores}
        if self.stability_ is not None:
            measures["stability"] = self.stability_
        self._keep_graph(nodes, fit.order, measures, counts)
        self.varsortability_ = varsortability(self.adjacency_.any(axis=0), values.var(axis=0))
        return self

    def check_settings(self) -> None:
        """Refuse settings that cannot be used, by name; `fit` does so first."""
        for name in ("joint", "edge_weighting"):
            flag(name, getattr(self, name))
        choice("mutual_information", self.mutual_information, ESTIMATORS)
        choice("on_few_samples", self.on_few_samples, ("raise", "unknown"))
        integer("k", self.k, minimum=1)
        integer("n_bootstrap", self.n_bootstrap, minimum=0)
        optional(integer, "max_samples", self.max_samples, minimum=1)
        choice("keep", self.keep, KEPT)
        n_jobs = optional(integer, "n_jobs", self.n_jobs, minimum=-(2**31))
        if n_jobs == 0:
            raise SettingError("n_jobs must not be 0; None: one process, -1: one per core")


def _refit(
    data: Dataset, known: dict[str, Any], rng: np.random.Generator
) -> tuple[BoolArray, BoolArray]:
    """Edges and known mechanisms, learned from a part of the rounds."""
    # Without replacement: a round drawn twice would be its own nearest neighbour at distance zero
    # and distort the mutual information.
    n_rounds = int(RESAMPLED_FRACTION * len(data))
    rows = np.sort(rng.choice(len(data), n_rounds, replace=False))
    part = Dataset(
        data.n_nodes, nodes=data.nodes, cap=data.cap, keep=data.keep, regimes=data.n_regimes
    )
    part.append(data.values[rows], data.regimes[rows])
    fit = csl(part, **known)
    return fit.adjacency, fit.known


def _stability(refits: list[tuple[BoolArray, BoolArray]]) -> FloatArray:
    """Fraction of refits in which each edge was found, among those that knew its mechanism."""
    edges = np.sum([adjacency for adjacency, _ in refits], axis=0, dtype=float)
    known = np.sum([known for _, known in refits], axis=0, dtype=float)[:, None, :]
    return np.divide(edges, known, out=np.full_like(edges, np.nan), where=known > 0)


class _Continuous(_GraphLearner):
    """Fit weights to a covariance per regime, threshold, reduce to a DAG."""

    threshold: float
    learning_rate: float
    _descend: ClassVar[Callable[..., GradientFit]]  # of a covariance and settings
    _kind: ClassVar[type[GOLEMSettings | DAGMASettings]]

    def _settings(self) -> GOLEMSettings | DAGMASettings:
        """Those of the descent; fields that the estimator does not have keep their defaults."""
        own = self.get_params()
        return self._kind(**{name: own[name] for name in self._kind._fields if name in own})

    def fit(
        self, X: Any, y: None = None, *, interventions: Any = None, noise_mean: Any = None
    ) -> Self:
        """Learn B from the rounds of a = 0 and B' from those of a = 1, of samples (n, N).

        interventions   regimes of the nodes, (n, N), or a frame by name; None: all natural
        noise_mean      (N,) or (2, N), kept as `intercept_`, which is estimated if it is None;
                        the covariance does not depend on it
        """
        return self.fit_rounds(as_rounds(X, interventions), noise_mean)

    def fit_rounds(self, rounds: Rounds, noise_mean: Any = None) -> Self:
        """Learn from `rounds` that are checked already (`as_rounds`); `noise_mean` as of `fit`."""
        self.check_settings()
        values, regimes, nodes = rounds
        mean = as_noise_mean(noise_mean, nodes)
        n_nodes = len(nodes)
        rows = [(regimes == regime).all(axis=1) for regime in (0, 1)]
        self._check_rows(rows, n_nodes)
        self.known_ = np.array([[mask.any()] * n_nodes for mask in rows])
        self.weights_ = np.full((2, n_nodes, n_nodes), np.nan)
        self.intercept_ = np.full((2, n_nodes), np.nan)
        self.noise_std_ = np.full((2, n_nodes), np.nan)
        for regime in np.flatnonzero(self.known_[:, 0]):
            samples = values[rows[regime]]
            # One scale for all nodes: weights, and the threshold on them, stay what they are.
            scale = common_scale(samples, nodes)
            samples = samples / scale
            covariance = np.cov(samples, rowvar=False, bias=True)
            fitted = type(self)._descend(covariance, self._settings()).weights
            weights = threshold_to_dag(fitted, self.threshold)
            left = samples - samples @ weights
            self.weights_[regime] = weights
            self.intercept_[regime] = left.mean(axis=0) * scale if mean is None else mean[regime]
            self.noise_std_[regime] = left.std(axis=0, ddof=1) * scale
        self.adjacency_ = np.nan_to_num(self.weights_) != 0
        self._keep_graph(nodes, topological_order(self.adjacency_.any(axis=0)), {})
        return self

    def check_settings(self) -> None:
        """Refuse settings that cannot be used, by name; `fit` does so first."""
        self._settings().checked()
        number("learning_rate", self.learning_rate, above=0.0, maximum=LARGEST_RATE)
        number("threshold", self.threshold, minimum=0.0)

    @staticmethod
    def _check_rows(rows: list[BoolArray], n_nodes: int) -> None:
        counts = [int(mask.sum()) for mask in rows]
        if not any(counts):
            raise DataError(
                "there is no round without any intervention and none with all nodes intervened on: "
                "GOLEM and DAGMA learn from those only, CSL from any"
            )
        # Of fewer than N + 1 rounds the covariance is singular; N + 2 leave one to spare.
        for name, count in zip(REGIME_NAMES, counts, strict=True):
            if 0 < count < n_nodes + 2:
                raise DataError(
                    f"{count} rounds with all nodes {name} are too few for {n_nodes} nodes; "
                    f"at least {n_nodes + 2} are needed"
                )
        others = len(rows[0]) - sum(counts)
        if others:
            warnings.warn(
                f"{others} of {len(rows[0])} rounds have some nodes intervened on and others not; "
                "GOLEM and DAGMA cannot use them",
                CausalArmsWarning,
                stacklevel=4,
            )
        for name, count in zip(REGIME_NAMES, counts, strict=True):
            if not count:
                warnings.warn(
                    f"there is no round with all nodes {name}: that graph is unknown",
                    IdentifiabilityWarning,
                    stacklevel=4,
                )


class GOLEM(_Continuous):
    """Ng et al. 2020: likelihood with soft sparsity and acyclicity (Sec. VI-A).

    equal_variances   GOLEM-EV (default) or GOLEM-NV, which starts from the EV solution
    l1                weight of the sum of absolute weights
    acyclicity        weight of the penalty on cycles
    learning_rate     of Adam
    steps             most steps of the descent
    threshold         smaller weights are set to zero
    tolerance         0 takes all `steps`; the default stops when the weights have settled
    """

    _descend, _kind = golem, GOLEMSettings

    def __init__(
        self,
        *,
        equal_variances: bool = True,
        l1: float = 0.02,
        acyclicity: float = 5.0,
        learning_rate: float = 1e-3,
        steps: int = 100_000,
        threshold: float = WEIGHT_THRESHOLD,
        tolerance: float = 5e-4,
    ) -> None:
        self.equal_variances = equal_variances
        self.l1 = l1
        self.acyclicity = acyclicity
        self.learning_rate = learning_rate
        self.steps = steps
        self.threshold = threshold
        self.tolerance = tolerance


class DAGMA(_Continuous):
    """Bello et al. 2022: a central path of log-determinant acyclicity barriers (Sec. VI-A).

    loss            "likelihood" (the paper's text) or "least-squares" (the authors' program)
    l1              weight of the sum of absolute weights
    learning_rate   of Adam
    steps           most steps of every stage but the last
    last_steps      most steps of the last stage
    threshold       smaller weights are set to zero
    tolerance       relative change of the objective that ends a stage; 0 takes all `steps`
    """

    _descend, _kind = dagma, DAGMASettings

    def __init__(
        self,
        *,
        loss: Loss = "likelihood",
        l1: float = 0.03,
        learning_rate: float = 3e-4,
        steps: int = 30_000,
        last_steps: int = 60_000,
        threshold: float = WEIGHT_THRESHOLD,
        tolerance: float = 1e-6,
    ) -> None:
        self.loss = loss
        self.l1 = l1
        self.learning_rate = learning_rate
        self.steps = steps
        self.last_steps = last_steps
        self.threshold = threshold
        self.tolerance = tolerance
