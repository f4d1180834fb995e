"""A mechanism without data is unknown and said so; too few data are an error or unknown too."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from random_rounds import random_rounds

from causalarms import CSL
from causalarms.errors import DataError, IdentifiabilityWarning


def test_a_node_that_is_never_intervened_on() -> None:
    sem, X, A = random_rounds(5, 150, 0)
    A[:, 2] = 0
    X = sem.sample(A, np.random.default_rng(0))
    with pytest.warns(
        IdentifiabilityWarning, match=r"'x2' never varies over the 150 rows.*x2 \(intervened\)$"
    ):
        model = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert not model.known_[1, 2]
    assert model.known_.sum() == 9
    assert np.isnan(model.weights_[1, :, 2]).all()
    assert np.isnan(model.weights_).sum() == 5
    assert np.isnan(model.intercept_[1, 2])
    assert np.isnan(model.noise_std_[1, 2])
    assert not model.adjacency_[1, :, 2].any()
    assert model.result_.unknown() == [("intervened", "x2")]


def test_a_node_that_is_always_intervened_on() -> None:
    sem, X, A = random_rounds(4, 150, 0)
    A[:, 1] = 1
    X = sem.sample(A, np.random.default_rng(0))
    with pytest.warns(IdentifiabilityWarning, match=r"'x1' never varies.*: x1 \(natural\)$"):
        model = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert model.result_.unknown() == [("natural", "x1")]


def test_observational_data_alone() -> None:
    sem, X, _ = random_rounds(3, 100, 0)
    with pytest.warns(IdentifiabilityWarning, match="no node's regime varies over the 100 rows"):
        model = CSL().fit(X, noise_mean=sem.noise_mean)
    assert model.known_.tolist() == [[True] * 3, [False] * 3]
    assert np.isfinite(model.weights_[0]).all()


def test_varying_regimes_give_no_warning() -> None:
    sem, X, A = random_rounds(4, 150, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)


def few_intervened(n_few: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Node x1 of five is intervened on `n_few` times."""
    sem, _, A = random_rounds(5, 150, 0)
    A[:, 1] = 0
    A[:n_few, 1] = 1
    return sem.sample(A, np.random.default_rng(0)), A, sem.noise_mean


@pytest.mark.parametrize(("known_means", "needed"), [(True, 6), (False, 6)])
def test_few_samples_are_an_error_that_names_the_node(known_means: bool, needed: int) -> None:
    X, A, nu = few_intervened(5)
    with pytest.raises(
        DataError,
        match=rf"node 'x1' \(intervened\) has 5 samples for 4 candidate parents; at least {needed}",
    ):
        CSL().fit(X, interventions=A, noise_mean=nu if known_means else None)
    X, A, nu = few_intervened(needed)
    CSL().fit(X, interventions=A, noise_mean=nu if known_means else None)


@pytest.mark.parametrize("known_means", [True, False])
def test_regressors_decide_when_neighbours_do_not(known_means: bool) -> None:
    """With k = 1: 4 parents, one spare sample, and one more for an intercept."""
    needed = 5 if known_means else 6
    X, A, nu = few_intervened(needed - 1)
    with pytest.raises(DataError, match=rf"node 'x1' .* at least {needed} are needed"):
        CSL(k=1).fit(X, interventions=A, noise_mean=nu if known_means else None)
    X, A, nu = few_intervened(needed)
    CSL(k=1).fit(X, interventions=A, noise_mean=nu if known_means else None)


@pytest.mark.filterwarnings("ignore::causalarms.errors.IdentifiabilityWarning")
def test_few_samples_may_be_left_unknown() -> None:
    X, A, nu = few_intervened(5)
    model = CSL(on_few_samples="unknown").fit(X, interventions=A, noise_mean=nu)
    assert model.result_.unknown() == [("intervened", "x1")]
    assert np.isnan(model.weights_[1, :, 1]).all()
    assert not model.adjacency_[1, :, 1].any()
    assert np.isfinite(np.delete(model.weights_[1], 1, axis=1)).all()
    X, A, nu = few_intervened(6)
    model = CSL(on_few_samples="unknown").fit(X, interventions=A, noise_mean=nu)
    assert model.known_.all()
