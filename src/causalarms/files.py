"""Files: atomic writes, outputs that are never lost, bounded reads, and printable text and tables.

An interrupted or refused write leaves what was there before. Only what the same command made may be
written over, or anything else with force; a study and an input of the same command never are,
however their path is spelled. Every output carries a mark by which it is recognised the next time.
Text from anywhere (names, notes, paths) is shown on screens and pages, and never obeyed.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import tempfile
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from causalarms.errors import CausalArmsError, DataError, shown

DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SQLITE = b"SQLite format 3\0"
STUDY_ID, STUDY_ID_AT = b"caus", 68  # a study's application id in the header of its file
NEIGHBOURS = ("-wal", "-shm", "-journal")  # files in which SQLite keeps part of a study
SMALLEST_PLAIN, LARGEST_PLAIN = 1e-4, 1e7  # between which numbers have no exponent
MARK_WITHIN_BYTES = 2**16  # of the beginning or the end of a file
# C0, DEL and C1; marks and overrides of direction; separators of lines; what is not a character
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Write `content` next to `path`, then rename; folders are made as needed."""
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
            os.fsync(file.fileno())  # the rename must not reach the disk before the content
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):  # also of a folder that somebody else uses by now
            if temporary is not None:
                temporary.unlink(missing_ok=True)
            # Only folders that this call made.
            for folder in missing:
                folder.rmdir()
        if isinstance(error, UnicodeEncodeError):
            raise CausalArmsError(
                f"cannot write {path}: {error.object[error.start : error.end]!r} is not a character"
            ) from error
        if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
            raise CausalArmsError(
                f"cannot write {path}: the disk is full; nothing was written"
            ) from error
        if isinstance(error, OSError | ValueError):
            reason = error.strerror if isinstance(error, OSError) else None
            raise CausalArmsError(f"cannot write {path}: {reason or error}") from error
        raise
    return path


def read_at_most(path: str | Path, limit: int) -> bytes:
    """A whole file; DataError if it is larger than `limit` bytes, a folder or a device.

    A pipe may be read (`<(zcat rounds.csv.gz)`), but one that nobody writes to is not waited for.
    """
    path = Path(path)
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise DataError(f"cannot read {path}: it is a folder")
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
            raise DataError(f"cannot read {path}: it is not a file")
        if path.stat().st_size > limit:
            raise DataError(_too_large(path, limit))
        # Opening a pipe that nobody writes to would wait for ever; reading one has to wait.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            os.set_blocking(file.fileno(), True)
            # One byte more: pipes and files of /proc have no size to ask for.
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
        raise DataError(f"cannot read {path}: it is not text in UTF-8 ({error})") from error


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
    # The only way to read the mask is to set it; mkstemp makes files that only their owner reads.
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Mark(NamedTuple):
    """How a kind of output is recognised: what it starts with, and what else it holds."""

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
    assert mark.on(data[:MARK_WITHIN_BYTES], data[-MARK_WITHIN_BYTES:])
    refuse_output(path, mark, inputs=inputs, force=force)
    # The rename would put a file in the place of a symbolic link.
    write_atomically(os.path.realpath(path), content)
    return Path(path)


