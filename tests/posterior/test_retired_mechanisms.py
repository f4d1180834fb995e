"""A mechanism that was replaced still says which nodes come before it."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.special import logsumexp
from small_systems import moments_of, posterior_of, rounds

from causalarms.posterior.chains import SampledPosterior
from causalarms.posterior.exact import ExactPosterior
from causalarms.statistics.dataset import Moments


def subsets(nodes: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [s for size in range(len(nodes) + 1) for s in combinations(nodes, size)]


def index(parents: tuple[int, ...], node: int) -> int:
    return sum(1 << (j - (j > node)) for j in parents)


def brute_force(now: ExactPosterior, old: ExactPosterior, retired: tuple[int, int]) -> np.ndarray:
    """Edge probabilities by enumeration of orders; `old` still scores the retired mechanism."""
    n = now.n_nodes
    terms, edges = [], []
    for order in permutations(range(n)):
        total, edge = 0.0, np.zeros((2, n, n))
        for position, node in enumerate(order):
            choices = subsets(order[:position])
            for regime in range(2):
                scores = np.array(
                    [now.tables.scores[regime, node, index(p, node)] for p in choices]
                )
                total += logsumexp(scores)
                for parents, share in zip(choices, np.exp(scores - logsumexp(scores)), strict=True):
                    edge[regime, list(parents), node] += share
            if node == retired[1]:
                past = [old.tables.scores[(*retired, index(p, node))] for p in choices]
                prior = [now.kernel_prior.log_sizes[len(p)] for p in choices]
                total += logsumexp(past) - logsumexp(prior)
        terms.append(total)
        edges.append(edge)
    shares = np.exp(np.array(terms) - logsumexp(terms))
    return np.tensordot(shares, np.array(edges), axes=1)


@pytest.mark.parametrize("density", [0.5, 0.2, "adaptive"])
def test_against_enumeration_of_orders(density: float | str) -> None:
    from causalarms.posterior.prior import MechanismPrior

    _, X, A = rounds(4, 25, seed=3)
    prior = MechanismPrior(edge_probability=density)
    old = posterior_of(X, A, prior=prior)
    now = posterior_of(X, A, prior=prior)
    now.retire(1, 2)
    assert now.gram[1, 2].sum() == 0
    np.testing.assert_allclose(now.edge_probability, brute_force(now, old, (1, 2)), atol=1e-9)
    everything = np.ones((2, 4, 4), dtype=bool)
    assert now.probability_within(everything) == pytest.approx(1.0)
    draws = now.draw(np.random.default_rng(0), 4000)
    error = 4 * 0.5 / np.sqrt(4000)
    assert np.abs(draws.adjacency.mean(axis=0) - now.edge_probability).max() < error
    best = now.most_probable()
    assert best.log_probability <= 0
    assert best.log_probability > np.log(1 / 24) - 30


def test_children_are_not_taken_for_parents_once_their_mechanism_is_new() -> None:
    """x0 -> x1: samples of x0 alone look the same whichever way round they are read."""
    rng = np.random.default_rng(0)
    x0 = 1.0 + rng.standard_normal(500)
    X = np.column_stack([x0, 1.0 + 2.0 * x0 + rng.standard_normal(500)])
    A = np.zeros((500, 2), dtype=int)
    kept = posterior_of(X, A, noise_mean=[1.0, 1.0])
    kept.retire(0, 1)
    assert kept.edge_probability[0, 1, 0] < 0.01
    moments = moments_of(X, A)
    moments.forget(0, 1)
    forgotten = ExactPosterior(2, moments, noise_mean=[1.0, 1.0])
    assert forgotten.edge_probability[0, 1, 0] > 0.9


def test_new_samples_are_those_of_a_new_mechanism() -> None:
    _, X, A = rounds(4, 60, seed=5)
    posterior = posterior_of(X[:30], A[:30])
    posterior.retire(0, 3)
    moments = moments_of(X[:30], A[:30])
    moments.forget(0, 3)
    for x, a in zip(X[30:], A[30:].astype(np.uint8), strict=True):
        moments.add(x, a)
    posterior.update(moments)
    fresh = ExactPosterior(4, moments)
    np.testing.assert_allclose(posterior.tables.scores[0, 3], fresh.tables.scores[0, 3])
    assert len(posterior._retired) == 1


def test_chains_keep_likely_parents_from_becoming_children() -> None:
    _, X, A = rounds(6, 200, seed=2)
    posterior = SampledPosterior(6, moments_of(X, A), n_sweeps=50)
    child = int(np.argmax(posterior.edge_probability.max(axis=0).sum(axis=0)))
    parents = posterior.edge_probability[0, :, child] > 0.5
    posterior.retire(0, child)
    assert parents.any()
    assert posterior.edge_probability[:, child, parents].max() == 0
    again = SampledPosterior(6, Moments(6), n_sweeps=10)
    again.restore(posterior.state())
    assert np.array_equal(again.allowed, posterior.allowed)
