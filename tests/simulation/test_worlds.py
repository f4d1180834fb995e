"""Which system a round is played in, what changes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import LinearSEM, random_sem
from causalarms.errors import ModelError
from causalarms.simulation.world import World, switching_world


def with_columns(sem: LinearSEM, *mechanisms: tuple[int, int]) -> LinearSEM:
    """The system with other weights in some columns that have parents."""
    weights = sem.weights.copy()
    for regime, node in mechanisms:
        assert weights[regime, :, node].any()
        weights[regime, :, node] *= 1.5
    return LinearSEM(weights=weights, noise_mean=sem.noise_mean, noise_std=sem.noise_std)


def fed(sem: LinearSEM) -> list[tuple[int, int]]:
    """Mechanisms with parents."""
    return [(int(r), int(i)) for r, i in np.argwhere(sem.adjacency.any(axis=1))]


def test_a_change_point_is_the_last_round_of_the_old_system() -> None:
    sem = random_sem(3, seed=0)
    world = World([sem, with_columns(sem, fed(sem)[0]), sem], [10, 25])
    expected = {1: 0, 9: 0, 10: 0, 11: 1, 25: 1, 26: 2, 10**6: 2}
    assert {t: world.number_at(t) for t in expected} == expected


def test_a_stationary_world_has_one_system() -> None:
    world = World(random_sem(3, seed=0))
    assert (world.number_at(1), world.number_at(10**6), world.changes) == (0, 0, [])


def test_rounds_are_played_in_the_system_in_force() -> None:
    first = LinearSEM(weights=np.zeros((2, 2, 2)), noise_mean=[1.0, 2.0], noise_std=0.0)
    second = LinearSEM(weights=np.zeros((2, 2, 2)), noise_mean=[5.0, 6.0], noise_std=0.0)
    world = World([first, second], [3])
    a, rng = np.zeros(2, dtype=np.uint8), np.random.default_rng(0)
    assert [world.play(t, a, rng).tolist() for t in (3, 4)] == [[1.0, 2.0], [5.0, 6.0]]


def test_changes_list_exactly_the_mechanisms_that_differ() -> None:
    sem = random_sem(5, seed=1)
    one, two = fed(sem)[1], fed(sem)[-1]
    world = World([sem, with_columns(sem, one, two), sem, sem], [5, 9, 12])
    assert [change.after for change in world.changes] == [5, 9, 12]
    assert [change.mechanisms for change in world.changes] == [
        sorted([one, two]),
        sorted([one, two]),
        [],
    ]


def test_another_noise_is_a_change_too() -> None:
    weights = np.zeros((2, 2, 2))
    before = LinearSEM(weights=weights, noise_mean=[[0, 0], [0, 0]])
    mean = LinearSEM(weights=weights, noise_mean=[[0, 0], [0, 1]])
    std = LinearSEM(weights=weights, noise_mean=mean.noise_mean, noise_std=[2.0, 1.0])
    changes = World([before, mean, std], [1, 2]).changes
    assert [change.mechanisms for change in changes] == [[(1, 1)], [(0, 0), (1, 0)]]


def test_a_switching_world_regenerates_mechanisms_and_moves_the_optimum() -> None:
    sem = random_sem(5, seed=2)
    worlds = [
        switching_world(sem, [100, 200], np.random.default_rng(3), n_mechanisms=2) for _ in range(2)
    ]
    for one, other in zip(worlds[0].systems, worlds[1].systems, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
    for number, change in enumerate(worlds[0].changes):
        assert 1 <= len(change.mechanisms) <= 2
        before, after = worlds[0].systems[number : number + 2]
        assert not np.array_equal(before.best_intervention(), after.best_intervention())


def test_the_noise_is_the_same_whatever_is_played() -> None:
    """Common random numbers: subtracting what the parents did leaves the same noise."""
    sem = random_sem(4, seed=3)
    world = World(sem)
    choices = np.random.default_rng(0)
    noise = []
    for _ in range(2):
        rng = np.random.default_rng(7)
        rows = []
        for t in range(1, 30):
            a = choices.integers(0, 2, 4).astype(np.uint8)
            x = world.play(t, a, rng)
            rows.append(x - x @ sem.post_intervention_weights(a))
        noise.append(rows)
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-10)


def test_a_world_that_contradicts_itself_is_refused() -> None:
    sem, other = random_sem(3, seed=0), random_sem(4, seed=0)
    elsewhere = LinearSEM(weights=sem.weights, noise_mean=1.0, reward=0)
    for systems, changes, message in (
        ([sem, sem], [], "2 systems do not fit 0 changes"),
        ([sem], [10], "1 systems do not fit 1 changes"),
        ([], [], "0 systems do not fit 0 changes"),
        ([sem, sem, sem], [20, 10], r"must grow from 1 on, not \[20, 10\]"),
        ([sem, sem, sem], [10, 10], "must grow from 1 on"),
        ([sem, sem], [0], "must grow from 1 on"),
        ([sem, other], [10], "the same nodes and reward"),
        ([sem, elsewhere], [10], "the same nodes and reward"),
    ):
        with pytest.raises(ModelError, match=message):
            World(systems, changes)
