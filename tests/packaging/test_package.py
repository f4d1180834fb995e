"""What is uploaded: the sdist builds the wheel, the wheel runs in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from causalarms.version import __version__

ROOT = Path(__file__).parents[2]
SCRIPT = """
import numpy as np
import causalarms
from causalarms import make_policy, random_sem, simulate
sem = random_sem(3, seed=1)
policy = make_policy("ucb", n_nodes=3)
trace = simulate(policy, sem, horizon=20, seed=0)
assert trace.regret.shape == (20,)
assert np.isfinite(trace.observations).all()
print(causalarms.__version__, causalarms.__file__)
"""


def hatchling(*arguments: str, folder: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "hatchling", *arguments], cwd=folder, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("built")
    hatchling("build", "-t", "sdist", "-d", str(folder), folder=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    hatchling("build", "-t", "wheel", "-d", str(folder), folder=unpacked)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def test_they_hold_what_they_should(built: tuple[Path, Path]) -> None:
    sdist, wheel = built
    stem = f"causalarms-{__version__}"
    assert (sdist.name, wheel.name) == (f"{stem}.tar.gz", f"{stem}-py3-none-any.whl")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "docs/posterior.md"):
        assert f"{stem}/{name}" in names
    names = zipfile.ZipFile(wheel).namelist()
    assert f"{stem}.dist-info/licenses/LICENSE" in names
    assert "causalarms/py.typed" in names
    source = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert source == {name for name in names if ".dist-info/" not in name}
    assert not [name for name in names if name.startswith(("tests", "docs", "benchmarks"))]


def test_the_wheel_runs_in_an_environment_of_its_own(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    """Dependencies are those of the environment of the tests: nothing is downloaded."""
    home = tmp_path / "venv"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/python*/site-packages")
    target = ["--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", *target, str(built[1])]
    told = subprocess.run(pip, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["NUMBA_DISABLE_JIT"] = "1"  # compiling takes a minute

    def run(*command: object) -> str:
        done = subprocess.run(
            [str(part) for part in command], cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    version, place = run(python, "-W", "error", "-c", SCRIPT).split()
    assert version == __version__
    assert Path(place).is_relative_to(home)
    command = home / "bin" / "causalarms"
    assert "Compare policies" in run(command, "--help")
    assert __version__ in run(command, "--version")
    assert "problem" not in run(command, "doctor")
