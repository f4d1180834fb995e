"""A study is made whole, or a kill leaves an empty file."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from study_rounds import SETTINGS

from causalarms import Study
from causalarms.errors import StudyError, StudyFileError
from causalarms.study.sqlite import new_file

LOOP = """
import sys
from pathlib import Path
from causalarms import Study
print("ready", flush=True)
for number in range(10**6):
    Study.create(Path(sys.argv[1]) / f"{number}.db", nodes=["a", "b"], reward="b",
                 policy="random").close()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_kills_during_creation_leave_whole_studies_or_an_empty_file(
    tmp_path: Path,
) -> None:
    chance = random.Random(0)
    made = 0
    for kill in range(4):
        folder = tmp_path / str(kill)
        folder.mkdir()
        child = subprocess.Popen(
            [sys.executable, "-c", LOOP, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0.02, 0.3))
        child.kill()
        child.wait()
        child.stdout.close()
        files = sorted(folder.glob("*.db"), key=lambda p: int(p.stem))
        made += len(files)
        for file in files:
            if file == files[-1]:  # killed while it was made, perhaps
                with suppress(StudyFileError):
                    Study.open(file)
                if file.stat().st_size == 0:
                    continue
            with Study.open(file) as study:
                study.ask()
        following = folder / f"{len(files)}.db"
        Study.create(following, nodes=["a", "b"], reward="b", policy="random").close()
    assert made > 4


@pytest.mark.parametrize("name", ["caf\udce9", "a\ud800b"])
def test_names_that_cannot_be_stored_are_refused_before_there_is_a_file(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(StudyError, match="cannot be stored"):
        Study.create(tmp_path / "s.db", nodes=[name, "y"], reward="y")
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_text("precious")
    with pytest.raises(StudyError, match="exists already"):
        Study.create(path, **SETTINGS)
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StudyError, match="exists already"):
        Study.create(link, **SETTINGS)
    assert path.read_text() == "precious"


def test_a_file_that_an_interrupted_creation_left_empty(tmp_path: Path) -> None:
    (tmp_path / "s.db").touch()
    with pytest.raises(StudyFileError, match="creation was interrupted; remove it"):
        Study.open(tmp_path / "s.db")


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_what_a_study_left_that_is_gone_is_not_given_to_a_new_one(
    tmp_path: Path, ending: str
) -> None:
    left = tmp_path / f"s.db{ending}"
    left.write_bytes(b"precious")
    with pytest.raises(StudyError, match="left by a study that is gone"):
        Study.create(tmp_path / "s.db", **SETTINGS)
    assert list(tmp_path.iterdir()) == [left]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "'' cannot be the path of a study: it is empty"),
        ("a\0b", "cannot be the path of a study: it holds a NUL character"),
        (".", "folder"),
        ("below", "folder"),
        (b"s.db", "must be text or a Path"),
        (3, "must be text or a Path"),
        ("x" * 300, "File name too long"),
    ],
)
def test_paths_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()
    with pytest.raises(StudyError, match=said):
        Study.create(path, **SETTINGS)
    with pytest.raises(StudyError, match=said):
        Study.open(path)
    assert [p.name for p in tmp_path.iterdir()] == ["below"]


def test_who_opens_a_study_that_is_being_made_waits(tmp_path: Path) -> None:
    path, order = tmp_path / "s.db", list[str]()
    with new_file(path) as connection:
        reader = threading.Thread(target=lambda: order.append(refusal(path)))
        reader.start()
        while not connection.in_transaction:
            connection.execute("BEGIN IMMEDIATE")
        order.append("made")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("COMMIT")
    reader.join()
    assert order[0] == "made"
    assert "another program" in order[1]


def refusal(path: Path) -> str:
    with pytest.raises(StudyError) as caught:
        Study.open(path)
    return str(caught.value)
