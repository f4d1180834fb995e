"""Regret, optimal rounds and the first lasting optimum of a world small enough to do by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import LinearSEM, make_policy, random_sem
from causalarms.arrays import Intervention
from causalarms.errors import ModelError
from causalarms.policies.base import Policy, Suggestion
from causalarms.simulation.simulate import Trace, simulate
from causalarms.simulation.world import World, switching_world


def two_nodes(natural: float, intervened: float) -> LinearSEM:
    """x0 = 1, reward = 1 + b x0 + noise: the second node's regime chooses between two rewards."""
    weights = np.zeros((2, 2, 2))
    weights[:, 0, 1] = natural, intervened
    return LinearSEM(weights=weights, noise_mean=1.0)


# rewards 2 or 4 up to round 4, then 2 or 0
WORLD = World([two_nodes(1, 3), two_nodes(1, -1)], [4])


class Scripted(Policy):
    """Plays the regimes of the reward node one after the other."""

    def __init__(self, script: str) -> None:
        super().__init__(2)
        self.script = script

    def suggest(self, rng: np.random.Generator, **_: Any) -> Suggestion:
        letter = self.script[self.n_told]
        a = np.array([0, int(letter)], dtype=np.uint8)
        return Suggestion(a, "explore" if self.n_told < 2 else "exploit")

    def learn(self, a: Intervention, x: Any) -> None: ...

    def own_state(self) -> dict[str, Any]:
        return {}

    def restore_own(self, state: dict[str, Any]) -> None: ...


def trace_of(script: str) -> Trace:
    return simulate(Scripted(script), WORLD, horizon=len(script), seed=0)


def test_regret_is_of_expected_rewards_in_the_system_in_force() -> None:
    trace = trace_of("01111100")
    assert trace.gap.tolist() == pytest.approx([2, 0, 0, 0, 2, 2, 0, 0])
    assert trace.regret.tolist() == pytest.approx([2, 2, 2, 2, 4, 6, 6, 6])
    assert trace.simple_regret.tolist() == pytest.approx([2, 0, 0, 0, 0, 0, 0, 0])
    assert trace.optimal.tolist() == [False, True, True, True, False, False, True, True]
    assert trace.optimal_share(4).tolist() == [0.75, 0.5]
    assert trace.optimal_share(3).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert trace.explored.tolist() == [True, True] + [False] * 6
    assert trace.interventions[:, 1].tolist() == [0, 1, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("script", "first"),
    [("01111100", 7), ("11110000", 1), ("01110000", 2), ("11110001", None), ("11110010", 8)],
)
def test_the_first_round_from_which_all_are_optimal(script: str, first: int | None) -> None:
    assert trace_of(script).rounds_to_lasting_optimum == first


def test_a_reward_within_a_hundredth_of_the_best_is_optimal() -> None:
    gaps = np.array([0.0, 0.0099, 0.0101])
    nothing = np.zeros((3, 2))
    trace = Trace(nothing.astype(np.uint8), nothing, gaps, np.zeros(3, dtype=bool))
    assert trace.optimal.tolist() == [True, True, False]


@pytest.mark.parametrize("changes", [[], [30, 70]])
def test_the_oracles_regret_is_exactly_zero(changes: list[int]) -> None:
    world = switching_world(random_sem(4, seed=0), changes, np.random.default_rng(0))
    policy = make_policy(
        "oracle", n_nodes=4, systems=world.systems, change_points=world.change_points
    )
    trace = simulate(policy, world, horizon=100, seed=0)
    assert (trace.gap == 0).all()
    assert trace.rounds_to_lasting_optimum == 1


def test_no_policy_does_better_than_the_best() -> None:
    sem = random_sem(4, seed=1)
    trace = simulate(make_policy("random", n_nodes=4), sem, horizon=200, seed=0)
    assert trace.gap.min() >= -1e-12


def test_the_same_seed_gives_every_policy_the_same_noise() -> None:
    sem = random_sem(4, seed=1)
    noise = []
    for name in ("random", "ucb"):
        trace = simulate(make_policy(name, n_nodes=4), sem, horizon=50, seed=9)
        noise.append(
            [
                x - x @ sem.post_intervention_weights(a)
                for a, x in zip(trace.interventions, trace.observations, strict=True)
            ]
        )
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-9)


def test_a_seed_is_a_run() -> None:
    sem = random_sem(4, seed=1)
    runs = [
        simulate(make_policy("ucb", n_nodes=4), sem, horizon=60, seed=seed) for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(runs[0].observations, runs[1].observations)
    assert not np.array_equal(runs[0].observations, runs[2].observations)


def test_graph_errors_are_recorded_where_asked() -> None:
    sem = random_sem(4, seed=2)
    knows = make_policy("linsem-ts", n_nodes=4, graph=sem.adjacency, noise_mean=sem.noise_mean)
    trace = simulate(knows, sem, horizon=100, seed=0, graph_every=25)
    assert [t for t, _, _ in trace.graphs] == [25, 50, 75, 100]
    assert not any(e.false_negative for _, *both in trace.graphs for e in both)
    learns = make_policy("csl-ucb", n_nodes=4, horizon=300, noise_mean=sem.noise_mean)
    trace = simulate(learns, sem, horizon=150, seed=0, graph_every=10)
    first = int(np.argmin(trace.explored))
    assert trace.graphs[0][0] in range(first, first + 11)
    plain = simulate(make_policy("ucb", n_nodes=4), sem, horizon=20, graph_every=5)
    assert plain.graphs == []


def test_every_round_is_reported_as_it_happens() -> None:
    seen: list[tuple[int, str, float]] = []

    def watch(t: int, suggestion: Suggestion, gap: float) -> None:
        seen.append((t, suggestion.reason, gap))

    trace = simulate(Scripted("0110"), WORLD, horizon=4, on_round=watch)
    assert [gap for *_, gap in seen] == trace.gap.tolist()
    assert [(t, reason) for t, reason, _ in seen] == [
        (1, "explore"),
        (2, "explore"),
        (3, "exploit"),
        (4, "exploit"),
    ]
    assert [gap for *_, gap in seen] == pytest.approx([2, 0, 0, 2])


def test_a_policy_for_another_world_is_refused() -> None:
    with pytest.raises(ModelError, match="for 3 nodes with reward 2, the world has 2"):
        simulate(make_policy("random", n_nodes=3), WORLD, horizon=10)
    with pytest.raises(ModelError, match="with reward 0, the world has 2 with reward 1"):
        simulate(make_policy("random", n_nodes=2, reward=0), WORLD, horizon=10)
    with pytest.raises(ModelError, match="horizon must be an integer of at least 1, not 0"):
        simulate(make_policy("random", n_nodes=2), WORLD, horizon=0)
