"""Tables as CSV that a spreadsheet shows and does not run, and as Parquet.

A text that starts like a formula (= + - @, a tab, a line break) is written with an apostrophe in
front, which `plain` takes away again. Numbers, also as text, stay as they are.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from causalarms.extras import require_extra

FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
QUOTED = re.compile(r'[,;"\t\r\n]')  # some spreadsheets also split cells at ; and tabs


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A whole file; None is an empty cell."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (header, *rows))


def columns_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """As `csv_text`, from columns of one length.

    >>> columns_text({"a": [1, None], "b": ["=x", 2.5]})
    "a,b\\n1,'=x\\n,2.5\\n"
    """
    return csv_text(columns, zip(*columns.values(), strict=True))


def parquet_bytes(columns: Mapping[str, Sequence[Any]], made_by: str) -> bytes:
    """A whole Parquet file that names its maker, the same bytes for the same columns."""
    require_extra("parquet", "writing Parquet")
    import pyarrow
    from pyarrow import parquet

    sink = io.BytesIO()
    table = pyarrow.table(dict(columns)).replace_schema_metadata({"made_by": made_by})
    parquet.write_table(table, sink)
    return sink.getvalue()


def plain(cell: str) -> str:
    """The text that was written as this cell.

    >>> plain("'=1+1"), plain("-1.5"), plain("it's")
    ('=1+1', '-1.5', "it's")
    """
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(float(value))  # without the words of NumPy
    text = str(value)
    if FORMULA.match(text) and not _is_number(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()
