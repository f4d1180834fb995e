"""Metrics against hand-computed examples and against a loop over the paper's formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms.errors import DataError
from causalarms.graphs import GraphErrors, graph_errors, varsortability


def literal(truth: np.ndarray, guess: np.ndarray) -> tuple[bool, float, float, float]:
    """Sec. VI-A entry by entry: FN indicator, precision, recall, NSHD."""
    n = len(truth)
    missed, both, guessed, true = False, 0, 0, 0
    distance = 0
    for i in range(n):
        for j in range(n):
            missed |= truth[i, j] != 0 and guess[i, j] == 0
            both += truth[i, j] != 0 and guess[i, j] != 0
            guessed += guess[i, j] != 0
            true += truth[i, j] != 0
            distance += truth[i, j] == 0 and guess[i, j] != 0
            distance += truth[i, j] != 0 and guess[i, j] == 0
            distance -= truth[i, j] != 0 and guess[i, j] == 0 and guess[j, i] != 0
    precision = both / guessed if guessed else 1.0
    recall = both / true if true else 1.0
    return missed, precision, recall, distance / n**2


@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_against_the_formulas(n: int, seed: int, dense: float, guessed: float) -> None:
    rng = np.random.default_rng(seed)
    off = ~np.eye(n, dtype=bool)
    truth = rng.normal(size=(n, n)) * (rng.random((n, n)) < dense) * off
    guess = rng.normal(size=(n, n)) * (rng.random((n, n)) < guessed) * off
    assert tuple(graph_errors(truth, guess)) == pytest.approx(literal(truth, guess))


def test_by_hand() -> None:
    """Truth 0->1, 0->2, 1->2; guess 0->1, 2->0, 1->2, 1->3 of 4 nodes.

    Hits 2 of 4 guessed and 3 true; 2->0 is a reversal and counts once, 1->3 is extra.
    """
    truth, guess = np.zeros((4, 4)), np.zeros((4, 4))
    truth[[0, 0, 1], [1, 2, 2]] = 1
    guess[[0, 2, 1, 1], [1, 0, 2, 3]] = 1
    assert graph_errors(truth, guess) == GraphErrors(True, 2 / 4, 2 / 3, 2 / 16)


def test_only_false_positives_are_no_false_negative() -> None:
    assert graph_errors([[0, 0], [0, 0]], [[0, 1], [0, 0]]) == GraphErrors(False, 0.0, 1.0, 0.25)


def test_a_perfect_guess() -> None:
    truth = np.triu(np.ones((5, 5)), 1)
    assert graph_errors(truth, -3 * truth) == GraphErrors(False, 1.0, 1.0, 0.0)


def test_an_empty_guess_says_nothing_wrong() -> None:
    assert graph_errors([[0, 1], [0, 0]], np.zeros((2, 2))) == GraphErrors(True, 1.0, 0.0, 0.25)


def test_shapes_that_cannot_be_compared() -> None:
    with pytest.raises(DataError, match=r"\(2, 2\) and \(3, 3\) cannot be compared"):
        graph_errors(np.zeros((2, 2)), np.zeros((3, 3)))
    with pytest.raises(DataError, match=r"a graph is a square matrix, not \(2, 3\)"):
        graph_errors(np.zeros((2, 3)), np.zeros((2, 3)))


def test_varsortability_by_hand() -> None:
    """0->1->2: the paths 0-1, 1-2 and 0-2."""
    chain = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert varsortability(chain, [1, 2, 3]) == 1.0
    assert varsortability(chain, [3, 2, 1]) == 0.0
    assert varsortability(chain, [2, 1, 3]) == pytest.approx(2 / 3)
    assert varsortability(chain, [1, 1, 3]) == pytest.approx(2.5 / 3)
    assert math.isnan(varsortability(np.zeros((3, 3)), [1, 2, 3]))


def test_varsortability_counts_a_pair_once_per_length() -> None:
    """0->1->2 and 0->2: lengths 1 (three pairs) and 2 (one pair)."""
    graph = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert varsortability(graph, [1, 3, 2]) == pytest.approx(3 / 4)
