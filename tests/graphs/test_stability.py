"""Edge stability: the same for the same random_state, whatever the number of workers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from random_rounds import random_rounds

from causalarms import CSL


def stability(seed: object, n_jobs: int | None = None, **settings: object) -> np.ndarray:
    """Few rounds and no edge weights, so that resamples disagree."""
    sem, X, A = random_rounds(5, 60, 3)
    model = CSL(edge_weighting=False, n_bootstrap=12, random_state=seed, n_jobs=n_jobs, **settings)  # type: ignore[arg-type]
    model.fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert model.stability_ is not None
    return model.stability_


def test_random_state_decides() -> None:
    np.testing.assert_array_equal(stability(1), stability(1))
    assert (stability(1) != stability(2)).any()


def test_a_numpy_integer_is_a_random_state() -> None:
    np.testing.assert_array_equal(stability(np.int64(1)), stability(1))


def test_none_is_fresh_every_time() -> None:
    assert (stability(None) != stability(None)).any()


def test_the_number_of_workers_does_not_matter() -> None:
    with warnings.catch_warnings():
        # joblib's workers may be forked from a process with threads, which newer Pythons report
        warnings.simplefilter("ignore", DeprecationWarning)
        two = stability(1, n_jobs=2)
    np.testing.assert_array_equal(stability(1, n_jobs=1), two)


def test_shares_of_resamples() -> None:
    """Multiples of 1/12 in [0, 1]; edges of the full fit are mostly found again."""
    sem, X, A = random_rounds(5, 120, 3)
    model = CSL(n_bootstrap=12, random_state=1)
    model.fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert model.stability_ is not None
    counts = 12 * model.stability_
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-12)
    assert counts.min() >= 0
    assert counts.max() <= 12
    assert model.stability_[model.adjacency_].mean() > 0.8
    assert model.stability_[~model.adjacency_].mean() < 0.2
    for edge in model.result_.edges():
        r, p, c = (edge["regime"] == "intervened", int(edge["parent"][1]), int(edge["child"][1]))
        assert edge["stability"] == model.stability_[int(r), p, c]


@pytest.mark.filterwarnings("ignore::causalarms.errors.IdentifiabilityWarning")
def test_edges_of_an_unknown_mechanism_have_no_stability() -> None:
    sem, X, A = random_rounds(4, 120, 3)
    A[:, 0] = 0
    X = sem.sample(A, np.random.default_rng(0))
    model = CSL(n_bootstrap=3, random_state=1).fit(X, interventions=A)
    assert model.stability_ is not None
    assert np.isnan(model.stability_[1, :, 0]).all()
    assert np.isnan(model.stability_).sum() == 4


def test_prior_knowledge_holds_in_every_resample() -> None:
    shares = stability(1, required=[("x0", "x1")], excluded=[("x2", "x3")])
    assert (shares[:, 0, 1] == 1).all()
    assert (shares[:, 2, 3] == 0).all()
