"""Layered layout: causes on the left, no accident with cycles, the same answer every time."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalarms.arrays import BoolArray
from causalarms.pictures import layout
from causalarms.pictures.layout import assign_layers, layered_layout, without_cycles
from causalarms.sem.regimes import topological_order

WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None  # as if it were not installed
from causalarms.pictures.layout import layered_layout
print(layered_layout([[0, 1], [0, 0]]).tolist())
"""


@st.composite
def graphs(draw: st.DrawFn, *, acyclic: bool) -> BoolArray:
    n_nodes = draw(st.integers(1, 8))
    cells = draw(st.lists(st.booleans(), min_size=n_nodes**2, max_size=n_nodes**2))
    edges = np.array(cells).reshape(n_nodes, n_nodes)
    if acyclic:
        edges = np.triu(edges, 1)
    shuffled = np.array(draw(st.permutations(range(n_nodes))))
    return edges[np.ix_(shuffled, shuffled)]


@settings(max_examples=15, deadline=None)
@given(graphs(acyclic=True))
def test_parents_are_left_of_their_children(edges: BoolArray) -> None:
    across = layered_layout(edges)[:, 0]
    parents, children = np.nonzero(edges)
    assert (across[parents] < across[children]).all()


@settings(max_examples=15, deadline=None)
@given(graphs(acyclic=False))
def test_any_graph_gets_distinct_places_in_the_unit_square(edges: BoolArray) -> None:
    places = layered_layout(edges)
    assert places.shape == (len(edges), 2)
    assert (places >= 0).all()
    assert (places <= 1).all()
    assert len(np.unique(places.round(6), axis=0)) == len(edges)


@settings(max_examples=15, deadline=None)
@given(graphs(acyclic=False))
def test_breaking_cycles_leaves_an_acyclic_part_and_all_of_a_dag(edges: BoolArray) -> None:
    np.fill_diagonal(edges, False)
    kept = without_cycles(edges)
    assert topological_order(kept) is not None
    if topological_order(edges) is not None:
        assert np.array_equal(kept, edges)


def test_layer_is_the_longest_path_from_a_source() -> None:
    edges = np.zeros((4, 4), dtype=bool)
    edges[0, 1] = edges[1, 2] = edges[0, 2] = edges[3, 2] = True
    assert assign_layers(edges).tolist() == [0, 1, 2, 0]


def test_nodes_without_edges_share_the_columns() -> None:
    assert np.bincount(assign_layers(np.zeros((9, 9), dtype=bool))).tolist() == [3, 3, 3]


def test_a_shortcut_does_not_run_through_the_node_it_skips() -> None:
    edges = np.zeros((3, 3), dtype=bool)
    edges[0, 1] = edges[1, 2] = edges[0, 2] = True
    places = layered_layout(edges)
    height_of_the_shortcut = (places[0, 1] + places[2, 1]) / 2
    assert abs(places[1, 1] - height_of_the_shortcut) > 0.1


@pytest.mark.parametrize("n_nodes", [3, 8])
def test_the_same_graph_gives_the_same_bits(n_nodes: int) -> None:
    edges = np.triu(np.random.default_rng(3).random((n_nodes, n_nodes)) < 0.4, 1)
    assert np.array_equal(layered_layout(edges), layered_layout(edges.copy()))


def test_the_given_adjacency_is_not_changed() -> None:
    edges = np.ones((3, 3), dtype=bool)
    layered_layout(edges)
    assert edges.all()


def test_one_node_stands_in_the_middle() -> None:
    assert layered_layout([[False]]).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("batch_pairs", [1, 2**18])
def test_heights_judged_at_once_cost_what_each_of_them_costs(
    batch_pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "BATCH_PAIRS", batch_pairs)
    rng = np.random.default_rng(5)
    edges = np.argwhere(np.triu(rng.random((7, 7)) < 0.6, 1))
    across, heights, choices = rng.random(7).round(1), rng.random(7), np.linspace(0, 1, 6)
    for node in range(7):
        near = layout._surroundings(node, across, edges, 0.2)
        together = layout._costs(near, choices, across, heights)
        one_by_one = [layout._costs(near, choices[k : k + 1], across, heights)[0] for k in range(6)]
        np.testing.assert_allclose(together, one_by_one, rtol=1e-12)


def test_layouts_need_no_matplotlib() -> None:
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT_MATPLOTLIB], capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip() == "[[0.0, 0.5], [1.0, 0.5]]"


def test_roots_are_left_also_without_an_edge() -> None:
    edges = np.zeros((5, 5), dtype=bool)
    edges[0, 1] = edges[1, 2] = True
    assert assign_layers(edges, roots=[0, 3]).tolist()[:4] == [0, 1, 2, 0]
    assert assign_layers(edges, roots=[0, 3])[4] > 0
    across = layered_layout(np.zeros((3, 3), dtype=bool), roots=[1])[:, 0]
    assert across[1] == 0 < min(across[0], across[2])
