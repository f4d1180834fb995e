"""`causalarms doctor`: what a bug report needs to say about the machine."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from causalarms.cli.options import JSON
from causalarms.cli.terminal import print_json, print_table, say
from causalarms.extras import EXTRAS
from causalarms.version import __version__

NEEDED = (
    "numpy", "scipy", "numba", "networkx", "narwhals", "scikit-learn", "joblib",
    "msgspec", "click", "rich",
)  # fmt: skip
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "msedge")


@click.command()
@JSON
def doctor(as_json: bool) -> None:
    """Versions, threads, the cache of compiled code, extras and browser, for bug reports."""
    found = examined()
    if as_json:
        print_json(found)
        return
    rows = [[f"{part} {name}".strip(), _words(value)] for part, name, value in _flat(found)]
    print_table(["", "found"], rows)
    for problem in found["problems"]:
        say(f"problem: {problem}")


def examined() -> dict[str, Any]:
    """Everything that is looked at, and what is wrong with it in words."""
    packages = {name: _version(name) for name in NEEDED}
    extras = {extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()}
    cache = _cache()
    problems = [f"{name} is not installed" for name, found in packages.items() if found is None]
    if not cache["writable"]:
        problems.append(
            f"compiled code cannot be kept in {cache['folder']}: every process compiles again, for "
            "a minute or two; set NUMBA_CACHE_DIR to a folder you may write to"
        )
    # None: the code runs from a source tree and was never installed.
    if _version("causalarms") not in (None, __version__):
        problems.append(
            f"the installed package says {_version('causalarms')}, the code {__version__}: "
            "install it again"
        )
    return {
        "causalarms": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": sys.executable,
        "packages": packages,
        "extras": extras,
        "threads": {"cores": os.cpu_count()} | {name: os.environ.get(name) for name in THREADS},
        "cache": cache,
        "browser": next((path for name in BROWSERS if (path := shutil.which(name))), None),
        "problems": problems,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cache() -> dict[str, Any]:
    """Where numba keeps compiled code of this package: the first place it may write to."""
    import causalarms

    told = os.environ.get("NUMBA_CACHE_DIR")
    own = Path(causalarms.__file__).parent / "__pycache__"
    if told:
        return {"folder": told, "writable": _writable(Path(told))}
    if _writable(own):
        return {"folder": str(own), "writable": True}
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "numba"
    return {"folder": str(home), "writable": _writable(home)}


def _writable(folder: Path) -> bool:
    """Whether a file can be made there; folders that are missing are not made."""
    try:
        above = next(place for place in (folder, *folder.parents) if place.exists())
        # os.access does not see quotas and rights of network drives: only making a file tells.
        with tempfile.TemporaryFile(dir=above):
            return True
    except OSError:
        return False


def _flat(found: dict[str, Any]) -> list[tuple[str, str, Any]]:
    rows: list[tuple[str, str, Any]] = []
    for part, value in found.items():
        if part == "problems":
            continue
        if isinstance(value, dict):
            rows += [(part, name, entry) for name, entry in value.items()]
        else:
            rows.append(("", part, value))
    return rows


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(entry)}" for name, entry in value.items())
    return {None: "-", True: "yes", False: "no"}.get(value, str(value))
