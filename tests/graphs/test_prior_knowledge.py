"""Forbidden and required edges and tiers hold exactly, or contradict each other by name."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_rounds import random_rounds

from causalarms import CSL
from causalarms.errors import ModelError

NODES = ("x0", "x1", "x2", "x3", "x4")


def pairs(chosen: np.ndarray) -> list[tuple[str, str]]:
    return [(NODES[p], NODES[c]) for p, c in np.argwhere(chosen)]


@given(st.integers(0, 10**6), st.booleans(), st.floats(0, 0.9))
def test_excluded_edges_never_appear(seed: int, joint: bool, share: float) -> None:
    sem, X, A = random_rounds(5, 60, seed % 7)
    banned = np.random.default_rng(seed).random((5, 5)) < share
    np.fill_diagonal(banned, False)
    model = CSL(excluded=pairs(banned), joint=joint)
    model.fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert not (model.adjacency_ & banned).any()
    assert not any(banned[r.parent, r.child] for r in model.history_)


@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.floats(0, 1))
def test_required_edges_are_always_there(
    seed: int, joint: bool, edge_weighting: bool, share: float
) -> None:
    """Any acyclic set of them, true or not, in both regimes; and the result stays acyclic."""
    sem, X, A = random_rounds(5, 60, seed % 7)
    rng = np.random.default_rng(seed)
    order = rng.permutation(5)
    needed = np.zeros((5, 5), dtype=bool)
    needed[np.ix_(order, order)] = np.triu(rng.random((5, 5)) < share, 1)
    model = CSL(required=pairs(needed), joint=joint, edge_weighting=edge_weighting)
    model.fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert (model.adjacency_ | ~needed).all()
    for regime in (0, 1):
        edges = np.argwhere(model.adjacency_[regime]).tolist()
        assert nx.is_directed_acyclic_graph(nx.DiGraph(edges))
    if joint:
        assert model.order_ is not None


@given(st.integers(0, 10**6), st.booleans())
def test_no_parent_stands_in_a_later_tier(seed: int, joint: bool) -> None:
    sem, X, A = random_rounds(5, 60, seed % 7)
    rng = np.random.default_rng(seed)
    tier_of = rng.integers(-1, 3, 5)  # -1: in no tier, free
    tiers = [[NODES[i] for i in np.flatnonzero(tier_of == t)] for t in range(3)]
    model = CSL(tiers=tiers, joint=joint).fit(X, interventions=A, noise_mean=sem.noise_mean)
    for _, parent, child in np.argwhere(model.adjacency_):
        assert -1 in tier_of[[parent, child]] or tier_of[parent] <= tier_of[child]


def test_one_tier_of_all_nodes_says_nothing() -> None:
    sem, X, A = random_rounds(5, 60, 0)
    free = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    tied = CSL(tiers=[NODES]).fit(X, interventions=A, noise_mean=sem.noise_mean)
    np.testing.assert_array_equal(tied.weights_, free.weights_)


def test_edges_against_required_ones_are_no_candidates() -> None:
    """x0 -> x1 -> x2 excludes x1 -> x0, x2 -> x1 and x2 -> x0 before any score is computed."""
    sem, X, A = random_rounds(5, 60, 0)
    model = CSL(required=[("x0", "x1"), ("x1", "x2")])
    model.fit(X, interventions=A, noise_mean=sem.noise_mean)
    backwards = {(1, 0), (2, 1), (2, 0)}
    assert not backwards & {(r.parent, r.child) for r in model.history_}
    assert not any(model.adjacency_[:, p, c].any() for p, c in backwards)


def test_a_full_order_leaves_nothing_to_remove() -> None:
    sem, X, A = random_rounds(5, 60, 0)
    tiers = [[sem.nodes[i]] for i in sem.order]
    model = CSL(tiers=tiers).fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert model.history_ == []
    assert model.order_ == [tier[0] for tier in tiers]
    assert model.adjacency_.sum() == 2 * 10


def test_nodes_by_position_and_by_name_are_the_same() -> None:
    sem, X, A = random_rounds(5, 60, 0)
    by_name: dict[str, Any] = {
        "excluded": [("x0", "x4")],
        "required": [("x1", "x2")],
        "tiers": [["x3"], ["x4"]],
    }
    by_position: dict[str, Any] = {
        "excluded": [(0, -1)],
        "required": [(1, 2)],
        "tiers": [[3], [4]],
    }
    fits = [
        CSL(**settings).fit(X, interventions=A, noise_mean=sem.noise_mean).adjacency_
        for settings in (by_name, by_position)
    ]
    np.testing.assert_array_equal(fits[0], fits[1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"required": [("x0", "x1"), ("x1", "x2"), ("x2", "x0")]},
            "required edges contain the cycle x0 -> x1 -> x2 -> x0",
        ),
        (
            {"required": [("x0", "x1")], "excluded": [("x0", "x1")]},
            "edge x0 -> x1 is required and excluded",
        ),
        (
            {"required": [("x3", "x1")], "tiers": [["x1"], ["x3"]]},
            r"edge x3 -> x1 is required and excluded \(or against tiers\)",
        ),
        ({"tiers": [["x1"], ["x1"]]}, "node 'x1' stands in two tiers"),
        ({"excluded": [("x1", "x1")]}, "node 'x1' cannot be its own parent"),
        ({"required": [("x1", "x9")]}, "there is no node 'x9'"),
        ({"tiers": [["x1", "pressure"]]}, "there is no node 'pressure'"),
        ({"excluded": ["x1"]}, "an edge is a pair"),
        ({"excluded": [("x0", "x1", "x2")]}, "an edge is a pair"),
        ({"excluded": [(0, 7)]}, "there is no node 7"),
    ],
)
def test_contradictions(settings: dict[str, Any], message: str) -> None:
    _, X, A = random_rounds(5, 60, 0)
    with pytest.raises(ModelError, match=message):
        CSL(**settings).fit(X, interventions=A)
