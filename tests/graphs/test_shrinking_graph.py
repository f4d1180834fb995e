"""Incremental acyclicity against networkx along random sequences of removals."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms.graphs.csl import ShrinkingGraph


@given(st.integers(1, 7), st.integers(0, 10**6), st.integers(1, 2))
def test_acyclic_exactly_when_networkx_says_so(n_nodes: int, seed: int, parallel: int) -> None:
    """Down to the empty graph; up to two parallel edges, one per regime."""
    rng = np.random.default_rng(seed)
    count = rng.integers(0, parallel + 1, (n_nodes, n_nodes)) * ~np.eye(n_nodes, dtype=bool)
    graph = ShrinkingGraph(count)
    edges = [(p, c) for p, c in np.argwhere(count) for _ in range(count[p, c])]
    rng.shuffle(edges)
    for parent, child in [*edges, (-1, -1)]:
        left = nx.from_numpy_array(count > 0, create_using=nx.DiGraph)
        assert graph.acyclic == nx.is_directed_acyclic_graph(left)
        place = {node: position for position, node in enumerate(graph.order)}
        assert len(place) == len(graph.order)
        for p, c in left.edges:
            assert c not in place or (p in place and place[p] < place[c])
        if parent >= 0:
            graph.remove(int(parent), int(child))
            count[parent, child] -= 1
    assert graph.acyclic


def test_a_self_loop_is_a_cycle() -> None:
    graph = ShrinkingGraph([[1]])
    assert not graph.acyclic
    graph.remove(0, 0)
    assert graph.order == [0]


def test_an_absent_edge_cannot_be_removed() -> None:
    graph = ShrinkingGraph([[0, 1], [0, 0]])
    graph.remove(0, 1)
    with pytest.raises(ValueError, match="no edge 0 -> 1"):
        graph.remove(0, 1)


def test_the_given_matrix_stays_as_it_was() -> None:
    given_matrix = np.array([[0, 1], [1, 0]])
    ShrinkingGraph(given_matrix).remove(0, 1)
    assert given_matrix.tolist() == [[0, 1], [1, 0]]
