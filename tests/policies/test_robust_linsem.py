"""Robust LinSEM: weights and ellipsoids by the formula, and what deviating rounds do to it."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import random_sem, simulate
from causalarms.policies.base import Policy
from causalarms.policies.linsem_ucb import LinSEMUCB, RobustLinSEM
from causalarms.rng import stream
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.world import World, deviating_world

SEM = random_sem(4, seed=2)
C = 7.0


def policy_for(sem: LinearSEM = SEM, deviations: float | None = C) -> RobustLinSEM:
    return RobustLinSEM(
        sem.n_nodes, sem.reward, graph=sem.adjacency, noise_mean=sem.noise_mean,
        deviations=deviations, horizon=400,
    )  # fmt: skip


def test_weights_and_ellipsoids_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (50, 4))
    X = SEM.sample(A, rng)
    policy = policy_for()
    for a, x in zip(A, X, strict=True):
        policy.tell(a, x)
    centre, shape = policy.ellipsoids()
    for regime, node in np.ndindex(2, 4):
        p = np.flatnonzero(SEM.adjacency[regime, :, node])
        V, U, target = np.eye(len(p)), np.eye(len(p)), np.zeros(len(p))
        for x in X[A[:, node] == regime]:
            norm = np.sqrt(x[p] @ np.linalg.solve(U, x[p])) if len(p) else 0.0
            w = 1 / C if norm == 0 else min(1 / C, 1 / (C * norm))
            V += w * np.outer(x[p], x[p])
            U += w**2 * np.outer(x[p], x[p])
            target += w * x[p] * (x[node] - SEM.mechanism_mean[regime, node])
        np.testing.assert_allclose(centre[regime, p, node], np.linalg.solve(V, target), rtol=1e-8)
        expected = np.linalg.inv(V) @ U @ np.linalg.inv(V)
        found = shape[regime, node][np.ix_(p, p)]
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


def test_by_hand() -> None:
    """x0 -> x1 and C = 2: x0 = 3 has the norm 3 and the weight 1/6, then U = 1 + 9/36 = 1.25."""
    sem = LinearSEM(weights=np.array([[[0, 1.0], [0, 0]], [[0, 1.0], [0, 0]]]), noise_mean=0.0)
    policy = policy_for(sem, 2.0)
    policy.tell([0, 0], [3.0, 6.0])
    centre, shape = policy.ellipsoids()
    assert centre[0, 0, 1] == pytest.approx(3.0 / 2.5)  # w x y / (1 + w x^2) = 3 / (1 + 1.5)
    assert shape[0, 1, 0, 0] == pytest.approx(1.25 / 2.5**2)
    policy.tell([0, 0], [1.0, 1.0])  # norm 1 / sqrt(1.25) < 1: weight 1/2
    assert policy.ellipsoids()[0][0, 0, 1] == pytest.approx(3.5 / 3.0)


def test_the_radius_of_the_theorem() -> None:
    d = int(SEM.adjacency.sum(axis=1).max())
    policy = RobustLinSEM(
        4, graph=SEM.adjacency, noise_mean=1.0, deviations=5, beta="theory", bound=3.0, horizon=400
    )
    within = 2 * np.log(2 * 4 * 400) + d * np.log(1 + 9 * 400 / (d * 25))
    assert policy.beta == pytest.approx(np.sqrt(within) + 1 + 3)


def test_small_values_and_no_deviations_give_linsem_ucb() -> None:
    """Then every weight is 1."""
    plain = LinSEMUCB(4, graph=SEM.adjacency, noise_mean=SEM.noise_mean)
    robust, rng = policy_for(deviations=0), np.random.default_rng(3)
    for _ in range(40):
        a, x = rng.integers(0, 2, 4), rng.uniform(-0.3, 0.3, 4)
        plain.tell(a, x)
        robust.tell(a, x)
    for one, other in zip(plain.ellipsoids(), robust.ellipsoids(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_without_a_number_it_takes_the_root_of_the_horizon() -> None:
    assert policy_for(deviations=None).budget == 20.0


def test_wild_rounds_move_its_estimates_less() -> None:
    """Ten rounds of a hundred with weights of the other sign and five times the size."""
    n, wild = 100, range(0, 100, 10)
    errors: dict[str, list[float]] = {"plain": [], "robust": []}
    for seed in range(6):
        sem = random_sem(4, seed=seed)
        other = LinearSEM(weights=-5 * sem.weights, noise_mean=sem.noise_mean, order=sem.order)
        plain = LinSEMUCB(4, graph=sem.adjacency, noise_mean=sem.noise_mean)
        rng, noise = np.random.default_rng(seed), stream(seed, "noise")
        robust = policy_for(sem, 10.0)
        for t in range(n):
            a = rng.integers(0, 2, 4)
            x = (other if t in wild else sem).sample(a[None], noise)[0]
            plain.tell(a, x)
            robust.tell(a, x)
        for name, policy in (("plain", plain), ("robust", robust)):
            errors[name].append(float(np.abs(policy.ellipsoids()[0] - sem.weights).max()))
    assert np.mean(errors["robust"]) < 0.6 * np.mean(errors["plain"]), errors


def test_few_deviating_rounds_mislead_linsem_ucb_for_good_and_it_less_often() -> None:
    """Its claim: ten rounds of another model, long past, cost LinSEM-UCB something every round."""
    late: dict[str, list[float]] = {"plain": [], "robust": [], "undisturbed": []}
    for seed in range(8):
        sem = random_sem(4, seed=seed)
        attacked = deviating_world(sem, range(2, 21, 2))
        runs: list[tuple[str, Policy, World]] = [
            ("plain", LinSEMUCB(4, graph=sem.adjacency, noise_mean=sem.noise_mean), attacked),
            ("robust", policy_for(sem, 10.0), attacked),
            ("undisturbed", policy_for(sem, 10.0), World(sem)),
        ]
        for name, policy, world in runs:
            trace = simulate(policy, world, horizon=400, seed=seed)
            late[name].append(float(trace.gap[200:].sum()))
    mean = {name: np.mean(values) for name, values in late.items()}
    assert mean["undisturbed"] < 1.0
    assert mean["robust"] < 0.5 * mean["plain"], late
    assert np.median(late["robust"]) < 1.0 < 100.0 < np.median(late["plain"])
