"""Regeneration of mechanisms under both rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms import LinearSEM, random_sem
from causalarms.errors import ModelError
from causalarms.sem import Ensemble, Regeneration, regenerate


def differing(before: LinearSEM, after: LinearSEM) -> set[tuple[int, int]]:
    return {
        (regime, node)
        for regime in (0, 1)
        for node in range(before.n_nodes)
        if before.weights[regime, :, node].tolist() != after.weights[regime, :, node].tolist()
    }


def check_common(before: LinearSEM, change: Regeneration, n_mechanisms: int) -> None:
    assert set(change.mechanisms) == differing(before, change.sem)
    assert len(change.mechanisms) == len(set(change.mechanisms)) <= n_mechanisms
    assert change.sem.order.tolist() == before.order.tolist()
    assert change.sem.reward == before.reward
    assert change.sem.nodes == before.nodes


@given(st.integers(3, 7), st.integers(1, 4), st.integers(0, 10**6))
def test_authors_rule(n_nodes: int, n_mechanisms: int, seed: int) -> None:
    before = random_sem(n_nodes, seed=seed)
    change = regenerate(before, n_mechanisms, np.random.default_rng(seed))
    check_common(before, change, n_mechanisms)
    best = before.best_intervention()
    assert change.sem.best_intervention().tolist() != best.tolist()
    for regime, node in change.mechanisms:
        assert regime == best[node]


@given(st.integers(1, 7), st.integers(0, 10**6), st.data())
def test_plain_rule(n_nodes: int, seed: int, data: st.DataObject) -> None:
    n_mechanisms = data.draw(st.integers(1, 2 * n_nodes))
    before = random_sem(n_nodes, seed=seed)
    change = regenerate(before, n_mechanisms, np.random.default_rng(seed), rule="plain")
    check_common(before, change, n_mechanisms)


def test_plain_rule_redraws_distinct_mechanisms() -> None:
    """All 2N chosen: all but the root's two differ (a redraw of continuous weights never repeats
    a column that has an edge, and at probability 1 every column has)."""
    before = random_sem(5, seed=1, edge_probability=1.0)
    change = regenerate(
        before,
        10,
        np.random.default_rng(0),
        rule="plain",
        ensemble=Ensemble(edge_probability=1.0),
    )
    assert len(change.mechanisms) == 8
    assert before.order[0] not in {node for _, node in change.mechanisms}


def test_new_columns_follow_the_given_ensemble() -> None:
    before = random_sem(6, seed=1, edge_probability=1.0)
    change = regenerate(
        before,
        12,
        np.random.default_rng(0),
        rule="plain",
        ensemble=Ensemble(edge_probability=0.0),
    )
    assert not change.sem.adjacency.any()


def test_the_generator_decides() -> None:
    before = random_sem(6, seed=1)
    first, again, other = (regenerate(before, 3, np.random.default_rng(s)) for s in (0, 0, 1))
    assert first.sem == again.sem
    assert first.sem != other.sem


def test_the_given_system_stays_as_it_was() -> None:
    before = random_sem(6, seed=1)
    regenerate(before, 3, np.random.default_rng(0))
    assert before == random_sem(6, seed=1)


def test_refusals() -> None:
    sem, rng = random_sem(3, seed=0), np.random.default_rng(0)
    with pytest.raises(ModelError, match="rule must be one of authors, plain, not 'other'"):
        regenerate(sem, 1, rng, rule="other")
    with pytest.raises(ModelError, match="cannot regenerate 7 of 6 mechanisms"):
        regenerate(sem, 7, rng, rule="plain")
    with pytest.raises(ModelError, match="n_mechanisms must be an integer of at least 1, not 0"):
        regenerate(sem, 0, rng)
    with pytest.raises(ModelError, match="20 redraws of 2 mechanisms never changed the best"):
        regenerate(random_sem(1, seed=0), 2, rng, max_tries=20)
