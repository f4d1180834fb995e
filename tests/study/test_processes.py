"""Killed processes, and several at once: the short form of benchmarks/kills.py."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from study_rounds import SETTINGS, result

from causalarms import Study

ROOT = Path(__file__).parents[2]


def run(script: str, *arguments: str, folder: str = "benchmarks") -> list[dict[str, object]]:
    command = [sys.executable, str(ROOT / folder / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_killed_processes_lose_nothing() -> None:
    for record in run("kills.py", "study", "--kills", "16"):
        assert record["own_errors"] == 0
        assert record["lost"] == 0
        assert record["acknowledged_twice"] == 0
        assert record["wrong_values"] == 0
        assert record["verify_with_replay"]
        assert record["same_as_uninterrupted"]


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
def test_power_cuts_lose_nothing_that_was_acknowledged() -> None:
    (record,) = run("damage.py", "power-loss", "--rounds", "3", "--cuts", "150")
    assert record["acknowledged"] == 3
    assert record["outcomes"] == {"ok": record["cuts"]}
    assert isinstance(record["cuts"], int)
    assert record["cuts"] > 100


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
@pytest.mark.parametrize("link", [(), ("--link",)])
def test_a_kill_before_any_write_leaves_a_study_that_goes_on(link: tuple[str, ...]) -> None:
    records = run("crash_points.py", "--every", "3", "--json", *link, folder="tools")
    assert [(r["operation"], r["wrong"]) for r in records] == [
        (operation, {})
        for operation in ("create", "ask", "tell", "import", "correct", "backup", "recover")
    ]


def test_processes_at_once_lose_and_double_nothing() -> None:
    two, *_ = run("study_speed.py", "throughput", "--seconds", "2", "--workers", "2", "--no-optuna")
    assert two["errors"] == []
    assert two["acknowledged"] == two["told_in_file"]
    assert two["verify"]


def test_threads_share_a_study() -> None:
    study = Study.create(None, **SETTINGS)

    def loop(worker: str) -> None:
        for _ in range(20):
            trial = study.ask(worker=worker)
            study.tell(trial, result(trial))

    threads = [threading.Thread(target=loop, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    verdict = study.verify(replay=True)
    assert (verdict.ok, verdict.told) == (True, 60)


def test_two_studies_of_one_file_see_each_other(tmp_path: Path) -> None:
    one = Study.create(tmp_path / "s.db", **SETTINGS)
    two = Study.open(tmp_path / "s.db")
    for turn in range(60):
        study = one if turn % 2 else two
        trial = study.ask(worker=str(turn % 2))
        assert trial.number == turn
        (two if turn % 3 else one).tell(trial, result(trial))
    assert one.ask(worker="x") == two.ask(worker="x")
    assert one.verify(replay=True).ok
    one.close()
    two.close()
