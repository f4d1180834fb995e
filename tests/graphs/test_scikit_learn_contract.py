"""scikit-learn's own checks, and cloning."""

from __future__ import annotations

import numpy as np
import pytest
from random_rounds import random_rounds
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from causalarms import CSL


@pytest.mark.filterwarnings("ignore::causalarms.errors.CausalArmsWarning")
def test_all_of_scikit_learns_checks_pass() -> None:
    """The array API is checked only where scipy was told to support it."""
    results = check_estimator(CSL(), on_skip=None, on_fail=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}
    assert sum(r["status"] == "passed" for r in results) >= 35


def test_settings_are_stored_as_given_and_cloned() -> None:
    settings = {
        "joint": False,
        "edge_weighting": False,
        "k": 3,
        "mutual_information": "squares",
        "max_samples": 50,
        "keep": "newest",
        "excluded": [("x0", "x1")],
        "required": [("x1", "x0")],
        "tiers": [["x1"], ["x0"]],
        "on_few_samples": "unknown",
        "n_bootstrap": 4,
        "n_jobs": 1,
        "random_state": 3,
    }
    model = CSL(**settings)  # type: ignore[arg-type]
    assert model.get_params() == settings
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == settings
    assert set(CSL().get_params()) == set(settings)


def test_a_clone_learns_the_same_and_carries_no_result() -> None:
    sem, X, A = random_rounds(4, 100, 1)
    model = CSL(k=3).fit(X, interventions=A, noise_mean=sem.noise_mean)
    copy = clone(model)
    assert not hasattr(copy, "weights_")
    copy.fit(X, interventions=A, noise_mean=sem.noise_mean)
    np.testing.assert_array_equal(copy.weights_, model.weights_)


def test_fit_returns_the_estimator_and_a_second_fit_forgets_the_first() -> None:
    sem, X, A = random_rounds(4, 100, 1)
    other, Y, C = random_rounds(5, 100, 2)
    model = CSL(n_bootstrap=2, random_state=0)
    assert model.fit(X, interventions=A) is model
    model.set_params(n_bootstrap=0).fit(Y, interventions=C)
    assert model.n_features_in_ == 5
    assert model.stability_ is None
    np.testing.assert_array_equal(model.weights_, CSL().fit(Y, interventions=C).weights_)
    assert (sem.n_nodes, other.n_nodes) == (4, 5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mutual_information": "third"}, "mutual_information must be one of rectangles, squares"),
        (
            {"on_few_samples": "ignore"},
            "on_few_samples must be one of raise, unknown",
        ),
        ({"k": 0}, "k must be an integer of at least 1, not 0"),
        ({"n_bootstrap": -1}, "n_bootstrap must be an integer of at least 0"),
        ({"max_samples": 0}, "max_samples must be an integer of at least 1, not 0"),
        ({"keep": "best"}, "keep must be one of oldest, newest, not 'best'"),
    ],
)
def test_settings_are_checked_by_fit(settings: dict[str, object], message: str) -> None:
    _, X, A = random_rounds(4, 100, 1)
    model = CSL(**settings)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        model.fit(X, interventions=A)
