"""Detected, delayed, missed, never played, false: on runs small enough to count by hand."""

from __future__ import annotations

from typing import Any

from causalarms.simulation.summary import Detection, detection


def record(alarms: list[list[Any]], played: list[list[int]]) -> dict[str, Any]:
    """Mechanisms (0, 1) and (1, 2) change after round 100, (0, 1) again after round 200."""
    return {
        "changes": [
            {"after": 100, "mechanisms": [[0, 1], [1, 2]]},
            {"after": 200, "mechanisms": [[0, 1]]},
        ],
        "played_after": played,
        "alarms": alarms,
    }


def alarm(round_: int, regime: int, node: int) -> list[Any]:
    return [round_, regime, node, round_ - 5, 30.0]


def test_the_first_alarm_of_a_changed_mechanism_detects_and_further_ones_are_false() -> None:
    alarms = [alarm(107, 0, 1), alarm(150, 0, 1), alarm(103, 1, 2), alarm(230, 0, 1)]
    found = detection(record(alarms, [[90, 90], [90]]), 300)
    assert found == Detection(played=3, unplayed=0, delays=[7, 3, 30], false_alarms=1)


def test_alarms_before_the_change_on_others_or_too_late_are_false() -> None:
    alarms = [alarm(100, 0, 1), alarm(120, 0, 2), alarm(201, 1, 2)]
    found = detection(record(alarms, [[90, 90], [90]]), 300)
    assert found == Detection(played=3, unplayed=0, delays=[], false_alarms=3)


def test_mechanisms_never_played_are_counted_apart() -> None:
    found = detection(record([alarm(107, 0, 1)], [[90, 0], [0]]), 300)
    assert found == Detection(played=1, unplayed=2, delays=[7], false_alarms=0)


def test_an_alarm_of_the_whole_graph_names_no_mechanism_and_is_false_only_when_repeated() -> None:
    alarms = [alarm(50, -1, -1), alarm(120, -1, -1), alarm(180, -1, -1), alarm(220, -1, -1)]
    found = detection(record(alarms, [[90, 90], [90]]), 300)
    assert found == Detection(played=3, unplayed=0, delays=[], false_alarms=2)
