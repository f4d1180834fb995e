"""How well changes were detected.

Detected = an alarm on that mechanism before the next change; delay in rounds from the change to the
first such alarm; mechanisms not played between the change and the next are counted apart; all other
alarms are false. The first alarm of a whole-graph detector after a change is no false alarm, and no
detection of a mechanism either: it does not say which.
"""

from __future__ import annotations

from typing import Any, NamedTuple

WHOLE = -1  # the node of an alarm that names none


class Detection(NamedTuple):
    """Counts over the changes of one run; `delays` of the detected ones."""

    played: int
    unplayed: int
    delays: list[int]
    false_alarms: int

    @property
    def detected(self) -> int:
        return len(self.delays)


def detection(record: dict[str, Any], horizon: int) -> Detection:
    """Compare the alarms of a run's record with its changes."""
    changes = record["changes"]
    ends = [change["after"] for change in changes[1:]] + [horizon]
    first_alarms = set()
    delays: list[int] = []
    played = unplayed = 0
    for change, end, plays in zip(changes, ends, record["played_after"], strict=False):
        for mechanism, n_plays in zip(change["mechanisms"], plays, strict=True):
            if not n_plays:
                unplayed += 1
                continue
            played += 1
            hits = [
                tuple(alarm)
                for alarm in record["alarms"]
                if list(alarm[1:3]) == list(mechanism) and change["after"] < alarm[0] <= end
            ]
            if hits:
                first_alarms.add(hits[0])
                delays.append(hits[0][0] - change["after"])
    for change, end in zip(changes, ends, strict=False):
        whole = [a for a in record["alarms"] if a[2] == WHOLE and change["after"] < a[0] <= end]
        first_alarms |= {tuple(alarm) for alarm in whole[:1]}
    return Detection(played, unplayed, delays, len(record["alarms"]) - len(first_alarms))
