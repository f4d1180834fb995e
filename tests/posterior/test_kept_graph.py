"""The graph that misses an edge with at most a stated probability."""

from __future__ import annotations

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posterior_by_enumeration import enumerate_pairs
from small_systems import posterior_of, rounds

from causalarms.posterior.dag import KeptGraph, keep_per_edge, keep_whole_graph, safe_order

ALL_KNOWN = np.ones((2, 5), dtype=bool)


def against(order: tuple[int, ...], weight: np.ndarray) -> float:
    place = np.argsort(order)
    return float(weight[:, place[:, None] > place[None, :]].sum())


def is_dag(kept: KeptGraph) -> bool:
    place = np.argsort(kept.order)
    return all(place[p] < place[c] for _, p, c in np.argwhere(kept.adjacency))


@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.3, 1.0]))
@settings(max_examples=20)
def test_no_order_has_less_probability_against_it(seed: int, tolerance: float) -> None:
    rng = np.random.default_rng(seed)
    probability = rng.random((2, 5, 5)) ** 4
    probability[:, range(5), range(5)] = 0
    order = safe_order(probability, tolerance)
    above = np.where(probability > tolerance, probability, 0)
    least = min(against(o, above) for o in permutations(range(5)))
    assert against(tuple(order), above) == pytest.approx(least, abs=1e-12)


@given(st.integers(0, 30), st.integers(5, 80), st.sampled_from([0.01, 0.05, 0.2, 0.6]))
@settings(max_examples=30)
def test_per_edge(seed: int, n_rows: int, tolerance: float) -> None:
    """Sparsest: nothing improbable is kept. Honoured exactly when the likely edges are acyclic."""
    sem, X, A = rounds(5, n_rows, seed)
    posterior = posterior_of(X, A, noise_mean=sem.noise_mean)
    probability = posterior.edge_probability
    kept = keep_per_edge(posterior, tolerance, ALL_KNOWN)
    likely = probability > tolerance
    assert is_dag(kept)
    assert not (kept.adjacency & ~likely).any()
    union = nx.DiGraph(np.argwhere(likely.any(axis=0)).tolist())
    assert kept.honoured == nx.is_directed_acyclic_graph(union)
    np.testing.assert_array_equal(kept.left_out, likely & ~kept.adjacency)
    if kept.honoured:
        assert kept.largest_dropped <= tolerance
        np.testing.assert_array_equal(kept.adjacency, likely)
    assert kept.largest_dropped == probability[~kept.adjacency].max()


@given(st.integers(0, 30), st.integers(5, 80), st.sampled_from([0.01, 0.1, 0.5]))
@settings(max_examples=30)
def test_whole_graph(seed: int, n_rows: int, tolerance: float) -> None:
    sem, X, A = rounds(5, n_rows, seed)
    posterior = posterior_of(X, A, noise_mean=sem.noise_mean)
    kept = keep_whole_graph(posterior, tolerance, ALL_KNOWN)
    assert is_dag(kept)
    assert kept.honoured == (kept.order_misses <= tolerance)
    assert kept.misses >= kept.order_misses - 1e-12
    if kept.honoured:
        assert kept.misses <= tolerance
        lost = posterior.edge_probability
        if kept.adjacency.any():  # without its least probable edge it would miss too much
            edges = np.argwhere(kept.adjacency)
            weakest = edges[np.argmin(lost[kept.adjacency])]
            fewer = kept.adjacency.copy()
            fewer[tuple(weakest)] = False
            assert 1 - posterior.probability_within(fewer) > tolerance
    else:
        within_order = 1 - kept.order_misses
        assert 1 - kept.misses >= (1 - tolerance) * within_order - 1e-12


def test_misses_are_exact() -> None:
    sem, X, A = rounds(4, 20, 3)
    posterior = posterior_of(X, A, noise_mean=sem.noise_mean)
    truth = enumerate_pairs(X, A, noise_mean=sem.noise_mean)
    for kept in (
        keep_per_edge(posterior, 0.1, ALL_KNOWN[:, :4]),
        keep_whole_graph(posterior, 0.3, ALL_KNOWN[:, :4]),
    ):
        assert kept.misses == pytest.approx(1 - truth.probability_within(kept.adjacency), abs=1e-9)


def test_no_tolerance_at_all_keeps_every_edge_of_the_order() -> None:
    _, X, A = rounds(5, 20, 0)
    posterior = posterior_of(X, A)
    for kept in (
        keep_per_edge(posterior, 0.0, ALL_KNOWN),
        keep_whole_graph(posterior, 0.0, ALL_KNOWN),
    ):
        assert kept.adjacency.sum() == 2 * 10
        assert not kept.honoured


def test_nothing_is_promised_of_mechanisms_without_data() -> None:
    sem, X, A = rounds(5, 200, 0)
    A[:, 2] = 0
    X = sem.sample(A, np.random.default_rng(0))
    known = ALL_KNOWN.copy()
    known[1, 2] = False
    posterior = posterior_of(X, A, noise_mean=sem.noise_mean)
    for kept in (keep_per_edge(posterior, 0.05, known), keep_whole_graph(posterior, 0.05, known)):
        assert not kept.adjacency[1, :, 2].any()
        assert kept.misses < 0.3
