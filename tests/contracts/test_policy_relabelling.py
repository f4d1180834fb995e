"""Renaming the nodes renames the choice of a deterministic policy, and nothing else.

Ties would be broken by the nodes' numbers. There are none in a system whose edges are all present
and whose intervened noise means differ from the natural ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import LinearSEM, make_policy, random_sem

SEM = random_sem(
    4, seed=8, edge_probability=1.0, noise_mean=[[1.0, 0.8, 1.2, 0.9], [0.3, 1.5, 0.6, 1.4]]
)
MIXED = random_sem(
    4,
    seed=8,
    edge_probability=1.0,
    regimes=[2, 1, 3, 2],
    noise_mean=[[1.0, 0.8, 1.2, 0.9], [0.3, 0.0, 0.6, 1.4], [0.0, 0.0, 1.9, 0.0]],
)
N_ROUNDS, HORIZON = 160, 400


def rounds(name: str, sem: LinearSEM) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    A = rng.integers(0, sem.regimes, (N_ROUNDS, 4))
    if name.endswith("mab"):
        A = np.repeat(np.arange(N_ROUNDS) % 2, 4).reshape(-1, 4)
    return A, sem.sample(A, rng)


@pytest.mark.parametrize("order", [[1, 2, 3, 0], [3, 0, 2, 1]], ids=["rotated", "shuffled"])
@pytest.mark.parametrize(
    ("name", "settings", "sem"),
    [
        ("csl-ucb-joint", {}, SEM),
        ("csl-ucb", {}, SEM),
        ("csl-ucb", {"bound": "valid", "hold": False}, SEM),
        ("csl-ucb-cd", {}, SEM),
        ("csl-ucb-joint", {}, MIXED),
        ("csl-ucb", {}, MIXED),
        ("csl-ucb-cd", {}, MIXED),
        ("golem-mab", {"n_explore": 80}, SEM),
        ("dagma-mab", {"n_explore": 80}, SEM),
    ],
    ids=[
        "joint",
        "apart",
        "valid",
        "cd",
        "joint mixed",
        "apart mixed",
        "cd mixed",
        "golem",
        "dagma",
    ],
)
def test_renaming_nodes_renames_the_choice(
    name: str, settings: dict[str, Any], sem: LinearSEM, order: list[int]
) -> None:
    A, X = rounds(name, sem)
    mean = sem.mechanism_mean
    plain = make_policy(
        name,
        n_nodes=4,
        reward=sem.reward,
        noise_mean=mean,
        horizon=HORIZON,
        regimes=sem.regimes,
        **settings,
    )
    renamed = make_policy(
        name,
        n_nodes=4,
        reward=order.index(sem.reward),
        noise_mean=mean[:, order],
        horizon=HORIZON,
        regimes=sem.regimes[order],
        **settings,
    )
    compared = 0
    for a, x in zip(A, X, strict=True):
        plain.tell(a, x)
        renamed.tell(a[order], x[order])
        one = plain.suggest(np.random.default_rng(0))
        other = renamed.suggest(np.random.default_rng(0))
        assert one.reason == other.reason
        if one.reason == "exploit":
            compared += 1
            np.testing.assert_array_equal(other.intervention, one.intervention[order])
            assert other.mean == pytest.approx(one.mean, rel=1e-6)
            assert other.width == pytest.approx(one.width, rel=1e-6, nan_ok=True)
    assert compared
    assert plain.adjacency is not None
    np.testing.assert_array_equal(renamed.adjacency, plain.adjacency[:, order][:, :, order])
