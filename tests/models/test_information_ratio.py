"""The intervention that costs least for what it tells about which is best."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import random_sem
from causalarms.models.belief import rewards_of
from causalarms.models.draws import least_ratio, log_ratios
from causalarms.posterior.base import Draws
from causalarms.posterior.exact import ExactPosterior
from causalarms.search.constraints import Constraints
from causalarms.statistics.dataset import Moments


def by_hand(rewards: np.ndarray, power: float) -> list[float]:
    """From the definition, draw by draw."""
    n_draws, n_arms = rewards.shape
    found = []
    for arm in range(n_arms):
        cost = sum(max(draw) - draw[arm] for draw in rewards) / n_draws
        groups: dict[int, list[float]] = {}
        for draw in rewards:
            groups.setdefault(int(np.argmax(draw)), []).append(draw[arm])
        mean = sum(draw[arm] for draw in rewards) / n_draws
        told = sum(len(g) / n_draws * (sum(g) / len(g) - mean) ** 2 for g in groups.values())
        found.append(cost**power / told)
    return found


@pytest.mark.parametrize("power", [2.0, 6.0])
def test_ratios_are_those_of_the_definition(power: float) -> None:
    rewards = np.random.default_rng(0).normal(size=(40, 6))
    np.testing.assert_allclose(np.exp(log_ratios(rewards, power)), by_hand(rewards, power))


@pytest.mark.parametrize("unit", [1e-90, 1.0, 1e90])
def test_units_and_offsets_change_no_choice(unit: float) -> None:
    rewards = np.random.default_rng(1).normal(size=(40, 6))
    plain = log_ratios(rewards)
    moved = log_ratios(unit * (rewards + 3.0))
    np.testing.assert_allclose(moved - moved[0], plain - plain[0], atol=1e-8)


def test_what_is_worse_in_every_draw_and_tells_nothing_is_not_played() -> None:
    rewards = np.random.default_rng(2).normal(size=(40, 3))
    useless = np.full((40, 1), rewards.min() - 0.1)
    ratios = log_ratios(np.hstack([useless, rewards]))
    assert ratios[0] == np.inf or ratios[0] > ratios[1:].min() + 50


def test_where_all_draws_agree_the_best_is_played() -> None:
    rewards = np.random.default_rng(3).normal(size=(40, 4))
    rewards[:, 2] = rewards.max(axis=1) + 0.1
    assert log_ratios(rewards).argmin() == 2
    assert log_ratios(np.ones((5, 3))).argmin() == 0  # no difference at all


def test_an_uncertain_rival_is_played_rather_than_a_known_one_of_the_same_mean() -> None:
    swings = np.random.default_rng(4).normal(size=200)
    rewards = np.column_stack([np.zeros(200), swings - swings.mean(), np.full(200, -1e-3)])
    assert log_ratios(rewards).argmin() == 1


def some_draws() -> Draws:
    sem = random_sem(5, seed=0)
    rng, moments = np.random.default_rng(0), Moments(5)
    for a in rng.integers(0, 2, (20, 5)).astype(np.uint8):
        moments.add(sem.sample(a[None], rng)[0], a)
    return ExactPosterior(5, moments).draw(rng, 50)


def test_only_allowed_interventions_are_compared_net_of_costs() -> None:
    draws, free = some_draws(), Constraints([2] * 5)
    chosen = least_ratio(draws, 4, 0.9, free).intervention
    switched = int(np.flatnonzero(chosen)[0])
    dear = Constraints([2] * 5, cost=[[0.0, 1e6 * (i == switched)] for i in range(5)])
    assert least_ratio(draws, 4, 0.9, dear).intervention[switched] == 0
    found = least_ratio(draws, 4, 0.9, free)
    values = rewards_of(draws, found.intervention[None], 4)[:, 0]
    assert found.mean == pytest.approx(values.mean())
    assert found.upper == pytest.approx(np.quantile(values, 0.9, method="lower"))
