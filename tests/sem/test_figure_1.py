"""Fig. 1 of the paper: its parents, ancestors, sub-graph of the reward and flow weights."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import LinearSEM

NATURAL = np.zeros(5, dtype=np.uint8)


@pytest.fixture
def figure_1() -> LinearSEM:
    """Nodes 1 to 5; the weights into the reward are ours, the figure's are not in the text."""
    weights = np.zeros((2, 5, 5))
    weights[0, 0, 1] = 1.2
    weights[0, 1, 2] = 2.3
    weights[0, 2, 4] = 0.7
    weights[0, 3, 4] = -1.1
    weights[1] = -weights[0]
    return LinearSEM(weights=weights, noise_mean=1.0, nodes=["1", "2", "3", "4", "5"])


def test_parents_and_ancestors_of_node_3(figure_1: LinearSEM) -> None:
    assert figure_1.parents("3") == ["2"]
    assert figure_1.ancestors("3") == ["1", "2"]


def test_ancestors_of_the_reward_are_all_others(figure_1: LinearSEM) -> None:
    assert figure_1.ancestors("5") == ["1", "2", "3", "4"]
    assert figure_1.ancestors("1") == []


def test_sub_graph_of_the_reward_node(figure_1: LinearSEM) -> None:
    assert figure_1.nodes[figure_1.reward] == "5"
    assert [(parent, "5") for parent in figure_1.parents("5")] == [("3", "5"), ("4", "5")]


def test_node_3_as_a_sum_of_exogenous_variables(figure_1: LinearSEM) -> None:
    """x_3 = 2.76 e_1 + 2.3 e_2 + e_3."""
    np.testing.assert_allclose(figure_1.flow(NATURAL)[:, 2], [2.76, 2.3, 1.0, 0.0, 0.0], rtol=1e-14)
    np.testing.assert_allclose(figure_1.mean([NATURAL])[0, 2], 2.76 + 2.3 + 1.0, rtol=1e-14)


def test_non_ancestor_part_of_the_reward_seen_from_node_3(figure_1: LinearSEM) -> None:
    """theta(x_5, 3) is a combination of exactly e_3, e_4 and e_5."""
    outside = [i for i, node in enumerate("12345") if node not in figure_1.ancestors("3")]
    assert np.flatnonzero(figure_1.flow(NATURAL)[:, 4]).tolist() == [0, 1, 2, 3, 4]
    assert outside == [2, 3, 4]
