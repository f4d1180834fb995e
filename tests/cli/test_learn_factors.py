"""`causalarms learn` with factors: columns do:NAME whose NAME is not a node."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run

from causalarms import GraphPosterior, Study

Columns = dict[str, list[Any]]


def made(n: int = 90) -> Columns:
    rng = np.random.default_rng(0)
    load, kind = rng.choice([1, 2, 4], n), rng.choice(["none", "z"], n)
    weather = 950 + 10 * rng.normal(size=n)
    heat = 300 + 20 * load + 3 * rng.normal(size=n)
    made_of = 0.1 * heat + 4.0 * (kind == "z") + 0.2 * (weather - 950) + rng.normal(size=n)
    columns = {"weather": weather, "heat": heat, "yield": made_of, "do:load": load, "do:kind": kind}
    return {name: cells.tolist() for name, cells in columns.items()}


def write(path: Path, columns: Columns) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data.csv", made())


def test_factors_are_printed_as_roots(data: Path) -> None:
    outcome = run("learn", data, "--context", "weather")
    assert outcome.code == 0
    assert outcome.err == ""
    lines = outcome.out.splitlines()
    assert lines[0] == (
        "90 rounds of 3 nodes and 2 factors (2 do:NAME columns); method posterior"
    )  # fmt: skip
    assert lines[1] == "factor load (1, 2, 4): what it acts on is learned"
    assert lines[2] == "factor kind (none, z): what it acts on is learned"
    assert any(line.split()[1:4] == ["load", "->", "heat"] for line in lines)
    assert any(line.startswith("order: load, kind, weather") for line in lines)
    assert not any("-> weather" in line for line in lines)
    assert "an edge between nodes: " in outcome.out


def test_json_is_what_python_gives(data: Path) -> None:
    found = json.loads(run("learn", data, "--context", "weather", "--json").out)
    columns = made()
    factors = {name: columns.pop(f"do:{name}") for name in ("load", "kind")}
    X = np.column_stack(list(columns.values()))
    model = GraphPosterior(context=[0]).fit(X, factors=factors)
    assert found["factors"] == {"load": [1, 2, 4], "kind": ["none", "z"]}
    assert found["nodes"] == [*columns, "load", "kind"]
    assert list(found["effects"]["load"].values()) == pytest.approx(
        list(model.effects_["load"].values()), abs=1e-9
    )
    assert found["edge_probability"]["natural"] == pytest.approx(
        model.edge_probability_[0], abs=1e-9
    )
    assert [check["node"] for check in found["checks"]] == list(columns)


def test_graphs_and_pictures_have_the_roots(data: Path, tmp_path: Path) -> None:
    outs = [tmp_path / f"graph.{ending}" for ending in ("json", "csv", "dot", "graphml", "png")]
    given = [part for out in outs for part in ("--out", out)]
    assert run("learn", data, *given).code == 0
    graph = json.loads(outs[0].read_text())
    assert {"load", "kind"} <= set(graph["nodes"])
    assert "load" in [edge["parent"] for edge in graph["edges"]]
    assert "natural,load,heat," in outs[1].read_text()
    assert '"load" -> "heat"' in outs[2].read_text()
    assert 'source="load"' in outs[3].read_text()
    assert outs[4].stat().st_size > 1000


def test_a_second_table_may_have_factors(data: Path, tmp_path: Path) -> None:
    columns = made()
    levels = {name: columns.pop(f"do:{name}") for name in ("load", "kind")}
    one = write(tmp_path / "one.csv", columns)
    two = write(tmp_path / "two.csv", levels)
    apart = json.loads(run("learn", one, "--interventions", two, "--json").out)
    assert apart["effects"] == json.loads(run("learn", data, "--json").out)["effects"]


def test_a_table_that_a_study_exported_is_learned(tmp_path: Path) -> None:
    columns = made(30)
    factors: dict[str, Any] = {"load": {"levels": [1, 2, 4]}, "kind": {"levels": ["none", "z"]}}
    nodes = ["weather", "heat", "yield"]
    with Study.create(tmp_path / "s.db", nodes=nodes, reward="yield", factors=factors) as study:
        study.import_rounds(columns)
        study.export(tmp_path / "trials.csv")
    outcome = run("learn", tmp_path / "trials.csv", "--json")
    assert json.loads(outcome.out)["effects"]["load"]["heat"] > 0.95


def test_rows_that_are_left_out_do_not_count(tmp_path: Path) -> None:
    columns = made()
    columns["heat"][0], columns["do:load"][0] = "", 9
    outcome = run("learn", write(tmp_path / "hole.csv", columns), "--skip-incomplete", "--json")
    assert json.loads(outcome.out)["factors"]["load"] == [1, 2, 4]


def changed(column: str, row: int, cell: Any) -> Columns:
    columns = made()
    columns[column][row] = cell
    return columns


REFUSED: dict[str, tuple[Columns, list[str], str]] = {
    "one level": (made() | {"do:kind": ["x"] * 90}, [], "factor 'kind' is 'x' in all 90 rows"),
    "empty": (changed("do:load", 4, ""), [], "row 5 of factor 'load' is missing"),
    "mixed": (changed("do:load", 4, "high"), [], "'high' in row 5"),
    "near": (made() | {"do:heatt": [0, 1] * 45}, [], "there is no node 'heatt'; did you mean"),
    "csl": (made(), ["--method", "csl"], "csl cannot learn what a factor acts on"),
    "golem": (made(), ["--method", "golem"], "golem cannot learn what a factor acts on"),
    "rain": (made(), ["--context", "rain"], "context: there is no node 'rain'"),
    "into": (made(), ["--require-edge", "heat->load"], "load is a factor"),
    "method": (made(), ["--method", "foo"], "there is no method 'foo'; there are posterior, csl, "),
    "mean": (made(), ["--noise-mean", "1"], "noise_mean cannot be used with factors"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_to_do(tmp_path: Path, case: str) -> None:
    columns, options, message = REFUSED[case]
    outcome = run("learn", write(tmp_path / "data.csv", columns), *options)
    assert outcome.code == 1
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_context_is_for_the_posterior(data: Path) -> None:
    outcome = run("learn", data, "--method", "csl", "--ignore", "do:load", "--ignore", "do:kind",
                  "--context", "weather")  # fmt: skip
    assert outcome.code != 0
    assert "--context" in outcome.err


def test_a_level_that_is_written_differently_in_one_row_is_named(tmp_path: Path) -> None:
    columns = made()
    columns["do:kind"] = ["zn" if row == 5 else "Zn" if row % 2 else "none" for row in range(90)]
    outcome = run("learn", write(tmp_path / "data.csv", columns))
    assert outcome.code == 0
    assert outcome.err == "warning: level 'zn' of kind is in one row; did you mean 'Zn'?\n"
