"""The policy of docs/add-a-policy.md, installed as the document says."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from examples import ROOT, blocks, commands

DOCUMENT = ROOT / "docs" / "add-a-policy.md"
GROUP = "causalarms.policies"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The document's package where Python finds it, as an installer would leave it."""
    found = list(blocks(DOCUMENT))
    module = next(block.text for block in found if block.language == "python")
    project = tomllib.loads(next(block.text for block in found if block.language == "toml"))
    names = project["project"]["entry-points"][GROUP]
    (tmp_path / "epsilon_greedy.py").write_text(module, encoding="utf-8")
    folder = tmp_path / "epsilon_greedy-0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: epsilon-greedy\nVersion: 0.1\n")
    lines = [f"[{GROUP}]", *(f"{name} = {target}" for name, target in names.items())]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_it_plays_on_the_command_line(environment: dict[str, str], tmp_path: Path) -> None:
    console = next(block.text for block in blocks(DOCUMENT) if block.language == "console")
    (command, _), *_ = commands(console)
    done = run([str(Path(sys.executable).with_name("causalarms")), *command.split()[1:]],
               environment, tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "epsilon-greedy" in done.stdout


def test_it_meets_the_contract(environment: dict[str, str]) -> None:
    tests = ["tests/contracts/test_policies.py", "-k", "epsilon-greedy"]
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
               environment, ROOT)  # fmt: skip
    assert done.returncode == 0, done.stdout


def run(
    command: list[str], environment: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env=environment, cwd=folder,
    )  # fmt: skip
