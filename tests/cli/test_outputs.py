"""Nothing is written over that could be missed: studies, inputs, files of other programs."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from command import run

from causalarms import Study
from causalarms.files import STUDY_ID, STUDY_ID_AT
from causalarms.graphs.graph import Graph
from causalarms.sem.ensembles import random_sem
from causalarms.study.sqlite import APPLICATION_ID


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study `line.db` of one round and a table `d.csv`."""
    monkeypatch.chdir(tmp_path)
    with Study.create("line.db", nodes=["heat", "yield"], reward="yield") as study:
        study.tell(study.ask(), [1.0, 2.0])
        rng = np.random.default_rng(0)
        rows = np.hstack([rng.normal(size=(80, 2)), rng.integers(0, 2, (80, 2))])
        study.import_rounds({"heat": rows[:, 0], "yield": rows[:, 1]})
    np.savetxt("d.csv", rows, delimiter=",", header="heat,yield,do:heat,do:yield", comments="")
    return tmp_path


COMMANDS = {  # what ends with the option that takes a path
    "report": ("study", "report", "line.db", "--out"),
    "export": ("study", "export", "line.db", "--out"),
    "graph": ("study", "graph", "line.db", "--out"),
    "learn": ("learn", "d.csv", "--out"),
}
ENDINGS = {
    "report": ("html",),
    "export": ("json", "csv", "parquet"),
    "graph": ("json", "csv", "graphml", "dot"),
    "learn": ("json", "csv", "graphml", "dot", "png", "pdf"),
}
WRITERS = [(name, ending) for name, endings in ENDINGS.items() for ending in endings]


