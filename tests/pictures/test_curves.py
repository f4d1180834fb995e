"""Curves of results: blocks where blocks are, the intervals of the table, every system counted."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from causalarms.pictures import draw_normalised_regret, draw_optimal_share, draw_regret
from causalarms.simulation import Contestant, Experiment, monte_carlo, summarise

CHANGE = 60
EXPERIMENT = Experiment(
    n_nodes=3,
    horizon=120,
    block=20,
    changes=(CHANGE,),
    n_changed=1,
    contestants=(Contestant("oracle"), Contestant("random"), Contestant("ucb", "$ucb_1$")),
)


@cache
def records() -> list[dict[str, Any]]:
    return monte_carlo(EXPERIMENT, runs=5, n_jobs=1)


def test_a_block_is_drawn_over_its_own_rounds() -> None:
    """A curve through the middles of blocks fell before the change that it fell for."""
    shares = [dict(r) for r in records() if r["policy"] == "oracle"]
    for record in shares:
        record["optimal_curve"] = [1.0, 1.0, 1.0, 0.2, 1.0, 1.0]
    axes: Any = draw_optimal_share(EXPERIMENT, shares).axes[0]
    line = axes.lines[0]
    assert line.get_drawstyle() == "steps-post"
    assert line.get_xdata().tolist() == [0, 20, 40, 60, 80, 100, 120]
    assert line.get_ydata().tolist() == [100, 100, 100, 20, 100, 100, 100]
    assert axes.lines[-1].get_xdata() == [CHANGE, CHANGE]


def test_the_picture_has_the_intervals_of_the_table() -> None:
    rows = summarise(EXPERIMENT, records())
    for draw, columns in (
        (draw_regret, [row.regret for row in rows]),
        (draw_normalised_regret, [row.normalised_regret for row in rows]),
        (draw_optimal_share, [row.final_optimal_share for row in rows]),
    ):
        axes: Any = draw(EXPERIMENT, records()).axes[0]
        unit = 100 if draw is draw_optimal_share else 1
        for line, band, column in zip(axes.lines, axes.collections, columns, strict=False):
            assert line.get_ydata()[-1] == pytest.approx(unit * column.value, abs=1e-4)
            ends = band.get_paths()[0].vertices
            ends = ends[ends[:, 0] == 120, 1]
            found = [ends.min() / unit, ends.max() / unit]
            np.testing.assert_allclose(found, [column.low, column.high], atol=1e-5)


def drawn(played: list[dict[str, Any]]) -> Any:
    return draw_normalised_regret(EXPERIMENT, played).axes[0].lines[0].get_ydata()


def test_normalised_regret_counts_every_system_alike() -> None:
    played = [dict(r) for r in records() if r["policy"] == "random"]
    before = drawn(played)
    assert before[-1] == pytest.approx(1.0, abs=0.3)  # by definition, up to the luck of the draw
    played[0] = dict(played[0])  # one system in other units
    played[0]["regret_curve"] = [1000 * value for value in played[0]["regret_curve"]]
    played[0]["random_regret"] *= 1000
    after = drawn(played)
    np.testing.assert_allclose(after, before)


def test_labels_are_text_and_no_formulas() -> None:
    figure = draw_regret(EXPERIMENT, records())
    texts = [text for legend in figure.legends for text in legend.get_texts()]
    assert [text.get_text() for text in texts] == ["oracle", "random", "$ucb_1$"]
    assert not any(text.get_parse_math() for text in texts)


def test_no_axis_of_regret_goes_below_zero() -> None:
    """Means of 1 and 1000 call for a logarithmic axis; with an oracle 0 must be on it."""

    def played(policy: str, level: float) -> dict[str, Any]:
        curve = list(np.linspace(0.01, 1, 12) * level)
        return {"policy": policy, "regret_curve": curve, "changes": []}

    far = [played("random", 1000.0), played("$ucb_1$", 1.0)]
    axes = draw_regret(EXPERIMENT, far).axes[0]
    assert axes.get_yscale() == "log"
    assert 0 < axes.get_ylim()[0] <= 0.01
    axes = draw_regret(EXPERIMENT, [*far, played("oracle", 0.0)]).axes[0]
    assert axes.get_yscale() == "symlog"
    assert axes.get_ylim()[0] == 0
    near = [played("random", 10.0), played("$ucb_1$", 1.0)]
    assert draw_regret(EXPERIMENT, near).axes[0].get_yscale() == "linear"
