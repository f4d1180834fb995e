"""Tables from users (arrays, pandas, polars, pyarrow, CSV, Parquet) as named columns of numbers."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError, DataTypeError
from causalarms.extras import require_extra
from causalarms.files import read_at_most
from causalarms.limits import TABLE_BYTES, TABLE_CELLS
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
    twice = {name for name in columns if columns.count(name) > 1}
    if twice:
        raise DataError(f"{what}: column name {twice.pop()!r} is used twice")
    frame = nw.from_native(given, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def read_table(path: str | Path) -> dict[str, list[str]]:
    """The columns of a CSV (or Parquet) file as text, checked for shape and names."""
    path = Path(path)
    if path.suffix == ".parquet":
        return _read_parquet(path)
    rows = _csv_rows(path)
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise DataError(f"{path} is empty; its first line must name the columns")
    header = [plain(cell.strip()) for cell in rows[0]]
    _check_names(path, header)
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
            return f"{where} is {entry!r}, not a number"
    return "rows of different lengths"


def _check_finite(values: FloatArray, names: tuple[str, ...] | None, *, first_row: int = 0) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        label = repr(names[column]) if names else str(column)
        kind = "NaN" if np.isnan(values[row, column]) else "infinite (inf)"
        raise DataError(f"row {row + first_row} of column {label} is {kind}")


def _csv_rows(path: Path) -> list[list[str]]:
    content = io.BytesIO(read_at_most(path, TABLE_BYTES))
    rows: list[list[str]] = []
    cells = 0
    try:
        for row in csv.reader(io.TextIOWrapper(content, encoding="utf-8-sig", newline="")):
            rows.append(row)
            cells += max(1, len(row))  # an empty line takes memory as well
            _check_size(path, cells)
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}, line {len(rows) + 1}: {error}") from error
    return rows


def _read_parquet(path: Path) -> dict[str, list[str]]:
    require_extra("parquet", f"reading {path}")
    import pyarrow
    from pyarrow import parquet

    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"cannot read {path}: it is no file")
    try:
        dataset = parquet.ParquetDataset(path)
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
            raise DataError(f"{path}: column name {name!r} is used twice")
        seen.add(name)
