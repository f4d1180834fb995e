"""Lemma 2 in its three forms, against the formulas of the paper written out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from causalarms.errors import ModelError
from causalarms.models.linear import FORMS, form_code, singular_value_bound

DELTA = 0.05


def bound(spread: np.ndarray, regressors: np.ndarray, form: str, delta: float = DELTA) -> float:
    log_term = float(np.log(2 * len(spread) / delta))
    return singular_value_bound(spread, regressors, form_code(form), log_term)


def as_printed(spread: np.ndarray, delta: float = DELTA) -> float:
    N = len(spread)
    return float(2 * (N**2 + 2 * N) ** 0.25 * np.sqrt(np.log(2 * N / delta) * spread.sum()))


@pytest.mark.parametrize("n_nodes", [1, 3, 10])
def test_theorem_is_as_printed(n_nodes: int) -> None:
    rng = np.random.default_rng(n_nodes)
    spread, regressors = rng.exponential(size=n_nodes), rng.integers(0, n_nodes, n_nodes)
    assert bound(spread, regressors, "theorem") == pytest.approx(as_printed(spread))


def test_parents_puts_each_columns_own_dimension_inside_the_sum() -> None:
    spread, p = np.array([0.0, 0.2, 0.5, 0.1]), np.array([0, 1, 2, 3])
    total = sum(np.sqrt(p_i * (p_i + 2)) * s for p_i, s in zip(p, spread, strict=True))
    expected = 2 * np.sqrt(np.log(8 / DELTA) * total)
    assert bound(spread, p, "parents") == pytest.approx(expected)
    assert bound(spread, p, "parents") < bound(spread, p, "theorem")
    assert bound(spread, np.full(4, 4), "parents") == pytest.approx(bound(spread, p, "theorem"))


def test_valid_is_the_theorem_inside_the_range_and_the_tail_outside() -> None:
    N = 10
    p = np.full(N, 3)
    log_term = np.log(2 * N / DELTA)
    # the range: ln(2N / delta) <= sqrt(N / (N + 2)) sum / max, a ratio of 6.6 at N = 10
    needed = log_term / np.sqrt(N / (N + 2))
    assert needed == pytest.approx(6.6, abs=0.05)
    for ratio, inside in ((needed + 0.01, True), (needed - 0.01, False), (1.0, False)):
        spread = np.full(N, 0.3 * (ratio - 1) / (N - 1))
        spread[4] = 0.3
        tail = 2 * np.sqrt((N + 2) * 0.3) * log_term
        expected = as_printed(spread) if inside else tail
        assert bound(spread, p, "valid") == pytest.approx(expected)


@pytest.mark.parametrize(("n_nodes", "reached"), [(2, False), (5, False), (7, False), (8, True)])
def test_up_to_seven_nodes_the_range_is_never_reached(n_nodes: int, reached: bool) -> None:
    """At delta = 0.05. Equal spreads are the best case, but an acyclic graph has a root: 0."""
    spread = np.full(n_nodes, 0.1)
    spread[0] = 0.0
    tail = 2 * np.sqrt((n_nodes + 2) * 0.1) * np.log(2 * n_nodes / DELTA)
    expected = as_printed(spread) if reached else tail
    assert bound(spread, np.ones(n_nodes, np.int64), "valid") == pytest.approx(expected)


def test_outside_the_range_valid_is_the_wider() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        spread = rng.exponential(size=6) ** 3
        p = np.full(6, 2)
        assert bound(spread, p, "valid") >= bound(spread, p, "theorem")


@pytest.mark.parametrize("form", FORMS)
def test_less_confidence_is_narrower_and_no_error_is_no_bound(form: str) -> None:
    spread, p = np.array([0.1, 0.4, 0.2]), np.array([1, 2, 2])
    widths = [bound(spread, p, form, delta) for delta in (0.001, 0.01, 0.1)]
    assert all(wide > narrow for wide, narrow in pairwise(widths))
    assert bound(np.zeros(3), p, form) == 0.0


def test_an_unknown_form_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelError, match=r"bound must be one of theorem, .* not 'exact'"):
        form_code("exact")
