"""Vanilla UCB word for word: every arm once, then mean + sqrt(ln t / n)."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import make_policy, random_sem
from causalarms.errors import ModelError
from causalarms.policies.simple import UCB
from causalarms.rng import stream
from causalarms.sem.rewards import all_interventions, index_of

SEM = random_sem(3, seed=1)


def play(policy: UCB, n_rounds: int) -> list[list[float]]:
    """Rewards seen, arm by arm."""
    noise = stream(0, "noise")
    seen: list[list[float]] = [[] for _ in range(8)]
    for t in range(n_rounds):
        a = policy.ask(stream(0, "policy", t))
        x = SEM.sample(a[None], noise)[0]
        policy.tell(a, x)
        seen[index_of(a)].append(float(x[SEM.reward]))
    return seen


def test_every_arm_is_played_once_first() -> None:
    policy = UCB(3)
    assert [len(rewards) for rewards in play(policy, 8)] == [1] * 8
    orders = {tuple(play_order(seed)) for seed in range(5)}
    assert len(orders) == 5  # in random order


def play_order(seed: int) -> list[int]:
    policy, order = UCB(3), []
    for t in range(8):
        suggestion = policy.suggest(stream(seed, "policy", t))
        assert suggestion.reason == "explore"
        policy.tell(suggestion.intervention, np.zeros(3))
        order.append(int(index_of(suggestion.intervention)))
    return order


@pytest.mark.parametrize("window", [None, 10], ids=["all plays", "last 10 plays"])
@pytest.mark.parametrize("n_rounds", [8, 30, 400])
def test_the_arm_with_the_largest_bound_is_next(window: int | None, n_rounds: int) -> None:
    policy = UCB(3, window=window)
    seen = play(policy, n_rounds)
    means = np.array([np.mean(r if window is None else r[-window:]) for r in seen])
    widths = np.sqrt(np.log(n_rounds) / np.array([len(r) for r in seen]))
    arm = int(np.argmax(means + widths))
    suggestion = policy.suggest(np.random.default_rng(0))
    np.testing.assert_array_equal(suggestion.intervention, all_interventions(3)[arm])
    assert suggestion.reason == "exploit"
    assert suggestion.mean == pytest.approx(means[arm])
    assert suggestion.width == pytest.approx(widths[arm])


def test_more_nodes_than_can_be_enumerated_are_refused() -> None:
    with pytest.raises(ModelError, match=r"2\^25 interventions cannot be enumerated"):
        make_policy("ucb", n_nodes=25)
