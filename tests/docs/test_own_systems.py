"""The script of docs/own-systems.md, as a script, at a small size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from examples import ROOT, blocks

from causalarms.simulation import read_results

DOCUMENT = ROOT / "docs" / "own-systems.md"


def test_the_script_runs_on_two_dask_workers(tmp_path: Path) -> None:
    (script,) = [b.text for b in blocks(DOCUMENT) if b.language == "python" and b.not_run]
    (tmp_path / "own.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "own.py", "2", "150", "40"],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    for name in ("SortAndRegress  precision", "AdditiveGreedy", "sort, regress, commit", "own.pdf"):
        assert name in done.stdout
    results = read_results(tmp_path / "policies.jsonl")
    assert len(results.records) == 6
    assert results.settings["world"]["made by"] == "__main__:sparse"
    assert (tmp_path / "own.pdf").read_bytes().startswith(b"%PDF")
