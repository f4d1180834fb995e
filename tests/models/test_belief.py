"""The best of a belief: ties, switches that make no difference, costs, tolerance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from causalarms.models.belief import Belief, summary
from causalarms.posterior.base import Draws
from causalarms.search.worth import Worth

ROWS = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=np.uint8)
FREE = Worth(np.zeros(4))


class Told(Belief):
    """A belief whose rewards are given."""

    table: npt.NDArray[np.float64]

    def rewards(self, rows: npt.NDArray[np.uint8], reward: int) -> npt.NDArray[np.float64]:
        return self.table


def belief(table: list[list[float]]) -> Told:
    n = len(table)
    none = np.zeros((n, 2, 2, 2))
    draws = Draws(np.tile([0, 1], (n, 1)), none > 0, none, np.zeros((n, 2, 2)), np.ones((n, 2, 2)))
    made = Told(draws, none[0], np.zeros((2, 2), int), np.zeros((2, 2), int), weighs_graphs=True)
    object.__setattr__(made, "table", np.array(table))
    return made


def test_of_equally_good_ones_the_one_with_the_fewest_switches_is_named() -> None:
    found = belief([[1.0, 1.0, 0.0, 1.0], [2.0, 2.0, 5.0, 2.0]]).best(
        ROWS, 1, Worth(np.array([0.0, 0.0, 9.0, 0.0]))
    )
    assert found.row == 3
    assert found.probability == 1.0
    assert found.expected_loss == 0.0


def test_a_difference_in_the_last_digit_is_none() -> None:
    found = belief([[0.3, 0.1 + 0.2, 0.0, 0.3]] * 3).best(ROWS, 1, FREE)
    assert (found.row, found.probability) == (3, 1.0)


def test_probability_and_loss_are_averages_over_draws() -> None:
    made = belief([[3.0, 0.0, 0.0, 0.0], [3.0, 0.0, 5.0, 0.0]])
    found = made.best(ROWS, 1, FREE)
    assert (found.row, found.probability, found.expected_loss) == (0, 0.5, 1.0)
    assert made.best(ROWS, 1, FREE, tolerance=2.0).probability == 1.0
    dear = made.best(ROWS, 1, Worth(np.array([2.0, 0.0, 0.0, 0.0])))
    assert (dear.row, dear.expected_loss) == (2, 0.5)


def test_hardly_different_risks_of_failing_do_not_decide_what_is_best() -> None:
    """A level without any effect fails a little less often by chance, in every draw."""
    made = belief([[3.0, 3.0, 1.0, 0.0], [2.0, 2.0, 2.5, 0.0]])
    for risk, row, probability in ((0.109, 1, 0.5), (0.111, 0, 0.5), (0.0, 1, 0.5)):
        found = made.best(ROWS, 1, Worth(np.zeros(4), np.array([0.1, risk, 0.1, 0.1])))
        assert (found.row, found.probability) == (row, probability), risk
    one_draw = belief([[3.0, 3.0, 1.0, 0.0]])
    found = one_draw.best(ROWS, 1, Worth(np.zeros(4), np.array([0.1, 0.105, 0.1, 0.1])))
    assert (found.row, found.probability, found.expected_loss) == (1, 1.0, 0.0)


def test_a_summary_holds_its_mean() -> None:
    mean, low, high = summary(np.array([1.0] * 99 + [50.0]))
    assert low == 1.0
    assert high == mean == pytest.approx(1.49)