@pytest.mark.parametrize(("name", "ending"), WRITERS)
def test_own_files_are_replaced_and_others_only_with_force(
    here: Path, name: str, ending: str
) -> None:
    command, path = COMMANDS[name], here / f"made.{ending}"
    path.write_bytes(b"")  # holds nothing that could be lost
    for _ in range(2):
        outcome = run(*command, path)
        assert outcome.code == 0, outcome.err
    assert path.stat().st_size
    path.write_text("my notes\n")
    refused = run(*command, path)
    assert refused.code == 1
    assert f"made.{ending} exists and was not made by `causalarms" in refused.err
    assert "choose another name or give --force" in refused.err
    assert path.read_text() == "my notes\n"
    assert run(*command, path, "--force").code == 0
    assert run(*command, path).code == 0
    assert not [p.name for p in here.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("spelling", ["plain", "dots", "symbolic", "hard"])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_study_is_never_written_over(
    here: Path, name: str, spelling: str, force: tuple[str, ...]
) -> None:
    ending = ENDINGS[name][0]
    target = here / f"s.{ending}"  # a study may have any name
    (here / "line.db").rename(target)
    command = [str(target) if word == "line.db" else word for word in COMMANDS[name]]
    before = target.read_bytes()
    out = str(target)
    if spelling == "dots":
        (here / "x").mkdir()
        out = f"x/../s.{ending}"
    elif spelling != "plain":
        out = f"link.{ending}"
        (os.symlink if spelling == "symbolic" else os.link)(target, out)
    outcome = run(*command, out, *force)
    assert outcome.code == 1
    remedies = ["choose another name", *(["remove one of the names"] if spelling == "hard" else [])]
    assert any(remedy in outcome.err for remedy in remedies)
    assert target.read_bytes() == before
    assert Path(out).is_symlink() == (spelling == "symbolic")
    if spelling == "hard":
        Path(out).unlink()
    assert run("study", "verify", target).code == 0


@pytest.mark.parametrize("neighbour", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("command", ["report", "create", "recover", "import", "simulate"])
def test_nothing_takes_the_place_of_a_part_of_a_study(
    here: Path, neighbour: str, command: str
) -> None:
    path = f"line.db{neighbour}"
    run("study", "export", "line.db", "--out", "log.json")
    arguments: dict[str, tuple[object, ...]] = {
        "report": ("study", "report", "line.db", "--out", path, "--force"),
        "create": ("study", "create", path, "--nodes", "a,b", "--reward", "a"),
        "recover": ("study", "recover", "line.db", path),
        "import": ("study", "import", path, "log.json"),
        "simulate": ("simulate", "--policy", "ucb", "--nodes", 3, "--results", path),
    }
    for left in here.glob("line.db-*"):
        left.unlink()
    outcome = run(*arguments[command])
    assert outcome.code == 1
    assert "belongs to the study line.db" in outcome.err
    if command != "recover":  # SQLite itself may have made them, to read
        assert not Path(path).exists()
    assert run("study", "verify", "line.db").code == 0


def test_inputs_are_not_written_over(here: Path) -> None:
    before = Path("d.csv").read_bytes()
    os.link("d.csv", "hard.csv")
    Path("soft.csv").symlink_to("d.csv")
    Path("switches.csv").write_text("regime,parent,child,weight\n")  # looks like an output
    for out in ("d.csv", "./d.csv", "hard.csv", "soft.csv"):
        outcome = run("learn", "d.csv", "--out", out, "--force")
        assert (outcome.code, "is an input of this command" in outcome.err) == (1, True)
    second = ("learn", "d.csv", "--interventions", "switches.csv", "--out", "switches.csv")
    assert "is an input of this command" in run(*second).err
    assert Path("d.csv").read_bytes() == before


def test_a_damaged_study_is_recognised_by_its_id(here: Path) -> None:
    damaged = bytearray(Path("line.db").read_bytes())
    damaged[:16] = b"x" * 16
    Path("g.json").write_bytes(damaged)
    assert "never written over" in run("learn", "d.csv", "--out", "g.json", "--force").err
    assert Path("g.json").read_bytes() == damaged
    with closing(sqlite3.connect("other.json")) as other:  # of another program
        other.execute("CREATE TABLE mine (x)")
    assert "never written over" in run("learn", "d.csv", "--out", "other.json", "--force").err
    assert int.from_bytes(STUDY_ID) == APPLICATION_ID
    assert damaged[STUDY_ID_AT : STUDY_ID_AT + 4] == STUDY_ID


@pytest.mark.parametrize("command", ["demo", "simulate"])
def test_folders_of_pictures(here: Path, command: str) -> None:
    arguments = {
        "demo": ("demo", "--rounds", 200, "--out", "o"),
        "simulate": ("simulate", "--policy", "random", "--nodes", 3, "--horizon", 30, "--runs", 1,
                     "--jobs", 1, "--out", "o"),
    }[command]  # fmt: skip
    Path("o").mkdir()
    os.link("line.db", "o/regret.png")
    assert "never written over" in run(*arguments, "--force").err
    Path("o/regret.png").unlink()
    Path("o/regret.png").write_text("mine")
    refused = run(*arguments)
    assert (refused.code, refused.out) == (1, "")  # before anything is computed
    assert f"regret.png exists and was not made by `causalarms {command}`" in refused.err
    if command == "simulate":
        assert run(*arguments, "--force").code == 0
        assert run(*arguments).code == 0
        again = run(*arguments, "--results", "o/summary.csv", "--force")
        assert "is an input of this command" in again.err
    assert run(command, "--out", "d.csv/o").err == f"error: cannot write d.csv/o/{first(command)}\n"


def first(command: str) -> str:
    name = "regret.png" if command == "demo" else "summary.csv"
    return f"{name}: d.csv is not a folder"


@pytest.mark.parametrize("path", ["folder", "pipe", "/dev/null", "/dev/full"])
def test_only_ordinary_files_are_written(here: Path, path: str) -> None:
    Path("folder").mkdir()
    os.mkfifo("pipe")
    outcome = run("study", "report", "line.db", "--out", path, "--force")
    assert outcome.code == 1
    assert f"cannot write {path}: it is " in outcome.err
    assert not Path(path).is_file()
    results = run("simulate", "--policy", "random", "--nodes", 3, "--results", path)
    assert (results.code, f"cannot use {path}: " in results.err) == (1, True)


def test_a_link_to_nothing_stays_a_link(here: Path) -> None:
    Path("link.json").symlink_to("far.json")
    assert run("study", "export", "line.db", "--out", "link.json").code == 0
    assert Path("link.json").is_symlink()
    assert Path("far.json").is_file()


def test_the_same_rules_from_python(here: Path) -> None:
    sem = random_sem(2, seed=1)
    none = np.zeros((2, 2, 2))
    graph = Graph(("a", "b"), none > 0, none, np.ones((2, 2), dtype=bool), None, {})
    shutil.copy("line.db", "line.json")
    with Study.open("line.db") as study:
        for save in (study.export, graph.save, sem.save):
            Path("x.json").write_text("mine")
            for path in ("x.json", "line.json"):
                with pytest.raises(Exception, match="choose another name"):
                    save(path)
            save("x.json", force=True)
            save("x.json")


def test_overwriting_a_reproduction_removes_only_its_own_files(here: Path) -> None:
    folder = here / "r"
    small = ("reproduce", "precision", "--runs", 1, "--sizes", 3, "--jobs", 1, "--out", folder)
    assert run(*small).code == 0
    read = folder / "uniform"
    (folder / "notes.txt").write_text("mine")
    (read / "data" / "mine.csv").write_text("mine")
    os.link("line.db", folder / "line.db")
    assert run(*small, "--seed", 1).code == 1
    assert run(*small, "--seed", 1, "--overwrite").code == 0
    for kept in ("notes.txt", "uniform/data/mine.csv", "line.db"):
        assert (folder / kept).exists()
    (read / "figures" / "precision.pdf").unlink()
    os.link("line.db", read / "figures" / "precision.pdf")
    assert "never written over" in run(*small, "--seed", 2, "--overwrite").err
    assert (read / "settings.json").exists()
    (read / "settings.json").write_text('{"theme": "dark"}')
    assert "no settings of a reproduction" in run(*small, "--overwrite").err
    assert (folder / "report.md").exists()
