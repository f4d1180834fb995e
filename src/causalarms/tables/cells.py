"""Cells of a table as values, regimes and levels, or refused by row and column.

Levels are those of a factor that is known (`Cells.levels`), or show what levels there are: those of
what was set differently in some rows, and nobody explained (`factor_levels`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import IntArray
from causalarms.checks import usable, why_unusable
from causalarms.errors import DataError, ModelError, shown
from causalarms.limits import MAX_REGIMES
from causalarms.sem.factor import OFF_ON, Factor, Level
from causalarms.sem.factors import PREFIX
from causalarms.sem.regimes import checked_name
from causalarms.tables.read import NumberColumn

NOT_MEASURED = ("", "nan", "na", "null", "none")  # cells, in small letters
NO_LEVEL = ("", "nan", "null")  # cells of factors, in small letters; "none" may well be a level
SWITCHES = {"false": 0, "true": 1}
SAME_NAME = 0.85  # a factor whose name is that near to a node's is probably a slip

Columns = Mapping[str, Sequence[Any]]


class Cells(NamedTuple):
    """Columns of text or of numbers, as values and regimes, or refused by row and column.

    Rows count from `first_row` in messages.
    """

    columns: Columns
    what: str
    first_row: int

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def without(self, names: Collection[str]) -> Cells:
        kept = {name: cells for name, cells in self.columns.items() if name not in names}
        return self._replace(columns=kept)

    def prefixed(self, factors: Collection[str]) -> Cells:
        """Columns of these factors as `do:NAME`, unless there is one."""
        columns = {
            PREFIX + name if name in factors and PREFIX + name not in self.columns else name: cells
            for name, cells in self.columns.items()
        }
        return self._replace(columns=columns)

    def at(self, row: int, column: str) -> str:
        return f"row {row + self.first_row} of column {column!r}"

    def numbers(
        self, names: Sequence[str], wanted: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """(n, N), nan if not measured, and in rows that are not wanted."""
        values = np.full((self.n_rows, len(names)), np.nan)
        rows = np.flatnonzero(wanted).tolist()
        for position, column in enumerate(names):
            cells = self.columns[column]
            if isinstance(cells, NumberColumn):
                values[wanted, position] = cells.numbers[wanted]
            # Columns of a frame mostly hold floats only: these are converted at once.
            elif set(map(type, cells)) <= {float, type(None)}:
                values[wanted, position] = np.array(cells, dtype=float)[wanted]
            else:
                for row in rows:
                    values[row, position] = self._number(cells[row], row, column)
            self._refuse_unusable(values[:, position], column)
        return values

    def _refuse_unusable(self, values: npt.NDArray[np.float64], column: str) -> None:
        """Refuse numbers that cannot be computed with; nan is a value that was not measured."""
        wrong = np.flatnonzero(~usable(values) & ~np.isnan(values))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(f"{self.at(row, column)} {why_unusable(values[row])}")

    def _number(self, cell: Any, row: int, column: str) -> float:
        if cell is None or (isinstance(cell, str) and cell.strip().lower() in NOT_MEASURED):
            return math.nan
        try:
            # float() takes True and b"1", which nobody measured.
            if isinstance(cell, bool | np.bool_ | bytes | complex):
                raise TypeError
            return float(cell)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"{self.at(row, column)} is {shown(cell)}, not a number "
                f"(ignore the column, --ignore, if it is not a node)"
            ) from None

    def regimes(self, column: str) -> npt.NDArray[np.int64]:
        """The regime in every row, (n,)."""
        cells = self.columns[column]
        if isinstance(cells, NumberColumn):
            numbers = cells.numbers
            if ((numbers >= 0) & (numbers < MAX_REGIMES) & (numbers == np.floor(numbers))).all():
                return numbers.astype(np.int64)
        return np.array([self.regime(cell, row, column) for row, cell in enumerate(cells)])

    def regime(self, cell: Any, row: int, column: str) -> int:
        """An integer from 0."""
        text = cell.strip().lower() if isinstance(cell, str) else cell
        try:
            number = SWITCHES[text] if isinstance(text, str) and text in SWITCHES else float(text)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not 0 <= number < MAX_REGIMES or number != int(number):
            said = "empty" if cell is None or text == "" else f"{shown(cell)}"
            raise DataError(
                f"{self.at(row, column)} is {said}, which is not a regime: "
                f"0 is natural, others are integers up to {MAX_REGIMES - 1}"
            )
        return int(number)

    def levels(self, column: str, factor: Factor) -> npt.NDArray[np.int64]:
        """Levels of a factor in all rows, (n,)."""
        levels = np.zeros(self.n_rows, dtype=np.int64)
        # Few levels, many rows. The type is part of the key: 1 and True are the same to a dict.
        known: dict[tuple[type, Any], int] = {}
        for row, cell in enumerate(self.columns[column]):
            # Odd things have no hash: each is looked at, and refused by its row.
            key = (type(cell), cell if isinstance(cell, str | int | float) else row)
            if key not in known:
                known[key] = self._level(cell, row, column, factor)
            levels[row] = known[key]
        return levels

    def _level(self, cell: Any, row: int, column: str, factor: Factor) -> int:
        if factor.is_switch:
            with suppress(DataError):  # of a regime: this is a level
                regime = self.regime(cell, row, column)  # as for nodes: 0, 1, true, false, ...
                if regime < len(OFF_ON):
                    return regime
        if is_empty(cell):
            raise DataError(f"{self.at(row, column)} is empty: say the level")
        try:
            return factor.number(cell)
        except ModelError as error:
            raise DataError(f"{self.at(row, column)}: {error}") from None

    def refuse_switched(self, column: str, node: str) -> None:
        """DataError if a node without a switch was switched in some row."""
        for row, cell in enumerate(self.columns[column]):
            if _moved(cell):
                raise DataError(
                    f"{self.at(row, column)}: node {node!r} has no switch in this study. A study "
                    f"with a factor {shown(node)} that is not intervenable can learn from such "
                    "rounds"
                )

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


def is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell) or is_nan(cell)


def is_nan(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell)


def _moved(cell: Any) -> bool:
    return not is_empty(cell) and str(cell).strip() not in ("0", "0.0", "False", "false", "off")


# -- levels that nobody told: the rows show which there are ----------------------------------------


class FactorLevels(NamedTuple):
    """The levels of every factor, numbers in their order and names in that of the alphabet."""

    levels: dict[str, tuple[Level, ...]]
    numbers: IntArray  # (n, F), the level of each row

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.levels)

    def in_words(self) -> str:
        """
        >>> factor_levels({"load": [2, 1, 2], "kind": ["x", "z", "x"]}).in_words()
        'load (1, 2), kind (x, z)'
        """
        return ", ".join(
            f"{name} ({', '.join(map(str, levels))})" for name, levels in self.levels.items()
        )


def factor_levels(
    given: Mapping[str, Sequence[Any]], rows: npt.NDArray[np.int64] | None = None
) -> FactorLevels:
    """From the cells of every factor; `rows` are the numbers of its rows that messages have.

    Numbers have a straight or bent effect, text has an effect per level. DataError names the
    factor and the row.

    >>> factor_levels({"load": [4, 1, 4]}).numbers.tolist()
    [[1], [0], [1]]
    """
    levels: dict[str, tuple[Level, ...]] = {}
    numbers = list[IntArray]()
    for name, cells in given.items():
        name = checked_name("factor", name)
        each = [_learned_level(cell, name, _row_number(rows, at)) for at, cell in enumerate(cells)]
        _refuse_mixed(each, name, rows)
        found = sorted(set(each))
        if len(found) == 1:
            raise DataError(
                f"factor {name!r} is {shown(found[0])} in all {len(each)} rows: nothing shows what "
                "it acts on, leave it out"
            )
        if len(found) > MAX_REGIMES:
            raise DataError(
                f"factor {name!r} has {len(found)} levels, at most {MAX_REGIMES}: round its "
                "numbers, or make it a node if it is measured"
            )
        place = {level: number for number, level in enumerate(found)}
        levels[name] = tuple(found)
        numbers.append(np.array([place[level] for level in each], dtype=np.int64))
    return FactorLevels(levels, np.column_stack(numbers) if numbers else np.zeros((0, 0), int))


def refuse_names_of_nodes(factors: Sequence[str], nodes: Sequence[str]) -> None:
    """DataError for a factor that is called like a node, or nearly so."""
    for name in factors:
        if name in nodes:
            raise DataError(
                f"factor {name!r} has the name of a node: give it another name, or say the "
                "regimes of the node as interventions"
            )
        near = get_close_matches(name, nodes, n=1, cutoff=SAME_NAME)
        near += [node for node in nodes if node.casefold() == name.strip().casefold()]
        if near:
            raise DataError(
                f"there is no node {name!r}; did you mean {near[0]!r}? If it is a factor of its "
                "own, give it a name that is less like that of a node"
            )


def numbers_of_text(cells: Sequence[Any]) -> list[Any]:
    """Cells of a file, in which numbers are text; a cell that is not a number stays."""
    return [_number_of_text(cell) if isinstance(cell, str) else cell for cell in cells]


def _number_of_text(text: str) -> Any:
    if text.strip().lower() in NO_LEVEL:
        return None
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _row_number(rows: npt.NDArray[np.int64] | None, at: int) -> int:
    return at if rows is None else int(rows[at])


def _learned_level(cell: Any, factor: str, row: int) -> Level:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if is_empty(cell) or cell != cell:  # nan, NaT and the like
        raise DataError(f"row {row} of factor {factor!r} is missing: every row needs its level")
    if isinstance(cell, bool):
        return OFF_ON[cell]
    if isinstance(cell, str):
        return checked_name(f"factor {factor!r}: level", cell)
    if isinstance(cell, int | float):
        try:
            number = float(cell)
        except OverflowError:
            number = math.inf
        if not usable(np.array(number)):
            raise DataError(
                f"row {row} of factor {factor!r} is {shown(cell)}, too large or not finite"
            )
        return int(number) if number == int(number) else number
    raise DataError(f"row {row} of factor {factor!r} is {shown(cell)}, neither text nor a number")


def _refuse_mixed(levels: Sequence[Level], factor: str, rows: npt.NDArray[np.int64] | None) -> None:
    is_text = [isinstance(level, str) for level in levels]
    if any(is_text) and not all(is_text):
        text, number = is_text.index(True), is_text.index(False)
        raise DataError(
            f"factor {factor!r} has text and numbers: {shown(levels[text])} in row "
            f"{_row_number(rows, text)}, {shown(levels[number])} in row "
            f"{_row_number(rows, number)}. Levels are all numbers, or all names"
        )
