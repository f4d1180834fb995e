"""What a detector reports."""

from __future__ import annotations

from typing import NamedTuple


class Alarm(NamedTuple):
    """A mechanism no longer produces what its model says."""

    round: int  # the round told last, counted from 1
    regime: int
    node: int
    change_point: int  # the last round before the change, as estimated
    statistic: float  # nats
    threshold: float
