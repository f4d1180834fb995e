"""`GOLEM` and `DAGMA` under the same contract as `CSL`.

They see one weight matrix at a time: B from the rounds in which no node was intervened on, B' from
the rounds in which all were. Rounds of any other intervention mix mechanisms and are not used.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import networkx as nx
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from causalarms.arrays import FloatArray
from causalarms.checks import number
from causalarms.errors import CausalArmsWarning, DataError, IdentifiabilityWarning
from causalarms.graphs.continuous.dagma import DAGMASettings, Loss, check_dagma, dagma
from causalarms.graphs.continuous.golem import check_golem, golem
from causalarms.graphs.continuous.numerics import (
    LARGEST_RATE,
    WEIGHT_THRESHOLD,
    check_threshold,
    threshold_to_dag,
)
from causalarms.graphs.graph import Graph
from causalarms.graphs.inputs import Rounds, as_noise_mean, as_rounds
from causalarms.sem.regimes import REGIME_NAMES, topological_order
from causalarms.statistics.units import common_scale


class _Continuous(BaseEstimator):  # type: ignore[misc]
    """Fit weights to a covariance per regime, threshold, reduce to a DAG."""

    threshold: float
    learning_rate: float

    @abstractmethod
    def check_settings(self) -> None:
        """Refuse settings that cannot be used, by name; `fit` does so first."""

    def _check_rest(self) -> None:
        number("learning_rate", self.learning_rate, above=0.0, maximum=LARGEST_RATE)
        check_threshold(self.threshold)

    @abstractmethod
    def _weights(self, covariance: FloatArray) -> FloatArray: ...

    def fit(
        self, X: Any, y: None = None, *, interventions: Any = None, noise_mean: Any = None
    ) -> Self:
        """Learn B from the rounds of a = 0 and B' from those of a = 1.

        `noise_mean` does not enter the covariance; it is kept for `intercept_`, which is
        estimated where it is None.
        """
        return self.fit_rounds(as_rounds(X, interventions), noise_mean)

    def fit_rounds(self, rounds: Rounds, noise_mean: Any = None) -> Self:
        """Learn from rounds that are checked already (`as_rounds`)."""
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
        for regime, mask in enumerate(rows):
            if mask.any():
                self._fit_regime(regime, values[mask], mean, nodes)
        self.adjacency_ = np.nan_to_num(self.weights_) != 0
        self.n_features_in_, self.nodes_ = n_nodes, nodes
        order = topological_order(self.adjacency_.any(axis=0))
        self.order_ = None if order is None else [nodes[i] for i in order]
        self.result_ = Graph(
            nodes=nodes,
            adjacency=self.adjacency_,
            weights=self.weights_,
            known=self.known_,
            order=None if self.order_ is None else tuple(self.order_),
            measures={},
        )
        return self

    @property
    def graph_(self) -> nx.DiGraph:
        """Both regimes in one networkx graph."""
        return self.result_.to_networkx()

    def _fit_regime(
        self,
        regime: int,
        samples: FloatArray,
        mean: FloatArray | None,
        nodes: tuple[str, ...],
    ) -> None:
        scale = common_scale(samples, nodes)
        samples = samples / scale
        weights = threshold_to_dag(
            self._weights(np.cov(samples, rowvar=False, bias=True)), self.threshold
        )
        residual = samples - samples @ weights
        self.weights_[regime] = weights
        self.intercept_[regime] = residual.mean(axis=0) * scale if mean is None else mean[regime]
        self.noise_std_[regime] = residual.std(axis=0, ddof=1) * scale

    @staticmethod
    def _check_rows(rows: list[npt.NDArray[np.bool_]], n_nodes: int) -> None:
        counts = [int(mask.sum()) for mask in rows]
        if not any(counts):
            raise DataError(
                "there is no round without any intervention and none with all nodes intervened on: "
                "GOLEM and DAGMA learn from those only, CSL from any"
            )
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
    tolerance         0 takes all `steps`; the default stops when the weights have settled
    """

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

    def check_settings(self) -> None:
        check_golem(equal_variances=self.equal_variances, **self._settings())
        self._check_rest()

    def _settings(self) -> dict[str, Any]:
        return {
            "l1": self.l1,
            "acyclicity": self.acyclicity,
            "learning_rate": self.learning_rate,
            "steps": self.steps,
            "tolerance": self.tolerance,
        }

    def _weights(self, covariance: FloatArray) -> FloatArray:
        settings = self._settings()
        weights = golem(covariance, **settings).weights
        if not self.equal_variances:
            weights = golem(covariance, equal_variances=False, initial=weights, **settings).weights
        return weights


class DAGMA(_Continuous):
    """Bello et al. 2022: a central path of log-determinant acyclicity barriers (Sec. VI-A).

    loss   "likelihood" (the paper's text) or "least-squares" (the authors' program)
    """

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

    def check_settings(self) -> None:
        check_dagma(self._settings())
        self._check_rest()

    def _settings(self) -> DAGMASettings:
        return DAGMASettings(
            loss=self.loss,
            l1=self.l1,
            learning_rate=self.learning_rate,
            steps=self.steps,
            last_steps=self.last_steps,
            tolerance=self.tolerance,
        )

    def _weights(self, covariance: FloatArray) -> FloatArray:
        return dagma(covariance, self._settings()).weights
