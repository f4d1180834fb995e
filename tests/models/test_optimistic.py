"""The optimistic reward against formulas by hand and against a general optimiser."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from causalarms import random_sem
from causalarms.models.optimism import (
    Ellipsoids,
    optimistic_rewards,
    ridge_ellipsoids,
    usual_starts,
)
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.rewards import all_interventions
from causalarms.statistics.dataset import Dataset, Moments

RADIUS = 1.3


def ellipsoids(sem: LinearSEM, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (n_rows, sem.n_nodes))
    rows = Dataset(sem.n_nodes)
    rows.append(sem.sample(A, rng), A)
    gram = Moments.of(rows).gram
    centre, shape = ridge_ellipsoids(gram, sem.adjacency, sem.mechanism_mean, 0.7, 0.0)
    for regime, node in np.ndindex(2, sem.n_nodes):
        parents = np.flatnonzero(sem.adjacency[regime, :, node])
        samples = rows.samples(regime, node)
        X, y = samples[:, parents], samples[:, node] - sem.mechanism_mean[regime, node]
        V = 0.7 * np.eye(len(parents)) + X.T @ X
        expected = np.zeros(sem.n_nodes)
        expected[parents] = np.linalg.solve(V, X.T @ y)
        np.testing.assert_allclose(centre[regime, :, node], expected, rtol=1e-9, atol=1e-12)
        inverse = np.zeros((sem.n_nodes, sem.n_nodes))
        inverse[np.ix_(parents, parents)] = np.linalg.inv(V)
        np.testing.assert_allclose(shape[regime, node], inverse, rtol=1e-8, atol=1e-14)
    return centre, shape


def index(sem: LinearSEM, centre: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return optimistic_rewards(
        Ellipsoids(centre, shape), sem.adjacency, RADIUS, sem.mechanism_mean, sem.order,
        all_interventions(sem.n_nodes), sem.reward, usual_starts(sem.n_nodes),
    )  # fmt: skip


def by_optimiser(sem: LinearSEM, centre: np.ndarray, shape: np.ndarray, a: np.ndarray) -> float:
    """The best of many local searches over all weights at once."""
    n = sem.n_nodes
    roots = []
    for node in range(n):
        values, vectors = np.linalg.eigh(shape[a[node], node])
        roots.append(vectors * np.sqrt(np.maximum(values, 0)))
    nu = sem.mechanism_mean[a, np.arange(n)]

    def reward(free: np.ndarray) -> float:
        B = np.zeros((n, n))
        for node, part in enumerate(free.reshape(n, n)):
            inside = part / max(1.0, float(np.linalg.norm(part)))
            B[:, node] = centre[a[node], :, node] + RADIUS * roots[node] @ inside
        return float(np.linalg.solve(np.eye(n) - B.T, nu)[sem.reward])

    rng = np.random.default_rng(1)
    starts = [rng.normal(size=n * n) for _ in range(3)]
    return max(-minimize(lambda v: -reward(v), v, method="BFGS").fun for v in starts)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_index_is_the_maximum_over_all_ellipsoids(seed: int) -> None:
    sem = random_sem(3, seed=seed, edge_probability=1.0)
    centre, shape = ellipsoids(sem, 12)
    means, best = index(sem, centre, shape)
    for a, mean, value in zip(all_interventions(3), means, best, strict=True):
        B = np.column_stack([centre[regime, :, node] for node, regime in enumerate(a)])
        nu = sem.mechanism_mean[a, np.arange(3)]
        expected = np.linalg.solve(np.eye(3) - B.T, nu)[sem.reward]
        assert mean == pytest.approx(expected, rel=1e-9)
        found = by_optimiser(sem, centre, shape, a)
        assert value >= found - 1e-5 * abs(found)
        assert value <= found + 1e-3 * abs(found)  # the optimiser stops early at times


def test_of_one_parent_it_is_a_line() -> None:
    """x0 -> x1: nu_1 + (b + radius / sqrt(V)) nu_0, with V = 0.7 + the squares of x0."""
    sem = LinearSEM(weights=np.array([[[0, 2.0], [0, 0]], [[0, -1.0], [0, 0]]]), noise_mean=1.5)
    centre, shape = ellipsoids(sem, 20)
    _, best = index(sem, centre, shape)
    for a, value in zip(all_interventions(2), best, strict=True):
        slope = centre[a[1], 0, 1] + RADIUS * np.sqrt(shape[a[1], 1, 0, 0])
        assert value == pytest.approx(1.5 + slope * 1.5, rel=1e-12)


def test_without_radius_it_is_the_estimate() -> None:
    sem = random_sem(4, seed=1)
    centre, shape = ellipsoids(sem, 30)
    means, best = optimistic_rewards(
        Ellipsoids(centre, shape), sem.adjacency, 0.0, sem.mechanism_mean, sem.order,
        all_interventions(4), 3,
        usual_starts(4),
    )  # fmt: skip
    np.testing.assert_allclose(best, means, rtol=1e-12)


def test_three_starts_find_what_all_find() -> None:
    """Nearly: of five nodes at least 95 % of the interventions, and always the best of them."""
    everywhere = np.array(list(product([-1.0, 1.0], repeat=5)))
    missed, tried = 0, 0
    for seed, n_rows in product(range(4), (5, 60)):
        sem = random_sem(5, seed=seed)
        centre, shape = ellipsoids(sem, n_rows)
        _, found = index(sem, centre, shape)
        _, best = optimistic_rewards(
            Ellipsoids(centre, shape), sem.adjacency, RADIUS, sem.mechanism_mean, sem.order,
            all_interventions(5), sem.reward, everywhere,
        )  # fmt: skip
        assert found.max() == pytest.approx(best.max(), rel=1e-4)
        assert (found <= best + 1e-6 * np.abs(best)).all()
        missed += int((found < best - 1e-3 * np.abs(best)).sum())
        tried += len(best)
    assert missed <= 0.05 * tried