def refuse_output(
    path: str | Path, mark: Mark, *, inputs: Iterable[str | Path] = (), force: bool | None = False
) -> None:
    """CausalArmsError if `path` holds something that must not be lost.

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
        # Before `force` is looked at: nothing replaces a study.
        refuse_study(path)
        if not path.exists():
            above = next(folder for folder in path.parents if folder.exists())
            if not above.is_dir():
                raise CausalArmsError(f"cannot write {path}: {above} is not a folder")
            return
        if path.is_dir():
            raise CausalArmsError(f"cannot write {path}: it is a folder")
        if not path.is_file():
            raise CausalArmsError(f"cannot write {path}: it is not an ordinary file")
        if not force and path.stat().st_size and not _carries(path, mark):
            remedy = "move it away" if force is None else "choose another name or give --force"
            raise CausalArmsError(f"{path} exists and was not made by {mark.made_by}; {remedy}")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise CausalArmsError(f"cannot write {path}: {reason or error}") from error


def refuse_study(path: str | Path) -> None:
    """CausalArmsError if `path` is a study, or belongs to one."""
    for name in (Path(path), Path(os.path.realpath(path))):
        if _is_database(name):
            raise CausalArmsError(
                f"{path} is a study (or another SQLite file) and is never written over; "
                "choose another name"
            )
        refuse_neighbour(name)


def refuse_neighbour(path: Path) -> None:
    """CausalArmsError if SQLite would take `path` for a part of the study next to it."""
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
        return mark.on(file.read(MARK_WITHIN_BYTES), _end(file))


def _end(file: BinaryIO) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MARK_WITHIN_BYTES))
    return file.read()


def _same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        # Sees hard links, and names that differ only in case on some systems; both must exist.
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def control_character(text: str) -> str | None:
    """The first character that `printable` would escape."""
    found = _CONTROL.search(text)
    return found.group() if found else None


def printable(text: object) -> str:
    """The text with control characters as escapes, for people; not to be read back.

    >>> print(printable("red " + chr(27) + "[31m"))
    red \\x1b[31m
    """
    return _CONTROL.sub(lambda found: ascii(found.group())[1:-1], str(text))


def shown_number(value: float | None, span: float | None = None, *, sign: bool = False) -> str:
    """The digits that mean something: two of `span`, or four; nothing if it is not known.

    The `span` is what makes a difference: a standard error, or the width of an interval. With
    `sign` a number above zero has a plus.

    >>> shown_number(12.3456), shown_number(12.3456, 3.87), shown_number(-0.0004, 0.03)
    ('12.35', '12.3', '0')
    >>> shown_number(104053.9, 1200), shown_number(2e-5, sign=True), shown_number(float("nan"))
    ('104100', '+2e-05', '')
    """
    if value is None or not math.isfinite(value):
        return ""
    digits, size = 4, abs(value)
    if spanned := span is not None and math.isfinite(span) and span > 0:
        digits, size = 2, float(span or 0.0)
    # of the span as it is rounded: 0.0996 with two digits is 0.10
    place = digits - 1 - _power(float(f"{size:.{digits - 1}e}"))
    rounded = round(value, place if spanned else max(place, 0))
    if not rounded:
        return "0"
    if not SMALLEST_PLAIN <= max(abs(rounded), size) < LARGEST_PLAIN:
        text = f"{rounded:.{max(place + _power(rounded), 0) if spanned else 3}e}"
        text = text if spanned else re.sub(r"\.?0*e", "e", text)
    else:
        text = f"{rounded:.{max(place, 0)}f}"
        text = text if spanned or "." not in text else text.rstrip("0").rstrip(".")
    return f"+{text}" if sign and rounded > 0 else text


def _power(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def shown_probability(value: float | None) -> str:
    """Two digits, never rounded to certainty; nothing if it is not known.

    >>> [shown_probability(p) for p in (0.937, 0.9996, 0.003, 1.0)]
    ['0.94', '> 0.99', '< 0.01', '> 0.99']
    """
    if value is None or math.isnan(value):
        return ""
    return "> 0.99" if value > 0.99 else "< 0.01" if value < 0.01 else f"{value:.2f}"


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as printable lines, the header first; columns that hold only numbers to the right.

    >>> print("\\n".join(aligned(["node", "mean"], [["heat", "1.5"], ["yield", "-12"]])))
    node   mean
    heat    1.5
    yield   -12
    """
    lines = [[printable(cell) for cell in line] for line in (columns, *rows)]
    right = [all(_reads_as_number(row[i]) for row in rows) for i in range(len(columns))]
    widths = [max(_width(line[i]) for line in lines) for i in range(len(columns))]
    return [
        "  ".join(
            " " * (width - _width(cell)) + cell if to_right else cell + " " * (width - _width(cell))
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]


def _width(text: str) -> int:
    """Places that a terminal takes for it: Chinese, Japanese and Korean characters take two."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _reads_as_number(text: str) -> bool:
    try:
        float(text.strip(" <>%") or "0")  # an empty cell is a number that is missing
    except ValueError:
        return False
    return True
