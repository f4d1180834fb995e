"""What to settle on: the best of all allowed interventions on average, or of those found."""

from __future__ import annotations

import numpy as np
import pytest

import causalarms.models.belief
from causalarms import random_sem
from causalarms.models.belief import Belief, recommend
from causalarms.posterior.base import Draws
from causalarms.search.constraints import Constraints, unconstrained
from causalarms.sem.rewards import all_interventions, index_of

FREE = unconstrained((2,) * 6)


def belief(n_draws: int, *, same: bool = False, rounds: int = 10**6) -> Belief:
    """Draws that are different systems altogether, or one system many times."""
    systems = [random_sem(6, seed=0 if same else s) for s in range(n_draws)]
    draws = Draws(
        order=np.array([s.order for s in systems]),
        adjacency=np.array([s.adjacency for s in systems]),
        weights=np.array([s.weights for s in systems]),
        intercept=np.array([s.mechanism_mean for s in systems]),
        noise_std=np.array([s.mechanism_std for s in systems]),
    )
    starts = np.zeros((2, 6), dtype=np.int64)
    return Belief(draws, np.zeros((2, 6, 6)), starts + rounds, starts, weighs_graphs=True)


def test_certainty_leaves_nothing_to_lose() -> None:
    found = recommend(belief(30, same=True), 5, FREE)
    best = random_sem(6, seed=0).best_intervention()
    rewards = random_sem(6, seed=0).expected_reward(np.stack([found.intervention, best]))
    assert rewards[0] == pytest.approx(rewards[1])
    assert found.probability == pytest.approx(1)
    assert found.expected_loss == pytest.approx(0, abs=1e-9)
    assert found.draws == 30


@pytest.mark.parametrize(("rounds", "worth"), [(0, 0.0), (3, 0.0), (6, 0.75), (30, 0.99)])
def test_agreement_after_few_rounds_is_not_certainty(rounds: int, worth: float) -> None:
    found = recommend(belief(30, same=True, rounds=rounds), 5, FREE)
    assert found.probability == pytest.approx(worth)
    assert found.expected_loss == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("compared", [2**14, 1], ids=["all", "found"])
def test_probability_and_loss_are_averages_over_draws(
    compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search past so many finds what comparing all does, and says the same of it."""
    made = belief(40)
    monkeypatch.setattr(causalarms.models.belief, "MAX_COMPARED", compared)
    found = recommend(made, 5, FREE, tolerance=1.0)
    table = made.rewards(all_interventions(6), 5)
    arm = index_of(found.intervention)
    loss = table.max(axis=1) - table[:, arm]
    assert table[:, arm].mean() == pytest.approx(table.mean(axis=0).max())
    assert found.expected_loss == pytest.approx(loss.mean())
    assert found.probability == pytest.approx((loss <= 1.0).mean())
    assert found.reward.mean == pytest.approx(table[:, arm].mean())


def test_what_is_not_allowed_is_neither_named_nor_compared_with() -> None:
    made = belief(40)
    allowed = Constraints((2,) * 6, at_most=1, cost=[(0.0, 3.0)] + [(0.0, 0.5)] * 5)
    rows = allowed.interventions()
    net = made.rewards(rows, 5) - allowed.cost(rows)
    found = recommend(made, 5, allowed)
    arm = int(np.flatnonzero((rows == found.intervention).all(axis=1))[0])
    assert net[:, arm].mean() == pytest.approx(net.mean(axis=0).max())
    assert found.cost == allowed.cost(rows)[arm]
    assert found.expected_loss == pytest.approx((net.max(axis=1) - net[:, arm]).mean())


@pytest.mark.parametrize(("gain", "chosen"), [(0.05, 0), (-0.05, 0), (0.2, 1)])
def test_of_what_draws_cannot_tell_apart_the_fewest_changes(gain: float, chosen: int) -> None:
    """Switching x0 moves the reward by `gain` on average, and by 1 up or down in single draws."""
    n = 100
    weights, intercept = np.zeros((n, 2, 2, 2)), np.zeros((n, 2, 2))
    intercept[:, 0, 1], intercept[:, 1, 1] = 1.0, 5.0  # the reward's own switch is worth it
    weights[:, :, 0, 1] = 1.0
    intercept[:, 1, 0] = gain + np.tile([1.0, -1.0], n // 2)
    order, none = np.tile([0, 1], (n, 1)), np.zeros((2, 2), dtype=np.int64)
    draws = Draws(order, weights != 0, weights, intercept, np.ones((n, 2, 2)))
    made = Belief(draws, np.zeros((2, 2, 2)), none, none, weighs_graphs=True)
    assert recommend(made, 1, unconstrained((2, 2))).intervention.tolist() == [chosen, 1]
