"""A study exists whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from study_rounds import SETTINGS

from causalarms import Study
from causalarms.errors import StudyError

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
def test_kills_during_creation_leave_whole_studies_or_none(tmp_path: Path) -> None:
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
        files = [p for p in folder.iterdir() if not p.name.startswith(".")]
        made += len(files)
        for file in files:
            with Study.open(file) as study:
                study.ask()
        following = folder / f"{len(files)}.db"
        Study.create(following, nodes=["a", "b"], reward="b", policy="random").close()
    assert made > 4


def test_a_maker_killed_before_tidying_leaves_one_study(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Study.create(path, **SETTINGS).close()
    os.link(path, tmp_path / ".s.db.1-abcd.new")
    with Study.open(path) as study:
        study.ask()
    assert [p.name for p in tmp_path.iterdir()] == ["s.db"]


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
    with pytest.raises(StudyError, match="creation was interrupted; remove it"):
        Study.open(tmp_path / "s.db")
