"""Tests of Gaussian shape and linearity: right on the model, and against the F test in full."""

from __future__ import annotations

import numpy as np
import pytest
from random_rounds import random_rounds
from scipy import stats

from causalarms.graphs.diagnostics import MechanismCheck, check_mechanisms

NODES = ("a", "b")
EDGE = np.array([[[0, 1], [0, 0]]] * 2, dtype=bool)


def check_pair(x: np.ndarray, y: np.ndarray) -> MechanismCheck:
    """a -> b with the least-squares weight, all natural."""
    slope = np.polyfit(x, y, 1)[0]
    known = np.array([[True, True], [False, False]])
    regimes = np.zeros((len(x), 2), dtype=np.uint8)
    checks = check_mechanisms(np.column_stack([x, y]), regimes, NODES, EDGE, EDGE * slope, known)
    assert [(c.regime, c.node) for c in checks] == [("natural", "a"), ("natural", "b")]
    return checks[1]


def test_p_values_are_uniform_under_the_model() -> None:
    """Kolmogorov-Smirnov over 300 draws at level 1e-3; Jarque-Bera's are so only asymptotically."""
    rng = np.random.default_rng(0)
    linear, gaussian = [], []
    for _ in range(300):
        x = rng.normal(size=200)
        check = check_pair(x, 2 * x + rng.normal(size=200))
        linear.append(check.linear_p)
        gaussian.append(check.gaussian_p)
    assert stats.kstest(linear, "uniform").pvalue > 1e-3
    assert np.mean(np.array(gaussian) < 0.05) < 0.1


def test_a_change_is_seen_and_steadiness_is_not_denied() -> None:
    """The three splits are counted: less than 5 % of steady mechanisms have a p-value below 5 %."""
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(300):
        x = rng.normal(size=90)
        p_values.append(check_pair(x, 2 * x + rng.normal(size=90)).steady_p)
    assert np.mean(np.array(p_values) < 0.05) < 0.05 + 3 * 0.0126  # standard errors
    x = rng.normal(size=90)
    later = np.arange(90) >= 60
    assert check_pair(x, np.where(later, -1.0, 2.0) * x + rng.normal(size=90)).steady_p < 1e-6
    assert np.isnan(check_pair(x[:8], x[:8] ** 3).steady_p)


def test_a_bend_is_seen() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    assert check_pair(x, x + 0.5 * x**2 + rng.normal(size=300)).linear_p < 1e-6


def test_heavy_tails_are_seen() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    assert check_pair(x, x + rng.standard_t(2, size=300)).gaussian_p < 1e-6


def test_reset_is_the_f_test_of_two_nested_regressions() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    y = x + 0.1 * x**2 + rng.normal(size=60)
    small = np.column_stack([np.ones(60), x])
    slope = np.polyfit(x, y, 1)[0]
    large = np.column_stack([small, (slope * x) ** 2])
    rss = [float(np.linalg.lstsq(d, y, rcond=None)[1][0]) for d in (small, large)]
    expected = stats.f.sf((rss[0] - rss[1]) / (rss[1] / 57), 1, 57)
    check = check_pair(x, y)
    assert check.linear_p == pytest.approx(expected, rel=1e-8)
    assert check.explained == pytest.approx(1 - rss[0] / ((y - y.mean()) ** 2).sum(), rel=1e-8)
    assert check.n_samples == 60


def test_without_an_effect_there_is_no_bend_to_test() -> None:
    values = np.column_stack([np.arange(12.0), np.tile([1.0, -1.0, -1.0], 4)])
    regimes, known = np.zeros((12, 2), dtype=np.uint8), np.array([[False, True], [False, False]])
    (check,) = check_mechanisms(values, regimes, NODES, EDGE, 0.0 * EDGE, known)
    assert np.isnan(check.linear_p)
    assert 0 < check.gaussian_p < 1


def test_every_known_mechanism_is_checked_on_its_own_samples() -> None:
    sem, X, A = random_rounds(4, 200, 1)
    known = np.ones((2, 4), dtype=bool)
    known[1, 2] = False
    checks = check_mechanisms(X, A.astype(np.uint8), sem.nodes, sem.adjacency, sem.weights, known)
    assert len(checks) == 7
    for check in checks:
        regime, node = check.regime == "intervened", sem.nodes.index(check.node)
        assert check.n_samples == (A[:, node] == regime).sum()
        assert 0 <= check.gaussian_p <= 1


def test_a_node_held_constant_by_its_intervention_is_no_division_by_zero() -> None:
    sem, X, A = random_rounds(3, 100, 1)
    X[A[:, 0] == 1, 0] = 4.0
    weights, adjacency = sem.weights.copy(), sem.adjacency.copy()
    weights[1, :, 0], adjacency[1, :, 0] = 0.0, False
    known = np.ones((2, 3), dtype=bool)
    checks = check_mechanisms(X, A.astype(np.uint8), sem.nodes, adjacency, weights, known)
    held = next(c for c in checks if (c.regime, c.node) == ("intervened", sem.nodes[0]))
    assert np.isnan(held.explained)
    assert np.isnan(held.gaussian_p)
