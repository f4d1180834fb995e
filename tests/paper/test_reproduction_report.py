"""What the report says of a number: where the paper's value is, and why, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causalarms.paper.headlines import FEW, INSIDE, NEAR, OUTSIDE, WIDE, Headline
from causalarms.paper.report import Reading, counts, reasons, table_rows
from causalarms.paper.settings import PAPER_RUNS, Settings
from causalarms.simulation.summary import Interval

NAN = float("nan")


def headline(
    paper: float | None, value: float, low: float, high: float, unit: str = "%", key: str = "k"
) -> Headline:
    return Headline(key, "a number", paper, Interval(value, low, high), unit)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (headline(89.3, 88.9, 86.3, 91.4), INSIDE),
        (headline(86.8, 80.5, 75.0, 86.4), NEAR),  # a thirtieth of the room of 13.2
        (headline(86.8, 78.5, 74.0, 83.0), OUTSIDE),  # more than a quarter of it
        (headline(92.7, 79.7, 78.5, 80.5), OUTSIDE),
        # six points around 7.0 were taken for agreement
        (headline(7.0, 12.9, 11.0, 14.0), OUTSIDE),
        (headline(7.0, 7.0, 1.0, 13.0), WIDE),
        # the interval of a few systems
        (headline(79.0, 65.0, 30.0, 95.0), WIDE),
        # wide, and still no place for the paper's value
        (headline(79.0, 20.0, 0.0, 45.0), OUTSIDE),
        (headline(100.0, 99.9, 99.7, 100.0), INSIDE),
        (headline(100.0, 97.0, 96.0, 98.0), OUTSIDE),
        (headline(13.1, 15.2, 12.1, 19.0, "rounds"), INSIDE),
        (headline(13.1, 18.1, 9.9, 29.6, "rounds"), WIDE),
        (headline(None, 50.0, 49.0, 51.0), ""),
        (headline(50.0, NAN, NAN, NAN), ""),
    ],
)
def test_the_papers_value_is_inside_near_or_outside(found: Headline, verdict: str) -> None:
    assert found.verdict(PAPER_RUNS) == verdict


def test_a_few_systems_say_nothing() -> None:
    assert headline(89.3, 89.0, 88.0, 90.0).verdict(4) == FEW


def reading(*found: Headline, runs: int = PAPER_RUNS, **settings: object) -> Reading:
    return Reading(replace(Settings(), **settings), runs, list(found), {}, {})  # type: ignore[arg-type]


ABOVE = headline(92.7, 97.1, 96.8, 97.4, key="recall GOLEM")
BELOW = headline(92.7, 79.7, 78.9, 80.5, key="recall GOLEM")


def test_a_reason_fits_the_sign_the_distribution_the_sizes_and_the_runs() -> None:
    (better,) = reasons(reading(ABOVE))
    assert "our fits of the same objective find more" in better
    (weak,) = reasons(reading(BELOW, weights="uniform"))
    assert "weaker than 0.5" in weak
    for other in (
        reading(BELOW),
        reading(ABOVE, weights="uniform"),
        reading(ABOVE, sizes=(16, 18)),
        reading(ABOVE, runs=PAPER_RUNS - 1),
        reading(ABOVE._replace(measured=Interval(92.0, 91.0, 93.0))),
        reading(ABOVE._replace(key="something else")),
    ):
        assert reasons(other) == []


def test_readings_stand_side_by_side_and_are_counted() -> None:
    near = headline(86.8, 80.5, 75.0, 86.4)
    both = [reading(BELOW, near, weights="uniform"), reading(ABOVE, near)]
    first, second = table_rows(both)
    assert first[1:] == ["92.7 %", "79.7 (78.9 - 80.5)", OUTSIDE, "97.1 (96.8 - 97.4)", OUTSIDE]
    assert second[3] == "near (0.4 away)"
    assert counts(both[0]) == "text: U(-2, 2): of 2 stated numbers 1 near, 1 outside"
