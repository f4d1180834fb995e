"""What may be written over: only what the same command made, or whatever else with force.

A study and an input of the same command are never written over, whatever the spelling of the path.
Every output carries a mark by which it is recognised the next time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from causalarms.errors import CausalArmsError
from causalarms.files import write_atomically

SQLITE = b"SQLite format 3\0"
STUDY_ID, STUDY_ID_AT = b"caus", 68  # a study's application id in the header of its file
NEIGHBOURS = ("-wal", "-shm", "-journal")  # files in which SQLite keeps part of a study
LOOKED_AT = 2**16  # bytes at the beginning and at the end of a file in which its mark is looked for


class Mark(NamedTuple):
    """How a kind of output is recognised: what it starts with, and what it holds beside that."""

    made_by: str  # the commands that make it, as a message names them
    start: bytes
    within: bytes = b""

    def on(self, beginning: bytes, end: bytes = b"") -> bool:
        return beginning.startswith(self.start) and (self.within in beginning or self.within in end)


def write_output(
    path: str | Path,
    content: str | bytes,
    mark: Mark,
    *,
    inputs: Iterable[str | Path] = (),
    force: bool | None = False,
) -> Path:
    """Write a whole file, or refuse by `refuse_output`. A symbolic link stays one."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    assert mark.on(data[:LOOKED_AT], data[-LOOKED_AT:])
    refuse_output(path, mark, inputs=inputs, force=force)
    write_atomically(os.path.realpath(path), content)
    return Path(path)


def refuse_output(
    path: str | Path, mark: Mark, *, inputs: Iterable[str | Path] = (), force: bool | None = False
) -> None:
    """CausalArmsError where `path` holds something that must not be lost.

    `force` None: the command has no such option.
    """
    path = Path(path)
    try:
        for given in inputs:
            if _same(path, Path(given)):
                raise CausalArmsError(
                    f"{path} is an input of this command and is not written over; "
                    "choose another name"
                )
        refuse_study(path)
        if not path.exists():
            above = next(folder for folder in path.parents if folder.exists())
            if not above.is_dir():
                raise CausalArmsError(f"cannot write {path}: {above} is no folder")
            return
        if path.is_dir():
            raise CausalArmsError(f"cannot write {path}: it is a folder")
        if not path.is_file():
            raise CausalArmsError(f"cannot write {path}: it is no ordinary file")
        if not force and path.stat().st_size and not _carries(path, mark):
            remedy = "move it away" if force is None else "choose another name or give --force"
            raise CausalArmsError(f"{path} exists and was not made by {mark.made_by}; {remedy}")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise CausalArmsError(f"cannot write {path}: {reason or error}") from error


def refuse_study(path: str | Path) -> None:
    """CausalArmsError where `path` is a study, or belongs to one."""
    for name in (Path(path), Path(os.path.realpath(path))):
        if _is_database(name):
            raise CausalArmsError(
                f"{path} is a study (or another SQLite file) and is never written over; "
                "choose another name"
            )
        refuse_neighbour(name)


def refuse_neighbour(path: Path) -> None:
    """CausalArmsError where SQLite would take `path` for a part of the study beside it."""
    for ending in NEIGHBOURS:
        owner = path.with_name(path.name.removesuffix(ending)) if path.name != ending else path
        if path.name.endswith(ending) and _is_database(owner):
            raise CausalArmsError(f"{path} belongs to the study {owner}; choose another name")


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        header = file.read(STUDY_ID_AT + len(STUDY_ID))
    return header.startswith(SQLITE) or header[STUDY_ID_AT:] == STUDY_ID


def _carries(path: Path, mark: Mark) -> bool:
    with path.open("rb") as file:
        return mark.on(file.read(LOOKED_AT), _end(file))


def _end(file: BinaryIO) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LOOKED_AT))
    return file.read()


def _same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)
