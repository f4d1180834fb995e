"""Orders with little weight against them, beside the best of all orders."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from causalarms.posterior.dag import feedback_order, fill_costs
from causalarms.posterior.orders import best_order


def against(weight: np.ndarray, order: np.ndarray) -> float:
    return float(np.tril(weight[np.ix_(order, order)]).sum())


@given(st.integers(0, 10**6))
def test_edges_without_a_cycle_all_follow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(25)
    weight = np.triu(rng.random((25, 25)) * (rng.random((25, 25)) < 0.2), 1)
    weight = weight[np.ix_(labels, labels)]
    small = rng.random((25, 25)) * 1e-6
    np.fill_diagonal(small, 0)
    order = feedback_order(weight, weight + small)
    assert sorted(order) == list(range(25))
    assert against(weight, order) == 0


def test_cycles_cost_little_more_than_the_best_order() -> None:
    ratios = []
    for seed in range(20):
        weight = np.random.default_rng(seed).random((9, 9)) ** 4
        np.fill_diagonal(weight, 0)
        local = np.zeros((9, 1 << 8))
        fill_costs(weight, local)
        best = against(weight, best_order(local))
        found = against(weight, feedback_order(weight, weight))
        assert found >= best - 1e-12
        ratios.append(found / best)
    assert np.mean(ratios) < 1.05
