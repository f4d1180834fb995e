"""Orders, cycles and ancestors against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from causalarms.sem.regimes import ancestors, find_cycle, topological_order


@st.composite
def digraphs(draw: st.DrawFn) -> np.ndarray:
    n_nodes = draw(st.integers(1, 7))
    bits = st.lists(st.booleans(), min_size=n_nodes, max_size=n_nodes)
    edges = np.array(draw(st.lists(bits, min_size=n_nodes, max_size=n_nodes)), dtype=bool)
    sparse = draw(st.integers(0, 2**32 - 1))
    thin = np.random.default_rng(sparse).random(edges.shape) < draw(st.sampled_from([0.2, 1.0]))
    return edges & thin & ~np.eye(n_nodes, dtype=bool)


@given(digraphs())
def test_an_order_exists_exactly_for_acyclic_graphs(edges: np.ndarray) -> None:
    graph = nx.from_numpy_array(edges, create_using=nx.DiGraph)
    order = topological_order(edges)
    assert (order is not None) == nx.is_directed_acyclic_graph(graph)
    if order is not None:
        assert sorted(order.tolist()) == list(range(len(edges)))
        assert not np.tril(edges[np.ix_(order, order)]).any()


@given(digraphs())
def test_a_cycle_is_found_where_there_is_one_and_runs_along_edges(edges: np.ndarray) -> None:
    cycle = find_cycle(edges)
    graph = nx.from_numpy_array(edges, create_using=nx.DiGraph)
    assert bool(cycle) != nx.is_directed_acyclic_graph(graph)
    assert len(set(cycle)) == len(cycle)
    for parent, child in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        assert edges[parent, child]


@given(digraphs())
def test_ancestors_are_those_with_a_path(edges: np.ndarray) -> None:
    closure = nx.transitive_closure(nx.from_numpy_array(edges, create_using=nx.DiGraph))
    expected = nx.to_numpy_array(closure, nodelist=range(len(edges))) > 0
    np.testing.assert_array_equal(ancestors(edges), expected)
