"""Sums over subsets with mantissa and exponent against plain sums of logarithms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms.posterior.orders import with_gap, without
from causalarms.posterior.subset_sums import (
    subset_log_sums,
    subset_maxima,
    superset_log_sums,
)


@given(st.integers(0, 10**6), st.sampled_from([1.0, 100.0, 400.0, 1e4, 1e7]), st.floats(0, 0.9))
def test_sums_and_maxima(seed: int, spread: float, impossible: float) -> None:
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=32) * spread
    logs[rng.random(32) < impossible] = -np.inf
    logs[rng.integers(32)] = 3.0
    below, above, best = np.empty(32), np.empty(32), np.empty(32)
    room, exponents = np.empty(32), np.empty(32, dtype=np.int32)
    subset_log_sums(logs, below, room, exponents)
    superset_log_sums(logs, above, room, exponents)
    subset_maxima(logs, best)
    for mask in range(32):
        subsets = [k for k in range(32) if k & mask == k]
        supersets = [k for k in range(32) if k & mask == mask]
        for found, members in ((below[mask], subsets), (above[mask], supersets)):
            expected = np.logaddexp.reduce(logs[members])
            assert found == expected or found == pytest.approx(expected, rel=1e-12, abs=1e-10)
        assert best[mask] == logs[subsets].max()


@given(st.integers(0, 2**12 - 1), st.integers(0, 11))
def test_bits_move_together_and_back(mask: int, node: int) -> None:
    assert with_gap(without(mask, node), node) == mask & ~(1 << node)
    others = [j for j in range(12) if j != node]
    assert without(mask, node) == sum((mask >> j & 1) << k for k, j in enumerate(others))
