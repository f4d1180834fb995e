"""Scores of parent sets against the density of the samples and against numerical integration."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from posterior_by_enumeration import INTERCEPT_SCALE, NOISE_SHAPE, WEIGHT_SCALE, log_density
from scipy import integrate, stats
from small_systems import posterior_of, rounds

from causalarms.arrays import FloatArray
from causalarms.posterior.prior import MechanismPrior


@pytest.mark.parametrize("known_mean", [True, False])
@pytest.mark.parametrize("known_std", [None, 0.7])
@pytest.mark.parametrize("n_rows", [0, 1, 3, 60])
def test_scores_are_the_density_of_the_samples(
    known_mean: bool, known_std: float | None, n_rows: int
) -> None:
    sem, X, A = rounds(5, 60, 4)
    X, A = X[:n_rows], A[:n_rows]
    mean = sem.noise_mean + 0.25 * np.arange(5) if known_mean else None
    posterior = posterior_of(
        X,
        A,
        noise_mean=mean,
        noise_std=known_std,
    )
    for regime, node in np.ndindex(2, 5):
        rows = X[A[:, node] == regime]
        others = [j for j in range(5) if j != node]
        for size in range(5):
            for places in combinations(range(4), size):
                expected = 4 * np.log(0.5)
                if len(rows):
                    expected += log_density(
                        rows[:, node] - (0 if mean is None else mean[node]),
                        rows[:, [others[k] for k in places]],
                        intercept=mean is None,
                        known_std=known_std,
                    )
                score = posterior.tables.scores[regime, node, sum(1 << k for k in places)]
                np.testing.assert_allclose(score, expected, rtol=1e-9, atol=1e-9)


def test_the_density_itself_is_the_integral_over_weight_and_variance() -> None:
    """Three samples, one parent: prior times likelihood on a fine grid."""
    target, parent = np.array([0.4, -1.1, 2.0]), np.array([[0.3], [-0.8], [1.2]])

    log_std = np.linspace(-4, 5, 600)[:, None, None]
    weight = np.linspace(-1, 1, 1501)[None, :, None] * 12 * WEIGHT_SCALE * np.exp(log_std)
    std = np.exp(log_std)
    prior = stats.norm.pdf(weight, 0, WEIGHT_SCALE * std)
    # density of log std, from that of the variance
    prior = prior * stats.invgamma.pdf(std**2, NOISE_SHAPE, scale=NOISE_SHAPE) * 2 * std**2
    joint = prior[:, :, 0]
    for y, x in zip(target, parent[:, 0], strict=True):
        joint = joint * stats.norm.pdf(y, x * weight, std)[:, :, 0]
    total = integrate.trapezoid(
        integrate.trapezoid(joint, weight[:, :, 0], axis=1), log_std[:, 0, 0]
    )
    assert np.log(total) == pytest.approx(log_density(target, parent, intercept=False), abs=1e-4)


def test_prior_scales_reach_the_scores() -> None:
    """Constants of this folder are the package's defaults; other scales give other scores."""
    prior = MechanismPrior()
    assert (prior.weight_scale, prior.noise_shape, prior.intercept_scale) == (
        WEIGHT_SCALE,
        NOISE_SHAPE,
        INTERCEPT_SCALE,
    )
    _, X, A = rounds(3, 30, 0)
    default = posterior_of(X, A)
    for setting in ("weight_scale", "noise_shape", "intercept_scale"):
        changed: dict[str, Any] = {setting: 3.0}
        other = posterior_of(X, A, prior=MechanismPrior(**changed))
        assert not np.allclose(other.tables.scores, default.tables.scores)


def _one_node(n_rows: int, prior: MechanismPrior, n_draws: int = 1) -> tuple[float, FloatArray]:
    """Score of a node without parents, and draws of its noise."""
    X = np.random.default_rng(8).normal(0, 2.5, (n_rows, 2))
    found = posterior_of(
        X, np.zeros_like(X, dtype=int), prior=prior, allowed=np.zeros((2, 2), bool)
    )
    drawn = found.draw(np.random.default_rng(1), n_draws).noise_std[:, 0, 0]
    return float(found.tables.scores[0, 0, 0]), drawn


@pytest.mark.parametrize("n_rows", [1, 3, 40])
@pytest.mark.parametrize("prior_shape", [NOISE_SHAPE, 0.7])  # twice the shape is whole, or not
@pytest.mark.parametrize("sizes", [(0.5, 4.0), (4.0, 0.5)])
def test_sizes_of_the_noise_are_averaged_over(
    n_rows: int, prior_shape: float, sizes: tuple[float, ...]
) -> None:
    """The unit of the noise times 0.5 or 4: the density is the average of both."""
    n_draws = 40_000
    target = np.random.default_rng(8).normal(0, 2.5, (n_rows, 2))[:, 0]
    spread = np.eye(n_rows) + INTERCEPT_SCALE**2
    each = np.array(
        [
            stats.multivariate_t(np.zeros(n_rows), u**2 * spread, df=2 * prior_shape).logpdf(target)
            for u in sizes
        ]
    )
    score, drawn = _one_node(
        n_rows, MechanismPrior(noise_scales=sizes, noise_shape=prior_shape), n_draws
    )
    alone = _one_node(n_rows, MechanismPrior(noise_shape=prior_shape))[0]
    without = stats.multivariate_t(np.zeros(n_rows), spread, df=2 * prior_shape).logpdf(target)
    assert score - alone == pytest.approx(np.logaddexp(*each) - np.log(2) - without, abs=1e-9)
    # given a size the precision is a gamma variable
    shape = prior_shape + 0.5 * n_rows
    squares = target @ np.linalg.solve(spread, target)
    precision = shape / (prior_shape * np.array(sizes) ** 2 + 0.5 * squares)
    expected = np.exp(each - np.logaddexp(*each)) @ precision
    error = 5 * (drawn**-2.0).std() / np.sqrt(n_draws)
    assert (drawn**-2.0).mean() == pytest.approx(expected, abs=error)
