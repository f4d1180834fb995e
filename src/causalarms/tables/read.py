"""Tables from users (arrays, pandas, polars, pyarrow, CSV, Parquet) as named columns of numbers."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from causalarms.checks import why_unusable
from causalarms.errors import DataError, DataTypeError, shown
from causalarms.extras import require_extra
from causalarms.files import read_at_most
from causalarms.limits import MAX_NODES, TABLE_BYTES, TABLE_CELLS, TABLE_COLUMNS
from causalarms.tables.csv_numbers import number_columns
from causalarms.tables.write import plain

FloatArray = npt.NDArray[np.float64]


class Samples(NamedTuple):
    """Finite numbers (n, N) and the names of their columns, None where there are none."""

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
    check_width(what, len(columns))
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise DataError(f"{what}: column name {twice[0]!r} is used twice")
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
    careful = partial(_csv_columns, path)
    return number_columns(content, careful, TABLE_COLUMNS, TABLE_CELLS) or careful(content)


def check_width(what: str | Path, n_columns: int) -> None:
    """First of all checks: others take time with the number of columns."""
    if n_columns > TABLE_COLUMNS:
        raise DataError(
            f"{what} has {n_columns:,} columns; at most {TABLE_COLUMNS:,} "
            f"(values and switches of {MAX_NODES:,} nodes)"
        )


def _csv_columns(path: Path, content: bytes) -> dict[str, list[str]]:
    rows = _csv_rows(path, content)
    header = [plain(cell.strip()) for cell in rows[0]]
    body = [row for row in rows[1:] if row]
    for line, row in enumerate(rows[1:], start=2):
        if row and len(row) != len(header):
            raise DataError(f"{path}, line {line}: {len(row)} cells for {len(header)} columns")
    if not body:
        raise DataError(f"{path} has a header and no rows")
    return {name: [plain(row[i].strip()) for row in body] for i, name in enumerate(header)}


def _numbers(column: nw.Series[Any]) -> npt.NDArray[Any]:
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
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
    """Where the first entry stands that is no number."""
    for place, entry in np.ndenumerate(array):
        try:
            float(entry)
        except ValueError:
            where = "row {} of column {}".format(*place) if len(place) == 2 else f"entry {place}"
            return f"{where} is {shown(entry)}, not a number"
    return "rows of different lengths"


def _check_finite(values: FloatArray, names: tuple[str, ...] | None, *, first_row: int = 0) -> None:
    wrong = ~np.isfinite(values)  # learners scale them: large ones are theirs to refuse
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        label = repr(names[column]) if names else str(column)
        why = why_unusable(values[row, column])
        raise DataError(f"row {row + first_row} of column {label} {why}")


def _csv_rows(path: Path, content: bytes) -> list[list[str]]:
    """With a header that was checked; its width first."""
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
    rows: list[list[str]] = []
    cells = 0
    try:
        for row in csv.reader(text):
            if not rows:
                _check_header(path, row)
            rows.append(row)
            cells += max(1, len(row))  # an empty line takes memory as well
            _check_size(path, cells)
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}, line {len(rows) + 1}: {error}") from error
    if not rows:
        _check_header(path, [])
    return rows


def _check_header(path: Path, cells: list[str]) -> None:
    if not any(cell.strip() for cell in cells):
        raise DataError(f"{path} is empty; its first line must name the columns")
    check_width(path, len(cells))
    _check_names(path, [plain(cell.strip()) for cell in cells])


def _read_parquet(path: Path) -> dict[str, list[str]]:
    require_extra("parquet", f"reading {path}")
    import pyarrow
    from pyarrow import parquet

    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"cannot read {path}: it is no file")
    try:
        dataset = parquet.ParquetDataset(path)
        check_width(path, len(dataset.schema.names))
        _check_size(path, sum(_parquet_cells(parquet.read_metadata(f)) for f in dataset.files))
        _check_names(path, dataset.schema.names)
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


def _check_names(path: Path, names: list[str]) -> None:
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name:
            raise DataError(f"{path}: column {position + 1} has no name")
        if name in seen:
            raise DataError(f"{path}: column name {shown(name)} is used twice")
        seen.add(name)
