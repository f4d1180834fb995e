"""Models of all mechanisms fitted to random rounds, for the tests of weights, bounds and scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from causalarms import LinearSEM, random_sem
from causalarms.arrays import FloatArray
from causalarms.models.linear import MechanismWeights, fit_weights
from causalarms.statistics.dataset import Dataset, Moments


def random_data(n_nodes: int, n_rows: int, seed: int) -> tuple[LinearSEM, Dataset]:
    sem = random_sem(n_nodes, seed=seed)
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n_rows, n_nodes))
    data = Dataset(n_nodes)
    data.append(sem.sample(A, rng), A)
    return sem, data


def fitted(
    n_nodes: int, n_rows: int, seed: int, *, known_mean: bool = True
) -> tuple[LinearSEM, MechanismWeights]:
    """The model of the true graph."""
    sem, data = random_data(n_nodes, n_rows, seed)
    mean = sem.mechanism_mean if known_mean else None
    return sem, fit_weights(Moments.of(data), sem.adjacency, noise_mean=mean)


def model_of(weights: Any, intercept: Any, spread: Any, **fields: Any) -> MechanismWeights:
    """A model made by hand; without `order` every intervention looks for its own."""
    given = np.asarray(weights, dtype=float)
    shape = given.shape[:2]
    settings: dict[str, Any] = {
        "noise_std": np.ones(shape),
        "n_regressors": (given != 0).sum(axis=1),
        "order": None,
    } | fields
    return MechanismWeights(
        weights=given,
        intercept=np.broadcast_to(np.asarray(intercept, dtype=float), shape).copy(),
        spread=np.broadcast_to(np.asarray(spread, dtype=float), shape).copy(),
        **settings,
    )


def post_intervention(model: MechanismWeights, a: Any) -> tuple[FloatArray, FloatArray]:
    """B_a and nu_a, column by column."""
    columns = [model.weights[int(regime), :, node] for node, regime in enumerate(a)]
    means = [model.intercept[int(regime), node] for node, regime in enumerate(a)]
    return np.column_stack(columns), np.array(means)
