"""The shell script of the documentation of studies runs; tests/docs runs its other blocks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_shell(tmp_path: Path) -> None:
    text = (DOCS / "study-from-a-shell.md").read_text()
    (block,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    program = tmp_path / "causalarms"
    main = "from causalarms.cli.main import main; main()"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{main}" "$@"\n')
    program.chmod(0o755)
    script = f'set -e\ncd "{tmp_path}"\nPATH="{tmp_path}:$PATH"\n{block}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 told" in done.stdout
    assert "ok: intact" in done.stdout
