"""`CSL`: causal sub-graph learning under the scikit-learn contract."""

from __future__ import annotations

from collections.abc import Callable
from math import e
from typing import Any, NamedTuple, Self

import networkx as nx
import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator

from causalarms.arrays import FloatArray
from causalarms.checks import choice, flag, integer, optional
from causalarms.errors import SettingError
from causalarms.graphs.csl import CSLFit, CSLSettings, Removal, csl
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
from causalarms.sem.regimes import Counts, existing
from causalarms.statistics.dataset import KEPT, Dataset
from causalarms.statistics.mutual_information import ESTIMATORS
from causalarms.statistics.units import Units, common_scale, warn_of_wide_scales

# How often an edge is found again in part of the data.
#
# Resamples are drawn without replacement: rounds drawn twice would be nearest neighbours of
# themselves at distance zero and distort the mutual information. 63.2 % of the rounds are as many
# distinct ones as a bootstrap sample of full size holds.

FRACTION = 1 - 1 / e


class Resampling(NamedTuple):
    """How rounds are drawn, and kept for each mechanism."""

    n_resamples: int
    seed: int
    max_samples: int | None
    keep: str


def edge_stability(
    values: FloatArray,
    regimes: npt.NDArray[np.uint8],
    counts: Counts,  # of regimes, (N,)
    settings: dict[str, object],
    resampling: Resampling,
    *,
    n_jobs: int | None,
) -> FloatArray:
    """Fraction of resamples in which each edge was found, among those that knew its mechanism."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_refit)(values, regimes, counts, settings, resampling, number)
        for number in range(resampling.n_resamples)
    )
    edges = np.sum([adjacency for adjacency, _ in found], axis=0, dtype=float)
    known = np.sum([known for _, known in found], axis=0, dtype=float)[:, None, :]
    return np.divide(edges, known, out=np.full_like(edges, np.nan), where=known > 0)


def _refit(
    values: FloatArray,
    regimes: npt.NDArray[np.uint8],
    counts: Counts,
    settings: dict[str, object],
    resampling: Resampling,
    number: int,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    rng = stream(resampling.seed, "resample", number)
    rows = np.sort(rng.choice(len(values), int(FRACTION * len(values)), replace=False))
    data = Dataset(
        values.shape[1], cap=resampling.max_samples, keep=resampling.keep, regimes=counts
    )
    data.append(values[rows], regimes[rows])
    fit = csl(data, **settings)  # type: ignore[arg-type]
    return fit.adjacency, fit.known


class CSL(BaseEstimator):  # type: ignore[misc]
    """Learn who causes what from rounds under soft interventions (Sec. III of the paper).

    joint            all regimes share one order (default); False learns them apart, as the paper
    edge_weighting   False is CSL-nw: scores without -log|b|
    k                neighbours of the mutual-information estimate
    mutual_information   "rectangles" (Kraskov's second estimator) or "squares" (the first)
    max_samples, keep    at most so many samples per mechanism, the "oldest" or "newest"
    forbidden, required, tiers   prior knowledge by name, enforced exactly in all regimes
    on_few_samples   a mechanism with too few samples: "raise", or leave it "unknown"
    n_bootstrap      refits on part of the rounds, for `stability_`; n_jobs, random_state as usual

    Fitted: `adjacency_` and `weights_` (R, N, N), `intercept_` and `noise_std_` (R, N), `known_`
    (R, N), `scores_`, `order_`, `history_`, `stability_`, `varsortability_`, `graph_` (networkx)
    and `result_` (a `Graph`, which saves itself).
    Columns of mechanisms without samples are unknown: nan in `weights_`, False in `known_`.

    >>> from causalarms import random_sem
    >>> sem = random_sem(5, seed=2)
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(0, 2, (300, 5))
    >>> model = CSL().fit(sem.sample(A, rng), interventions=A, noise_mean=sem.noise_mean)
    >>> bool((model.adjacency_ == sem.adjacency).all())
    True
    """

    def __init__(
        self,
        *,
        joint: bool = True,
        edge_weighting: bool = True,
        k: int = 5,
        mutual_information: str = "rectangles",
        max_samples: int | None = None,
        keep: str = "oldest",
        forbidden: Edges | None = None,
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
        self.forbidden = forbidden
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
        """Learn from samples (n, N) and regimes (n, N), arrays or frames with node names.

        `noise_mean` of shape (N,) or (R, N) is used where it is known; None estimates an intercept
        per mechanism. `on_removal(removal, nodes_ordered)` is called after every rejected edge.
        `regimes` says how many regimes each node has; None: two, and other regimes are refused.
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
        """Learn from rounds that are checked already (`as_rounds`)."""
        self.check_settings()
        values, rows, nodes = rounds
        counts = regimes_in(rounds, regimes)
        mean = as_noise_mean(noise_mean, nodes, int(counts.max()))
        common = common_scale(values, nodes)
        values = values / common
        mean = None if mean is None else mean / common
        allowed, required = edge_constraints(
            nodes, forbidden=self.forbidden, required=self.required, tiers=self.tiers
        )
        warn_of_constant_regimes(rows, nodes, counts)
        warn_of_wide_scales(values, nodes)
        units = Units.unscaled(values, center=mean is None)
        z = units.apply(values)
        n_nodes = len(nodes)
        n_candidates = allowed.sum(axis=0)
        needed = np.maximum(n_candidates + (mean is None) + 1, self.k + 1)  # (N,)
        shape = (int(counts.max()), n_nodes, n_nodes)
        settings: dict[str, Any] = {
            "noise_mean": None if mean is None else mean / units.scale,
            "allowed": np.broadcast_to(allowed, shape),
            "required": np.broadcast_to(required, shape),
        }
        rule = CSLSettings(
            joint=self.joint,
            edge_weighting=self.edge_weighting,
            neighbors=self.k,
            squares=self.mutual_information == "squares",
            min_samples=needed,
        )
        data = Dataset(n_nodes, nodes=nodes, cap=self.max_samples, keep=self.keep, regimes=counts)
        data.append(z, rows)
        fit = csl(
            data,
            **settings,
            settings=rule if self.on_few_samples == "unknown" else rule._replace(min_samples=1),
            on_removal=on_removal,
        )
        self.stability_: npt.NDArray[np.float64] | None = None
        if self.n_bootstrap:
            seed = generator(self.random_state).integers(2**62)
            self.stability_ = edge_stability(
                z,
                rows,
                counts,
                settings | {"settings": rule},
                Resampling(self.n_bootstrap, int(seed), self.max_samples, self.keep),
                n_jobs=self.n_jobs,
            )
        if self.on_few_samples == "unknown":
            warn_of_few_samples(data.counts, needed, nodes)
        self._keep(fit, Units(units.shift * common, units.scale * common), nodes, counts)
        self.varsortability_ = varsortability(self.adjacency_.any(axis=0), values.var(axis=0))
        return self

    @property
    def graph_(self) -> nx.DiGraph:
        """All regimes in one networkx graph."""
        return self.result_.to_networkx()

    def _keep(self, fit: CSLFit, units: Units, nodes: tuple[str, ...], counts: Counts) -> None:
        self.n_features_in_ = len(nodes)
        self.nodes_ = nodes
        self.adjacency_ = fit.adjacency
        self.weights_ = units.weights(fit.weights)
        intercept = units.intercept(fit.intercept, self.weights_)
        self.intercept_ = np.where(existing(counts), intercept, 0.0)
        self.regimes_ = counts
        self.noise_std_ = fit.noise_std * units.scale
        self.known_ = fit.known
        self.scores_ = fit.scores
        self.order_ = None if fit.order is None else [nodes[i] for i in fit.order]
        self.history_ = fit.history
        measures = {"score": fit.scores}
        if self.stability_ is not None:
            measures["stability"] = self.stability_
        self.result_ = Graph(
            nodes=nodes,
            adjacency=self.adjacency_,
            weights=self.weights_,
            known=self.known_,
            order=None if self.order_ is None else tuple(self.order_),
            measures=measures,
            regimes=counts,
        )

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
