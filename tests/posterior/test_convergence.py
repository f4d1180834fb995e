"""R-hat and effective sizes of chains whose law is known, and the warning."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms.errors import ConvergenceWarning
from causalarms.posterior.chains.convergence import (
    Diagnostics,
    diagnose,
    effective_sizes,
    split_r_hat,
    warn_of_bad_chains,
)


def test_independent_values_count_one_each() -> None:
    values = np.random.default_rng(0).normal(size=(8, 500, 50))
    assert np.abs(split_r_hat(values) - 1).max() < 0.02
    assert effective_sizes(values).mean() == pytest.approx(4000, rel=0.1)


def test_autoregressive_values_count_less() -> None:
    """An AR(1) chain with coefficient r has (1 - r) / (1 + r) effective values per value."""
    rng = np.random.default_rng(0)
    values = np.zeros((4, 3000, 20))
    for t in range(1, 3000):
        values[:, t] = 0.8 * values[:, t - 1] + rng.normal(size=(4, 20))
    assert effective_sizes(values).mean() == pytest.approx(12000 / 9, rel=0.15)


def test_chains_apart_are_noticed_and_named() -> None:
    rng = np.random.default_rng(0)
    edges = np.zeros((4, 100, 2, 3, 3))
    edges[..., 0, 1, 2] = rng.uniform(0, 0.4, (4, 100))
    assert diagnose(edges, 0.3).converged
    edges[2:, ..., 1, 0, 2] = 1.0
    edges[..., 1, 0, 2] += rng.uniform(0, 0.01, (4, 100))
    found = diagnose(edges, 0.3)
    assert found.worst_edge == (1, 0, 2)
    assert found.worst_r_hat > 10
    assert not found.converged
    with pytest.warns(ConvergenceWarning, match=r"worst for a -> c \(intervened\)"):
        warn_of_bad_chains(found, ("a", "b", "c"))


def test_settled_edges_are_no_disagreement() -> None:
    edges = np.zeros((2, 10, 2, 3, 3))
    edges[1] = 1e-6
    found = diagnose(edges, 0.0)
    assert found == Diagnostics(2, 20, 1.0, None, 20.0, 0.0)
    assert found.converged
    assert not diagnose(edges[:, :3], 0.0).converged  # too few orders to say
