"""GA-LCB: its stages, its widths as a formula, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import LinearSEM
from causalarms.errors import ModelError
from causalarms.policies.ga_lcb import GALCB
from causalarms.rng import stream
from causalarms.sem.rewards import all_interventions

CYCLES, N_OBSERVE = 8, 60
# a chain with a shortcut, the same parents in both regimes as the method assumes
WEIGHTS = np.zeros((2, 3, 3))
WEIGHTS[0, 0, 1], WEIGHTS[0, 1, 2], WEIGHTS[0, 0, 2] = 1.5, 1.2, 1.0
WEIGHTS[1, 0, 1], WEIGHTS[1, 1, 2], WEIGHTS[1, 0, 2] = -1.5, -1.0, 1.4
SEM = LinearSEM(weights=WEIGHTS, noise_mean=[[1.0, 1.0, 1.0], [3.0, 1.0, 1.0]])


def ga_lcb(horizon: int = 400) -> GALCB:
    return GALCB(3, horizon=horizon, noise_mean=SEM.noise_mean, cycles=CYCLES, n_observe=N_OBSERVE)


def play(policy: GALCB, n_rounds: int) -> np.ndarray:
    noise, played = stream(3, "noise"), []
    for t in range(n_rounds):
        a = policy.ask(stream(3, "policy", t))
        policy.tell(a, SEM.sample(a[None], noise)[0])
        played.append(a)
    return np.array(played)


def test_the_first_stages_are_null_and_single_node_interventions() -> None:
    policy = ga_lcb()
    n_first = CYCLES * 4 + N_OBSERVE
    played = play(policy, n_first)
    assert (played.sum(axis=1) <= 1).all()
    assert played.sum(axis=0).tolist() == [CYCLES] * 3
    assert policy.adjacency is not None
    for regime in (0, 1):
        np.testing.assert_array_equal(policy.adjacency[regime], SEM.adjacency[0])


def test_widths_and_means_are_those_of_the_formula() -> None:
    policy = ga_lcb()
    play(policy, 150)
    gram, m, alpha = policy.state()["moments.gram"], policy.bound, policy.alpha
    arms = all_interventions(3)
    means, widths = policy._score_all(arms)
    for arm, mean, width in zip(arms, means, widths, strict=True):
        mu, w = np.zeros(3), np.zeros(3)
        for node in range(3):  # x0, x1, x2 is the order
            regime = arm[node]
            parents = np.flatnonzero(SEM.adjacency[0][:, node])
            mu[node] = SEM.mechanism_mean[regime, node]
            if not len(parents):
                continue
            G = gram[regime, node]
            V = G[np.ix_(parents, parents)] + m**2 * np.eye(len(parents))
            cross = G[parents, node] - SEM.mechanism_mean[regime, node] * G[parents, 3]
            mu[node] += np.linalg.solve(V, cross) @ mu[parents]
            w[node] = w[parents].sum()
            w[node] += alpha * np.sqrt(mu[parents] @ np.linalg.solve(V, mu[parents]))
            w[node] += m * np.sqrt(len(parents)) * alpha / np.sqrt(np.linalg.eigvalsh(V)[0])
        assert mean == pytest.approx(mu[2], rel=1e-9)
        assert width == pytest.approx(w[2], rel=1e-9)


def test_it_drops_arms_and_ends_with_the_best() -> None:
    policy = ga_lcb(1500)
    played = play(policy, 1500)
    alive = policy.state()["alive"]
    best = SEM.best_intervention()
    assert alive[int("".join(map(str, best)), 2)]
    assert (played[-100:] == best).all(axis=1).mean() > 0.9


def test_what_cannot_work_is_refused_at_once() -> None:
    with pytest.raises(ModelError, match="92 rounds is too short for 92 rounds of exploration"):
        ga_lcb(92)
    with pytest.raises(ModelError, match="must be told the noise means"):
        GALCB(3, horizon=400, noise_mean=None)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="cannot be enumerated"):
        GALCB(25, horizon=4000, noise_mean=1.0)
