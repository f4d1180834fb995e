"""Whole files or none: an interrupted or refused write leaves what was there before."""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from causalarms.errors import CausalArmsError, DataError, shown

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Write `content` beside `path`, then rename; folders are made as needed."""
    path = Path(path)
    missing = [folder for folder in path.parents if not folder.exists()]  # deepest first
    temporary: Path | None = None
    try:
        data = content.encode() if isinstance(content, str) else content
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):  # also of a folder that somebody else uses by now
            if temporary is not None:
                temporary.unlink(missing_ok=True)
            for folder in missing:
                folder.rmdir()
        if isinstance(error, UnicodeEncodeError):
            raise CausalArmsError(
                f"cannot write {path}: {error.object[error.start : error.end]!r} is no character"
            ) from error
        if isinstance(error, OSError) and error.errno in FULL:
            raise CausalArmsError(
                f"cannot write {path}: the disk is full; nothing was written"
            ) from error
        if isinstance(error, OSError | ValueError):
            reason = error.strerror if isinstance(error, OSError) else None
            raise CausalArmsError(f"cannot write {path}: {reason or error}") from error
        raise
    return path


def read_at_most(path: str | Path, limit: int) -> bytes:
    """A whole file; DataError where it is larger than `limit` bytes, a folder or a device.

    A pipe may be read (`<(zcat rounds.csv.gz)`), but one that nobody writes to is not waited for.
    """
    path = Path(path)
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise DataError(f"cannot read {path}: it is a folder")
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
            raise DataError(f"cannot read {path}: it is no file")
        if path.stat().st_size > limit:
            raise DataError(_too_large(path, limit))
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            os.set_blocking(file.fileno(), True)
            content = file.read(limit + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = error.strerror if isinstance(error, OSError) else None
        raise DataError(f"cannot read {path!s:.1000}: {reason or error}") from error
    if len(content) > limit:
        raise DataError(_too_large(path, limit))
    return content


def read_text(path: str | Path, limit: int) -> str:
    """As `read_at_most`, as text in UTF-8 with or without a byte order mark."""
    try:
        return read_at_most(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"cannot read {path}: it is no text in UTF-8 ({error})") from error


def parse_json(text: str) -> Any:
    """As `json.loads`; ValueError names a key that is given twice, of which one would be lost.

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: the key 'a' is given twice
    """
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise ValueError(f"the key {shown(key)} is given twice")
        record[key] = value
    return record


def _too_large(path: Path, limit: int) -> str:
    return f"{path} is too large: at most {limit / 2**20:.0f} MiB are read"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
