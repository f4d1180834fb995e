"""Tables from users (arrays, pandas, polars, pyarrow, CSV, Parquet) as named columns of numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray
from causalarms.checks import why_unusable
from causalarms.errors import DataError, DataTypeError, shown
from causalarms.extras import require_extra
from causalarms.files import aligned, printable, read_at_most
from causalarms.limits import MAX_NODES, TABLE_BYTES, TABLE_CELLS, TABLE_COLUMNS
from causalarms.tables.write import FORMULA

if TYPE_CHECKING:
    import narwhals as nw

Columns = Mapping[str, Sequence[str]]

NUMBER_BYTES = b"0123456789+-.eE, \n"
DECIMAL_COMMA = re.compile(r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # as spreadsheets write it
SHOWN_ROWS = 10
SHOWN_LETTERS = 24


class Samples(NamedTuple):
    """Finite numbers (n, N) and the names of their columns, None if there are none."""

    values: FloatArray
    names: tuple[str, ...] | None


def as_samples(given: Any, *, what: str = "X") -> Samples:
    """Numbers and names of an array or a frame; an error names the row and the column."""
    if hasattr(given, "toarray") and hasattr(given, "nnz"):
        raise DataError(f"{what} is a sparse matrix; pass a dense one, e.g. {what}.toarray()")
    frame = as_frame(given, what)
    if frame is not None:
        names = tuple(str(name) for name in frame.columns)
        values = np.empty((len(frame), len(names)))
        for position, column in enumerate(frame.iter_columns()):
            values[:, position] = _numbers(column)
    else:
        names = None
        values = _as_matrix(given, what)
    _check_finite(values, names)
    return Samples(values, names)


def as_frame(given: Any, what: str = "X") -> nw.DataFrame[Any] | None:
    """A frame of any supported library, None for what is not a frame."""
    columns = [str(name) for name in getattr(given, "columns", ())]
    _check_names(what, columns)
    if isinstance(given, Mapping | np.ndarray | list | tuple | PlainTable):
        return None
    import narwhals as nw  # only here: a study told from the shell needs no frames

    frame = nw.from_native(given, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def read_table(path: str | Path) -> Mapping[str, Sequence[str]]:
    """The columns of a CSV (or Parquet) file as text, checked for shape and names.

    Columns of a CSV file of plain numbers only have them as numbers too (`NumberColumn`).
    """
    path = Path(path)
    if path.suffix == ".parquet":
        return _read_parquet(path)
    content = read_at_most(path, TABLE_BYTES)
    return number_columns(path, content) or _csv_columns(path, content)


def check_width(what: str | Path, n_columns: int) -> None:
    """First of all checks: others take time with the number of columns."""
    if n_columns > TABLE_COLUMNS:
        raise DataError(
            f"{what} has {n_columns:,} columns; at most {TABLE_COLUMNS:,} "
            f"(values and switches of {MAX_NODES:,} nodes)"
        )


def _check_names(what: str | Path, names: Sequence[str]) -> None:
    check_width(what, len(names))
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name:
            raise DataError(f"{what}: column {position + 1} has no name")
        if name in seen:
            raise DataError(f"{what}: column name {shown(name)} is used twice")
        seen.add(name)


def _csv_columns(path: Path, content: bytes) -> dict[str, list[str]]:
    """Cell by cell, with messages that name the line."""
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
    rows: list[list[str]] = []
    cells = 0
    # Spreadsheets write so where people write numbers with a decimal comma.
    first = content.splitlines()[0] if content else b""
    semicolons = b";" in first and b"," not in first
    try:
        for row in csv.reader(text, delimiter=";" if semicolons else ","):
            # The header is checked before the rest is read: a wrong file may be a large one.
            rows.append(row if rows else _header(path, row))
            cells += max(1, len(row))  # an empty line takes memory as well
            _check_size(path, cells)
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}, line {len(rows) + 1}: {error}") from error
    header = rows[0] if rows else _header(path, [])
    for line, row in enumerate(rows[1:], start=2):
        if row and len(row) != len(header):
            raise DataError(f"{path}, line {line}: {len(row)} cells for {len(header)} columns")
    body = [row for row in rows[1:] if row]
    if not body:
        raise DataError(f"{path} has a header and no rows")
    if semicolons:
        body = [[DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in row] for row in body]
    return {name: [plain(row[i].strip()) for row in body] for i, name in enumerate(header)}


def _header(path: Path, cells: list[str]) -> list[str]:
    if not any(cell.strip() for cell in cells):
        raise DataError(f"{path} is empty; its first line must name the columns")
    names = [plain(cell.strip()) for cell in cells]
    _check_names(path, names)
    return names


def plain(cell: str) -> str:
    """The text that was written as this cell.

    >>> plain("'=1+1"), plain("-1.5"), plain("it's")
    ('=1+1', '-1.5', "it's")
    """
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def _numbers(column: nw.Series[Any]) -> npt.NDArray[Any]:
    if not (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
        raise DataError(f"column {column.name!r} holds {column.dtype}, not numbers")
    if column.is_null().any():
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(f"row {row} of column {column.name!r} is missing (NaN)")
    return np.asarray(column.to_numpy(), dtype=float)


def _as_matrix(given: Any, what: str) -> FloatArray:
    array = np.asarray(given)
    if np.iscomplexobj(array):
        raise DataError(f"Complex data not supported: {what} must hold real numbers")
    try:
        values = np.array(array, dtype=float)
    except TypeError as error:
        raise DataTypeError(f"{what} must hold numbers only: {error}") from error
    except ValueError:
        raise DataError(f"{what} must hold numbers only: {_first_text(array)}") from None
    if values.ndim != 2:
        raise DataError(
            f"{what} must have two dimensions (samples, nodes), not {values.ndim}. "
            "Reshape your data with .reshape(-1, n_nodes)"
        )
    return values


def _first_text(array: npt.NDArray[Any]) -> str:
    """Where the first entry is that cannot be read as a number."""
    for place, entry in np.ndenumerate(array):
        try:
            float(entry)
        except ValueError:
            where = "row {} of column {}".format(*place) if len(place) == 2 else f"entry {place}"
            return f"{where} is {shown(entry)}, not a number"
    return "rows of different lengths"


def _check_finite(values: FloatArray, names: tuple[str, ...] | None) -> None:
    wrong = ~np.isfinite(values)  # learners scale them: large ones are theirs to refuse
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        label = repr(names[column]) if names else str(column)
        why = why_unusable(values[row, column])
        raise DataError(f"row {row} of column {label} {why}")


def _read_parquet(path: Path) -> dict[str, list[str]]:
    require_extra("parquet", f"reading {path}")
    import pyarrow
    from pyarrow import parquet

    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"cannot read {path}: it is not a file")
    try:
        dataset = parquet.ParquetDataset(path)
        _check_names(path, dataset.schema.names)
        # By the footer, before the cells: a small file may unpack to many gigabytes.
        _check_size(path, sum(_parquet_cells(parquet.read_metadata(f)) for f in dataset.files))
        table = dataset.read()
        columns = {
            name: ["" if cell is None else str(cell) for cell in table[name].to_pylist()]
            for name in table.column_names
        }
    except DataError:
        raise
    except MemoryError as error:
        raise DataError(f"cannot read {path}: it does not fit into memory") from error
    except (OSError, ValueError, OverflowError, pyarrow.ArrowException) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not table.num_rows:
        raise DataError(f"{path} has no rows")
    return columns


def _parquet_cells(metadata: Any) -> int:
    """Cells of a file by its footer; a cell that is a list counts as many as it holds."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    values = sum(g.column(i).num_values for g in groups for i in range(g.num_columns))
    return max(metadata.num_rows * metadata.num_columns, values)


