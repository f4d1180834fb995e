"""Every example of the documents runs and prints what the document shows."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples import DOCUMENTS, ROOT, Block, blocks, commands, differences

SCRIPT = Path(sys.executable).with_name("causalarms")


@pytest.mark.parametrize(
    "document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS]
)
def test_examples_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "example"}
    printed: str | None = None  # by the Python block just before
    for block in blocks(document):
        where = f"{document.name}, line {block.line}"
        if block.language == "python" and not block.not_run:
            printed = _run_python(block, where, namespace)
            continue
        if block.language == "text" and printed is not None:
            assert not differences(block.text, printed), where
        if block.language == "console" and not block.not_run:
            _run_console(block, where)
        printed = None


def test_local_links_and_pictures_exist() -> None:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def _run_python(block: Block, where: str, namespace: dict[str, Any]) -> str:
    # line numbers of a traceback are those of the document
    code = compile("\n" * (block.line - 1) + block.text, where, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(code, namespace)
    return output.getvalue()


def _run_console(block: Block, where: str) -> None:
    for command, shown in commands(block.text):
        program, *arguments = shlex.split(command, comments=True)
        if program != "causalarms":
            continue
        done = subprocess.run(
            [SCRIPT, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, f"{where}: $ {command}\n{done.stdout}"
        if shown.strip():
            assert not differences(shown, done.stdout), f"{where}: $ {command}\n{done.stdout}"
