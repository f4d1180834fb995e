"""Levels of factors, row by row: what nobody explained, but was set differently in some rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import IntArray
from causalarms.checks import usable
from causalarms.errors import DataError, shown
from causalarms.limits import MAX_REGIMES
from causalarms.sem.factor import OFF_ON, Level
from causalarms.sem.regimes import checked_name
from causalarms.tables.cells import is_empty

SAME_NAME = 0.85  # a factor whose name is that near to a node's is probably a slip
MISSING = ("", "nan", "null")  # cells of files, in small letters; "none" may well be a level


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
        each = [_level(cell, name, _row(rows, at)) for at, cell in enumerate(cells)]
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
    return [_number(cell) if isinstance(cell, str) else cell for cell in cells]


def _number(text: str) -> Any:
    if text.strip().lower() in MISSING:
        return None
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _row(rows: npt.NDArray[np.int64] | None, at: int) -> int:
    return at if rows is None else int(rows[at])


def _level(cell: Any, factor: str, row: int) -> Level:
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
            f"{_row(rows, text)}, {shown(levels[number])} in row {_row(rows, number)}. Levels are "
            "all numbers, or all names"
        )
