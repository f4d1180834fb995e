"""The fast kernel is the definition, and the definition has the right symmetries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma

from causalarms.errors import DataError
from causalarms.statistics import mutual_information
from causalarms.statistics.mutual_information import (
    ESTIMATORS,
    mutual_information_plain,
    psi_table,
)

FloatArray = npt.NDArray[Any]

estimators = st.sampled_from(ESTIMATORS)
NEAR: dict[str, Any] = {"rel": 1e-11, "abs": 1e-11}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Continuous, heavily tied, nearly equal, heavy-tailed or half constant samples, and a k."""
    n = draw(st.integers(2, 150))
    k = draw(st.integers(1, min(n - 1, 20)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x: FloatArray = rng.normal(size=n)
    y: FloatArray
    kind = draw(st.sampled_from(["normal", "tied", "nearly equal", "heavy", "half", "one tied"]))
    match kind:
        case "normal":
            y = draw(st.floats(-2, 2)) * x + rng.normal(size=n)
        case "tied":
            top = draw(st.integers(1, 6))
            x, y = rng.integers(0, top + 1, n).astype(float), rng.integers(0, top + 1, n) * 1.0
        case "nearly equal":
            y = x + 10.0 ** draw(st.integers(-14, -3)) * rng.normal(size=n)
        case "heavy":
            x, y = rng.standard_cauchy(n), np.exp(3 * rng.normal(size=n))
        case "half":
            x, y = np.where(rng.random(n) < 0.5, 0.0, x), np.where(rng.random(n) < 0.5, 1.0, x)
        case _:
            y = rng.integers(0, 3, n).astype(float)
    return x, y, k


@given(pairs(), estimators)
def test_fast_is_plain(pair: tuple[np.ndarray, np.ndarray, int], estimator: str) -> None:
    x, y, k = pair
    fast = mutual_information(x, y, k=k, estimator=estimator)
    assert fast == pytest.approx(mutual_information_plain(x, y, k=k, estimator=estimator), **NEAR)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=40),
    estimators,
    st.data(),
)
def test_fast_is_plain_on_lattices(
    points: list[tuple[int, int]], estimator: str, data: st.DataObject
) -> None:
    x, y = np.array(points, dtype=float).T
    k = data.draw(st.integers(1, len(x) - 1))
    fast = mutual_information(x, y, k=k, estimator=estimator)
    assert fast == pytest.approx(mutual_information_plain(x, y, k=k, estimator=estimator), **NEAR)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("n", [400, 1600])
def test_fast_is_plain_with_many_strips(n: int, estimator: str) -> None:
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    for y in (rng.normal(size=n), x + 0.1 * rng.normal(size=n), np.round(2 * x)):
        fast = mutual_information(x, y, estimator=estimator)
        assert fast == pytest.approx(mutual_information_plain(x, y, estimator=estimator), **NEAR)


@given(pairs(), estimators, st.integers(0, 10**6))
def test_the_order_of_rows_does_not_matter(
    pair: tuple[np.ndarray, np.ndarray, int], estimator: str, seed: int
) -> None:
    x, y, k = pair
    rows = np.random.default_rng(seed).permutation(len(x))
    here = mutual_information(x, y, k=k, estimator=estimator)
    assert mutual_information(x[rows], y[rows], k=k, estimator=estimator) == pytest.approx(
        here, **NEAR
    )


@given(pairs(), estimators)
def test_symmetry(pair: tuple[np.ndarray, np.ndarray, int], estimator: str) -> None:
    x, y, k = pair
    here = mutual_information(x, y, k=k, estimator=estimator)
    assert mutual_information(y, x, k=k, estimator=estimator) == pytest.approx(here, **NEAR)


@given(pairs(), estimators, st.integers(-20, 20))
def test_a_common_scale_changes_nothing(
    pair: tuple[np.ndarray, np.ndarray, int], estimator: str, power: int
) -> None:
    """By powers of two, which are exact in floating point."""
    x, y, k = pair
    here = mutual_information(x, y, k=k, estimator=estimator)
    scaled = mutual_information(x * 2.0**power, -y * 2.0**power, k=k, estimator=estimator)
    assert scaled == pytest.approx(here, **NEAR)


def test_a_scale_of_one_variable_does_change_it() -> None:
    """Why the units of nodes matter: distances are compared across the two axes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = x + rng.normal(size=200)
    assert mutual_information(x, 1000 * y) != pytest.approx(mutual_information(x, y), abs=1e-3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("rho", [0.0, 0.5, -0.8, 0.95])
def test_gaussian_closed_form(rho: float, estimator: str) -> None:
    """Mean of 60 estimates at n = 800 within 4 standard errors of -log(1 - rho^2)/2.

    Plus 0.01 nats for the bias that k-nearest-neighbour estimates keep at finite n.
    """
    rng = np.random.default_rng(11)
    estimates = []
    for _ in range(60):
        x = rng.normal(size=800)
        y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=800)
        estimates.append(mutual_information(x, y, estimator=estimator))
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) + 0.5 * np.log(1 - rho**2)) < 4 * error + 0.01


def test_independent_samples_are_not_clipped_at_zero() -> None:
    rng = np.random.default_rng(2)
    estimates = [mutual_information(*rng.normal(size=(2, 100))) for _ in range(40)]
    assert min(estimates) < 0 < max(estimates)


def test_the_two_estimators_differ() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 100))
    squares = mutual_information(x, y, estimator="squares")
    assert squares != mutual_information(x, y, estimator="rectangles")


def test_first_estimator_against_scikit_learn() -> None:
    """scikit-learn's, before it clips at 0: the squares without ties."""
    sklearn_mi = pytest.importorskip("sklearn.feature_selection._mutual_info")
    rng = np.random.default_rng(1)
    for n in (20, 300):
        x = rng.normal(size=n)
        y = x + 0.3 * rng.normal(size=n)
        ours = mutual_information(x, y, k=3, estimator="squares")
        assert ours == pytest.approx(sklearn_mi._compute_mi_cc(x, y, 3), rel=1e-9)


def test_psi_table_is_digamma() -> None:
    np.testing.assert_allclose(psi_table(500)[1:], digamma(np.arange(1, 501)), rtol=1e-12)


@pytest.mark.parametrize("function", [mutual_information, mutual_information_plain])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k = 0 neighbours"),
        ({"k": 4}, "k = 4 neighbours need more than 4 samples, not 4"),
        ({"estimator": "third"}, "unknown estimator 'third'; there are rectangles, squares"),
        ({"y": [1.0, 2.0]}, r"one length are needed, not \(4,\) and \(2,\)"),
        ({"x": [[1.0]], "y": [[1.0]]}, r"not \(1, 1\) and \(1, 1\)"),
        ({"x": [1.0, np.nan, 2.0, 3.0]}, "samples must be finite"),
        ({"y": [1.0, np.inf, 2.0, 3.0]}, "samples must be finite"),
        ({"x": [], "y": []}, "more than 2 samples, not 0"),
    ],
)
def test_refusals(function: Any, arguments: dict[str, Any], message: str) -> None:
    given = {"x": [1.0, 2.0, 3.0, 5.0], "y": [0.0, 1.0, 0.0, 2.0], "k": 2} | arguments
    with pytest.raises(DataError, match=message):
        function(given.pop("x"), given.pop("y"), **given)
