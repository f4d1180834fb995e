"""Whole files or none: an interrupted or refused write leaves what was there before."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from causalarms.errors import CausalArmsError


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Write `content` beside `path`, then rename; folders are made as needed."""
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise CausalArmsError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
