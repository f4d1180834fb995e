"""Thompson sampling: draws from the Gaussian posterior of every mechanism's weights."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import random_sem
from causalarms.errors import ModelError
from causalarms.policies.known_graph import LinSEMTS, draw_weights
from causalarms.sem.rewards import all_interventions
from causalarms.statistics.dataset import Dataset, Moments

SEM = random_sem(4, seed=2)
PRECISION, STD = 0.25, 1.3


def data(n_rows: int = 60) -> Dataset:
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (n_rows, 4))
    rows = Dataset(4)
    rows.append(SEM.sample(A, rng), A)
    return rows


def posterior(rows: Dataset, regime: int, node: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance by the textbook, on the parents."""
    parents = np.flatnonzero(SEM.adjacency[regime, :, node])
    samples = rows.samples(regime, node)
    X, y = samples[:, parents], samples[:, node] - SEM.mechanism_mean[regime, node]
    V = PRECISION * np.eye(len(parents)) + X.T @ X
    return np.linalg.solve(V, X.T @ y), STD**2 * np.linalg.inv(V)


def draw(rows: Dataset, normals: np.ndarray) -> np.ndarray:
    gram = Moments.of(rows).gram
    return draw_weights(gram, SEM.adjacency, SEM.mechanism_mean, PRECISION, STD, normals)


def test_without_noise_a_draw_is_the_posterior_mean() -> None:
    weights = draw(data(), np.zeros((2, 4, 4)))
    assert (weights[~SEM.adjacency] == 0).all()
    for regime, node in np.ndindex(2, 4):
        parents = np.flatnonzero(SEM.adjacency[regime, :, node])
        mean, _ = posterior(data(), regime, node)
        np.testing.assert_allclose(weights[regime, parents, node], mean, rtol=1e-9)


def test_the_map_from_normals_has_the_posterior_covariance() -> None:
    """The draw is mean + M z; M M^T is the covariance, exactly."""
    rows = data()
    mean = draw(rows, np.zeros((2, 4, 4)))
    columns = []
    for j in range(4):
        normals = np.zeros((2, 4, 4))
        normals[:, :, j] = 1.0
        columns.append(draw(rows, normals) - mean)
    M = np.stack(columns, axis=-1)  # (2, parent, child, normal)
    for regime, node in np.ndindex(2, 4):
        parents = np.flatnonzero(SEM.adjacency[regime, :, node])
        _, covariance = posterior(rows, regime, node)
        part = M[regime, parents, node, : len(parents)]
        np.testing.assert_allclose(part @ part.T, covariance, rtol=1e-9, atol=1e-15)


def test_before_any_round_a_draw_is_the_prior() -> None:
    normals = np.random.default_rng(0).normal(size=(2, 4, 4))
    weights = draw(Dataset(4), normals)
    for regime, node in np.ndindex(2, 4):
        parents = np.flatnonzero(SEM.adjacency[regime, :, node])
        expected = STD / np.sqrt(PRECISION) * normals[regime, node, : len(parents)]
        np.testing.assert_allclose(weights[regime, parents, node], expected)


def test_the_choice_is_the_best_for_the_draw() -> None:
    policy = LinSEMTS(4, SEM.reward, graph=SEM.adjacency, noise_mean=SEM.noise_mean)
    rows = data()
    for a, x in zip(rows.regimes, rows.values, strict=True):
        policy.tell(a, x)
    suggestion = policy.suggest(np.random.default_rng(3))
    normals = np.random.default_rng(3).standard_normal((2, 4, 4))
    gram = policy.state()["moments.gram"]
    weights = draw_weights(gram, SEM.adjacency, SEM.mechanism_mean, 1.0, 1.0, normals)
    rewards = []
    for a in all_interventions(4):
        B = np.column_stack([weights[regime, :, node] for node, regime in enumerate(a)])
        rewards.append(np.linalg.solve((np.eye(4) - B).T, np.asarray(SEM.noise_mean))[SEM.reward])
    np.testing.assert_array_equal(suggestion.intervention, all_interventions(4)[np.argmax(rewards)])
    assert suggestion.mean == pytest.approx(max(rewards))


def test_a_graph_that_cannot_be_is_refused() -> None:
    with pytest.raises(ModelError, match=r"shape \(2, 4, 4\), not \(4, 4\)"):
        LinSEMTS(4, graph=SEM.adjacency[0], noise_mean=1.0)
    cyclic = np.zeros((2, 4, 4), dtype=bool)
    cyclic[0, 0, 1] = cyclic[1, 1, 0] = True
    with pytest.raises(ModelError, match="mix into a cycle"):
        LinSEMTS(4, graph=cyclic, noise_mean=1.0)


def test_restarting_forgets_all_and_uses_the_graph_given_for_it() -> None:
    other = random_sem(4, seed=3).adjacency
    policy = LinSEMTS(4, graph=SEM.adjacency, noise_mean=SEM.noise_mean, restarts=[(30, other)])
    rows = data()
    for t, (a, x) in enumerate(zip(rows.regimes, rows.values, strict=True), start=1):
        policy.tell(a, x)
        expected = SEM.adjacency if t < 30 else other
        np.testing.assert_array_equal(policy.adjacency, expected)
        assert policy.state()["moments.counts"].sum() == 4 * (t if t < 30 else t - 30)


def test_a_dense_system_of_sixty_nodes_keeps_its_digits() -> None:
    """Normal equations against least squares on the rows, at values up to 10^8."""
    sem = random_sem(60, seed=1, edge_probability=0.5)
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (200, 60))
    X, mean = sem.sample(A, rng), sem.mechanism_mean
    rows = Dataset(60)
    rows.append(X, A)
    drawn = draw_weights(
        Moments.of(rows).gram, sem.adjacency, mean, 1.0, 1.0, np.zeros((2, 60, 60))
    )
    for regime, node in np.ndindex(2, 60):
        parents = np.flatnonzero(sem.adjacency[regime, :, node])
        samples = rows.samples(regime, node)
        design = np.vstack([samples[:, parents], np.eye(len(parents))])  # the prior as rows
        target = np.append(samples[:, node] - mean[regime, node], np.zeros(len(parents)))
        expected = np.linalg.lstsq(design, target, rcond=None)[0]
        np.testing.assert_allclose(drawn[regime, parents, node], expected, atol=1e-6)
