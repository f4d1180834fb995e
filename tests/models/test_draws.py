"""Interventions judged by draws of the whole system."""

from __future__ import annotations

import numpy as np
import pytest

import causalarms.models.draws
from causalarms import random_sem
from causalarms.models.belief import rewards_of
from causalarms.models.draws import most_optimistic, rank_of, upper_values
from causalarms.posterior.base import Draws
from causalarms.posterior.exact import ExactPosterior
from causalarms.sem.rewards import all_interventions, index_of
from causalarms.statistics.dataset import Moments


def draws_of(n_nodes: int, n_draws: int, *, same: bool = False) -> Draws:
    """Draws that are different systems altogether, or one system many times."""
    systems = [random_sem(n_nodes, seed=0 if same else s) for s in range(n_draws)]
    return Draws(
        order=np.array([s.order for s in systems]),
        adjacency=np.array([s.adjacency for s in systems]),
        weights=np.array([s.weights for s in systems]),
        intercept=np.array([s.mechanism_mean for s in systems]),
        noise_std=np.array([s.mechanism_std for s in systems]),
    )


def rewards(draws: Draws, n_nodes: int) -> np.ndarray:
    return rewards_of(draws, all_interventions(n_nodes), n_nodes - 1)


@pytest.mark.parametrize("quantile", [0.0, 0.5, 0.9, 1.0])
def test_the_upper_value_is_a_quantile_over_draws(quantile: float) -> None:
    draws = draws_of(5, 20)
    table = rewards(draws, 5)
    expected = np.quantile(table, quantile, axis=0, method="lower")
    np.testing.assert_allclose(upper_values(table, rank_of(quantile, 20)), expected)
    best = most_optimistic(draws, 4, quantile)
    assert best.upper == pytest.approx(expected.max())
    assert best.mean == pytest.approx(table[:, index_of(best.intervention)].mean())


def test_the_search_finds_what_enumeration_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    found = 0
    for seed in range(10):
        sem = random_sem(8, seed=seed)
        rng = np.random.default_rng(seed)
        moments = Moments(8)
        for a in rng.integers(0, 2, (20, 8)).astype(np.uint8):
            moments.add(sem.sample(a[None], rng)[0], a)
        draws = ExactPosterior(8, moments, noise_mean=sem.noise_mean).draw(rng, 20)
        exact = most_optimistic(draws, 7, 0.9)
        monkeypatch.setattr(causalarms.models.draws, "MAX_TABLE_NODES", 0)
        monkeypatch.setattr(causalarms.models.draws, "MAX_ROWS", 1)
        searched = most_optimistic(draws, 7, 0.9)
        monkeypatch.undo()
        assert searched.upper <= exact.upper + 1e-9
        found += searched.upper == pytest.approx(exact.upper)
    assert found >= 9
