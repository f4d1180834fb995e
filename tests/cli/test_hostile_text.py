"""Names, notes and numbers from anywhere: shown, stored and read back, never run or obeyed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import numpy as np
import pytest
from command import run
from hypothesis import given
from hypothesis import strategies as st

from causalarms import Study
from causalarms.cli.terminal import print_data
from causalarms.errors import CausalArmsError, DataError, StudyError
from causalarms.files import printable, read_at_most, write_atomically
from causalarms.graphs.graph import Graph
from causalarms.study import report
from causalarms.study import study as study_module
from causalarms.tables.read import plain, read_table
from causalarms.tables.write import FIRST, LAST, column_of, csv_text

EVIL = ("a\x1b[31m[/b][red]", "=1+1", "\u202eb\x07", "+x;@y", "yield")


def table(path: Path, names: tuple[str, ...] = EVIL, n_rows: int = 120) -> Path:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(n_rows, len(names)))
    switches = rng.integers(0, 2, values.shape)
    header = [*names, *(f"do:{name}" for name in names)]
    path.write_text(csv_text(header, np.hstack([values, switches]).tolist()))
    return path


def old_study(path: Path, names: tuple[str, ...], reward: str, policy: str = "random") -> Study:
    """A study with names that are refused today."""
    with patch.object(study_module, "refuse_odd_names"):
        return Study.create(path, names, reward, policy=policy, intervenable=names)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "evil.db"
    with old_study(path, EVIL, reward="yield", policy="csl-ucb-cd") as made:
        made.fail(made.ask(worker="w\x1b]0;x\x07"), "=r\x1b[2J\nline\x9b")
        made.ask(worker="p\u2066")
        made.note("\x1b")
    assert run("study", "import", path, table(tmp_path / "d.csv")).code == 0
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("show",), ("best",), ("predict",), ("predict", "--switch", "\x1b"), ("graph",),
        ("history",), ("explain", 1), ("ask", "--worker", "\x1b"), ("alarms",), ("verify",),
        ("tell", 1, "\x1b=1"), ("note", "\udcff"), ("ask", "--worker", "\udcff"),
        ("show", "--\x1b"), ("graph", "--json"), ("history", "--json"), ("export",),
    ],
)  # fmt: skip
def test_no_command_prints_control_characters(study: Path, words: tuple[Any, ...]) -> None:
    outcome = run("study", words[0], study, *words[1:])
    assert outcome.code in (0, 1, 2)
    text = outcome.out + outcome.err
    assert text
    assert printable(text.replace("\n", "")) == text.replace("\n", "")


def test_learn_shows_brackets_and_refuses_control_characters(tmp_path: Path) -> None:
    outcome = run("learn", table(tmp_path / "d.csv", ("a[/b][red]", "=1+1", "+x;@y", "yield")))
    assert outcome.code == 0, outcome.err
    assert "a[/b][red]" in outcome.out
    outcome = run("learn", table(tmp_path / "d.csv"))
    assert outcome.code == 1
    assert "\x1b" not in outcome.err
    assert "holds a control character ('\\x1b')" in outcome.err


def test_a_table_is_printed_as_it_is_but_not_at_a_terminal(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    piped = run("study", "export", study, "--csv").out
    assert "\x1b" in piped
    with patch.object(sys.stdout, "isatty", lambda: True):
        print_data(piped)
    assert "\x1b" not in capsys.readouterr().out


@given(st.lists(st.text("'=+-@\t\r\n1.a,;\" \x00\u202e"), min_size=1, max_size=4))
def test_text_survives_csv_and_never_starts_a_formula(texts: list[str]) -> None:
    import csv

    written = csv_text(["h"] * len(texts), [texts])
    (_, *rows) = csv.reader(io.StringIO(written, newline=""))
    if texts == [""]:
        return  # an empty line
    assert [plain(cell) for cell in rows[0]] == texts
    for cell in rows[0]:
        assert cell[:1] not in ("=", "@", "\t", "\r", "\n")
        assert cell[:1] not in ("+", "-") or float(cell) == float(cell) or "nan" in cell


def test_numbers_in_csv_are_not_touched() -> None:
    text = csv_text(["a", "-1.5", "-x"], [[-1.5, "-2", None], [np.float64(-0.1), True, "-"]])
    assert text == "a,-1.5,'-x\n-1.5,-2,\n-0.1,True,'-\n"


def test_tables_come_back_from_csv_and_parquet(study: Path, tmp_path: Path) -> None:
    with Study.open(study, read_only=True) as opened:
        values = [r.values for r in opened.ledger().trials if r.complete]
    for name in ("t.csv", "t.parquet"):
        assert run("study", "export", study, "--out", tmp_path / name).code == 0
        copy = tmp_path / f"{name}.db"
        old_study(copy, EVIL, "yield").close()
        assert run("study", "import", copy, tmp_path / name).code == 0
        with Study.open(copy) as again:
            assert [r.values for r in again.ledger().trials if r.complete] == values
    cells = (tmp_path / "t.csv").read_text()
    assert ",'=1+1," in cells
    assert ",\"'=r" in cells


NAMES = ("a", "do:a", "do:do:a", "trial", "node:trial", "node:node:trial", "state", "remark")


def test_no_column_of_a_table_disappears(tmp_path: Path) -> None:
    old_study(tmp_path / "old.db", NAMES, "a").close()
    with Study.open(tmp_path / "old.db") as study:  # such studies still open
        study.tell(study.ask(), list(range(8)))
        columns = report.columns(study.ledger())
        assert len(columns) == len(FIRST) + len(LAST) + 2 * len(NAMES)
        found = [columns[column_of(name)] for name in NAMES]
        assert found == [[float(i)] for i in range(8)]
        assert all(columns[f"do:{name}"][0] in (0, 1) for name in NAMES)
        with pytest.raises(StudyError, match="switch of 'a', not the node 'do:a'"):
            study.import_rounds({name: [1.0] for name in NAMES})
    with pytest.raises(StudyError, match="'do:a': names that start with 'do:'"):
        Study.create(None, nodes=["a", "do:a"], reward="a")
    outcome = run("learn", table(tmp_path / "t.csv", ("a", "b")), "--nodes", "a,do:a")
    assert "column of switches" in outcome.err


def test_a_node_called_trial_is_imported_from_its_own_column(tmp_path: Path) -> None:
    names = ("trial", "yield")
    with Study.create(tmp_path / "a.db", nodes=names, reward="yield") as study:
        study.tell(study.ask(), [7.5, 8.5])
        study.export(tmp_path / "t.csv")
    run("study", "create", tmp_path / "b.db", "--nodes", "trial,yield", "--reward", "yield")
    assert run("study", "import", tmp_path / "b.db", tmp_path / "t.csv").code == 0
    with Study.open(tmp_path / "b.db") as study:
        assert study.ledger().trials[0].values == (7.5, 8.5)


def graph_of(*nodes: str) -> Graph:
    n = len(nodes)
    adjacency = np.zeros((2, n, n), dtype=bool)
    adjacency[0, 0, 1] = True
    known = np.ones((2, n), dtype=bool)
    return Graph(nodes, adjacency, adjacency.astype(float), known, None, {})


@pytest.mark.parametrize("bad", ["\x00", "\x1b", "\x0b", "\ufffe", "\uffff"])
def test_graphml_is_valid_or_refused(bad: str) -> None:
    with pytest.raises(DataError, match=r"GraphML cannot hold.*\.json"):
        graph_of(f"a{bad}", "b").to_graphml()


def test_graphml_and_dot_hold_odd_names() -> None:
    names = ('a<&>"\n\t\r', "\u202e\x85", "\U0001f600")
    root = ElementTree.fromstring(graph_of(*names).to_graphml())
    assert [e.get("id") for e in root.iter() if e.tag.endswith("}node")] == list(names)
    dot = graph_of('a"\x1b\\', "b\n").to_dot()
    assert '"a\\"\\u001b\\\\"' in dot
    assert len(dot.splitlines()) == 6


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("learn", "none"), 1), (("learn", "folder"), 1), (("learn", "pipe"), 1),
        (("learn", "/dev/zero"), 1), (("learn", "binary"), 1), (("learn", "empty"), 1),
        (("learn", "pipe.parquet"), 1), (("learn", "binary.parquet"), 1),
        (("learn", "twice.parquet"), 1), (("learn", "x" * 300), 1),
        (("learn", "d.csv", "--seed", -1), 2), (("learn", "d.csv", "--jobs", 0), 2),
        (("learn", "d.csv", "--max-samples", 10**30), 2),
        (("study", "show", "binary"), 1), (("study", "show", "/dev/zero"), 1),
        (("study", "import", "new.db", "zero.json"), 1),
        (("study", "import", "new.db", "deep.json"), 1),
        (("study", "create", "n.db", "--nodes", "a,\udcff", "--reward", "a"), 1),
        (("study", "create", "n.db", "--nodes", "a,b", "--reward", "a", "--policy", "\udcff"), 1),
        (("study", "simulate-on", "none", "--sem", "zero.json"), 1),
        (("study", "simulate-on", "none", "--sem", "deep.json"), 1),
        (("simulate", "--seed", -1), 2), (("simulate", "--nodes", 10**9), 2),
        (("simulate", "--changed", 10**9), 2), (("simulate", "--jobs", 0), 2),
        (("simulate", "--policy", "ucb,window=x", "--nodes", 3), 1),
        (("simulate", "--policy", "ucb", "--results", "deep.json", "--nodes", 3), 1),
        (("demo", "--seed", -1), 2), (("reproduce", "--out", "d.csv"), 1),
    ],
)  # fmt: skip
def test_odd_input_ends_in_words(
    words: tuple[Any, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    table(Path("d.csv"), ("a", "b"), 30)
    Path("folder").mkdir()
    for pipe in ("pipe", "pipe.parquet"):
        os.mkfifo(pipe)
    for name in ("binary", "binary.parquet"):
        Path(name).write_bytes(bytes(range(256)) * 9)
    Path("empty").touch()
    Path("zero.json").symlink_to("/dev/zero")
    Path("deep.json").write_text("[" * 100_000 + "\n")
    column = pa.array([1.0])
    parquet.write_table(pa.table([column, column], names=["a", "a"]), "twice.parquet")
    outcome = run(*words)
    assert outcome.code == code, outcome.err
    assert outcome.err.splitlines()[-1].lower().startswith("error: ")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_have_a_limit(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        path.write_text("a,b\n" + "1,2\n" * 49)
    else:
        parquet.write_table(pa.table({"a": [1.0] * 50, "b": [2.0] * 50}), path)
    monkeypatch.setattr("causalarms.tables.read.TABLE_CELLS", 100)
    read_table(path)
    monkeypatch.setattr("causalarms.tables.read.TABLE_CELLS", 99)
    with pytest.raises(DataError, match=rf"t\.{ending} is too large: at most 99 cells"):
        read_table(path)
    outcome = run("learn", path)
    assert (outcome.code, "is too large" in outcome.err) == (1, True)


def test_a_parquet_file_of_lists_counts_what_they_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [[1.0] * 500]}), tmp_path / "t.parquet")
    monkeypatch.setattr("causalarms.tables.read.TABLE_CELLS", 100)
    with pytest.raises(DataError, match="is too large"):
        read_table(tmp_path / "t.parquet")


def test_the_size_of_a_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"12345")
    assert read_at_most(path, 5) == b"12345"
    with pytest.raises(DataError, match=r"t\.csv is too large: at most"):
        read_at_most(path, 4)
    ours, theirs = os.pipe()
    os.write(theirs, b"a,b\n1,2\n")
    os.close(theirs)
    columns = read_table(f"/dev/fd/{ours}")
    assert {name: list(cells) for name, cells in columns.items()} == {"a": ["1"], "b": ["2"]}
    os.close(ours)
    monkeypatch.setattr("causalarms.cli.study_options.STANDARD_INPUT_BYTES", 10)
    monkeypatch.setattr("sys.stdin", io.StringIO('{"feed": 1.0}'))
    assert "too large" in run("study", "tell", path, 0, "-").err


def test_standard_input_that_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    assert "standard input cannot be read" in run("study", "tell", "x", 0, "-").err


def test_a_full_disk_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys\n"
        "from causalarms.errors import CausalArmsError\n"
        "from causalarms.files import write_atomically\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_atomically(sys.argv[1], 'x' * 100_000)\n"
        "except CausalArmsError as error: print(error)\n"
    )
    path = tmp_path / "new" / "folder" / "x.txt"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.stdout == f"cannot write {path}: the disk is full; nothing was written\n"
    assert not list(tmp_path.iterdir())


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    with patch("os.fsync", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "x.txt", "x")
    with pytest.raises(CausalArmsError, match="is not a character"):
        write_atomically(tmp_path / "x.txt", "\udcff")
    assert not list(tmp_path.iterdir())
    write_atomically(tmp_path / ("x" * 250), "long names fit")


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [("| true", 1, ""), (">/dev/full", 1, "No space left"), (">&-", 0, "")],
)
def test_standard_output_that_takes_nothing(
    study: Path, redirection: str, code: int, message: str
) -> None:
    main = "from causalarms.cli.main import main; main()"
    line = f"'{sys.executable}' -c '{main}' study verify '{study}' {redirection}"
    text = f"set -o pipefail; {line}; echo code $? >&2"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, env=environment)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.stderr.endswith(f"code {code}\n")
    assert message in done.stderr


def test_json_holds_ascii_only(study: Path) -> None:
    text = run("study", "history", study, "--json").out
    assert text.isascii()
    assert json.loads(text)[0]["worker"] == "w\x1b]0;x\x07"
