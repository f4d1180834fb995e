"""Where the noise means are unknown, adding a constant to any node changes no choice.

And a common unit of all nodes, however far from one, changes none of `csl-ucb` with known means,
whose widths scale with the data, and no graph of CSL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import CSL, make_policy, random_sem
from causalarms.policies.csl_ucb import CSLUCB

SEM = random_sem(4, seed=8)
N_ROUNDS, HORIZON = 130, 300
OFFSETS = {
    "reward by 1000": [0.0, 0.0, 0.0, 1e3],
    "one node by -1e5": [0.0, -1e5, 0.0, 0.0],
    "all by 1e5": [1e5] * 4,
    "all by 1e9": [1e9, -1e9, 1e9, 1e9],
}
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "csl-ucb": ("csl-ucb", {}),
    "csl-ucb-joint": ("csl-ucb-joint", {}),
    "csl-ucb not held": ("csl-ucb", {"hold": False, "bound": "parents"}),
    "csl-ucb-cd": ("csl-ucb-cd", {"detector": "paper", "zeta": 1e-3}),
    "posterior": ("posterior", {}),
    "posterior in units of its own": ("posterior", {"noise_scale": "estimate"}),
    "posterior-cd": ("posterior-cd", {}),
    "golem-mab-cd": ("golem-mab-cd", {"n_explore": 40, "steps": 3000, "threshold": 3.0}),
    "ucb": ("ucb", {}),
}


def played(
    label: str, offset: npt.ArrayLike, *, unit: float = 1.0
) -> tuple[list[list[int]], list[float]]:
    """Choices in a world whose nodes are shifted, and the rewards predicted, shifted back."""
    name, settings = POLICIES[label]
    shift = np.asarray(offset)
    policy = make_policy(name, n_nodes=4, reward=3, noise_mean=None, horizon=HORIZON, **settings)
    noise, choices, means = np.random.default_rng(3), [], []
    for t in range(N_ROUNDS):
        suggestion = policy.suggest(np.random.default_rng([7, t]))
        choices.append(suggestion.intervention.tolist())
        means.append((suggestion.mean / unit) - shift[3])
        x = SEM.sample(suggestion.intervention[None], noise)[0]
        policy.tell(suggestion.intervention, (x + shift) * unit)
    return choices, means[1:]  # before any round nothing is known of an offset


@pytest.mark.parametrize("label", POLICIES)
def test_a_constant_added_to_a_node_changes_no_choice(label: str) -> None:
    choices, means = played(label, np.zeros(4))
    assert len({tuple(choice) for choice in choices}) > 1
    for offset in OFFSETS.values():
        shifted, predicted = played(label, offset)
        assert shifted == choices
        largest = np.abs(offset).max()
        np.testing.assert_allclose(predicted, means, rtol=1e-3, atol=1e-3 + 1e-11 * largest)


@pytest.mark.parametrize("unit", [2.0**-515, 2.0**-270, 2.0**270, 2.0**490])
def test_a_common_unit_far_from_one_changes_no_graph(unit: float) -> None:
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (200, 4))
    X = SEM.sample(A, rng)
    plain = CSL().fit(X, interventions=A)
    scaled = CSL().fit(X * unit, interventions=A)
    np.testing.assert_array_equal(scaled.adjacency_, plain.adjacency_)
    np.testing.assert_allclose(scaled.weights_, plain.weights_, rtol=1e-9)
    np.testing.assert_allclose(scaled.intercept_ / unit, plain.intercept_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scaled.noise_std_ / unit, plain.noise_std_, rtol=1e-9)


@pytest.mark.parametrize("unit", [2.0**-500, 2.0**-300, 2.0**300, 2.0**480])
def test_units_far_from_one_change_no_choice_of_csl_ucb_with_known_means(unit: float) -> None:
    rng = np.random.default_rng(5)
    A = rng.integers(0, 2, (90, 4))
    X = SEM.sample(A, rng)
    asked = []
    for scale in (1.0, unit):
        policy = CSLUCB(4, 3, horizon=HORIZON)
        policy.noise_mean = (
            np.broadcast_to(SEM.noise_mean, (2, 4)) * scale
        )  # beyond what is accepted
        for a, x in zip(A, X * scale, strict=True):
            policy.tell(a, x)
        found = policy.suggest(rng)
        assert found.reason == "exploit"
        asked.append((found.intervention.tolist(), found.mean / scale, found.width / scale))
    assert asked[0] == asked[1]  # bit for bit: a power of two moves exponents only


def test_one_wild_value_does_not_move_the_zero_of_all_mechanisms() -> None:
    """The first round is wild; mechanisms that did not take part in it are learned all the same."""
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (120, 4))
    X = SEM.sample(A, rng)
    A[0], X[0, 1] = 0, 1e9
    policy = make_policy("csl-ucb", n_nodes=4, reward=3, horizon=HORIZON)
    for a, x in zip(A, X, strict=True):
        policy.tell(a, x)
    assert policy.suggest(rng).reason == "exploit"
