"""CSV files of plain numbers, the usual case, read at once by NumPy.

Anything else (quotes, empty cells, text, other line ends) is left to the reader that goes cell by
cell and has the messages. Both give the same numbers, bit for bit: NumPy's parser is Python's.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.tables.write import plain

PLAIN = b"0123456789+-.eE, \n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # as spreadsheets write it

Columns = Mapping[str, Sequence[str]]


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


def number_columns(
    content: bytes, careful: Callable[[bytes], Columns], most_columns: int, most_cells: int
) -> Columns | None:
    """None if anything but plain numbers is there; `careful` gives the text of all cells."""
    first, _, body = content.removeprefix(BYTE_ORDER_MARK).replace(b"\r\n", b"\n").partition(b"\n")
    n_columns = first.count(b",") + 1
    if (
        n_columns > most_columns
        or b'"' in first
        or b"\r" in first
        or body.translate(None, PLAIN)
        or n_columns + body.count(b",") + body.count(b"\n") + 1 > most_cells
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
    text = cache(lambda: careful(content))
    return {name: NumberColumn(numbers[:, i], name, text) for i, name in enumerate(names)}
