"""The likelihood ratio of all nodes at once against scipy's multivariate normal."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from causalarms.changes import WholeGraphRatio
from causalarms.errors import ModelError


def model(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return rng.normal(size=n), root @ root.T + np.eye(n)


@pytest.mark.parametrize(("n_nodes", "window"), [(2, 5), (3, 20), (6, 20)])
def test_it_is_the_gain_in_log_likelihood_per_sample_and_node(n_nodes: int, window: int) -> None:
    mean, covariance = model(n_nodes, n_nodes)
    rng = np.random.default_rng(0)
    recent = rng.multivariate_normal(mean + 1, 2 * covariance, window)
    fitted = np.cov(recent, rowvar=False, bias=True)
    free = multivariate_normal(recent.mean(axis=0), fitted).logpdf(recent).sum()
    held = multivariate_normal(mean, covariance).logpdf(recent).sum()
    statistic = WholeGraphRatio(n_nodes, window=window).statistic(recent, mean, covariance)
    assert statistic == pytest.approx((free - held) / (window * n_nodes))


def test_it_grows_with_the_shift_and_ignores_the_order_of_samples() -> None:
    mean, covariance = model(1, 4)
    rng = np.random.default_rng(0)
    recent = rng.multivariate_normal(mean, covariance, 20)
    ratio = WholeGraphRatio(4)
    statistics = [ratio.statistic(recent + shift, mean, covariance) for shift in (0, 2, 20)]
    assert 0 < statistics[0] < 2 < ratio.threshold  # no change
    assert statistics == sorted(statistics)
    assert ratio.statistic(recent[::-1], mean, covariance) == pytest.approx(statistics[0])


@pytest.mark.parametrize("window", [3, 4])
def test_a_window_with_a_singular_covariance_is_refused(window: int) -> None:
    with pytest.raises(ModelError, match=r"singular covariance for 4 nodes; use at least 5"):
        WholeGraphRatio(4, window=window)
    assert WholeGraphRatio(4, window=5).window == 5
