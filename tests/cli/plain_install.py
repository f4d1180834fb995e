"""`causalarms` as a plain install runs it: in a process that finds no optional package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from causalarms.extras import EXTRAS

NOT_THERE = {
    *(name for names in EXTRAS.values() for name in names),
    "dask", "h11", "mpl_toolkits", "pandas", "polars",
}  # fmt: skip
SITE = f"""
import sys
from importlib.machinery import PathFinder

class PlainFinder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in {NOT_THERE!r}:
            return None
        return super().find_spec(name, path, target)

sys.meta_path[:] = [PlainFinder if each is PathFinder else each for each in sys.meta_path]
"""


def run_plain(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Python in `folder`, as `python COMMAND`."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(SITE)
    paths = os.pathsep.join([str(site), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-W", "error", *map(str, command)],
        cwd=folder, env={**os.environ, "PYTHONPATH": paths},
        capture_output=True, text=True,
    )  # fmt: skip
