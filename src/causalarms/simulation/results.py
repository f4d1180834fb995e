"""Results on disk as they finish: one JSON line per unit, in an append-only file.

The first line holds settings and version. A line cut off by a kill is dropped on reopening; its
unit is simply run again. A file of other settings is refused, never mixed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from causalarms.errors import CausalArmsError, DataError, ModelError
from causalarms.files import refuse_study
from causalarms.version import __version__

Record = dict[str, Any]
Records = dict[tuple[str, int], Record]  # by label and repetition

FORMAT = "causalarms.results/1"


class ResultStore:
    """Records by key, in memory and, if a path is given, on disk.

    path       of the results file, which is continued if it exists; None: in memory only
    settings   that all records share; a file of others is refused
    """

    def __init__(self, path: str | Path | None, settings: Record) -> None:
        self.path = None if path is None else Path(path)
        self.settings = settings
        self.records: Records = {}
        if self.path is None:
            return
        try:
            # a study is a file, too, and appending to it would damage it
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

    def add(self, record: Record) -> None:
        """Keep a record; on disk it is flushed before this returns.

        record   plain JSON values, with `policy` and `repetition`
        """
        if self.path is not None:
            try:
                self._append(self.path, record)
            except OSError as error:
                raise CausalArmsError(
                    f"cannot write to {self.path}: {error.strerror}; what is in it is whole, "
                    "the same command goes on from there"
                ) from error
        self.records[record["policy"], record["repetition"]] = record

    def in_order(self, policies: Iterable[str], runs: int) -> list[Record]:
        """Records by policy as listed, then by repetition, whatever order they finished in.

        policies   labels of those that are wanted
        runs       how many repetitions are; the file may hold more
        """
        place = {name: number for number, name in enumerate(policies)}
        return sorted(
            (r for r in self.records.values() if r["policy"] in place and r["repetition"] < runs),
            key=lambda r: (place[r["policy"]], r["repetition"]),
        )

    def _header(self) -> Record:
        return {"format": FORMAT, "version": __version__, "settings": self.settings}

    def _load(self, path: Path) -> None:
        content = path.read_bytes()
        if b"\n" not in content and _line(self._header()).startswith(content):
            self._append(path, self._header(), mode="wb")  # killed in the first line
            return
        settings, records, n_complete = _parsed(path, content)
        if settings != self.settings:
            names = _differences(settings, self.settings)
            raise DataError(
                f"{path} holds results of other settings (they differ in {names}); "
                "choose another file or remove it"
            )
        self.records = records
        # a line without its end was cut off by a kill: its unit is run again
        if n_complete < len(content):
            with path.open("r+b") as file:
                file.truncate(n_complete)

    @staticmethod
    def _append(path: Path, record: Record, mode: str = "ab") -> None:
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
    """What a results file holds.

    settings   that all records share
    records    one per unit
    """

    settings: Record
    records: list[Record]

    @property
    def names(self) -> list[str]:
        """Labels, in the order in which they first finished."""
        return list(dict.fromkeys(record["policy"] for record in self.records))

    @property
    def horizon(self) -> int:
        """Rounds of a run."""
        return int(self.settings["horizon"])

    @property
    def step(self) -> int:
        """Rounds per point of the regret curve."""
        return int(self.settings["step"])

    @property
    def block(self) -> int:
        """Rounds per point of the optimal fraction."""
        return int(self.settings["block"])


def read_results(path: str | Path) -> Results:
    """The results in a file, which is not changed.

    path   of the file; a last line that is cut off is left out
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    settings, records, _ = _parsed(path, content)
    if not records:
        raise DataError(f"{path} holds no finished run yet")
    return Results(settings, list(records.values()))


def _parsed(path: Path, content: bytes) -> tuple[Record, Records, int]:
    """Settings, records by key, and how many bytes are complete lines."""
    lines = content.split(b"\n")
    n_complete = len(content) - len(lines[-1])  # up to and with the last newline
    try:
        header = json.loads(lines[0]) if n_complete else None
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
    return header["settings"], records, n_complete


def _line(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _differences(theirs: Record, ours: Record) -> str:
    keys = {key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key)}
    return ", ".join(sorted(keys))


# -- functions, classes and settings as plain JSON values ------------------------------------------


def plain(name: str, value: Any) -> Any:
    """What a results file says of a setting.

    >>> plain("noise", ("laplace", np.cumsum))
    ['laplace', 'numpy:cumsum']
    """
    try:
        return json.loads(json.dumps(value, default=_described))
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{name}: {value!r:.60} cannot be written to a results file ({error}); give plain "
            "values, functions, classes or learners"
        ) from error


def address(made_by: Any) -> str:
    """Where a function or class is from, as `module:name`."""
    if isinstance(made_by, partial):
        return address(made_by.func)
    known = made_by if hasattr(made_by, "__qualname__") else type(made_by)
    return f"{known.__module__}:{known.__qualname__}"


def short_name(made_by: Any) -> str:
    """What a function or class is called in tables."""
    if isinstance(made_by, partial):
        return short_name(made_by.func)
    return str(getattr(made_by, "__name__", type(made_by).__name__))


def _described(value: Any) -> Any:
    if isinstance(value, partial):
        return {"made by": address(value), "with": [list(value.args), value.keywords]}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if hasattr(value, "get_params"):
        return address(value) if isinstance(value, type) else f"{address(type(value))}: {value!r}"
    if callable(value):
        return address(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is not a plain value")
