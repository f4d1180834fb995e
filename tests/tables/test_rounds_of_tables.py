"""One set of rules for rounds, whatever they are read from and whoever reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from causalarms.errors import DataError
from causalarms.tables.rounds import TableRounds, rounds_of
from causalarms.tables.write import FIRST, LAST, columns_text, parquet_bytes

NODES = ("heat", "stir", "yield")
VALUES: dict[str, list[Any]] = {
    "heat": [1.0, 2.5, -3.0],
    "stir": [0.5, 0.25, 4.0],
    "yield": [7.0, 8.0, 9.0],
}
REGIMES = [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
NAMES = ["", "heat", "stir; heat"]
FLAGS = {"heat": [0, 1, 1], "stir": [0, 0, 1]}
DO = {f"do:{node}": cells for node, cells in FLAGS.items()}

WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # further columns, and how to read them
    "flags": (DO, {}),
    "true and false": ({n: [bool(c) for c in cells] for n, cells in DO.items()}, {}),
    "intervened": ({"intervened": NAMES}, {}),
    "interventions": ({"interventions": NAMES}, {}),
    "targets": ({"targets": NAMES}, {}),
    "intervention_targets": ({"intervention_targets": NAMES}, {}),
    "any name": ({"who": NAMES}, {"intervened": "who"}),
    "second table": ({}, {"interventions": FLAGS}),
    "second table of do:": ({}, {"interventions": DO}),
}


def given_as(kind: str, columns: dict[str, Any], folder: Path) -> Any:
    if kind == "csv":
        path = folder / f"{len(list(folder.iterdir()))}.csv"
        path.write_text(columns_text(columns))
        return path
    if kind == "parquet":
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        path.write_bytes(parquet_bytes(columns, "a test"))
        return path
    return {"dict": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame}[kind](columns)


def check(found: TableRounds) -> None:
    assert found.nodes == NODES
    assert found.values.tolist() == np.array(list(VALUES.values())).T.tolist()
    assert found.regimes.tolist() == REGIMES
    assert found.left_out == ()


@pytest.mark.parametrize("kind", ["csv", "parquet", "dict", "pandas", "polars"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("nodes", [None, NODES])
def test_what_was_switched_is_said_in_many_ways(
    kind: str, way: str, nodes: tuple[str, ...] | None, tmp_path: Path
) -> None:
    further, rules = WAYS[way]
    rules = dict(rules)
    if "interventions" in rules:
        rules["interventions"] = given_as(kind, rules["interventions"], tmp_path)
    table = given_as(kind, VALUES | further, tmp_path)
    found = rounds_of(table, nodes=nodes, only_nodes=nodes is not None, **rules)
    check(found)
    assert found.rows.tolist() == ([1, 2, 3] if kind in ("csv", "parquet") else [0, 1, 2])


def test_an_array_and_lists_of_names_say_it_too() -> None:
    check(rounds_of(VALUES, np.array(REGIMES), nodes=NODES))
    check(rounds_of(VALUES | {"intervened": [[], ["heat"], ("stir", "heat")]}, nodes=NODES))
    check(rounds_of(VALUES | {"intervened": [None, "heat", "heat;;stir;"]}, nodes=NODES))


def test_without_a_word_all_is_natural() -> None:
    found = rounds_of(VALUES)
    assert not found.regimes.any()
    assert found.source == "none given: all natural"


def test_a_node_may_be_called_like_a_column_of_names() -> None:
    columns = {"targets": [1.0, 2.0], "yield": [3.0, 4.0]}
    found = rounds_of(columns, nodes=("targets", "yield"), only_nodes=True)
    assert found.values[:, 0].tolist() == [1.0, 2.0]
    with pytest.raises(DataError, match=r"'1\.0', which is not a node"):
        rounds_of(columns)


def test_ignored_columns_are_not_there(tmp_path: Path) -> None:
    more = {"who": NAMES, "intervened": ["all"] * 3, "do:stir": [9] * 3, "date": ["x", "y", "z"]}
    ignore = ["intervened", "do:stir", "date"]
    check(rounds_of(VALUES | more, nodes=NODES, intervened="who", ignore=ignore, only_nodes=True))
    check(rounds_of(VALUES | more, intervened="who", ignore=ignore))
    check(rounds_of(VALUES, FLAGS | {"date": ["x"] * 3}, ignore=["date"]))
    with pytest.raises(DataError, match="no column 'dates' to ignore"):
        rounds_of(VALUES | more, ignore=["dates"])


@pytest.mark.parametrize("cell", ["", " ", "NaN", "nan", "NA", "null", "None", None, float("nan")])
def test_an_empty_cell_was_not_measured(cell: Any) -> None:
    columns = VALUES | {"stir": [0.5, cell, 4.0]} | DO
    kept = rounds_of(columns)
    assert np.isnan(kept.values).tolist() == [[False] * 3, [False, True, False], [False] * 3]
    skipped = rounds_of(columns, incomplete="skip")
    assert skipped.rows.tolist() == [0, 2]
    assert skipped.values[:, 1].tolist() == [0.5, 4.0]
    assert skipped.regimes.tolist() == [REGIMES[0], REGIMES[2]]
    assert skipped.left_out == ("1 of 3 rows lacks a value: left out",)
    with pytest.raises(DataError, match=r"row 1 of column 'stir' is (empty|NaN); 1 of 3 rows"):
        rounds_of(columns, incomplete="refuse")
    with pytest.raises(DataError, match="no row has a result"):
        rounds_of({"heat": [cell, 1.0], "stir": [1.0, cell]}, incomplete="skip")


def test_frames_know_their_own_missing_values() -> None:
    frame = pd.DataFrame(VALUES).astype("Float64")
    frame.loc[1, "stir"] = pd.NA
    assert np.isnan(rounds_of(frame).values[1, 1])
    assert np.isnan(rounds_of(pl.DataFrame(VALUES | {"stir": [0.5, None, 4.0]})).values[1, 1])


@pytest.mark.parametrize(
    ("columns", "rules", "message"),
    [
        (VALUES | {"x": [1, 2, 3]}, {}, "'x' is not a node; the nodes are heat, .*ignore"),
        (VALUES | {"state": ["told"] * 3}, {}, "'state' is not a node"),
        ({"heat": [1.0], "stir": [1.0]}, {}, "no column for node 'yield'"),
        (VALUES | {"do:het": [0, 1, 0]}, {}, "'do:het': there is no node 'het'; did you mean"),
        (VALUES | DO | {"intervened": NAMES}, {}, "in more than one way"),
        (VALUES | DO, {"interventions": FLAGS}, "in more than one way"),
        (VALUES | {"intervened": NAMES}, {"interventions": FLAGS}, "in more than one way"),
        (VALUES | {"intervened": NAMES, "targets": NAMES}, {}, "'intervened' or 'targets' may be"),
        (VALUES, {"intervened": "who"}, "no column 'who'"),
        (VALUES, {"intervened": "heat"}, "'heat' is something else"),
        (VALUES | DO, {"intervened": "do:heat"}, "'do:heat' is something else"),
        (VALUES | {"intervened": ["", "heat,stir", ""]}, {}, "row 1 .* names 'heat,stir'.*';'"),
        (VALUES | {"intervened": [0, 1, 0]}, {}, "row 0 of column 'intervened' names '0'"),
        (VALUES, {"interventions": {"heat": [0, 1]}}, "2 rows for 3 rows"),
        (VALUES, {"interventions": {"heat": [0, 1, 0], "do:heat": [0, 1, 0]}}, "the same node"),
        (VALUES, {"interventions": {"het": [0, 1, 0]}}, "no node 'het'"),
        (VALUES, {"interventions": np.zeros((3, 2))}, r"shape \(n, 3\)"),
        (VALUES, {"interventions": 7}, "a frame"),
        (VALUES, {"ignore": "heat"}, "a list of columns"),
        (VALUES | {"heat": [1, "low", 2]}, {}, "row 1 of column 'heat' is 'low', not a number"),
        (VALUES | {"heat": [1, True, 2]}, {}, "row 1 of column 'heat' is True, not a number"),
        (VALUES | {"heat": [1, [2], 2]}, {}, r"row 1 of column 'heat' is \[2\], not a number"),
        (VALUES | {"heat": [1, 10**400, 2]}, {}, "row 1 of column 'heat'"),
        (VALUES | {"heat": [1, "-inf", 2]}, {}, "row 1 of column 'heat' is infinite"),
        (VALUES | {"heat": [1.0]}, {}, "differ in length"),
        (VALUES | {"heat": 3.0}, {}, "'heat' is 3.0, not a list"),
        (VALUES | {"heat": "abc"}, {}, "'heat' is 'abc', not a list"),
        ({name: [] for name in NODES}, {}, "no rows"),
        ({}, {}, "no rows"),
        ([[1.0, 2.0, 3.0]], {}, "a frame"),
        (7, {}, "a frame"),
        (None, {}, "a frame"),
        ("/no/such/file.csv", {}, "cannot read"),
    ],
)  # fmt: skip
def test_refusals_name_the_place(columns: Any, rules: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        rounds_of(columns, nodes=NODES, only_nodes=True, **rules)


@pytest.mark.parametrize("cell", [0.5, -1, "", "x", None, float("nan"), 1e300, 2**15, 256, [1]])
def test_what_is_no_regime_is_refused(cell: Any) -> None:
    with pytest.raises(DataError, match=r"row 2 of column 'do:heat' is .*, which is not a regime"):
        rounds_of(VALUES | {"do:heat": [0, 1, cell]})


def test_how_many_regimes_a_node_has_is_known_to_the_caller() -> None:
    found = rounds_of(VALUES | {"do:heat": ["0", "2", "2.0"], "do:stir": [1, 0, 1]})
    assert found.regimes.tolist() == [[0, 1, 0], [2, 0, 0], [2, 1, 0]]
    found.check_regimes([3, 2, 1])
    found.check_regimes(3)
    with pytest.raises(DataError, match=r"row 1 of node 'heat': regime 2 is neither 0 .*nor 1"):
        found.check_regimes(2)
    with pytest.raises(DataError, match="row 0 of node 'stir': regime 1 is not 0 "):
        found.check_regimes([3, 1, 1])
    skipped = rounds_of(VALUES | {"stir": [None, 1, 2], "do:heat": [0, 1, 2]}, incomplete="skip")
    with pytest.raises(DataError, match="row 2 of node 'heat'"):
        skipped.check_regimes(2)


def trials(columns: dict[str, Any], **changed: list[Any]) -> dict[str, Any]:
    own: dict[str, list[Any]] = {name: ["0"] * 3 for name in (*FIRST, *LAST)}
    own["state"] = ["told", "imported", "told"]
    return own | changed | columns


@pytest.mark.parametrize("nodes", [None, NODES])
def test_the_table_of_an_exported_study_is_read_as_it_is(nodes: tuple[str, ...] | None) -> None:
    check(rounds_of(trials(VALUES | DO), nodes=nodes, only_nodes=nodes is not None))
    states = ["asked", "told", "failed"]
    empty = {name: [None, cells[1], "text"] for name, cells in VALUES.items()}
    found = rounds_of(trials(empty | DO, state=states), nodes=nodes, incomplete="refuse")
    assert found.rows.tolist() == [1]
    assert found.regimes.tolist() == [REGIMES[1]]
    assert found.left_out == ("2 trials of the table have no result: left out",)
    with pytest.raises(DataError, match="no row has a result"):
        rounds_of(trials(VALUES, state=["lost"] * 3), nodes=nodes)


def test_names_that_the_table_of_trials_needs_itself() -> None:
    names = ("trial", "node:trial", "yield")
    columns = {"node:trial": [1.0] * 3, "node:node:trial": [2.0] * 3, "yield": [3.0] * 3}
    for nodes in (None, names):
        found = rounds_of(trials(columns | {"do:trial": [1] * 3}), nodes=nodes)
        assert found.nodes == names
        assert found.values[0].tolist() == [1.0, 2.0, 3.0]
        assert found.regimes[0].tolist() == [1, 0, 0]
    by_hand = {"trial": [1.0], "node:trial": [2.0], "yield": [3.0]}
    with pytest.raises(DataError, match="'node:trial' would be that of two nodes"):
        rounds_of(by_hand, nodes=names)
    assert rounds_of({"trial": [1.0], "yield": [3.0]}, nodes=("trial", "yield")).values[0, 0] == 1.0
