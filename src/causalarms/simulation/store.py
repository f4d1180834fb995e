"""Results on disk as they finish: one JSON line per unit, in an append-only file.

The first line holds settings and version. A line cut off by a kill is dropped on reopening; its
unit is simply run again. A file of other settings is refused, never mixed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causalarms.errors import CausalArmsError, DataError
from causalarms.files import refuse_study
from causalarms.version import __version__

FORMAT = "causalarms.results/1"


class ResultStore:
    """Records by key, in memory and, where a path is given, on disk."""

    def __init__(self, path: str | Path | None, settings: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.settings = settings
        self.records: dict[tuple[str, int], dict[str, Any]] = {}
        if self.path is None:
            return
        try:
            refuse_study(self.path)
            if self.path.is_fifo():  # opening it would wait for a reader
                raise DataError(f"cannot use {self.path}: it is a pipe")
            if self.path.exists() and self.path.stat().st_size:
                self._load(self.path)
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._append(self.path, self._header(), mode="wb")
        except OSError as error:
            raise CausalArmsError(f"cannot use {self.path}: {error.strerror}") from error

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self.records

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record; on disk it is flushed before this returns."""
        if self.path is not None:
            try:
                self._append(self.path, record)
            except OSError as error:
                raise CausalArmsError(
                    f"cannot write to {self.path}: {error.strerror}; what is in it is whole, "
                    "the same command goes on from there"
                ) from error
        self.records[record["policy"], record["repetition"]] = record

    def in_order(self, policies: Iterable[str]) -> list[dict[str, Any]]:
        """Records by policy as listed, then by repetition, whatever order they finished in."""
        place = {name: number for number, name in enumerate(policies)}
        return sorted(
            (r for r in self.records.values() if r["policy"] in place),
            key=lambda r: (place[r["policy"]], r["repetition"]),
        )

    def _header(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": __version__, "settings": self.settings}

    def _load(self, path: Path) -> None:
        content = path.read_bytes()
        if b"\n" not in content and _line(self._header()).startswith(content):
            self._append(path, self._header(), mode="wb")  # killed in the first line
            return
        settings, records, whole = _parsed(path, content)
        if settings != self.settings:
            names = _differences(settings, self.settings)
            raise DataError(
                f"{path} holds results of other settings (they differ in {names}); "
                "choose another file or remove it"
            )
        self.records = records
        if whole < len(content):
            with path.open("r+b") as file:
                file.truncate(whole)

    @staticmethod
    def _append(path: Path, record: dict[str, Any], mode: str = "ab") -> None:
        rest = _line(record)
        # unbuffered: on closing, a buffer would write its rest behind the truncation
        with path.open(mode, buffering=0) as file:
            before = file.tell()
            try:
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):  # a line cut off is dropped on reopening
                    os.ftruncate(file.fileno(), before)
                raise


@dataclass(frozen=True)
class Results:
    """What a results file holds: the settings that all share, and the records."""

    settings: dict[str, Any]
    records: list[dict[str, Any]]

    @property
    def names(self) -> list[str]:
        """Labels, in the order in which they first finished."""
        return list(dict.fromkeys(record["policy"] for record in self.records))

    @property
    def horizon(self) -> int:
        return int(self.settings["horizon"])

    @property
    def step(self) -> int:
        """Rounds per point of the regret curve."""
        return int(self.settings["step"])

    @property
    def block(self) -> int:
        """Rounds per point of the optimal share."""
        return int(self.settings["block"])


def read_results(path: str | Path) -> Results:
    """The results in a file; it is not changed. A last line that is cut off is left out."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    settings, records, _ = _parsed(path, content)
    if not records:
        raise DataError(f"{path} holds no finished run yet")
    return Results(settings, list(records.values()))


Records = dict[tuple[str, int], dict[str, Any]]


def _parsed(path: Path, content: bytes) -> tuple[dict[str, Any], Records, int]:
    """Settings, records by key, and how many bytes are whole lines."""
    lines = content.split(b"\n")
    whole = len(content) - len(lines[-1])  # up to and with the last newline
    try:
        header = json.loads(lines[0]) if whole else None
    except (ValueError, RecursionError):
        header = None
    if (
        not isinstance(header, dict)
        or header.get("format") != FORMAT
        or not isinstance(header.get("settings"), dict)
    ):
        raise DataError(f"{path} holds no results of this package; choose another file")
    records: Records = {}
    for number, line in enumerate(lines[1:-1], start=2):
        try:
            record = json.loads(line)
            records[record["policy"], record["repetition"]] = record
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: not a result ({error})") from error
    return header["settings"], records, whole


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    keys = {key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key)}
    return ", ".join(sorted(keys))
