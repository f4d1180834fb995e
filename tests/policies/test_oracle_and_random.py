"""The zero line of regret, and the coin."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import make_policy, random_sem
from causalarms.errors import ModelError


def test_the_oracle_plays_the_best_of_the_system_in_force() -> None:
    systems = [random_sem(4, seed=seed) for seed in (0, 1, 2)]
    policy = make_policy("oracle", n_nodes=4, systems=systems, change_points=[5, 8])
    for t in range(1, 12):
        sem = systems[0 if t <= 5 else 1 if t <= 8 else 2]
        suggestion = policy.suggest(np.random.default_rng(0))
        np.testing.assert_array_equal(suggestion.intervention, sem.best_intervention())
        assert suggestion.mean == pytest.approx(sem.all_expected_rewards().max())
        assert suggestion.width == 0
        policy.tell(suggestion.intervention, np.zeros(4))


def test_the_oracle_needs_a_system_for_every_time() -> None:
    with pytest.raises(ModelError, match="1 systems do not fit 2 change_points"):
        make_policy("oracle", n_nodes=4, systems=[random_sem(4, seed=0)], change_points=[5, 8])


def test_random_tosses_a_fair_coin_for_every_node() -> None:
    policy = make_policy("random", n_nodes=3)
    rng = np.random.default_rng(0)
    rounds = np.array([policy.ask(rng) for _ in range(4000)])
    arms, counts = np.unique(rounds, axis=0, return_counts=True)
    assert len(arms) == 8
    standard_error = np.sqrt(4000 * (1 / 8) * (7 / 8))
    assert np.abs(counts - 500).max() < 4 * standard_error
