"""Rows as they come in, and which of them each mechanism may learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms.errors import DataError, ModelError
from causalarms.statistics import Dataset


def draw(n_rows: int, n_nodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_nodes)), rng.integers(0, 2, (n_rows, n_nodes))


@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 10**6), st.data())
def test_rows_in_pieces_are_rows_at_once(
    n_rows: int, n_nodes: int, seed: int, data: st.DataObject
) -> None:
    X, A = draw(n_rows, n_nodes, seed)
    cuts = sorted(data.draw(st.lists(st.integers(0, n_rows), max_size=5)))
    whole, pieces = Dataset(n_nodes), Dataset(n_nodes)
    whole.append(X, A)
    for start, end in zip([0, *cuts], [*cuts, n_rows], strict=True):
        if end > start:
            pieces.append(X[start:end], A[start:end])
    assert len(pieces) == len(whole) == n_rows
    np.testing.assert_array_equal(pieces.values, X)
    np.testing.assert_array_equal(pieces.regimes, A)
    for regime, node in np.ndindex(2, n_nodes):
        rows = np.flatnonzero(A[:, node] == regime)
        for kept in (whole, pieces):
            np.testing.assert_array_equal(kept.rows_of(regime, node), rows)
            np.testing.assert_array_equal(kept.samples(regime, node), X[rows])
            assert kept.counts[regime, node] == len(rows)


def test_one_round_may_be_given_as_a_vector() -> None:
    data = Dataset(2)
    data.append([1.0, 2.0], [0, 1])
    assert data.values.tolist() == [[1.0, 2.0]]
    assert data.counts.tolist() == [[1, 0], [0, 1]]


@given(
    st.integers(1, 40),
    st.sampled_from(["oldest", "newest"]),
    st.integers(1, 12),
    st.integers(0, 99),
)
def test_cap(n_rows: int, keep: str, cap: int, seed: int) -> None:
    X, A = draw(n_rows, 2, seed)
    data = Dataset(2, cap=cap, keep=keep)
    data.append(X, A)
    for regime, node in np.ndindex(2, 2):
        rows = np.flatnonzero(A[:, node] == regime)
        expected = rows[:cap] if keep == "oldest" else rows[-cap:]
        np.testing.assert_array_equal(data.rows_of(regime, node), expected)
        np.testing.assert_array_equal(data.samples(regime, node), X[expected])
        assert data.counts[regime, node] == len(expected)


def test_forgetting_touches_one_mechanism_only() -> None:
    X, A = draw(30, 3, 1)
    data, untouched = Dataset(3), Dataset(3)
    data.append(X[:20], A[:20])
    data.forget(1, 2)
    assert data.counts[1, 2] == 0
    assert data.starts.tolist() == [[0, 0, 0], [0, 0, 20]]
    data.append(X[20:], A[20:])
    untouched.append(X, A)
    for regime, node in np.ndindex(2, 3):
        rows = untouched.rows_of(regime, node)
        if (regime, node) == (1, 2):
            rows = rows[rows >= 20]
        np.testing.assert_array_equal(data.rows_of(regime, node), rows)
    assert len(data) == 30


@given(st.integers(0, 25), st.sampled_from([None, 3]), st.sampled_from(["oldest", "newest"]))
def test_forgetting_up_to_a_row(start: int, cap: int | None, keep: str) -> None:
    X, A = draw(25, 2, 7)
    data = Dataset(2, cap=cap, keep=keep)
    data.append(X, A)
    data.forget(0, 1, start=start)
    rows = np.flatnonzero((A[:, 1] == 0) & (np.arange(25) >= start))
    if cap is not None:
        rows = rows[:cap] if keep == "oldest" else rows[-cap:]
    np.testing.assert_array_equal(data.rows_of(0, 1), rows)
    assert data.starts[0, 1] == start


def test_what_is_kept_cannot_be_changed_from_outside() -> None:
    data = Dataset(2)
    X = np.ones((1, 2))
    data.append(X, [[0, 0]])
    X[:] = 7
    assert data.values.tolist() == [[1.0, 1.0]]
    for view in (data.values, data.regimes, data.rows_of(0, 0)):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 5


@pytest.mark.parametrize(
    ("values", "regimes", "message"),
    [
        ([[1.0, np.nan]], [[0, 0]], "row 0 of node 'b' is nan"),
        ([[1.0, 1.0], [-np.inf, 1.0]], [[0, 0], [0, 0]], "row 1 of node 'a' is -inf"),
        ([[1.0, 1.0]], [[0, 2]], "row 0 of node 'b': regime 2"),
        ([[1.0, 1.0]], [[0, 0], [0, 0]], r"\(1, 2\) values do not fit \(2, 2\) regimes"),
        ([[1.0, 1.0, 1.0]], [[0, 0]], r"\(1, 3\) values do not fit \(1, 2\)"),
        ([[1.0, 1.0]], [[0, 0, 0]], r"shape \(n, 2\)"),
    ],
)
def test_rows_that_are_refused_leave_the_data_as_they_were(
    values: Any, regimes: Any, message: str
) -> None:
    data = Dataset(2, nodes=["a", "b"])
    data.append([[5.0, 6.0]], [[1, 1]])
    with pytest.raises(DataError, match=message):
        data.append(values, regimes)
    assert data.values.tolist() == [[5.0, 6.0]]
    assert data.counts.tolist() == [[0, 0], [1, 1]]


def test_settings_that_are_refused() -> None:
    with pytest.raises(DataError, match="cap must be an integer of at least 1, not 0"):
        Dataset(2, cap=0)
    with pytest.raises(DataError, match="keep must be one of oldest, newest, not 'best'"):
        Dataset(2, keep="best")
    with pytest.raises(ModelError, match="node name 'a' is used twice"):
        Dataset(2, nodes=["a", "a"])
