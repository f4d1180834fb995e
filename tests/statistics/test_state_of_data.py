"""State out and in, and the parts that policies use round by round."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms.statistics import Dataset, Moments


def rounds(n_rows: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(n_rows, 3)), rng.integers(0, 2, (n_rows, 3)).astype(np.uint8)


@pytest.mark.parametrize(("cap", "keep"), [(None, "oldest"), (6, "oldest"), (6, "newest")])
def test_a_restored_dataset_goes_on_as_the_old_one(cap: int | None, keep: str) -> None:
    X, A = rounds()
    old, new = Dataset(3, cap=cap, keep=keep), Dataset(3, cap=cap, keep=keep)
    old.append(X[:30], A[:30])
    old.forget(1, 2, start=12)
    old.forget(0, 0)
    new.restore(old.state())
    for data in (old, new):
        data.append(X[30:], A[30:])
    np.testing.assert_array_equal(new.values, X)
    np.testing.assert_array_equal(new.starts, old.starts)
    for regime, node in np.ndindex(2, 3):
        np.testing.assert_array_equal(new.rows_of(regime, node), old.rows_of(regime, node))


def test_a_state_is_a_copy() -> None:
    X, A = rounds()
    data, moments = Dataset(3), Moments(3)
    data.append(X, A)
    moments.add(X[0], A[0])
    for state in (data.state(), moments.state()):
        for array in state.values():
            array[:] = 0
    np.testing.assert_array_equal(data.values, X)
    assert moments.counts.sum() == 3


def test_one_row_at_a_time_is_all_at_once() -> None:
    X, A = rounds()
    single, whole = Dataset(3), Dataset(3)
    whole.append(X, A)
    for x, a in zip(X, A, strict=True):
        single.add(x, a)
    np.testing.assert_array_equal(single.counts, whole.counts)
    np.testing.assert_array_equal(single.samples(1, 2), whole.samples(1, 2))


def test_recent_rows_know_the_start_and_not_the_cap() -> None:
    X, A = rounds()
    data = Dataset(3, cap=2)
    data.append(X, A)
    data.forget(0, 1, start=10)
    rows = np.flatnonzero((A[:, 1] == 0) & (np.arange(40) >= 10))
    assert len(rows) > 5
    np.testing.assert_array_equal(data.recent_rows_of(0, 1, 5), rows[-5:])
    np.testing.assert_array_equal(data.recent_rows_of(0, 1, 1000), rows)


def test_capped_moments_are_those_of_the_oldest_samples() -> None:
    X, A = rounds()
    data, moments = Dataset(3, cap=7, keep="oldest"), Moments(3, cap=7)
    for x, a in zip(X, A, strict=True):
        data.append(x, a)
        moments.add(x, a)
    expected = Moments.of(data)
    np.testing.assert_array_equal(moments.counts, expected.counts)
    np.testing.assert_allclose(moments.gram, expected.gram, rtol=1e-12, atol=1e-12)
    again = Moments(3)
    again.restore(moments.state())
    np.testing.assert_array_equal(again.gram, moments.gram)
