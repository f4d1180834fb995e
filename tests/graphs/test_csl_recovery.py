"""CSL finds the graphs of the paper's ensemble; without edge weights it always misses edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_rounds import random_rounds

from causalarms import CSL
from causalarms.graphs import GraphErrors, graph_errors


def errors(settings: dict[str, Any]) -> list[GraphErrors]:
    """Regime 0 of ten systems of 8 nodes after 200 rounds, as in Sec. VI-A."""
    found = []
    for seed in range(10):
        sem, X, A = random_rounds(8, 200, seed)
        model = CSL(**settings).fit(X, interventions=A, noise_mean=sem.noise_mean)
        found.append(graph_errors(sem.adjacency[0], model.adjacency_[0]))
    return found


@pytest.mark.parametrize(
    ("settings", "precision"),
    [
        ({"joint": True}, 0.95),
        ({}, 0.9),
        ({"joint": True, "mutual_information": "squares"}, 0.95),
    ],
    ids=["joint", "apart", "joint squares"],
)
def test_precision_and_recall(settings: dict[str, Any], precision: float) -> None:
    found = errors(settings)
    assert np.mean([e.recall for e in found]) >= 0.98
    assert np.mean([e.precision for e in found]) >= precision


def test_without_edge_weighting_every_graph_lacks_an_edge() -> None:
    assert all(e.false_negative for e in errors({"edge_weighting": False}))


def test_both_regimes_and_their_weights() -> None:
    """Weights of recovered edges within 5 standard errors (at most 0.5 here) of the truth."""
    sem, X, A = random_rounds(6, 1000, seed=0)
    model = CSL(joint=True).fit(X, interventions=A, noise_mean=sem.noise_mean)
    np.testing.assert_array_equal(model.adjacency_, sem.adjacency)
    np.testing.assert_allclose(model.weights_, sem.weights, atol=0.5)
    np.testing.assert_allclose(model.noise_std_, 1.0, atol=5 / np.sqrt(2 * 450))
