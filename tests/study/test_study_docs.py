"""The code blocks of the documentation of studies run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["first-study", "several-workers", "import-past-data", "constraints"]


@pytest.mark.parametrize("page", PAGES)
def test_python(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), f"{page}.md", "exec"), {"__name__": page})


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
