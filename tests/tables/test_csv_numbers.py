"""Files of plain numbers are read at once, everything else cell by cell, with the same result."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms.errors import DataError
from causalarms.tables import read
from causalarms.tables.read import NumberColumn, read_table
from causalarms.tables.rounds import rounds_of

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
cells = st.one_of(
    numbers.map(repr),
    numbers.map(lambda x: f"{x:.3e}"),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["0", "1", "-0.0", "+.5", "5.", " 2 ", "1E5", "1e-400", "1e400"]),
)
odd_cells = st.one_of(
    cells,
    st.sampled_from(["", " ", "nan", "NA", "inf", "1_0", "x", "'=1", '"3"', "1 2", "--1", "²"]),
)


@st.composite
def tables(draw: st.DrawFn) -> str:
    """Mostly plain numbers; now and then an odd cell, a ragged or an empty row, other line ends."""
    n_columns = draw(st.integers(1, 4))
    kind = draw(st.sampled_from([cells, cells, odd_cells]))
    names = [f"{draw(st.sampled_from(['', 'do:', ' ']))}n{i % n_columns}" for i in range(n_columns)]
    width = st.just(n_columns) if kind is cells else st.integers(max(1, n_columns - 1), n_columns)
    rows = [
        ",".join(draw(kind) for _ in range(draw(width))) for _ in range(draw(st.integers(0, 6)))
    ]
    if draw(st.booleans()):
        rows.insert(draw(st.integers(0, len(rows))), draw(st.sampled_from(["", " ", "  "])))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return mark + end.join([",".join(names), *rows]) + draw(st.sampled_from(["", end]))


def outcome(path: Path) -> Any:
    """Everything a table says, or the refusal."""
    try:
        found = rounds_of(path)
        text = {name: list(column) for name, column in read_table(path).items()}
    except DataError as error:
        return str(error)
    return found.nodes, found.values.tobytes(), found.regimes.tolist(), found.rows.tolist(), text


@given(tables())
def test_both_readers_agree_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "rounds.csv"
    path.write_text(text, newline="")
    at_once = outcome(path)
    with patch.object(read, "number_columns", lambda *_: None):
        assert outcome(path) == at_once


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_plain_numbers_are_read_at_once(tmp_path: Path, end: str, mark: str) -> None:
    path = tmp_path / "rounds.csv"
    text = end.join([f"{mark}heat (°C), yield,do:yield", "1.5, -2e3,0", "", "0.1,+7.,1", ""])
    path.write_text(text, newline="", encoding="utf-8")
    columns = read_table(path)
    assert all(isinstance(column, NumberColumn) for column in columns.values())
    found = rounds_of(path)
    assert found.nodes == ("heat (°C)", "yield")
    np.testing.assert_array_equal(found.values, [[1.5, -2000.0], [0.1, 7.0]])
    assert found.regimes.tolist() == [[0, 0], [0, 1]]
