"""`learn`, `study import` and `Study.import_rounds` read one table the same way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run

from causalarms import Study, random_sem
from causalarms.errors import LearningWarning, StudyError
from causalarms.tables.write import columns_text

NODES = ("feed", "heat", "yield")
SEM = random_sem(3, seed=1)
REGIMES = np.random.default_rng(0).integers(0, 2, (60, 3))
VALUES = SEM.sample(REGIMES, np.random.default_rng(1))
SAMPLES = {node: VALUES[:, i].tolist() for i, node in enumerate(NODES)}
FLAGS = {node: REGIMES[:, i].tolist() for i, node in enumerate(NODES)}
DO = {f"do:{node}": cells for node, cells in FLAGS.items()}
NAMES = [";".join(n for n, on in zip(NODES, row, strict=True) if on) for row in REGIMES]


def write(path: Path, columns: dict[str, Any]) -> Path:
    path.write_text(columns_text(columns))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    Study.create(tmp_path / "s.db", nodes=NODES, reward="yield", intervenable=NODES).close()
    return tmp_path / "s.db"


def stored(file: Path) -> list[tuple[Any, Any]]:
    with Study.open(file, read_only=True) as study:
        return [(list(r.intervention), r.values) for r in study.ledger().trials]


@pytest.mark.parametrize(
    ("further", "options"),
    [
        (DO, []),
        ({"intervened": NAMES}, []),
        ({"intervention_targets": NAMES}, []),
        ({"who": NAMES}, ["--intervened", "who"]),
        ({}, ["--interventions", "second.csv"]),
        ({"date": ["monday"] * 60, "intervened": NAMES}, ["--ignore", "date"]),
    ],
)
def test_all_three_doors_agree(
    file: Path,
    further: dict[str, Any],
    options: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    table = write(tmp_path / "t.csv", SAMPLES | further)
    write(tmp_path / "second.csv", FLAGS)
    outcome = run("study", "import", file, table, *options)
    assert (outcome.code, outcome.out, outcome.err) == (0, "imported 60 rounds\n", "")
    expected = [(a.tolist(), tuple(x.tolist())) for a, x in zip(REGIMES, VALUES, strict=True)]
    assert stored(file) == expected
    with Study.create(None, nodes=NODES, reward="yield", intervenable=NODES) as study:
        rules: dict[str, Any] = {}
        for name, value in zip(options[::2], options[1::2], strict=True):
            rules[name[2:]] = [value] if name == "--ignore" else value
        assert study.import_rounds(table, **rules) == 60
        assert [(list(r.intervention), r.values) for r in study.ledger().trials] == expected
    learned = json.loads(run("learn", table, "--json", *options).out)
    assert learned["nodes"] == list(NODES)
    assert learned["left_out"] == []
    flags = write(tmp_path / "flags.csv", SAMPLES | DO)
    assert learned["edges"] == json.loads(run("learn", flags, "--json").out)["edges"]


def test_one_row_and_constant_columns_are_rounds_of_a_study(file: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("feed,heat,yield,intervened\n1,1,2,heat;feed\n")
    assert run("study", "import", file, table).code == 0
    assert stored(file) == [([1, 1, 0], (1.0, 1.0, 2.0))]


def test_empty_cells_are_not_measured(file: Path, tmp_path: Path) -> None:
    columns = {name: list(cells) for name, cells in (SAMPLES | {"intervened": NAMES}).items()}
    columns["heat"][4] = None
    columns["feed"][7] = "NA"
    table = write(tmp_path / "t.csv", columns)
    outcome = run("study", "import", file, table)
    assert (outcome.code, outcome.out) == (0, "imported 60 rounds\n")
    assert outcome.err == ""
    assert stored(file)[4][1][1] is None
    outcome = run("learn", table)
    assert outcome.code == 1
    assert "row 5 of column 'heat' is empty; 2 of 60 rows lack a value" in outcome.err
    assert "--skip-incomplete" in outcome.err
    outcome = run("learn", table, "--skip-incomplete")
    assert outcome.code == 0
    assert outcome.out.startswith("58 rounds of 3 nodes")
    assert "2 of 60 rows lack a value: left out" in outcome.out
    found = json.loads(run("learn", table, "--skip-incomplete", "--json").out)
    assert (found["n_rounds"], found["left_out"]) == (
        58,
        ["2 of 60 rows lack a value: left out"],
    )


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"date": ["monday"] * 60}, "column 'date' is not a node"),
        ({"temperature": [1.0] * 60}, "column 'temperature' is not a node"),
        ({"do:heat": [2] * 60}, "factor 'heat' has no level '2'; it has off, on"),
        ({"do:heat": [""] * 60}, "row 1 of column 'do:heat' is empty"),
        ({"feed": [1e101] * 60}, "row 1 of column 'feed' is 1e+101: too large"),
        ({"intervened": ["hat"] * 60}, "row 1 of column 'intervened' names 'hat'"),
        ({"intervened": NAMES} | DO, "more than one way"),
    ],
)
def test_a_study_refuses_by_name_and_keeps_nothing(
    file: Path, further: dict[str, Any], message: str, tmp_path: Path
) -> None:
    outcome = run("study", "import", file, write(tmp_path / "t.csv", SAMPLES | further))
    assert outcome.code == 1
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert stored(file) == []


def test_options_of_tables_are_not_for_logs(file: Path, tmp_path: Path) -> None:
    run("study", "export", file, "--out", tmp_path / "log.json")
    for options in (("--ignore", "x"), ("--intervened", "x"), ("--interventions", "x.csv")):
        outcome = run("study", "import", tmp_path / "new.db", tmp_path / "log.json", *options)
        assert outcome.code == 2
        assert "are for tables" in outcome.err
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet", "history"])
def test_an_exported_table_is_imported_and_learned_from(kind: str, tmp_path: Path) -> None:
    nodes = ("trial", "heat", "intervened")
    first = Study.create(tmp_path / "a.db", nodes=nodes, reward="intervened", policy="random")
    first.fail(first.ask(), "tube broke")
    for row in VALUES.tolist():
        first.tell(first.ask(), row)
    with pytest.warns(LearningWarning, match="not measured"):
        first.tell(first.ask(), [1.0, None, 2.0])
    first.ask()
    given: Any = first.history()
    if kind != "history":
        given = first.export(tmp_path / f"t.{kind}")
    second = Study.create(None, nodes=nodes, reward="intervened")
    with pytest.warns(LearningWarning) as caught:
        assert second.import_rounds(given) == 61
    assert [str(warning.message) for warning in caught] == [
        "2 trials of the table have no result: left out",
    ]
    expected = [(r.intervention, r.values) for r in first.ledger().trials if r.values is not None]
    assert [(r.intervention, r.values) for r in second.ledger().trials] == expected
    if kind != "history":
        outcome = run("learn", given, "--skip-incomplete", "--json")
        assert outcome.code == 0, outcome.err
        found = json.loads(outcome.out)
        assert (found["nodes"], found["n_rounds"]) == (list(nodes), 60)
        assert len(found["left_out"]) == 2
    first.close()


def test_nothing_of_python_crashes_it() -> None:
    study = Study.create(None, nodes=NODES, reward="yield", intervenable=NODES)
    for given in (None, 3, [], [[1.0, 2.0, 3.0]], np.zeros((2, 3)), {"feed": None}, "no.csv"):
        with pytest.raises(StudyError):
            study.import_rounds(given)
    for flags in (3, np.zeros(3), np.zeros((60, 2)), {"feed": [0]}, "no.csv"):
        with pytest.raises(StudyError):
            study.import_rounds(SAMPLES, flags)
    assert not study.ledger().trials


def test_learn_names_the_row_of_a_regime_that_is_not_there(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", SAMPLES | DO | {"do:heat": [0] * 4 + [1.5] + [0] * 55})
    assert "row 5 of column 'do:heat' is '1.5', which is not a regime" in run("learn", table).err
    table = write(tmp_path / "t.csv", SAMPLES | DO | {"do:heat": [0] * 4 + [2] + [0] * 55})
    outcome = run("learn", table, "--regimes", "heat=2")
    assert outcome.code == 1
    assert "row 5 of node 'heat': regime 2 is neither 0" in outcome.err
    assert "unknown, for lack of data: heat (regime 1)" in run("learn", table).out


def test_a_table_of_a_spreadsheet_with_decimal_commas(file: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text('feed;heat;yield;intervened\n1,5;-2,25e1;3;"heat;feed"\n1;2;,5;\n')
    assert run("study", "import", file, table).code == 0
    assert stored(file) == [([1, 1, 0], (1.5, -22.5, 3.0)), ([0, 0, 0], (1.0, 2.0, 0.5))]


def test_a_file_that_is_imported_twice_is_remarked_on(file: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", SAMPLES | DO)
    assert "twice" not in run("study", "import", file, table).err
    again = run("study", "import", file, table)
    assert again.code == 0
    assert "all 60 rows are in the study already: imported twice, they count twice" in again.err
    other = write(tmp_path / "u.csv", SAMPLES | DO | {"feed": [0.5, *SAMPLES["feed"][1:]]})
    assert "twice" not in run("study", "import", file, other).err
