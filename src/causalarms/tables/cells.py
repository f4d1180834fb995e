"""Cells of a table as values and regimes, or refused by row and column."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.checks import usable, why_unusable
from causalarms.errors import DataError, shown
from causalarms.limits import MAX_REGIMES
from causalarms.tables.csv_numbers import NumberColumn

NOT_MEASURED = ("", "nan", "na", "null", "none")  # cells, in small letters
SWITCHES = {"false": 0, "true": 1}

Columns = Mapping[str, Sequence[Any]]


class Cells(NamedTuple):
    """Columns of text or of numbers; rows count from `first_row` in messages."""

    columns: Columns
    what: str
    first_row: int

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def without(self, names: Collection[str]) -> Cells:
        kept = {name: cells for name, cells in self.columns.items() if name not in names}
        return self._replace(columns=kept)

    def at(self, row: int, column: str) -> str:
        return f"row {row + self.first_row} of column {column!r}"

    def numbers(
        self, names: Sequence[str], wanted: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """(n, N), nan where not measured, and in rows that are not wanted."""
        values = np.full((self.n_rows, len(names)), np.nan)
        rows = np.flatnonzero(wanted).tolist()
        for position, column in enumerate(names):
            cells = self.columns[column]
            if isinstance(cells, NumberColumn):
                values[wanted, position] = cells.numbers[wanted]
            elif set(map(type, cells)) <= {float, type(None)}:
                values[wanted, position] = np.array(cells, dtype=float)[wanted]
            else:
                for row in rows:
                    values[row, position] = self._number(cells[row], row, column)
            self._refuse_unusable(values[:, position], column)
        return values

    def _refuse_unusable(self, values: npt.NDArray[np.float64], column: str) -> None:
        """Of numbers that were measured: nan was not."""
        wrong = np.flatnonzero(~usable(values) & ~np.isnan(values))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(f"{self.at(row, column)} {why_unusable(values[row])}")

    def _number(self, cell: Any, row: int, column: str) -> float:
        if cell is None or (isinstance(cell, str) and cell.strip().lower() in NOT_MEASURED):
            return math.nan
        try:
            if isinstance(cell, bool | np.bool_ | bytes | complex):
                raise TypeError
            return float(cell)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"{self.at(row, column)} is {shown(cell)}, not a number "
                f"(ignore the column, --ignore, if it is no node)"
            ) from None

    def regimes(self, column: str) -> npt.NDArray[np.int64]:
        """Of all rows, (n,)."""
        cells = self.columns[column]
        if isinstance(cells, NumberColumn):
            numbers = cells.numbers
            if ((numbers >= 0) & (numbers < MAX_REGIMES) & (numbers == np.floor(numbers))).all():
                return numbers.astype(np.int64)
        return np.array([self.regime(cell, row, column) for row, cell in enumerate(cells)])

    def regime(self, cell: Any, row: int, column: str) -> int:
        """A whole number from 0."""
        text = cell.strip().lower() if isinstance(cell, str) else cell
        try:
            number = SWITCHES[text] if isinstance(text, str) and text in SWITCHES else float(text)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not 0 <= number < MAX_REGIMES or number != int(number):
            said = "empty" if cell is None or text == "" else f"{shown(cell)}"
            raise DataError(
                f"{self.at(row, column)} is {said}, which is no regime: "
                f"0 is natural, others are whole numbers up to {MAX_REGIMES - 1}"
            )
        return int(number)

    def complete(
        self,
        values: npt.NDArray[np.float64],
        names: Sequence[str],
        among: npt.NDArray[np.bool_],
        incomplete: str,
        remarks: list[str],
    ) -> npt.NDArray[np.bool_]:
        """Rows without a hole; holes in other rows are refused or remarked on."""
        holes = np.isnan(values) & among[:, None]
        n_rows = int(holes.any(axis=1).sum())
        if not n_rows:
            return among
        lack = f"{n_rows} of {int(among.sum())} rows {'lacks' if n_rows == 1 else 'lack'} a value"
        if incomplete == "skip":
            remarks.append(f"{lack}: left out")
            return among & np.isfinite(values).all(axis=1)
        row, position = np.argwhere(holes)[0]
        column = names[position]
        cell = self.columns[column][row]
        said = "empty" if cell is None or not str(cell).strip() else "NaN"
        raise DataError(
            f"{self.at(row, column)} is {said}; {lack}: leave them out with --skip-incomplete"
        )