def _check_size(path: Path, cells: int) -> None:
    if cells > TABLE_CELLS:
        raise DataError(
            f"{path} is too large: at most {TABLE_CELLS:,} cells (rows times columns) are read"
        )


class NumberColumn(Sequence[str]):
    """Cells as numbers, and as text, which is parsed once somebody looks at it."""

    def __init__(
        self, numbers: npt.NDArray[np.float64], name: str, text: Callable[[], Columns]
    ) -> None:
        self.numbers = numbers  # (n,)
        self._name, self._text = name, text

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: Any) -> Any:
        return self._text()[self._name][row]


def number_columns(path: Path, content: bytes) -> Columns | None:
    """Columns of a CSV file that holds plain numbers only, the usual case, parsed at once by NumPy.

    None if there is anything else (quotes, empty cells, text, other line ends): the reader that
    goes cell by cell has the messages. Both give the same numbers, bit for bit: NumPy's parser is
    Python's.
    """
    first, _, body = content.removeprefix(BYTE_ORDER_MARK).replace(b"\r\n", b"\n").partition(b"\n")
    n_columns = first.count(b",") + 1
    # A quote may hide a comma or a line break, a single \r may end a line: for the other reader.
    if (
        n_columns > TABLE_COLUMNS
        or b'"' in first
        or b"\r" in first
        or body.translate(None, NUMBER_BYTES)
        or n_columns + body.count(b",") + body.count(b"\n") + 1 > TABLE_CELLS
        or not body.strip(b"\n")
    ):
        return None
    try:
        names = [plain(cell.strip()) for cell in first.decode().split(",")]
        numbers = np.loadtxt(io.BytesIO(body), delimiter=",", ndmin=2, comments=None)
    except ValueError:  # UnicodeDecodeError is one
        return None
    if not all(names) or not len(set(names)) == len(names) == numbers.shape[1]:
        return None
    # Parsing the text of cells takes most of the time; messages and odd columns alone need it.
    text = cache(lambda: _csv_columns(path, content))
    return {name: NumberColumn(numbers[:, i], name, text) for i, name in enumerate(names)}


