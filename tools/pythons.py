"""The package under every supported Python that is found here: installed again, and tested.

`python tools/pythons.py [--whole] [--keep FOLDER]`. Without --whole a quick part of the tests runs:
studies in files, forks and processes, the service, and policies. A Python is looked for as
`python3.12`, and among those of pyenv.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUICK = (
    "tests/sem",
    "tests/policies/test_decide_by_knowledge_gradient.py",
    "tests/service/test_api.py",
    "tests/service/test_remote.py",
    "tests/study/test_ask_and_tell.py",
    "tests/study/test_forks_and_handles.py",
    "tests/study/test_together.py",
    "tests/tables",
)


def supported() -> list[str]:
    """The versions that the classifiers of the package name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [name.rpartition(" :: ")[2] for name in project["classifiers"]]
    return [name for name in names if name.startswith("3.")]


def find(version: str) -> str | None:
    """The newest of pyenv's, or the one on the path."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(home.glob(f"{version}.*/bin/python"))
    return str(found[-1]) if found else shutil.which(f"python{version}")


def tested(python: str, folder: Path, *, whole: bool) -> tuple[bool, str]:
    """Whether all went well, and the last line that was said."""
    own = folder / "bin" / "python"
    pip = [str(own), "-m", "pip", "--disable-pip-version-check"]
    steps = [
        [python, "-m", "venv", str(folder)],
        [*pip, "install", "--quiet", f"{ROOT}[test]"],
        [str(own), "-m", "pytest", "-q", "-p", "no:cacheprovider", *(() if whole else QUICK)],
    ]
    said = ""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, env=environment, capture_output=True, text=True)
        lines = (done.stdout + done.stderr).strip().splitlines()
        said = lines[-1] if lines else said
        if done.returncode:
            print("\n".join(lines[-40:]), file=sys.stderr)
            return False, said
    return True, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=supported())
    parser.add_argument("--whole", action="store_true", help="all tests")
    parser.add_argument("--keep", type=Path, help="the environments stay here")
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as made:
        for version in given.versions:
            python = find(version)
            if python is None:
                print(f"Python {version}: not found here")
                continue
            folder = (given.keep or Path(made)) / version
            well, said = tested(python, folder, whole=given.whole)
            print(f"Python {version}: {'passed' if well else 'FAILED'}: {said}", flush=True)
            failed |= not well
    sys.exit(failed)


if __name__ == "__main__":
    main()
