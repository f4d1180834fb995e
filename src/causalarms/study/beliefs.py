"""What the rounds of a study say, whatever its policy: mechanisms and how sure they are.

The graph is the policy's where it learns one (else CSL's); the weights are least squares over all
rounds since a mechanism's last alarm, and their uncertainty is that of a linear Gaussian model with
this graph: it does not include doubts about the graph itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from causalarms.changes.alarm import Alarm
from causalarms.errors import CausalArmsError
from causalarms.graphs.csl import csl
from causalarms.graphs.graph import Graph
from causalarms.graphs.inputs import as_noise_mean
from causalarms.policies.base import Policy
from causalarms.rng import stream
from causalarms.sem.rewards import expected_values
from causalarms.sem.topology import topological_order
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.moments import Moments
from causalarms.statistics.regression import Regression, SingularError, regress
from causalarms.study.edge_probabilities import edge_probabilities
from causalarms.study.limits import Limits
from causalarms.study.settings import Settings
from causalarms.study.trials import Ledger

FloatArray = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint8]

GRAPH_SAMPLES = 200  # newest samples per mechanism for a graph of our own
DRAWS = 500


@dataclass(frozen=True)
class Beliefs:
    """The learned model; `fits` holds the mechanisms that have enough samples."""

    settings: Settings
    limits: Limits
    values: FloatArray  # (n, N), in the user's sign
    regimes: Bits  # (n, N)
    starts: npt.NDArray[np.int64]  # (2, N), first row of each mechanism
    adjacency: npt.NDArray[np.bool_]  # (2, N, N)
    fits: dict[tuple[int, int], Regression]
    weights: FloatArray  # (2, N, N)
    intercept: FloatArray  # (2, N)
    order: npt.NDArray[np.int64] | None
    problem: str  # why no graph could be learned; empty where one could

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        known = np.zeros((2, self.settings.n_nodes), dtype=bool)
        for mechanism in self.fits:
            known[mechanism] = True
        return known

    def predictable(self, interventions: Bits) -> npt.NDArray[np.bool_]:
        """Rows all of whose mechanisms are known."""
        if self.order is None:
            return np.zeros(len(interventions), dtype=bool)
        known = self.known
        return np.where(interventions == 1, known[1], known[0]).all(axis=1)

    def draws(self, interventions: Bits) -> FloatArray:
        """Expected values under `DRAWS` models that fit the data as well, (DRAWS, n, N)."""
        assert self.order is not None
        rng = stream(self.settings.seed, "beliefs", len(self.values))
        weights = np.repeat(self.weights[None], DRAWS, axis=0)
        intercept = np.repeat(self.intercept[None], DRAWS, axis=0)
        for (regime, node), fit in self.fits.items():
            size = len(fit.columns)
            normals = rng.standard_normal((DRAWS, size))
            if not size:
                continue
            sample = fit.weights + normals @ np.linalg.cholesky(_symmetric(fit)).T
            parents = fit.columns[fit.columns < self.settings.n_nodes]
            weights[:, regime, parents, node] = sample[:, : len(parents)]
            if len(parents) < size:
                intercept[:, regime, node] = sample[:, -1]
        return np.stack(
            [
                expected_values(w, i, self.order, interventions)
                for w, i in zip(weights, intercept, strict=True)
            ]
        )


def believe(ledger: Ledger, policy: Policy | None, *, first: int | None = None) -> Beliefs:
    """From all rounds, or from the `first` so many (then without the policy's graph)."""
    settings = ledger.settings
    assert settings is not None
    limits, n = Limits(settings), settings.n_nodes
    records = [r for r in map(ledger.trials.__getitem__, ledger.order) if limits.learnable(r)]
    records = records[:first]
    values = np.array([r.values for r in records], dtype=float).reshape(-1, n)
    regimes = np.array([r.intervention for r in records], dtype=np.uint8).reshape(-1, n)
    alarms = [] if policy is None else [a for a in policy.alarms if a.round <= len(records)]
    starts = _starts(alarms, n)
    mean = as_noise_mean(settings.noise_mean, settings.nodes)
    data = _dataset(values, regimes, starts, None, settings.nodes)
    adjacency = None if policy is None or limits.fixed.any() else policy.adjacency
    problem = ""
    if adjacency is None:
        recent = _dataset(values, regimes, starts, GRAPH_SAMPLES, settings.nodes)
        adjacency, problem = _own_graph(recent, mean, settings)
    moments = Moments.of(data)
    fits: dict[tuple[int, int], Regression] = {}
    weights, intercept = np.zeros((2, n, n)), np.zeros((2, n))
    for regime, node in np.ndindex(2, n):
        parents = np.flatnonzero(adjacency[regime, :, node])
        if problem or moments.counts[regime, node] < n + 2:
            continue
        known = None if mean is None else float(mean[regime, node])
        try:
            fit = regress(moments.gram[regime, node], node, parents, known)
        except SingularError:
            continue
        fits[regime, node] = fit
        weights[regime, parents, node] = fit.weights[: len(parents)]
        intercept[regime, node] = fit.weights[-1] if known is None else known
    order = topological_order((weights != 0).any(axis=0))
    return Beliefs(
        settings,
        limits,
        values,
        regimes,
        starts,
        adjacency,
        fits,
        weights,
        intercept,
        order,
        problem,
    )


def graph(beliefs: Beliefs) -> Graph:
    known, nodes = beliefs.known, beliefs.settings.nodes
    adjacency = beliefs.adjacency & known[:, None, :]
    weights = np.where(adjacency, beliefs.weights, 0.0)
    error = np.full_like(weights, np.nan)
    for (regime, node), fit in beliefs.fits.items():
        std = np.sqrt(np.maximum(np.diag(_covariance(fit)), 0.0))
        for column, value in zip(fit.columns, std, strict=True):
            if column < len(nodes):
                error[regime, column, node] = value
    order = None if beliefs.order is None else tuple(nodes[i] for i in beliefs.order)
    data = _dataset(beliefs.values, beliefs.regimes, beliefs.starts, None, nodes)
    mean = as_noise_mean(beliefs.settings.noise_mean, nodes)
    probability = edge_probabilities(data, mean, known, **beliefs.settings.known_edges)
    measures = {} if probability is None else {"probability": probability}
    return Graph(nodes, adjacency, weights, known, order, measures | {"standard_error": error})


def _starts(alarms: list[Alarm], n_nodes: int) -> npt.NDArray[np.int64]:
    starts = np.zeros((2, n_nodes), dtype=np.int64)
    for alarm in alarms:
        if alarm.node < 0:  # the whole graph
            starts[:] = alarm.round
        else:
            starts[alarm.regime, alarm.node] = alarm.round
    return starts


def _dataset(
    values: FloatArray,
    regimes: Bits,
    starts: npt.NDArray[np.int64],
    cap: int | None,
    nodes: tuple[str, ...],
) -> Dataset:
    data = Dataset(len(nodes), nodes=nodes, cap=cap, keep="newest")
    if len(values):
        data.append(values, regimes)
    for regime, node in np.argwhere(starts > 0).tolist():
        data.forget(regime, node, start=int(starts[regime, node]))
    return data


def _own_graph(
    data: Dataset, mean: FloatArray | None, settings: Settings
) -> tuple[npt.NDArray[np.bool_], str]:
    known, least = settings.known_edges, data.n_nodes + 2
    try:
        return csl(data, noise_mean=mean, min_samples=least, **known).adjacency, ""
    except CausalArmsError as error:
        return np.zeros((2, data.n_nodes, data.n_nodes), dtype=bool), str(error)


def _covariance(fit: Regression) -> FloatArray:
    return fit.covariance() if fit.degrees_of_freedom > 0 else fit.inverse * 0.0


def _symmetric(fit: Regression) -> FloatArray:
    """A covariance that Cholesky accepts."""
    matrix = _covariance(fit)
    tiny = 1e-12 * max(float(np.trace(matrix)), 1e-300)
    return 0.5 * (matrix + matrix.T) + tiny * np.eye(len(matrix))
