"""Whole studies as JSON lines, trials as tables.

The JSON file is the log itself, hashes and all: importing it gives the same study.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from causalarms.errors import StudyError
from causalarms.files import write_atomically
from causalarms.study.events import ROOT, decode
from causalarms.study.log import check
from causalarms.study.sqlite_file import create_file
from causalarms.study.store import Entry, Store
from causalarms.study.trials import Ledger

FORMAT = "causalarms.study/1"
ENDINGS = (".json", ".csv", ".parquet")


def export(store: Store, columns: dict[str, list[Any]], path: str | Path) -> Path:
    """Write the log (.json) or the table of trials (.csv, .parquet)."""
    path = Path(path)
    if path.suffix == ".json":
        return write_atomically(path, log_text(store))
    if path.suffix == ".csv":
        return write_atomically(path, table_text(columns))
    if path.suffix == ".parquet":
        return write_atomically(path, _parquet(columns))
    raise StudyError(f"{path.name}: unknown ending {path.suffix!r}; there are {', '.join(ENDINGS)}")


def log_text(store: Store) -> str:
    """The first line names the format; then one line per event: its hash and its text."""
    lines = [json.dumps({"format": FORMAT})]
    lines += [json.dumps({"hash": e.hash.hex(), "text": e.text}) for e in store.entries()]
    return "\n".join(lines) + "\n"


def table_text(columns: dict[str, list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(["" if cell is None else cell for cell in row])
    return text.getvalue()


def import_log(source: str | Path, path: str | Path) -> None:
    """Make a study of an exported log; every event is checked before the file is made."""
    try:
        lines = Path(source).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot read {source}: {error}") from error
    records = [_record(line, number, source) for number, line in enumerate(lines)]
    if not records or records[0].get("format") != FORMAT:
        raise StudyError(f"{source} is no exported study")
    entries: list[Entry] = []
    hash_, ledger = ROOT, Ledger()
    for number, record in enumerate(records[1:], start=1):
        text, digest = record.get("text"), record.get("hash")
        try:
            entry = Entry(number, str(text), bytes.fromhex(str(digest)))
        except ValueError:
            raise StudyError(f"{source}, line {number + 1}: {digest!r} is no hash") from None
        hash_ = check(entry, number - 1, hash_)
        ledger.apply(decode(entry.text, number))
        entries.append(entry)
    if not entries:
        raise StudyError(f"{source} holds no event")
    create_file(Path(path), entries)


def _record(line: str, number: int, source: str | Path) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{source}, line {number + 1} is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise StudyError(f"{source}, line {number + 1} is no record")
    return record


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise StudyError("Parquet needs pyarrow: pip install 'causalarms[parquet]'") from error
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()
