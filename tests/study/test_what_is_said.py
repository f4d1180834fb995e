"""What a study says of its best setting and of its trials: in units that people measure in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import Study
from causalarms.errors import FarValueWarning

NODES = ("pressure", "yield")
FACTORS: dict[str, dict[str, Any]] = {
    "oven": {"range": [430, 490], "step": 20},
    "supplier": {"levels": ["Alfa", "Beta"]},
    "primer": {"levels": ["none", "P1"]},
}


def coated(offset: float = 0.0, n: int = 60) -> Study:
    """Pressure lies `offset` above zero; the oven moves it, and it moves the yield."""
    study = Study.create(None, NODES, "yield", factors=FACTORS, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(n):
        trial = study.ask()
        pressure = 3.0 * (trial.levels["oven"] - 430) + 5.0 * rng.normal()
        made = 80 + 0.05 * pressure + (trial.levels["supplier"] == "Beta") + 0.5 * rng.normal()
        study.tell(trial, [offset + pressure, made])
    return study


def test_levels_of_a_range_are_shown_as_they_were_written() -> None:
    study = coated(n=1)
    assert "." not in study.ask().words
    assert [str(level) for level in study.settings.named.factors[0].levels] == [
        "430", "450", "470", "490",
    ]  # fmt: skip
    given = {"load": {"range": [0, 1], "step": 0.5}}
    halves = Study.create(None, NODES, "yield", factors=given).settings.named
    assert halves.factors[0].levels == (0.0, 0.5, 1.0)


def test_offsets_do_not_matter_to_what_an_edge_carries() -> None:
    """A pressure of 100000 Pa does not carry 5000 of a yield of 90."""
    zero, far = (coated(offset).explain(59) for offset in (0.0, 1e5))
    for found in (zero, far):
        edges = {(e["parent"], e["child"]): e["carries"] for e in found["edges"]}
        assert ("pressure", "yield") in edges
        assert sum(map(abs, edges.values())) < 20
    for ours, theirs in zip(zero["edges"][:2], far["edges"][:2], strict=True):
        assert (ours["parent"], ours["child"]) == (theirs["parent"], theirs["child"])
        assert abs(ours["carries"] - theirs["carries"]) < 0.2 + 0.2 * abs(ours["carries"])


def test_a_typing_error_does_not_change_what_an_edge_carries() -> None:
    study = coated(1e3)
    trial = study.ask()
    with pytest.warns(FarValueWarning):
        study.tell(trial, [1e6, 90.0])
    later = study.ask()
    assert study.left_out()
    assert all(abs(edge["carries"]) < 20 for edge in study.explain(later)["edges"])
    text = study.explain(later)["text"]
    assert f"Note: trial {trial.number}: 'pressure' = 1e+06 left out as a probable" in text
    assert "...." not in text


def test_rivals_come_by_their_probability_and_those_never_tried_are_said_to_be() -> None:
    best = coated().best()
    chances = [rival.better for rival in best.rivals]
    assert len(chances) == 3
    assert chances == sorted(chances, reverse=True)
    if not any(rival.tried for rival in best.rivals):
        assert "its leading rivals were never tried, and" in best.stayed
    else:
        assert "0, 0 and 0" not in best.stayed


def test_rivals_that_are_as_good_are_said_to_be() -> None:
    """The number of a machine does nothing: the results cannot tell one from another."""
    given: dict[str, Any] = {"oven": {"levels": [1, 2]}, "machine": {"levels": ["a", "b"]}}
    study = Study.create(None, ["t", "y"], "y", factors=given, seed=1)
    rng = np.random.default_rng(0)
    oven, machine = np.arange(16) % 2, np.arange(16) // 2 % 2
    y = 5.0 * oven + np.repeat(rng.normal(size=4), 4)  # exactly the same with both machines
    levels = {"do:oven": oven + 1, "do:machine": np.array(["a", "b"])[machine]}
    study.import_rounds({"t": rng.normal(size=16), "y": y, **levels})
    best = study.best()
    assert best.levels == {"oven": 2, "machine": "a"}
    assert [r.levels for r in best.rivals if r.equal] == [{"oven": 2, "machine": "b"}]
    assert (best.tried, best.tried_equal) == (4, 4)


def test_what_hardly_narrows_is_said_to() -> None:
    text = coated().explain(59)["text"]
    assert "hardly narrow the uncertainty" in text
    assert "Of all others the best on average is oven" in text
