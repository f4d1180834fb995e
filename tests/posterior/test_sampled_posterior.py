"""`SampledPosterior`: the same answers as the exact posterior, where there is one."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from small_systems import moments_of, posterior_of, rounds

from causalarms.errors import DataError, ModelError
from causalarms.posterior.chains import SampledPosterior
from causalarms.posterior.chains.convergence import NOTICEABLE, effective_sizes
from causalarms.posterior.exact import ExactPosterior
from causalarms.statistics.dataset import Moments


def sampled_of(X: Any, A: Any, **settings: Any) -> SampledPosterior:
    return SampledPosterior(np.shape(X)[1], moments_of(X, A), **settings)


def test_it_is_used_like_the_exact_posterior() -> None:
    exact = dict(inspect.signature(ExactPosterior.__init__).parameters)
    del exact["columns"]  # factors that are roots of the graph need the exact sums
    sampled = inspect.signature(SampledPosterior.__init__).parameters
    assert list(sampled)[: len(exact)] == list(exact)
    assert all(sampled[name] == exact[name] for name in exact)
    _, X, A = rounds(5, 30, 1)
    both = posterior_of(X, A), sampled_of(X, A, n_sweeps=20)
    rng = np.random.default_rng(0)
    for name in (name for name in dir(both[0]) if not name.startswith("_")):
        if name not in ("scores", "within"):  # tables of their own kind
            assert hasattr(both[1], name), name
    for a, b in zip(both[0].draw(rng, 3)[:5], both[1].draw(rng, 3)[:5], strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
    for a, b in zip(both[0].most_probable()[:2], both[1].most_probable()[:2], strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
    graph = both[0].most_probable().adjacency
    for a, b in zip(both[0].estimate(graph), both[1].estimate(graph), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(both[0].gram, both[1].gram)
    assert np.isnan(both[1].log_evidence)
    assert np.isnan(both[1].most_probable().log_probability)


@pytest.mark.parametrize("known_mean", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_all_candidates_only_chance_is_between_them(seed: int, known_mean: bool) -> None:
    """At most 4.5 standard errors, those the chains state, at any of the edges that vary."""
    sem, X, A = rounds(5, 15, seed)
    settings: dict[str, Any] = {"noise_mean": sem.noise_mean if known_mean else None}
    exact = posterior_of(X, A, **settings)
    sampled = sampled_of(X, A, n_sweeps=4000, n_orders=4000, **settings)
    edges = sampled.edges_given_orders().reshape(4, 4000, -1)
    spread = edges.std(axis=(0, 1))
    error = spread / np.sqrt(effective_sizes(edges))
    difference = np.abs(sampled.edge_probability - exact.edge_probability).ravel()
    varies = spread > NOTICEABLE
    assert (difference[varies] / error[varies]).max() < 4.5
    assert difference[varies].max() < 0.02
    assert difference[~varies].max() < 0.001
    assert sampled.diagnostics.converged
    kept = exact.edge_probability > 0.3
    assert sampled.probability_within(kept) == pytest.approx(
        exact.probability_within(kept), abs=0.02
    )
    best = exact.most_probable()
    np.testing.assert_array_equal(sampled.most_probable().adjacency, best.adjacency)


@pytest.mark.parametrize(("n_rows", "most"), [(30, 0.08), (100, 0.03)])
def test_few_candidates_hardly_matter(n_rows: int, most: float) -> None:
    for seed in (0, 1):
        sem, X, A = rounds(11, n_rows, seed)
        exact = posterior_of(X, A, noise_mean=sem.noise_mean)
        sampled = sampled_of(X, A, noise_mean=sem.noise_mean, n_candidates=5)
        assert (sampled._tables.n_core > 0).any()
        assert np.abs(sampled.edge_probability - exact.edge_probability).max() < most


def test_draws_have_the_probabilities_of_edges() -> None:
    """4.5 standard errors of independent draws, and what draws and probabilities share in error."""
    sem, X, A = rounds(11, 30, 3)
    sampled = sampled_of(X, A, noise_mean=sem.noise_mean, n_candidates=5)
    draws = sampled.draw(np.random.default_rng(1), 2000)
    p = sampled.edge_probability
    error = np.sqrt(p * (1 - p) / 2000) + 0.002
    assert (np.abs(draws.adjacency.mean(axis=0) - p) / error).max() < 4.5
    place = np.argsort(draws.order, axis=1)
    for t, regime, parent, child in np.argwhere(draws.adjacency)[::97]:
        assert place[t, parent] < place[t, child], regime
    np.testing.assert_array_equal(draws.weights != 0, draws.adjacency)


def test_mechanisms_without_data_keep_their_prior() -> None:
    """All orders are alike: an edge exists with 1/2, of parents that come first, 1/2 again."""
    sampled = SampledPosterior(16, n_candidates=5, n_sweeps=300, n_orders=150)
    p = sampled.edge_probability[:, ~np.eye(16, dtype=bool)]
    assert np.abs(p - 0.25).max() < 0.06
    assert p.mean() == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize("n_candidates", [4, 20])
def test_required_and_excluded_edges_are_enforced(n_candidates: int) -> None:
    sem, X, A = rounds(9, 40, 2)
    allowed, required = np.ones((2, 9, 9), dtype=bool), np.zeros((2, 9, 9), dtype=bool)
    order = sem.order
    required[:, order[8], order[0]] = True  # against the truth
    required[1, order[2], order[5]] = True
    allowed[:, order[1], :] = False
    allowed[0, :, order[3]] = False  # no parents at all
    sampled = sampled_of(
        X, A, allowed=allowed, required=required, n_candidates=n_candidates, n_sweeps=100
    )
    possible = allowed & ~np.eye(9, dtype=bool)
    assert (sampled.edge_probability[required] == 1).all()
    assert (sampled.edge_probability[~possible] == 0).all()
    found = [*sampled.draw(np.random.default_rng(0), 50).adjacency]
    for adjacency in [*found, sampled.most_probable().adjacency]:
        assert adjacency[required].all()
        assert not adjacency[~possible].any()
    exact = posterior_of(X, A, allowed=allowed, required=required)
    assert np.abs(exact.edge_probability - sampled.edge_probability).max() < 0.1


def test_the_seed_decides_and_asking_changes_nothing() -> None:
    _, X, A = rounds(10, 40, 1)
    one, same, other = (
        sampled_of(X[:30], A[:30], n_candidates=4, n_sweeps=30, seed=seed) for seed in (1, 1, 2)
    )
    _ = one.edge_probability, one.diagnostics, one.draw(np.random.default_rng(0), 5)
    one.most_probable()
    np.testing.assert_array_equal(one.orders, same.orders)
    assert (one.orders != other.orders).any()
    for posterior in (one, same):
        posterior.update(moments_of(X, A))
    np.testing.assert_array_equal(one.orders, same.orders)
    np.testing.assert_array_equal(one.edge_probability, same.edge_probability)


def test_a_restored_state_goes_on_in_the_same_way() -> None:
    _, X, A = rounds(10, 40, 1)
    settings: dict[str, Any] = {"n_candidates": 4, "n_sweeps": 30}
    one = sampled_of(X[:30], A[:30], **settings)
    other = SampledPosterior(10, seed=9, **settings)
    other.restore(one.state())
    for n_rows in (30, 31, 40):
        assert one.update(moments_of(X[:n_rows], A[:n_rows])) == other.update(
            moments_of(X[:n_rows], A[:n_rows])
        )
        np.testing.assert_array_equal(one.edge_probability, other.edge_probability)
        first, second = (p.draw(np.random.default_rng(0), 2).weights for p in (one, other))
        np.testing.assert_array_equal(first, second)


def test_relabelling_nodes_relabels_probabilities() -> None:
    sem, X, A = rounds(11, 80, 4)
    labels = np.random.default_rng(0).permutation(11)
    plain = sampled_of(X, A, noise_mean=sem.noise_mean, n_candidates=5)
    moved = sampled_of(X[:, labels], A[:, labels], noise_mean=sem.noise_mean, n_candidates=5)
    np.testing.assert_allclose(
        moved.edge_probability, plain.edge_probability[:, labels][:, :, labels], atol=0.05
    )


def test_updates_round_by_round_reach_the_posterior_of_all_rounds() -> None:
    sem, X, A = rounds(10, 80, 5)
    moments = Moments(10)
    sampled = SampledPosterior(10, moments, noise_mean=sem.noise_mean, n_candidates=4)
    for row, regimes in zip(X, A.astype(np.uint8), strict=True):
        moments.add(row, regimes)
        assert sampled.update(moments) == 10
    assert sampled.update(moments) == 0
    sampled.run(400)
    exact = ExactPosterior(10, moments, noise_mean=sem.noise_mean)
    assert np.abs(sampled.edge_probability - exact.edge_probability).max() < 0.05
    moments.forget(0, 3)
    exact.update(moments)
    assert sampled.update(moments) == 1
    sampled.run(400)
    assert np.abs(sampled.edge_probability - exact.edge_probability).max() < 0.08


def test_dense_systems_of_thirty_nodes_are_learned() -> None:
    sem, X, A = rounds(30, 300, 0)
    sampled = sampled_of(X, A, noise_mean=sem.noise_mean, n_sweeps=60)
    found = sampled.edge_probability > 0.5
    assert (found & sem.adjacency).sum() >= 0.99 * sem.adjacency.sum()
    assert (found & ~sem.adjacency).sum() <= 0.03 * found.sum()


def test_huge_values_and_few_samples_give_finite_draws() -> None:
    """Fewer samples than nodes, 10^9 times the noise: pivots are the prior's, and rounded away."""
    _, X, A = rounds(25, 20, 0)
    X = X * np.logspace(0, 9, 25)
    for n_candidates in (3, 8):
        sampled = sampled_of(X, A, n_candidates=n_candidates, n_sweeps=20)
        assert np.isfinite(sampled.edge_probability).all()
        draws = sampled.draw(np.random.default_rng(0), 40)
        assert np.isfinite(draws.weights).all()
        assert (draws.noise_std > 0).all()


def test_refusals() -> None:
    with pytest.raises(DataError, match=r"30 nodes with 12 candidates need [\d,]+ bytes"):
        SampledPosterior(30, memory_limit=10**6)
    with pytest.raises(DataError, match="n_chains must be an integer of at least 1, not 0"):
        SampledPosterior(5, n_chains=0)
    cycle = np.zeros((25, 25), dtype=bool)
    cycle[0, 1] = cycle[1, 2] = cycle[2, 0] = True
    with pytest.raises(ModelError, match="no order of the nodes fits"):
        SampledPosterior(25, required=cycle)
    with pytest.raises(ModelError, match="edge 0 -> 1 is required and excluded"):
        SampledPosterior(25, required=cycle, allowed=~cycle)
