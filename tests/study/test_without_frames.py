"""Where neither pandas nor polars is installed, as after `make demo` alone."""

from __future__ import annotations

import sys
from unittest.mock import patch

import numpy as np
import pytest
from study_rounds import NODES, SETTINGS, play

from causalarms import Study
from causalarms.errors import LearningWarning
from causalarms.tables.read import PlainTable

BARE = {"pandas": None, "polars": None, "pyarrow": None}


@pytest.fixture
def study() -> Study:
    made = Study.create(None, **SETTINGS)
    play(made, 2)
    with pytest.warns(LearningWarning):
        made.tell(made.ask(), [1.0, None, 2.0])
    made.fail(made.ask(), "tube broke")
    return made


def test_history_is_a_table(study: Study) -> None:
    frame = study.history()
    with patch.dict(sys.modules, BARE):
        plain = study.history()
    assert isinstance(plain, PlainTable)
    assert len(plain) == len(frame) == 4
    assert plain.columns == list(frame.columns)
    assert (plain["state"] == frame["state"].to_numpy()).all()
    assert not (plain["state"] == "told").all()
    assert (plain["state"][:3] == "told").all()
    assert plain["trial"].dtype == np.int64
    assert plain["learned"].dtype == bool
    for node in NODES:
        assert np.array_equal(plain[node], frame[node].to_numpy(), equal_nan=True)
        assert plain[f"do:{node}"].sum() == frame[f"do:{node}"].sum()
    assert np.isnan(plain["predicted"]).all()
    rows = list(plain)
    assert [row["remark"] for row in rows] == ["", "", "", "tube broke"]
    assert rows[2]["stir"] is None
    assert plain.to_dict()["stir"][2] is None
    assert list(plain.to_dict()) == plain.columns
    with pytest.raises(KeyError, match="stare"):
        plain["stare"]


def test_it_is_printed_as_text(study: Study) -> None:
    with patch.dict(sys.modules, BARE):
        text = repr(study.history()[["trial", "state", "remark"]])
    assert text.splitlines() == [
        "   trial  state   remark",
        "0      0  told",
        "1      1  told",
        "2      2  told",
        "3      3  failed  tube broke",
    ]
    long = repr(PlainTable({"n": list(range(30)), "note": ["x" * 30] * 30}))
    lines = long.splitlines()
    assert (len(lines), lines[6], lines[-1]) == (13, "...", "[30 rows]")
    assert lines[5].split() == ["4", "4", "x" * 21 + "..."]
    assert lines[7].split()[0] == "25"
    assert "\x1b" not in repr(PlainTable({"a": ["\x1b[31m"]}))
    assert repr(PlainTable({"a": [], "b": []})) == "  a  b"


def test_it_can_be_imported_like_a_frame(study: Study) -> None:
    with patch.dict(sys.modules, BARE):
        other = Study.create(None, **SETTINGS)
        with pytest.warns(LearningWarning):
            assert other.import_rounds(study.history()) == 3
    assert [r.values for r in other.ledger().trials] == [
        r.values for r in study.ledger().trials[:3]
    ]
