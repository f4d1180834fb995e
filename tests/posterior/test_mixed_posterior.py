"""Several priors: weighted by their evidence, given up when data speak against them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from small_systems import posterior_of, rounds

from causalarms import LinearSEM, random_sem
from causalarms.posterior.mixed import NEGLIGIBLE, MixedPosterior, strengths_of_weights
from causalarms.posterior.prior import MechanismPrior
from causalarms.statistics.moments import Moments

PRIORS = strengths_of_weights(MechanismPrior())


def learned(sem: LinearSEM, n_rounds: int, seed: int = 0) -> MixedPosterior:
    rng = np.random.default_rng(seed)
    mixed = MixedPosterior(sem.n_nodes, PRIORS, noise_mean=np.tile(sem.noise_mean, (2, 1)))
    moments = Moments(sem.n_nodes)
    A = rng.integers(0, 2, (n_rounds, sem.n_nodes), dtype=np.uint8)
    for a, x in zip(A, sem.sample(A, rng), strict=True):
        moments.add(x, a)
        mixed.update(moments)
    return mixed


def test_priors_are_weighted_by_their_evidence() -> None:
    sem, X, A = rounds(4, 4, 1)
    parts = [posterior_of(X, A, noise_mean=sem.noise_mean, prior=prior) for prior in PRIORS]
    mixed = MixedPosterior(4, PRIORS, noise_mean=np.tile(sem.noise_mean, (2, 1)))
    np.testing.assert_allclose(mixed.probability, 0.25, rtol=1e-9)  # before any data
    moments = Moments(4)
    for a, x in zip(A, X, strict=True):
        moments.add(x, a)
    mixed.update(moments)
    probability = softmax([part.log_evidence for part in parts])
    assert (probability > 0.01).sum() > 1  # a mixture indeed
    kept = probability >= NEGLIGIBLE
    assert mixed.held == np.flatnonzero(kept).tolist()
    probability = probability[kept] / probability[kept].sum()
    np.testing.assert_allclose(mixed.probability, probability, rtol=1e-6)
    edges = sum(p * parts[k].edge_probability for p, k in zip(probability, mixed.held, strict=True))
    np.testing.assert_allclose(mixed.edge_probability, edges, atol=1e-9)
    drawn = mixed.draw(np.random.default_rng(0), 20_000)
    error = np.sqrt(edges * (1 - edges) / 20_000)
    assert (np.abs(drawn.adjacency.mean(axis=0) - edges) <= 4.5 * error + 1e-12).all()
    assert mixed.draw(np.random.default_rng(0), 1).order.shape == (1, 4)


@pytest.mark.parametrize(("factor", "expected"), [(0.5, 0.6), (1.0, 1.2), (2.0, 2.4)])
def test_the_strength_of_weights_is_found(factor: float, expected: float) -> None:
    sem = random_sem(6, seed=4)
    sem = LinearSEM(
        weights=factor * sem.weights, noise_mean=sem.noise_mean, noise_std=sem.noise_std
    )
    mixed = learned(sem, 150)
    assert mixed.likeliest.prior.weight_mean == expected
    assert mixed.probability.max() > 0.9


@pytest.mark.parametrize("seed", range(4))
def test_weights_of_all_sizes_are_not_ruled_out_where_they_occur(seed: int) -> None:
    mixed = learned(random_sem(6, seed=seed, weights="uniform"), 150)
    assert 0 in mixed.held
    assert mixed.probability[0] > 0.02


def test_what_is_given_up_stays_so_and_costs_nothing() -> None:
    mixed = learned(random_sem(5, seed=1), 100)
    assert len(mixed.held) < len(PRIORS)
    idle = next(k for k in range(len(PRIORS)) if k not in mixed.held)
    before = mixed.parts[idle].gram.copy()
    moments = Moments(5)
    moments.gram[:] = mixed.likeliest.gram
    moments.add(np.ones(5), np.zeros(5, dtype=np.uint8))
    mixed.update(moments)
    assert idle not in mixed.held
    np.testing.assert_array_equal(mixed.parts[idle].gram, before)


def test_a_replaced_mechanism_is_replaced_under_every_prior() -> None:
    mixed = learned(random_sem(4, seed=2), 6)
    assert len(mixed.held) > 1
    mixed.retire(1, 2)
    for k in mixed.held:
        assert [m[:2] for m in mixed.parts[k].retired] == [(1, 2)]
