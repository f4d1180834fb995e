"""Whole studies as JSON lines, trials as tables.

The JSON file is the log itself, hashes and all: importing it gives the same study.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from causalarms.errors import DataError, StudyError
from causalarms.files import Mark, read_text, write_output
from causalarms.limits import LOG_BYTES
from causalarms.study.ledger import Ledger
from causalarms.study.log import Log
from causalarms.study.sqlite import SqliteStore
from causalarms.study.store import Entry, MemoryStore, Store
from causalarms.tables.write import FIRST, columns_text, parquet_bytes

FORMAT = "causalarms.study/1"
MADE_BY = "causalarms study export"
FIRST_LINE = json.dumps({"format": FORMAT})
MARKS = {  # of what `export` writes, by its ending
    ".json": Mark(f"`{MADE_BY}`", FIRST_LINE.encode()),
    ".csv": Mark(f"`{MADE_BY}`", ",".join(FIRST).encode()),
    ".parquet": Mark(f"`{MADE_BY}`", b"PAR1", MADE_BY.encode()),
}


def export(
    store: Store, columns: dict[str, list[Any]], path: str | Path, *, force: bool = False
) -> Path:
    """Write the log (.json) or the table of trials (.csv, .parquet).

    No study, and without `force` nothing but an earlier export, is written over.
    """
    path = Path(path)
    if path.suffix not in MARKS:
        raise StudyError(
            f"{path.name}: unknown ending {path.suffix!r}; there are {', '.join(MARKS)}"
        )
    content: str | bytes
    if path.suffix == ".json":
        content = log_text(store)
    elif path.suffix == ".csv":
        content = columns_text(columns)
    else:
        content = parquet_bytes(columns, MADE_BY)
    return write_output(path, content, MARKS[path.suffix], force=force)


def log_text(store: Store) -> str:
    """The first line names the format; then one line per event: its hash and its text."""
    lines = [FIRST_LINE]
    lines += [json.dumps({"hash": e.hash.hex(), "text": e.text}) for e in store.entries()]
    return "\n".join(lines) + "\n"


def import_log(source: str | Path, path: str | Path) -> None:
    """Make a study of an exported log; every event is checked before the file is made."""
    try:
        lines = read_text(source, LOG_BYTES).splitlines()
    except DataError as error:
        raise StudyError(str(error)) from error
    if not lines or lines[0] != FIRST_LINE:
        raise StudyError(f"{source} is not an exported study: its first line is not {FIRST_LINE}")
    entries: list[Entry] = []
    for number, line in enumerate(lines[1:], start=1):
        try:
            found = msgspec.json.decode(line, type=_Line)
            entries.append(Entry(number, found.text, bytes.fromhex(found.hash)))
        except (ValueError, RecursionError) as error:
            raise StudyError(f"{source}, line {number + 1} is not an event: {error}") from None
    if not entries:
        raise StudyError(f"{source} holds no event")
    # Hashes and order before a file is made: an edited export must not become a study.
    Log(MemoryStore(entries), Ledger().apply).catch_up()
    SqliteStore.create(path, entries)


class _Line(msgspec.Struct):
    hash: str
    text: str
