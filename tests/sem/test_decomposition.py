"""Prop. 1: a graph is its sub-graphs, each a node with all its incoming edges, and only one way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from causalarms import random_sem


@given(st.integers(1, 8), st.integers(0, 10**6), st.integers(0, 1))
def test_sub_graphs_partition_the_edges(n_nodes: int, seed: int, regime: int) -> None:
    sem = random_sem(n_nodes, seed=seed)
    edges = {
        (sem.nodes[p], sem.nodes[c]) for p, c in zip(*sem.adjacency[regime].nonzero(), strict=True)
    }
    parts = [{(parent, node) for parent in sem.parents(node, regime)} for node in sem.nodes]
    assert set().union(*parts) == edges
    assert sum(len(part) for part in parts) == len(edges)
    # unique: an edge belongs to the sub-graph of its head, and there is no other choice
    for node, part in zip(sem.nodes, parts, strict=True):
        assert part == {edge for edge in edges if edge[1] == node}


@given(st.integers(2, 8), st.integers(0, 10**6), st.data())
def test_every_post_intervention_graph_is_assembled_from_mechanisms(
    n_nodes: int, seed: int, data: st.DataObject
) -> None:
    sem = random_sem(n_nodes, seed=seed)
    a = data.draw(st.lists(st.integers(0, 1), min_size=n_nodes, max_size=n_nodes))
    assembled = sem.post_intervention_weights(a)
    for node in range(n_nodes):
        assert assembled[:, node].tolist() == sem.weights[a[node], :, node].tolist()
