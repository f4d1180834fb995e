"""Commands that learn nothing import no compiler, and the first, random round compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import run

# For learners, frames, pictures and progress; and what is installed, for policies of other packages
# and for states in the cache.
NOT_NEEDED = (
    "numba", "llvmlite", "scipy", "sklearn", "networkx", "narwhals", "matplotlib", "rich",
    "importlib.metadata",
)  # fmt: skip
VALUES = ("a=1", "b=2", "y=3")
COMMANDS = (
    ("create", "NEW", "--nodes", "a,b,y", "--reward", "y"),
    ("ask", "STUDY"),
    ("show", "STUDY"),
    ("history", "STUDY"),
    ("history", "STUDY", "--json"),
    ("tell", "PENDING", "1", *VALUES),
    ("export", "STUDY"),
    ("export", "STUDY", "--csv"),
    ("note", "STUDY", "a remark"),
    ("verify", "STUDY"),
    ("alarms", "STUDY"),
    ("fail", "PENDING", "1"),
    ("backup", "STUDY", "NEW"),
)


@pytest.fixture
def studies(tmp_path: Path) -> dict[str, str]:
    """A study with a told trial, one with another that is pending, and a free name."""
    names = {name: str(tmp_path / f"{name}.db") for name in ("STUDY", "PENDING", "NEW")}
    for name in ("STUDY", "PENDING"):
        assert run("study", "create", names[name], "--nodes", "a,b,y", "--reward", "y").code == 0
        assert run("study", "ask", names[name]).code == 0
        assert run("study", "tell", names[name], "0", *VALUES).code == 0
    assert run("study", "ask", names["PENDING"]).code == 0
    return names


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_that_learn_nothing_import_no_compiler(
    command: tuple[str, ...], studies: dict[str, str], tmp_path: Path
) -> None:
    arguments = ["causalarms", "study", *(studies.get(word, word) for word in command)]
    code = (
        f"import sys; sys.argv = {arguments!r}\n"
        "from causalarms.cli.main import main\n"
        "main()\n"
        f"loaded = set({NOT_NEEDED!r}) & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    compiled = tmp_path / "compiled"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(compiled)},
    )
    assert done.returncode == 0, done.stderr
    assert not compiled.exists()


def test_compiling_is_announced_on_standard_error_once(tmp_path: Path) -> None:
    (tmp_path / "two_kernels.py").write_text(
        "from causalarms.cli import terminal\n"
        "from causalarms.kernels import inner, kernel\n"
        "@inner\n"
        "def half(x):\n    return x / 2\n"
        "@kernel\n"
        "def quarter(x):\n    return half(half(x))\n"
        "if __name__ == '__main__':\n"
        "    terminal.QUIET_SECONDS = -1.0\n"
        "    with terminal.compiling_shown():\n"
        "        print(quarter(8.0))\n"
    )
    for expected in ("compiling the model: up to a minute, only this once\n", ""):
        done = subprocess.run(
            [sys.executable, tmp_path / "two_kernels.py"],
            capture_output=True,
            text=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")},
        )
        assert (done.stdout, done.stderr) == ("2.0\n", expected)


def test_compiled_code_of_a_module_that_was_moved_is_compiled_again(tmp_path: Path) -> None:
    point = "from typing import NamedTuple\nclass Point(NamedTuple):\n    x: float\n"
    kernel = (
        "from causalarms.kernels import kernel\n"
        "from {module} import Point\n"
        "@kernel\n"
        "def double(point):\n    return 2 * point.x\n"
        "print(double(Point(4.0)))\n"
    )
    for module in ("old_home", "new_home"):
        (tmp_path / "old_home.py").unlink(missing_ok=True)
        (tmp_path / f"{module}.py").write_text(point)
        (tmp_path / "kernels_of_points.py").write_text(kernel.format(module=module))
        done = subprocess.run(
            [sys.executable, tmp_path / "kernels_of_points.py"],
            capture_output=True,
            text=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")},
        )
        assert (done.returncode, done.stdout) == (0, "8.0\n"), done.stderr
