"""Edge probabilities, evidence and the rest against a list of all pairs of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from posterior_by_enumeration import Enumeration, enumerate_pairs, n_labelled_dags
from small_systems import posterior_of, rounds

from causalarms.posterior.exact import ExactPosterior
from causalarms.posterior.prior import MechanismPrior


def compare(posterior: ExactPosterior, truth: Enumeration) -> None:
    expected = truth.edge_probability()
    np.testing.assert_allclose(posterior.edge_probability, expected, atol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, truth.log_evidence, rtol=1e-9, atol=1e-9)
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3, 0.6, 0.9, 1.0):
        kept = rng.random(expected.shape) < share
        assert posterior.probability_within(kept) == pytest.approx(
            truth.probability_within(kept), abs=1e-9
        )


def test_the_list_is_complete() -> None:
    _, X, A = rounds(4, 5, 0)
    assert len(enumerate_pairs(X[:, :3], A[:, :3], noise_mean=None).dags) == n_labelled_dags(3)
    assert len(enumerate_pairs(X, A, noise_mean=None).dags) == n_labelled_dags(4) == 543


@pytest.mark.parametrize("n_nodes", [2, 3, 4])
@pytest.mark.parametrize("n_rows", [0, 6, 25])
@pytest.mark.parametrize("known_mean", [True, False])
def test_all_pairs(n_nodes: int, n_rows: int, known_mean: bool) -> None:
    sem, X, A = rounds(n_nodes, 25, 3)
    X, A = X[:n_rows], A[:n_rows]
    mean = sem.noise_mean if known_mean else None
    compare(posterior_of(X, A, noise_mean=mean), enumerate_pairs(X, A, noise_mean=mean))


@pytest.mark.parametrize("edge_probability", [0.1, 0.8, None])
def test_other_densities(edge_probability: float | None) -> None:
    sem, X, A = rounds(4, 15, 1)
    prior = MechanismPrior(
        edge_probability="adaptive" if edge_probability is None else edge_probability
    )
    compare(
        posterior_of(X, A, noise_mean=sem.noise_mean, prior=prior),
        enumerate_pairs(X, A, noise_mean=sem.noise_mean, edge_probability=edge_probability),
    )


def test_a_known_variance() -> None:
    sem, X, A = rounds(4, 10, 2)
    compare(
        posterior_of(X, A, noise_mean=sem.noise_mean, noise_std=sem.noise_std),
        enumerate_pairs(X, A, noise_mean=sem.noise_mean, noise_std=1.0),
    )


def test_mechanisms_without_samples_have_the_prior_given_the_order() -> None:
    sem, X, A = rounds(4, 20, 2)
    A[:, 1], A[:, 2] = 0, 1
    X = sem.sample(A, np.random.default_rng(0))
    compare(
        posterior_of(X, A, noise_mean=sem.noise_mean),
        enumerate_pairs(X, A, noise_mean=sem.noise_mean),
    )


@pytest.mark.parametrize("seed", range(4))
def test_prior_knowledge_is_exact(seed: int) -> None:
    """Forbidden and required edges are a condition on the same prior, true or not."""
    sem, X, A = rounds(4, 12, seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(4)
    required = np.zeros((4, 4), dtype=bool)
    required[np.ix_(order, order)] = np.triu(rng.random((4, 4)) < 0.3, 1)
    excluded = (rng.random((4, 4)) < 0.3) & ~required
    settings: dict[str, Any] = {"noise_mean": sem.noise_mean}
    posterior = posterior_of(X, A, allowed=~excluded, required=required, **settings)
    compare(posterior, enumerate_pairs(X, A, excluded=excluded, required=required, **settings))
    assert (posterior.edge_probability[:, required] == 1).all()
    assert (posterior.edge_probability[:, excluded] == 0).all()
    for draw in posterior.draw(rng, 50).adjacency:
        assert (draw >= required).all()
        assert not (draw & excluded).any()


@pytest.mark.parametrize("seed", range(3))
def test_the_most_probable_order_and_graphs(seed: int) -> None:
    sem, X, A = rounds(4, 12, seed)
    posterior = posterior_of(X, A, noise_mean=sem.noise_mean)
    truth = enumerate_pairs(X, A, noise_mean=sem.noise_mean)
    best = posterior.most_probable()
    common = truth.orders.astype(int) @ truth.orders.T.astype(int)
    one_order = np.where(common > 0, truth.joint / np.maximum(common, 1), 0.0)
    assert np.exp(best.log_probability) == pytest.approx(one_order.max(), rel=1e-9)
    first, second = np.unravel_index(one_order.argmax(), one_order.shape)
    np.testing.assert_array_equal(best.adjacency, truth.dags[[first, second]])
    place = np.argsort(best.order)
    assert all(place[p] < place[c] for _, p, c in np.argwhere(best.adjacency))


def test_scores_thousands_of_nats_apart_lose_nothing() -> None:
    """Two nodes that explain each other: one has to do without, 3000 nats below its best set."""
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (1000, 3))
    X = rng.normal(size=(1000, 3))
    X[:, 1] = 500 * X[:, 0] + X[:, 2] + rng.normal(size=1000)
    X[:, 0] *= 500
    posterior = posterior_of(X, A)
    assert np.ptp(posterior.tables.scores[0, 0]) > 1500
    truth = enumerate_pairs(X, A, noise_mean=None)
    np.testing.assert_allclose(posterior.log_evidence, truth.log_evidence, rtol=1e-9)
    # densities of 500 nearly collinear dimensions agree to 1e-7 of several thousand nats
    np.testing.assert_allclose(posterior.edge_probability, truth.edge_probability(), atol=1e-4)
