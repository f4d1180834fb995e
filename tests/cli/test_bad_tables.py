"""Tables that cannot be used: refused by one rule in `learn`, `study import` and the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import run

from causalarms import GraphPosterior, LinearSEM, Study
from causalarms.errors import DataError, ModelError, StudyError
from causalarms.limits import MAX_NAME_LETTERS, MAX_NODES, TABLE_COLUMNS
from causalarms.tables.write import parquet_bytes

GOOD = [[1.0, 2.0], [0.5, -1.0], [0.25, 3.0]]
LONG = "x" * (MAX_NAME_LETTERS + 1)


def frame(header: tuple[str, ...], rows: list[list[float]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(header))


def study_file(folder: Path) -> Path:
    path = folder / "study.db"
    Study.create(path, nodes=["a", "b"], reward="b").close()
    return path


@pytest.mark.parametrize("text", ["1e308", "-1e101", "1e999"])
@pytest.mark.parametrize("quoted", [False, True])  # by either reader
def test_values_are_refused_alike_by_learn_and_import(
    text: str, quoted: bool, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    cell = f'"{text}"' if quoted else text
    table.write_text(f"a,b\n1,2\n0.5,{cell}\n0.25,3\n")
    words = "infinite (inf)" if text == "1e999" else f"{float(text):g}: too large to compute with"
    message = f"row 2 of column 'b' is {words}"
    learned, imported = run("learn", table), run("study", "import", study_file(tmp_path), table)
    assert (learned.code, imported.code) == (1, 1)
    assert learned.err == imported.err
    assert message in learned.err
    assert len(learned.err.splitlines()) == 1
    rows = [GOOD[0], [0.5, float(text)], GOOD[2]]
    study = Study.create(None, nodes=["a", "b"], reward="b")
    with pytest.raises(StudyError, match="row 1 of column 'b' is ") as added:
        study.import_rounds(frame(("a", "b"), rows))
    assert words in str(added.value)
    with pytest.raises(StudyError, match="node 'b' is ") as told:
        study.tell(study.ask(), rows[1])
    assert ("not finite" if text == "1e999" else words) in str(told.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (LONG, f"has {len(LONG)} characters; at most {MAX_NAME_LETTERS}"),
        ("a\nb", r"holds a control character \('\\n'\)"),
        ("a\x1b[2J", "holds a control character"),
        ("\u202eevil", "holds a control character"),
    ],
)
def test_names_are_refused_everywhere_alike(name: str, words: str, tmp_path: Path) -> None:
    on_b = {"acts_on": ["b"]}
    with pytest.raises(StudyError, match=words):
        Study.create(None, nodes=[name, "b"], reward="b")
    for factors in ({name: on_b}, {"b": {"levels": ["low", name]}}):
        with pytest.raises(StudyError, match=words):
            Study.create(None, nodes=["a", "b"], reward="b", factors=factors)
    with pytest.raises(ModelError, match=words):
        LinearSEM(weights=np.zeros((2, 2, 2)), nodes=[name, "b"])
    with pytest.raises(DataError, match=words):
        GraphPosterior().fit(frame((name, "b"), GOOD))
    table = tmp_path / "t.parquet"
    table.write_bytes(parquet_bytes({name: [1.0, 2.0], "b": [0.0, 1.0]}, "a test"))
    outcome = run("learn", table)
    assert outcome.code == 1
    assert f"the name of node 0 {name[:1]!r}"[:-1] in outcome.err


def test_what_is_given_twice_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,2\n0.5,-1\n0.25,3\n")
    outcome = run("learn", table, "--noise-mean", "a=1,b=2,a=3")
    assert (outcome.code, "a node is given twice" in outcome.err) == (1, True)
    outcome = run("simulate", "--policy", "posterior,draws=5, draws=6", "--runs", 1)
    assert (outcome.code, "the setting 'draws' is given twice" in outcome.err) == (2, True)


def test_a_name_of_the_longest_is_taken() -> None:
    longest = LONG[1:]
    study = Study.create(None, nodes=[longest, "b"], reward="b")
    study.tell(study.ask(), {longest: 1.0, "b": 2.0})


def test_the_number_of_nodes_is_looked_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name is looked at, none of the body is parsed."""
    wide = [f"n{i}" for i in range(TABLE_COLUMNS + 1)]
    csv = tmp_path / "wide.csv"
    csv.write_text(",".join(wide) + "\n" + "no number, and too short\n")
    parquet = tmp_path / "wide.parquet"
    parquet.write_bytes(parquet_bytes({name: [0.0] for name in wide}, "a test"))
    words = f"has {len(wide):,} columns; at most {TABLE_COLUMNS:,}"
    file = study_file(tmp_path)
    for table in (csv, parquet):
        for command in (("learn", table), ("study", "import", file, table)):
            outcome = run(*command)
            assert outcome.code == 1
            assert words in outcome.err
    with pytest.raises(StudyError, match=words):
        Study.open(file).import_rounds({name: [1.0] for name in wide})
    nodes = [f"n{i}" for i in range(MAX_NODES + 1)]
    csv.write_text(",".join(nodes) + "\n" + ",".join(["1"] * len(nodes)) + "\n")
    words = f"there are {len(nodes):,} nodes; at most {MAX_NODES:,}"
    assert words in run("learn", csv).err
    with pytest.raises(StudyError, match=words):
        Study.create(None, nodes=nodes, reward="n0")