class PlainTable:
    """Columns of one length, by name: what is needed to look at a table without pandas or polars.

    >>> table = PlainTable({"trial": [0, 1], "state": ["told", "asked"], "heat": [1.5, None]})
    >>> table
       trial  state  heat
    0      0  told    1.5
    1      1  asked
    >>> len(table), table.columns, (table["state"] == "told").tolist(), table["heat"][1]
    (2, ['trial', 'state', 'heat'], [True, False], np.float64(nan))
    >>> [row["state"] for row in table[["trial", "state"]]]
    ['told', 'asked']
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns = {name: list(cells) for name, cells in columns.items()}

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Rows."""
        for row in zip(*self._columns.values(), strict=True):
            yield dict(zip(self._columns, row, strict=True))

    def __getitem__(self, name: Any) -> Any:
        """One column as an array, or some columns as a table; a missing number is nan."""
        if isinstance(name, list | tuple):
            return PlainTable({each: self._columns[each] for each in name})
        return _array(self._columns[name])

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists, with None if there is nothing."""
        return {name: list(cells) for name, cells in self._columns.items()}

    def __repr__(self) -> str:
        rows = list(range(len(self)))
        hidden = max(len(rows) - SHOWN_ROWS, 0)
        if hidden:
            rows = rows[: SHOWN_ROWS // 2] + rows[-SHOWN_ROWS // 2 :]
        cells = [[str(row), *(_shown(c[row]) for c in self._columns.values())] for row in rows]
        lines = aligned(["", *map(_shown, self._columns)], cells)
        if hidden:
            lines.insert(SHOWN_ROWS // 2 + 1, "...")
            lines.append(f"[{len(self)} rows]")
        return "\n".join(lines)


def _array(cells: list[Any]) -> npt.NDArray[Any]:
    present = [cell for cell in cells if cell is not None]
    # Before the integers: `True` is an `int` in Python.
    if all(isinstance(cell, bool) for cell in cells) and cells:
        return np.array(cells, dtype=bool)
    if present and all(type(cell) is int for cell in cells):
        return np.array(cells, dtype=np.int64)
    if all(isinstance(cell, int | float) for cell in present):
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=float)
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    text = printable(f"{cell:.6g}" if isinstance(cell, float) else cell)
    return text if len(text) <= SHOWN_LETTERS else text[: SHOWN_LETTERS - 3] + "..."
