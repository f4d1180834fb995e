"""The reproduction in small: complete, repeatable to the byte, resumable, and strict."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causalarms.errors import DataError, ModelError
from causalarms.paper import run
from causalarms.paper.run import FIGURES, reproduce
from causalarms.paper.settings import READINGS, Settings
from causalarms.pictures.style import save_figure
from causalarms.simulation.monte_carlo import Engine

SMALL = Settings(
    sizes=(4, 5),
    sample_sizes=(60, 80),
    n_nodes=4,
    horizon=700,
    changes=(250, 450),
    changing_horizon=650,
    n_changed=2,
    error_rounds=(60, 90),
    budgets=(60, 200),
)
BOTH = [replace(SMALL, weights=weights) for weights in READINGS]
ONE = BOTH[:1]  # where the other reading would show no more
HERE = Engine("local", 1)
RUNS = 2


def data_files(folder: Path, readings: list[Settings] = BOTH) -> dict[str, bytes]:
    # a kill may leave the temporary file of an unfinished write, whose name starts with a dot
    found = sorted(p for one in readings for p in folder.glob(f"{one.weights}/data/[!.]*"))
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / "out"
    reproduce(folder, runs=RUNS, readings=BOTH, engine=HERE)
    return folder


@pytest.fixture
def one_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the first figure only, for tests that look at data: pictures are half of the time."""

    def save(figure: Any, path: Path, **settings: Any) -> Path:
        if path.stem == next(iter(FIGURES)):
            return save_figure(figure, path, **settings)
        path.write_bytes(b"not drawn")
        return path

    monkeypatch.setattr(run, "save_figure", save)


def test_everything_is_written_under_both_readings(reference: Path) -> None:
    for weights in READINGS:
        for name in FIGURES:
            picture = reference / weights / "figures" / name
            assert picture.with_suffix(".png").stat().st_size > 1000
            assert picture.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert len(data_files(reference)) == 2 * 18
    report = (reference / "report.md").read_text()
    assert "| number | paper | text: U(-2, 2) | the paper's is | program: ±U(0.5, 2) |" in report
    for name in re.findall(r"\]\((.*?\.png)\)", report):
        assert (reference / name).exists()
    for ours in ("recall of GraphPosterior", "share of posterior at", "share of posterior-cd,"):
        assert ours in report
    assert (reference / "report.html").read_text().count("data:image/png;base64") == 2 * 10


def test_the_readings_differ_in_the_weights_only(reference: Path) -> None:
    both = [json.loads((reference / w / "settings.json").read_text()) for w in READINGS]
    assert {k for k in both[0] if both[0][k] != both[1][k]} == {"weights"}
    assert [r.weights for r in BOTH] == ["uniform", "separated"]


def test_the_same_seed_gives_the_same_bytes(reference: Path, tmp_path: Path) -> None:
    reproduce(tmp_path / "again", runs=RUNS, readings=ONE, engine=HERE)
    assert data_files(tmp_path / "again") == data_files(reference, ONE)
    for weights in READINGS:  # what was run is kept, and everything else is made again
        shutil.copytree(reference / weights / "raw", tmp_path / "kept" / weights / "raw")
        shutil.copy(reference / weights / "settings.json", tmp_path / "kept" / weights)
    reproduce(tmp_path / "kept", runs=RUNS, readings=BOTH, engine=HERE)
    for name in ("report.md", "report.html"):
        assert (tmp_path / "kept" / name).read_bytes() == (reference / name).read_bytes()


@pytest.mark.usefixtures("one_picture")
def test_more_runs_go_on_from_fewer(reference: Path, tmp_path: Path) -> None:
    reproduce(tmp_path / "grown", runs=1, readings=ONE, engine=HERE)
    reproduce(tmp_path / "grown", runs=RUNS, readings=ONE, engine=HERE)
    assert data_files(tmp_path / "grown") == data_files(reference, ONE)


SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, {here!r})
from test_reproduce import HERE, ONE, RUNS
from causalarms.paper.run import reproduce
reproduce(Path(sys.argv[1]), runs=RUNS, readings=ONE, engine=HERE)
"""


@pytest.mark.usefixtures("one_picture")
@pytest.mark.parametrize("delay", [0.3, 1.5])
def test_a_killed_run_resumes_to_the_same_bytes(
    reference: Path, tmp_path: Path, delay: float
) -> None:
    folder = tmp_path / "killed"
    script = SCRIPT.format(here=str(Path(__file__).parent))
    process = subprocess.Popen([sys.executable, "-c", script, str(folder)])
    while process.poll() is None and not (folder / "uniform" / "raw").exists():
        time.sleep(0.02)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reproduce(folder, runs=RUNS, readings=ONE, engine=HERE)
    assert data_files(folder) == data_files(reference, ONE)


def test_other_settings_foreign_folders_and_unknown_figures_are_refused(
    reference: Path, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"other settings \(they differ in seed\)"):
        reproduce(reference, runs=1, readings=[replace(SMALL, seed=1)])
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match="is not empty and holds no reproduction"):
        reproduce(tmp_path, runs=1, readings=BOTH)
    with pytest.raises(ModelError, match=r"figure must be one of graph_fn, .*not 'fig12'"):
        reproduce(tmp_path / "new", runs=1, readings=BOTH, figures=["fig12"])
    with pytest.raises(ModelError, match="runs must be an integer of at least 1"):
        reproduce(tmp_path / "new", runs=0, readings=BOTH)
    assert not (tmp_path / "new").exists()


def test_ctrl_c_says_how_to_resume_and_exits_with_130(tmp_path: Path) -> None:
    code = "from causalarms.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "reproduce", "recall", "--runs", "50", "--jobs", "1",
         "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    raw = tmp_path / "out" / "uniform" / "raw" / "graphs.jsonl"
    while process.poll() is None and not (raw.exists() and raw.stat().st_size > 2000):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert raw.read_bytes().endswith(b"\n")
