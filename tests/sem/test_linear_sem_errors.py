"""What the constructor refuses, and that it names the node, edge or cycle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import LinearSEM, random_sem
from causalarms.errors import ModelError

TWO = np.zeros((2, 2, 2))


def weights(*edges: tuple[int, int, int], n_nodes: int = 3) -> np.ndarray:
    matrix = np.zeros((2, n_nodes, n_nodes))
    for edge in edges:
        matrix[edge] = 1.0
    return matrix


def test_a_cycle_over_both_regimes_is_named() -> None:
    """Neither regime has a cycle; node b natural with node c intervened has."""
    with pytest.raises(ModelError, match=r"contain the cycle b -> c -> b$"):
        LinearSEM(weights=weights((0, 0, 1), (0, 2, 1), (1, 1, 2)), nodes=["a", "b", "c"])


def test_a_longer_cycle_is_named_in_the_direction_of_its_edges() -> None:
    cyclic = weights((0, 2, 0), (1, 0, 1), (0, 1, 2))
    with pytest.raises(ModelError, match="x0 -> x1 -> x2 -> x0"):
        LinearSEM(weights=cyclic)


def test_a_self_loop_is_a_cycle() -> None:
    with pytest.raises(ModelError, match="x1 -> x1"):
        LinearSEM(weights=weights((0, 1, 1)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": np.zeros((2, 3))}, r"shape \(2, N, N\), not \(2, 3\)"),
        ({"weights": np.zeros((1, 3, 3))}, r"not \(1, 3, 3\)"),
        ({"weights": np.zeros((2, 3, 4))}, r"not \(2, 3, 4\)"),
        ({"weights": np.zeros((2, 0, 0))}, "at least one node"),
        ({"weights": [TWO[0], [[0, np.nan], [0, 0]]]}, r"weights\[1, 0, 1\] is not finite"),
        ({"weights": [TWO[0], [[0, np.inf], [0, 0]]]}, r"weights\[1, 0, 1\] is not finite"),
        ({"noise_mean": [0.0, 0.0, 0.0]}, r"noise_mean must have shape \(2,\) or \(2, 2\)"),
        ({"noise_std": [[1.0], [1.0]]}, r"noise_std must have shape .* not \(2, 1\)"),
        ({"noise_mean": [0.0, np.nan]}, "noise_mean of node .*1.* is not finite"),
        ({"noise_std": [np.inf, 1.0]}, "noise_std of node .*0.* is not finite"),
        ({"noise_std": [1.0, -1.0]}, "noise_std of node 'x1' is negative"),
        ({"noise_std": [[1.0, 1.0], [-1.0, 1.0]]}, "noise_std of node 'x0' is negative"),
        ({"nodes": ["a"]}, "1 node names for 2 nodes"),
        ({"nodes": ["a", "a"]}, "node name 'a' is used twice"),
        ({"nodes": ["a", " "]}, "node 1 needs a name that is text"),
        ({"nodes": ["a", 3]}, "node 1 needs a name that is text, not 3"),
        ({"reward": 2}, "there is no node 2: there are 2 nodes"),
        ({"reward": -3}, "there is no node -3"),
        ({"nodes": ["pressure", "yield"], "reward": "yeild"}, "did you mean 'yield'"),
        ({"reward": "zzz"}, "the nodes are x0, x1"),
        ({"order": [0, 0]}, r"order must list every node once, not \[0, 0\]"),
        ({"order": [0]}, "order must list every node once"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        LinearSEM(**({"weights": TWO} | arguments))


def test_an_order_against_an_edge_is_refused() -> None:
    with pytest.raises(ModelError, match="edge x0 -> x2 goes against the given order"):
        LinearSEM(weights=weights((1, 0, 2)), order=[2, 1, 0])


def test_the_given_order_is_kept() -> None:
    sem = LinearSEM(weights=weights((1, 0, 2)), order=[1, 0, 2])
    assert sem.order.tolist() == [1, 0, 2]


def test_arrays_of_a_system_cannot_be_changed_from_outside() -> None:
    given = weights((0, 0, 1))
    sem = LinearSEM(weights=given)
    given[0, 0, 1] = 5.0
    assert sem.weights[0, 0, 1] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        sem.weights[0, 0, 1] = 5.0


def test_defaults_of_names_and_reward() -> None:
    sem = LinearSEM(weights=weights())
    assert sem.nodes == ("x0", "x1", "x2")
    assert sem.reward == 2
    assert sem.replace(reward="x0").reward == 0
    assert sem.replace(reward=-1).reward == 2


def test_equality_sees_every_part() -> None:
    sem = random_sem(4, seed=1)
    assert sem == random_sem(4, seed=1)
    assert sem == sem.replace(noise_mean=np.ones((2, 4)))
    for change in (
        {"weights": sem.weights * 2},
        {"noise_mean": 2.0},
        {"noise_std": 2.0},
        {"reward": 0},
        {"nodes": ["a", "b", "c", "d"]},
    ):
        assert sem != sem.replace(**change)
    assert sem != "a system"
