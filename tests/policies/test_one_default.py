"""No default depends on units: a column may be measured in any."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import GraphPosterior, make_policy, random_sem
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.policies.registry import PRESETS

FACTORS = [1e3, 1e-3]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("seed", range(4))
def test_other_units_change_no_edge_of_the_learner(seed: int, factor: float) -> None:
    sem = random_sem(6, seed=seed)
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (150, 6), dtype=np.uint8)
    X = sem.sample(A, rng)
    plain = GraphPosterior().fit(X, interventions=A)
    for node in range(6):
        units = np.where(np.arange(6) == node, factor, 1.0)
        other = GraphPosterior().fit(X * units, interventions=A)
        assert np.array_equal(other.adjacency_, plain.adjacency_)
        np.testing.assert_allclose(
            other.edge_probability_, plain.edge_probability_, rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("rows", [4, 6])
def test_few_rows_too_are_learned_from_in_any_units(rows: int) -> None:
    """Too few to explain a node by all others, which shows its noise."""
    X = np.random.default_rng(0).normal(size=(rows, 5))
    A = np.repeat(np.arange(rows)[:, None] % 2, 5, axis=1)
    plain = GraphPosterior().fit(X, interventions=A)
    other = GraphPosterior().fit(X * [1e3, 1.0, 1e-3, 1.0, 1.0], interventions=A)
    np.testing.assert_allclose(other.edge_probability_, plain.edge_probability_, atol=1e-6)


@pytest.mark.parametrize("name", ["posterior", "posterior-cd"])
@pytest.mark.parametrize("factor", FACTORS)
def test_other_units_change_no_suggestion(name: str, factor: float) -> None:
    """Of any column: one policy is told the values, one per node has that node in other units."""
    sem = random_sem(4, seed=3)
    plain = make_policy(name, n_nodes=4)
    others = [make_policy(name, n_nodes=4) for _ in range(4)]
    noise = np.random.default_rng(0)
    for t in range(50):
        a = plain.ask(np.random.default_rng(t))
        x = sem.sample(a[None], noise)[0]
        for node, other in enumerate(others):
            assert np.array_equal(other.ask(np.random.default_rng(t)), a)
            other.tell(a, np.where(np.arange(4) == node, factor * x, x))
        plain.tell(a, x)


def test_what_a_study_writes_down_is_what_the_policy_does_by_itself() -> None:
    for name in ("posterior", "posterior-cd"):
        preset = PRESETS[name]
        plain, told = (make_policy(name, n_nodes=3, **s) for s in ({}, preset.defaults))
        assert isinstance(plain, PosteriorPolicy)
        assert isinstance(told, PosteriorPolicy)
        assert plain.watches == told.watches == (preset.watching is None)
        for field in ("noise_scale", "gaps", "typing_errors", "decide"):
            assert getattr(plain.config, field) == getattr(told.config, field)
    assert GraphPosterior().noise_scale == PRESETS["posterior"].defaults["noise_scale"]
