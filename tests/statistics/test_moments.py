"""Gram moments: round by round, from all samples, and by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms.errors import DataError
from causalarms.statistics import Dataset, Moments


def numpy_gram(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    Z = np.column_stack([X, np.ones(len(X))])[rows]
    return Z.T @ Z


@given(st.integers(0, 50), st.integers(1, 5), st.integers(0, 10**6))
def test_three_ways_to_the_moments(n_rows: int, n_nodes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_nodes))
    A = rng.integers(0, 2, (n_rows, n_nodes)).astype(np.uint8)
    told, data = Moments(n_nodes), Dataset(n_nodes)
    for x, a in zip(X, A, strict=True):
        told.add(x, a)
        data.append(x, a)
    recomputed = Moments.of(data)
    for regime, node in np.ndindex(2, n_nodes):
        rows = np.flatnonzero(A[:, node] == regime)
        expected = numpy_gram(X, rows)
        for moments in (told, recomputed):
            np.testing.assert_allclose(moments.gram[regime, node], expected, rtol=1e-12, atol=1e-12)
            assert moments.counts[regime, node] == len(rows)


def test_forgetting_and_recomputing_one_mechanism() -> None:
    rng = np.random.default_rng(3)
    X, A = rng.normal(size=(40, 3)), rng.integers(0, 2, (40, 3))
    data = Dataset(3)
    data.append(X, A)
    moments, before = Moments.of(data), Moments.of(data)
    data.forget(1, 0, start=25)
    moments.recompute(data, 1, 0)
    rows = np.flatnonzero((A[:, 0] == 1) & (np.arange(40) >= 25))
    np.testing.assert_allclose(moments.gram[1, 0], numpy_gram(X, rows), rtol=1e-12)
    assert moments.counts[1, 0] == len(rows)
    moments.forget(0, 2)
    assert not moments.gram[0, 2].any()
    assert moments.counts[0, 2] == 0
    for mechanism in {(0, 0), (0, 1), (1, 1), (1, 2)}:
        np.testing.assert_array_equal(moments.gram[mechanism], before.gram[mechanism])


def test_capped_data_have_capped_moments() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 2))
    data = Dataset(2, cap=5, keep="newest")
    data.append(X, np.zeros((20, 2)))
    np.testing.assert_allclose(
        Moments.of(data).gram[0, 1], numpy_gram(X, np.arange(15, 20)), rtol=1e-12
    )


def test_moments_of_another_number_of_samples_are_refused() -> None:
    state = Moments(2).state()
    state["gram"][0, 1, -1, -1] = -1.0
    with pytest.raises(DataError, match="as many samples as were counted"):
        Moments(2).restore(state)
