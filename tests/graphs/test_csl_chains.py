"""Chains of an earlier fit, brought up to date, give the fit from nothing."""

from __future__ import annotations

import numpy as np
import pytest
from random_rounds import random_rounds

from causalarms.graphs.csl import Chain, CSLSettings, csl
from causalarms.statistics import Dataset


@pytest.mark.parametrize(("cap", "keep"), [(None, "oldest"), (25, "oldest"), (25, "newest")])
def test_reused_chains(cap: int | None, keep: str) -> None:
    """Rounds come one by one; now and then a mechanism forgets."""
    sem, X, A = random_rounds(4, 160, 2)
    nu = np.broadcast_to(sem.noise_mean, (2, 4))
    data = Dataset(4, cap=cap, keep=keep)
    data.append(X[:80], A[:80])
    chains: dict[tuple[int, int], Chain] = {}
    for row in range(80, 160):
        if row == 110:
            data.forget(1, 2)
        if row == 130:
            data.forget(0, 0, start=70)
        data.append(X[row], A[row])
        kept = csl(data, noise_mean=nu, chains=chains, settings=CSLSettings(min_samples=10))
        if row % 10 == 0 or row in (110, 111, 130, 131):
            fresh = csl(data, noise_mean=nu, settings=CSLSettings(min_samples=10))
            assert kept.history == fresh.history
            assert kept.order == fresh.order
            np.testing.assert_array_equal(kept.known, fresh.known)
            np.testing.assert_array_equal(kept.weights, fresh.weights)
            np.testing.assert_array_equal(kept.noise_std, fresh.noise_std)


def test_only_touched_mechanisms_are_worked_on_again() -> None:
    sem, X, A = random_rounds(4, 80, 2)
    data = Dataset(4)
    data.append(X[:-1], A[:-1])
    nu = np.broadcast_to(sem.noise_mean, (2, 4))
    chains: dict[tuple[int, int], Chain] = {}
    csl(data, noise_mean=nu, chains=chains)
    before = dict(chains)
    data.append(X[-1], A[-1])
    csl(data, noise_mean=nu, chains=chains)
    changed = {mechanism for mechanism in chains if chains[mechanism] is not before[mechanism]}
    assert changed == {(int(regime), node) for node, regime in enumerate(A[-1])}
