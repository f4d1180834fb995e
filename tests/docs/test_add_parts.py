"""The packages of docs/add-a-*.md, installed as the documents say."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from examples import ROOT, blocks, commands

POLICY, DETECTOR, LEARNER = (
    ROOT / "docs" / f"add-a-{part}.md" for part in ("policy", "detector", "learner")
)


def install(document: Path, folder: Path) -> dict[str, str]:
    """Environment in which Python finds the document's package, as an installer would leave it."""
    found = list(blocks(document))
    module = next(block.text for block in found if block.language == "python")
    project = tomllib.loads(next(block.text for block in found if block.language == "toml"))
    package = project["project"]["name"]
    ((group, names),) = project["project"]["entry-points"].items()
    (target,) = names.values()
    (folder / f"{target.partition(':')[0]}.py").write_text(module, encoding="utf-8")
    info = folder / f"{package.replace('-', '_')}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1\n")
    lines = [f"[{group}]", *(f"{name} = {target}" for name, target in names.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    before = [path for path in [os.environ.get("PYTHONPATH")] if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *before])}


@pytest.mark.parametrize(("document", "shown"), [(POLICY, "epsilon-greedy"), (DETECTOR, "csl-ucb")])
def test_it_plays_on_the_command_line(document: Path, shown: str, tmp_path: Path) -> None:
    environment = install(document, tmp_path)
    console = next(block.text for block in blocks(document) if block.language == "console")
    (command, _), *_ = commands(console)
    done = run([str(Path(sys.executable).with_name("causalarms")), *command.split()[1:]],
               environment, tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert shown in done.stdout


def test_it_meets_the_contract(tmp_path: Path) -> None:
    """Contract tests find what is installed; the documents themselves run the checks."""
    environment = install(POLICY, tmp_path)
    tests = ["tests/contracts/test_policies.py", "-k", "epsilon-greedy"]
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
               environment, ROOT)  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_a_learner_is_made_by_name(tmp_path: Path) -> None:
    environment = install(LEARNER, tmp_path)
    python = [block.text for block in blocks(LEARNER) if block.language == "python"]
    done = run([sys.executable, "-c", python[-1]], environment, tmp_path)
    assert done.stdout.strip() == "known-order KnownOrder(threshold=0.5)"


def run(
    command: list[str], environment: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env=environment, cwd=folder,
    )  # fmt: skip
