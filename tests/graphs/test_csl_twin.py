"""Algorithm 1 word for word (all regressions from samples, all scores anew) against the kernel."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from random_rounds import random_rounds

from causalarms import CSL
from causalarms.statistics.mutual_information import mutual_information_plain

Edge = tuple[int, int, int]  # regime, parent, child
FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def column_scores(
    X: FloatArray, nu: FloatArray | None, child: int, parents: list[int], settings: dict[str, Any]
) -> dict[int, tuple[float, float]]:
    """Score and weight of every remaining parent of one mechanism, given its samples."""
    design = X[:, parents]
    response = X[:, child]
    if nu is None:
        design = np.column_stack([design, np.ones(len(X))])
    else:
        response = response - nu[child]
    b, *_ = np.linalg.lstsq(design, response, rcond=None)
    residual = design @ b - response
    found = {}
    for weight, parent in zip(b, parents, strict=False):
        score = mutual_information_plain(
            residual,
            X[:, parent],
            k=settings.get("k", 5),
            estimator=settings.get("mutual_information", "rectangles"),
        )
        if settings.get("edge_weighting", True):
            score -= np.log(abs(weight))
        found[parent] = (score, float(weight))
    return found


def algorithm_1(
    X: FloatArray, A: Any, nu: FloatArray | None, settings: dict[str, Any]
) -> tuple[list[tuple[Edge, float]], dict[Edge, float]]:
    """Removals with their scores, and the weights of the edges that are left."""
    n_nodes = X.shape[1]
    pairs = [(p, c) for p in range(n_nodes) for c in range(n_nodes) if p != c]
    removals = []
    weights: dict[Edge, float] = {}
    for regimes in [(0, 1)] if settings.get("joint", False) else [(0,), (1,)]:
        edges = {(r, p, c) for r in regimes for p, c in pairs}
        while True:
            scored: dict[Edge, tuple[float, float]] = {}
            for r in regimes:
                for c in range(n_nodes):
                    parents = sorted(p for s, p, d in edges if (s, d) == (r, c))
                    rows = X[A[:, c] == r]
                    for p, value in column_scores(rows, nu, c, parents, settings).items():
                        scored[r, p, c] = value
            if nx.is_directed_acyclic_graph(nx.DiGraph([(p, c) for _, p, c in edges])):
                break
            worst = max(scored, key=lambda edge: scored[edge][0])
            removals.append((worst, scored[worst][0]))
            edges.remove(worst)
        weights |= {edge: weight for edge, (_, weight) in scored.items()}
    return removals, weights


@pytest.mark.parametrize(
    ("settings", "known_means"),
    [
        ({"joint": True}, True),
        ({"joint": True}, False),
        ({}, True),
        ({"edge_weighting": False}, True),
        ({"mutual_information": "squares", "k": 3}, True),
    ],
    ids=["joint", "joint intercepts", "apart", "nw", "squares"],
)
def test_the_estimator_is_algorithm_1(settings: dict[str, Any], known_means: bool) -> None:
    sem, X, A = random_rounds(4, 60, seed=5)
    nu = sem.noise_mean if known_means else None
    removals, weights = algorithm_1(X, A, nu, settings)
    model = CSL(**settings).fit(X, interventions=A, noise_mean=nu)
    assert [(r.regime, r.parent, r.child) for r in model.history_] == [edge for edge, _ in removals]
    np.testing.assert_allclose(
        [r.score for r in model.history_], [score for _, score in removals], rtol=1e-6, atol=1e-8
    )
    assert {tuple(edge) for edge in np.argwhere(model.adjacency_).tolist()} == set(weights)
    for edge, weight in weights.items():
        assert model.weights_[edge] == pytest.approx(weight, rel=1e-8)
