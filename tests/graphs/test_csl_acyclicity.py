"""A joint fit has one order for both regimes, whatever the data; regimes learned apart may not."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_rounds import random_rounds

from causalarms import CSL


def union(model: CSL) -> nx.DiGraph:
    return nx.DiGraph([(p, c) for _, p, c in np.argwhere(model.adjacency_).tolist()])


@given(st.integers(2, 6), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_joint_union_is_always_acyclic(
    n_nodes: int, seed: int, edge_weighting: bool, rounded: bool
) -> None:
    """On data of no system at all, tied or not."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(80, n_nodes))
    if rounded:
        X = np.round(2 * X) + 1e-3 * np.arange(n_nodes) * X
    model = CSL(joint=True, edge_weighting=edge_weighting)
    model.fit(X, interventions=rng.integers(0, 2, X.shape))
    assert nx.is_directed_acyclic_graph(union(model))
    assert model.order_ is not None
    assert sorted(model.order_) == sorted(model.nodes_)
    place = {node: i for i, node in enumerate(model.order_)}
    for parent, child in model.graph_.edges:
        assert place[parent] < place[child]


@given(st.integers(2, 6), st.integers(0, 10**6))
def test_each_regime_is_acyclic_and_order_is_none_when_they_mix_into_a_cycle(
    n_nodes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, n_nodes))
    model = CSL().fit(X, interventions=rng.integers(0, 2, X.shape))
    for regime in (0, 1):
        edges = np.argwhere(model.adjacency_[regime]).tolist()
        assert nx.is_directed_acyclic_graph(nx.DiGraph(edges))
    assert (model.order_ is None) == (not nx.is_directed_acyclic_graph(union(model)))


def test_both_outcomes_of_regimes_learned_apart_occur() -> None:
    orders = []
    for seed in range(12):
        sem, X, A = random_rounds(5, 120, seed)
        orders.append(CSL().fit(X, interventions=A, noise_mean=sem.noise_mean).order_)
    assert any(order is None for order in orders)
    assert any(order is not None for order in orders)
