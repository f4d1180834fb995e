"""`PlainTable`: what a table needs to be looked at where no library of frames is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.plain_text import printable

SHOWN_ROWS = 10
SHOWN_LETTERS = 24


class PlainTable:
    """Columns of one length, by name.

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
        """Columns as lists, with None where there is nothing."""
        return {name: list(cells) for name, cells in self._columns.items()}

    def __repr__(self) -> str:
        rows = list(range(len(self)))
        hidden = max(len(rows) - SHOWN_ROWS, 0)
        if hidden:
            rows = rows[: SHOWN_ROWS // 2] + rows[-SHOWN_ROWS // 2 :]
        blocks = [["", *map(str, rows)]]
        numeric = [True]
        for name, cells in self._columns.items():
            blocks.append([_shown(name), *(_shown(cells[row]) for row in rows)])
            numeric.append(all(isinstance(cell, int | float | None) for cell in cells))
        widths = [max(map(len, block)) for block in blocks]
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in zip(*blocks, strict=True)
        ]
        if hidden:
            lines.insert(SHOWN_ROWS // 2 + 1, "...")
            lines.append(f"[{len(self)} rows]")
        return "\n".join(lines)


def _array(cells: list[Any]) -> npt.NDArray[Any]:
    present = [cell for cell in cells if cell is not None]
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
    text = printable(f"{cell:.6g}" if isinstance(cell, float) else str(cell))
    return text if len(text) <= SHOWN_LETTERS else text[: SHOWN_LETTERS - 3] + "..."
