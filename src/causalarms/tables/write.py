"""Tables as CSV that a spreadsheet shows and does not run, and as Parquet.

A text that starts like a formula (= + - @, a tab, a line break) is written with an apostrophe in
front, which the reader takes away again. Numbers, also as text, stay as they are.

A table of trials, as `study export` writes it and readers of rounds know it, has the columns FIRST,
a column of values and one of regimes per node, and LAST.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from causalarms.extras import require_extra
from causalarms.sem.factors import PREFIX

# With the apostrophes before it: one more is written, and reading takes one away.
FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
QUOTED = re.compile(r'[,;"\t\r\n]')  # some spreadsheets also split cells at ; and tabs
OWN = "node:"  # before the name of a node that reads like another column
FIRST = ("trial", "state", "worker", "reason", "predicted", "learned", "corrected")
LAST = ("asked_at", "done_at", "remark", "far", "not_as_asked")
WITH_RESULT = ("told", "imported")  # states of trials that have one


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


def column_of(node: str) -> str:
    """The column of a node's values: its name, unless that could be another column.

    >>> column_of("heat"), column_of("trial"), column_of("do:heat"), column_of("node:trial")
    ('heat', 'node:trial', 'node:do:heat', 'node:node:trial')
    """
    taken = node in (*FIRST, *LAST) or node.startswith((PREFIX, OWN))
    return OWN + node if taken else node
