"""pandas, polars and pyarrow frames: names are kept, interventions are matched by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from random_rounds import random_rounds

from causalarms import CSL
from causalarms.errors import IdentifiabilityWarning, ModelError

NAMES = ["temperature", "pressure", "flow", "yield"]
MakeFrame = Callable[[dict[str, Any]], Any]
frames = pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"]
)


def columns(matrix: np.ndarray, names: list[str]) -> dict[str, Any]:
    return {name: matrix[:, i] for i, name in enumerate(names)}


@frames
def test_names_are_kept(make: MakeFrame) -> None:
    sem, X, A = random_rounds(4, 100, 1)
    plain = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    model = CSL().fit(
        make(columns(X, NAMES)),
        interventions=make(columns(A, NAMES)),
        noise_mean=dict(zip(NAMES, sem.noise_mean, strict=True)),
    )
    assert model.nodes_ == tuple(NAMES)
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    assert sorted(model.graph_.nodes) == sorted(NAMES)
    assert plain.nodes_ == ("x0", "x1", "x2", "x3")


@frames
def test_interventions_are_matched_by_name(make: MakeFrame) -> None:
    sem, X, A = random_rounds(4, 100, 1)
    here = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    shuffled = [2, 0, 3, 1]
    table = make(columns(A[:, shuffled], [NAMES[i] for i in shuffled]))
    there = CSL().fit(make(columns(X, NAMES)), interventions=table, noise_mean=sem.noise_mean)
    np.testing.assert_array_equal(there.weights_, here.weights_)


@frames
def test_absent_columns_were_never_intervened_on(make: MakeFrame) -> None:
    sem, _, A = random_rounds(4, 100, 1)
    A[:, 0] = 0
    X = sem.sample(A, np.random.default_rng(0))
    with pytest.warns(IdentifiabilityWarning, match="'temperature' never varies"):
        model = CSL().fit(make(columns(X, NAMES)), interventions=make(columns(A[:, 1:], NAMES[1:])))
    assert model.result_.unknown() == [("intervened", "temperature")]


@frames
def test_a_misspelt_column_of_interventions_is_named(make: MakeFrame) -> None:
    _, X, A = random_rounds(4, 100, 1)
    wrong = make(columns(A, ["temperature", "presure", "flow", "yield"]))
    with pytest.raises(ModelError, match="no node 'presure'; did you mean 'pressure'"):
        CSL().fit(make(columns(X, NAMES)), interventions=wrong)


@frames
def test_whole_numbers_and_truth_values_are_numbers(make: MakeFrame) -> None:
    sem, X, A = random_rounds(4, 100, 1)
    whole = np.round(10 * X).astype(int)
    expected = CSL().fit(whole.astype(float), interventions=A)
    model = CSL().fit(
        make(columns(whole, NAMES)), interventions=make(columns(A.astype(bool), NAMES))
    )
    np.testing.assert_array_equal(model.weights_, expected.weights_)
    assert len(sem.nodes) == len(model.nodes_)


def test_a_frame_and_an_array_together() -> None:
    _, X, A = random_rounds(4, 100, 1)
    model = CSL().fit(pd.DataFrame(columns(X, NAMES)), interventions=A)
    assert model.nodes_ == tuple(NAMES)
    np.testing.assert_array_equal(model.weights_, CSL().fit(X, interventions=A).weights_)


def test_a_pandas_frame_without_names_has_its_numbers_as_names() -> None:
    _, X, A = random_rounds(4, 100, 1)
    model = CSL().fit(pd.DataFrame(X), interventions=pd.DataFrame(A))
    assert model.nodes_ == ("0", "1", "2", "3")
    np.testing.assert_array_equal(model.weights_, CSL().fit(X, interventions=A).weights_)


def test_the_index_of_a_pandas_frame_is_no_data() -> None:
    _, X, A = random_rounds(4, 100, 1)
    frame = pd.DataFrame(columns(X, NAMES), index=np.arange(100)[::-1])
    model = CSL().fit(frame, interventions=A)
    np.testing.assert_array_equal(model.weights_, CSL().fit(X, interventions=A).weights_)
