"""Files: whole, reproducible, by ending; settings: given back."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from causalarms import random_sem
from causalarms.errors import DataError
from causalarms.pictures.graph import draw_sem
from causalarms.pictures.style import figure_style, save_figure


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_the_same_input_gives_the_same_bytes(ending: str, tmp_path: Path) -> None:
    first, second = (
        save_figure(draw_sem(random_sem(5, seed=1)), tmp_path / f"{name}.{ending}").read_bytes()
        for name in ("first", "second")
    )
    assert first == second
    assert b"Matplotlib" not in first
    assert b"CreationDate" not in first


def test_a_users_settings_change_no_byte(tmp_path: Path) -> None:
    plain = save_figure(draw_sem(random_sem(4, seed=1)), tmp_path / "plain.png")
    with mpl.rc_context({"font.size": 20, "lines.linewidth": 9, "savefig.bbox": "tight"}):
        other = save_figure(draw_sem(random_sem(4, seed=1)), tmp_path / "other.png")
    assert plain.read_bytes() == other.read_bytes()


def test_settings_are_given_back() -> None:
    before = dict(mpl.rcParams)
    with pytest.raises(RuntimeError, match="inside"), figure_style():
        raise RuntimeError("inside")
    assert dict(mpl.rcParams) == before


def test_an_unknown_ending_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"picture\.bmp: unknown ending '\.bmp'"):
        save_figure(Figure(), tmp_path / "picture.bmp")
    assert not list(tmp_path.iterdir())
