"""States of policies in the user's cache folder: reopening a study need not learn its log again.

A study file holds events only. What a policy has learned from them is kept apart, because it is fed
to compiled code: nobody can send it along with a file. The cache is never needed. A state that is
missing, damaged or of another version means that the log is learned again.

Each study has one file, named by the hash of its first event: the SHA-256 digest of the rest, then
a JSON header and the raw arrays. Nothing in it can be executed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from causalarms.errors import DataError

FOLDER_VARIABLE = "CAUSALARMS_CACHE"  # a folder; empty: no cache
MAX_CACHE_BYTES = 200_000_000  # of all studies; the oldest states go first
DIGEST_BYTES = 32
OWN = "study."  # prefix of what is kept next to the policy's state


class CachedState(NamedTuple):
    """The state of a policy after an event of a study's log."""

    made_for: str  # the policy, its settings, and whose numbers these are
    event: int
    hash: str  # of that event: another log with the same first event has another
    followed: int  # results of the log that are dealt with
    problem: list[Any] | None  # trial and message, as `learner.Problem`
    state: dict[str, Any]


def load(first_hash: bytes) -> CachedState | None:
    """The state of the study with this first event, if there is one."""
    try:
        content = _path(first_hash).read_bytes()
        if hashlib.sha256(content[DIGEST_BYTES:]).digest() != content[:DIGEST_BYTES]:
            return None
        state = unpack(content[DIGEST_BYTES:])
        own = {name: state.pop(OWN + name) for name in CachedState._fields[:-1]}
    except (OSError, RuntimeError, KeyError, ValueError):  # absent, no cache, another version
        return None
    return CachedState(**own, state=state)


def keep(first_hash: bytes, cached: CachedState) -> None:
    """Replace the state of this study; what cannot be kept or written is not kept."""
    with suppress(OSError, RuntimeError, DataError, TypeError, ValueError):
        path = _path(first_hash)
        own = {OWN + name: value for name, value in cached._asdict().items() if name != "state"}
        content = pack(cached.state | own)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # No sync: after a power cut the digest does not fit, and the log is learned again.
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(hashlib.sha256(content).digest() + content)
                file.close()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
        _remove_oldest(path.parent)


@cache
def made_by() -> str:
    """Whose numbers a state holds: other versions and processors may round the last digit."""
    from importlib.metadata import version  # takes longer than a small log to read

    packages = " ".join(f"{name} {version(name)}" for name in ("causalarms", "numpy", "numba"))
    return f"{packages} {import_module('llvmlite.binding').get_host_cpu_name()}"


def cache_folder() -> Path:
    """Where states are kept; RuntimeError if there is no cache."""
    # Empty is not missing: it is how a user says that nothing is to be kept.
    given = os.environ.get(FOLDER_VARIABLE)
    if given == "":
        raise RuntimeError(f"{FOLDER_VARIABLE} is empty")
    if given is not None:
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "causalarms")


def _path(first_hash: bytes) -> Path:
    return cache_folder() / f"{first_hash.hex()}.state"


def _remove_oldest(folder: Path) -> None:
    # Another process may remove one meanwhile: the OSError ends this, and the next write goes on.
    found = [(path.stat(), path) for path in folder.glob("*.state")]
    total = sum(status.st_size for status, _ in found)
    for status, path in sorted(found, key=lambda pair: pair[0].st_mtime_ns):
        if total <= MAX_CACHE_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= status.st_size


def pack(state: dict[str, Any]) -> bytes:
    """
    >>> unpack(pack({"n": 3, "x": np.eye(2)}))["x"].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    scalars: dict[str, Any] = {}
    arrays: list[dict[str, Any]] = []
    chunks: list[bytes] = []
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:  # the bytes would be addresses in memory
                raise DataError(f"{name} holds {value.dtype}, which a cached state cannot keep")
            arrays.append({"name": name, "dtype": value.dtype.str, "shape": value.shape})
            chunks.append(value.tobytes())
        else:
            scalars[name] = value.item() if isinstance(value, np.generic) else value
    header = json.dumps({"scalars": scalars, "arrays": arrays}).encode()
    return b"".join([len(header).to_bytes(8, "little"), header, *chunks])


def unpack(content: bytes) -> dict[str, Any]:
    """The state that `pack` wrote; the digest has shown that it did."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    state: dict[str, Any] = header["scalars"]
    for array in header["arrays"]:
        flat = np.frombuffer(content, array["dtype"], math.prod(array["shape"]), end)
        state[array["name"]] = flat.reshape(array["shape"]).copy()
        end += flat.nbytes
    return state
