"""Every example of the documents runs and prints what the document shows."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from examples import DOCUMENTS, ROOT, Block, blocks, commands, differences

from causalarms.cli.main import main

SCRIPT = Path(sys.executable).with_name("causalarms")
# Installed for tests only: a reader who did what a page says has none of them.
NOT_BROUGHT = {"pandas": None, "polars": None, "pyarrow": None}


@pytest.mark.parametrize(
    "document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS]
)
def test_examples_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module in NOT_BROUGHT:
        monkeypatch.setitem(sys.modules, module, None)
    namespace: dict[str, Any] = {"__name__": "example"}
    printed = ""  # by the block just before
    for block in blocks(document):
        where = f"{document.name}, line {block.line}"
        shown = block.text if block.language == "text" else ""
        assert not differences(shown, printed), where
        printed = ""
        if block.language == "python" and not block.not_run:
            printed = _run_python(block, where, namespace)
        if block.language == "sh" and not block.not_run:
            printed = _run_script(block, where)
        if block.language == "console" and not block.not_run:
            _run_console(block, where, as_program=document.name == "README.md")
    assert not printed, f"{document.name} does not show {printed}"


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


def _run_console(block: Block, where: str, as_program: bool) -> None:
    for command, shown in commands(block.text):
        program, *arguments = shlex.split(command, comments=True)
        if program != "causalarms":
            continue
        code, printed = (_program if as_program else _call)(arguments)
        assert code == 0, f"{where}: $ {command}\n{printed}"
        assert not differences(shown, printed), f"{where}: $ {command}\n{printed}"


def _run_script(block: Block, where: str) -> str:
    path = os.pathsep.join([str(SCRIPT.parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euc", block.text],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PATH": path},
    )
    assert done.returncode == 0, where
    return done.stdout


def _program(arguments: list[str]) -> tuple[int, str]:
    """Exit code and all that the installed command prints."""
    done = subprocess.run(
        [SCRIPT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return done.returncode, done.stdout


def _call(arguments: list[str]) -> tuple[int, str]:
    """The same in this process, where all is imported already."""
    printed, code = io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["causalarms", *arguments]),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")  # a program shows what is an error in tests
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    return code, printed.getvalue()
