"""networkx, LiNGAM and causal-learn: there and back, and the direction of one known edge."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms import random_sem
from causalarms.errors import ModelError
from causalarms.sem import (
    from_causal_learn,
    from_lingam,
    from_networkx,
    to_causal_learn,
    to_lingam,
    to_networkx,
)


@given(st.integers(1, 7), st.integers(0, 10**6))
def test_networkx_round_trip(n_nodes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sem = random_sem(n_nodes, seed=seed).replace(
        noise_mean=rng.normal(size=(2, n_nodes)),
        noise_std=rng.uniform(0.5, 2, (2, n_nodes)),
        reward=int(rng.integers(n_nodes)),
    )
    assert from_networkx(to_networkx(sem)) == sem


def test_networkx_edges_point_from_cause_to_effect() -> None:
    sem = random_sem(6, seed=4)
    graph = to_networkx(sem)
    assert nx.is_directed_acyclic_graph(graph)
    for parent, child, weights in graph.edges(data=True):
        p, c = sem.nodes.index(parent), sem.nodes.index(child)
        assert (weights["natural"], weights["intervened"]) == tuple(sem.weights[:, p, c])
    assert graph.number_of_edges() == sem.adjacency.any(axis=0).sum()


def test_plain_weights_serve_both_regimes() -> None:
    graph = nx.DiGraph()
    graph.add_node("a", noise_mean=3.0)
    graph.add_edge("a", "b", weight=2.0)
    sem = from_networkx(graph)
    assert sem.weights[:, 0, 1].tolist() == [2.0, 2.0]
    assert sem.noise_mean.tolist() == [[3.0, 0.0], [3.0, 0.0]]
    assert sem.noise_std.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert sem.reward == 1


def test_an_edge_without_weight_is_named() -> None:
    with pytest.raises(ModelError, match="edge a -> b has neither 'natural' nor 'weight'"):
        from_networkx(nx.DiGraph([("a", "b")]))


def test_a_cyclic_networkx_graph_is_refused() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", natural=1.0, intervened=0.0)
    graph.add_edge("b", "a", natural=0.0, intervened=1.0)
    with pytest.raises(ModelError, match="a -> b -> a"):
        from_networkx(graph)


def test_lingam_rows_are_effects() -> None:
    """LiNGAM: x = A x + e, so that entry [1, 0] is the effect of node 0 on node 1."""
    weights = np.array([[0.0, 3.0], [0.0, 0.0]])
    assert to_lingam(weights).tolist() == [[0.0, 0.0], [3.0, 0.0]]
    np.testing.assert_array_equal(from_lingam(to_lingam(weights)), weights)


def test_causal_learn_marks() -> None:
    """causal-learn: graph[j, i] = 1 and graph[i, j] = -1 for i -> j."""
    marks = to_causal_learn([[0, 1], [0, 0]])
    assert marks.tolist() == [[0, -1], [1, 0]]


@given(st.integers(1, 7), st.integers(0, 10**6))
def test_causal_learn_round_trip(n_nodes: int, seed: int) -> None:
    adjacency = random_sem(n_nodes, seed=seed).adjacency[0]
    np.testing.assert_array_equal(from_causal_learn(to_causal_learn(adjacency)), adjacency)


@pytest.mark.parametrize(
    "marks", [[[0, -1], [-1, 0]], [[0, 1], [1, 0]], [[0, 2], [1, 0]]], ids=["--", "<->", "o->"]
)
def test_causal_learn_edges_without_direction_are_refused(marks: list[list[int]]) -> None:
    with pytest.raises(ModelError, match="nodes 0 and 1 are joined by an edge without a direction"):
        from_causal_learn(marks)
