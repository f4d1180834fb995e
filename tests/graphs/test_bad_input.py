"""Every kind of bad input of the issue, as a message that names the row, the column or the node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from random_rounds import random_rounds

from causalarms import CSL
from causalarms.errors import CausalArmsError, DataError


def rounds() -> tuple[np.ndarray, np.ndarray]:
    _, X, A = random_rounds(3, 60, 0)
    return X, A


def frame(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=["a", "b", "c"])


def refused(message: str, X: Any, A: Any = None, **settings: Any) -> None:
    with pytest.raises(CausalArmsError, match=message):
        CSL(**settings).fit(X, interventions=A)


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")]
)
def test_values_that_are_no_numbers(value: float, word: str) -> None:
    X, A = rounds()
    X[7, 1] = value
    refused(f"row 7 of column 1 is {word}", X, A)
    refused(f"row 7 of column 'b' is .*{word}", frame(X), A)
    refused(f"row 7 of column 'b' is .*{word}", pl.DataFrame(X, schema=["a", "b", "c"]), A)


def test_a_missing_value_of_a_frame() -> None:
    X, A = rounds()
    column = [None if row == 4 else float(x) for row, x in enumerate(X[:, 2])]
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": column})
    refused("row 4 of column 'c' is missing", table, A)


def test_text_columns() -> None:
    X, A = rounds()
    table = frame(X)
    table["b"] = "high"
    refused("column 'b' holds String, not numbers", table, A)
    text = X.astype(object)
    text[3, 2] = "high"
    refused("row 3 of column 2 is 'high', not a number", text, A)


def test_a_constant_column() -> None:
    X, A = rounds()
    X[:, 1] = 2.5
    refused(r"node 'x1' is constant \(2.5 in all 60 rows\)", X, A)
    refused("node 'b' is constant", frame(X), A)


def test_identical_columns() -> None:
    X, A = rounds()
    X[:, 2] = X[:, 0]
    refused("nodes 'x0' and 'x2' are identical", X, A)
    refused("nodes 'a' and 'c' are identical", frame(X), A)


def test_a_column_that_others_determine() -> None:
    _, X, A = random_rounds(4, 60, 0)
    X[:, 3] = X[:, 1] + 2 * X[:, 2]
    refused(r"node 'x0' \(natural\): .*'x3' is a linear combination", X, A)


@pytest.mark.parametrize("regime", [2, -1, 0.5])
def test_regimes_other_than_0_and_1(regime: float) -> None:
    X, A = rounds()
    wrong = A.astype(float)
    wrong[5, 1] = regime
    refused(f"row 5 of node 'x1': regime {regime}", X, wrong)
    refused("row 5 of node 'b'", frame(X), frame(wrong))


def test_missing_regimes() -> None:
    X, A = rounds()
    wrong = A.astype(float)
    wrong[5, 1] = np.nan
    refused("row 5 of column 1 is NaN", X, wrong)


def test_shapes_that_disagree() -> None:
    X, A = rounds()
    refused("59 rows of interventions for 60 rows of samples", X, A[:-1])
    refused(r"shape \(n, 3\), one column per node, not \(60, 2\)", X, A[:, :2])
    refused("interventions must have two dimensions", X, A[:, 0])
    refused("X must have two dimensions", X[:, 0], A)
    refused("X must have two dimensions", X[None], A)


def test_duplicate_names() -> None:
    X, A = rounds()
    table = pd.DataFrame(X, columns=["a", "b", "a"])
    refused("'a' is used twice", table, A)


def test_missing_names() -> None:
    X, A = rounds()
    refused("node 1 needs a name", pd.DataFrame(X, columns=["a", " ", "c"]), A)


def test_nothing_at_all() -> None:
    refused("0 feature", pd.DataFrame())
    refused("0 sample", np.empty((0, 3)))
    refused("0 sample", pl.DataFrame({"a": [], "b": []}, schema={"a": pl.Float64, "b": pl.Float64}))
    refused("1 sample", np.ones((1, 3)))
    refused("1 feature", np.arange(5.0)[:, None])


def test_fewer_rows_than_candidate_parents() -> None:
    _, X, A = random_rounds(6, 60, 0)
    refused(
        r"node 'x0' \((natural|intervened)\) has \d samples for 5 candidate parents", X[:5], A[:5]
    )


def test_fewer_rows_than_neighbours() -> None:
    X, A = rounds()
    refused("node 'x0' .* at least 41 are needed", X, A, k=40)


def test_a_cyclic_prior() -> None:
    X, A = rounds()
    refused("cycle a -> b -> a", frame(X), A, required=[("a", "b"), ("b", "a")])


@pytest.mark.parametrize(
    ("noise_mean", "message"),
    [
        ([1.0, 2.0], r"shape \(3,\) or \(2, 3\), not \(2,\)"),
        ([1.0, np.nan, 1.0], "not finite"),
        ({"x0": 1.0, "x2": 1.0}, "noise_mean lacks node 'x1'"),
        ("high", "noise_mean"),
    ],
)
def test_noise_means_that_are_refused(noise_mean: Any, message: str) -> None:
    X, A = rounds()
    with pytest.raises(DataError, match=message):
        CSL().fit(X, interventions=A, noise_mean=noise_mean)


def test_a_number_of_neighbours_that_is_no_number() -> None:
    X, A = rounds()
    refused("k must be", X, A, k=2.5)
