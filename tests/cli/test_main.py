"""Help, version, wrong usage."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command import run

import causalarms
from causalarms.cli.main import COMMANDS


def test_help_names_every_command() -> None:
    outcome = run("--help")
    assert outcome.code == 0
    assert all(name in outcome.out for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str) -> None:
    outcome = run(command, "--help")
    assert outcome.code == 0
    assert "--json" in outcome.out


def test_version() -> None:
    assert causalarms.__version__ in run("--version").out


def test_wrong_usage_exits_with_2() -> None:
    assert run("unheard-of").code == 2
    assert run("learn").code == 2
    assert run("simulate", "--runs", "0").code == 2


def test_help_needs_no_compiler_and_no_array_library() -> None:
    code = (
        "import sys; sys.argv = ['causalarms', '--help']\n"
        "from causalarms.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert not {'numpy', 'numba', 'sklearn', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
