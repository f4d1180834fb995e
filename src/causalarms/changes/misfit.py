"""A mechanism whose residuals never fit.

Whitening reveals missing edges as well as changes (Sec. V): where an edge is missing, learning the
mechanism anew does not help, and it alarms again soon. Several alarms in a row, each soon after the
one before, point to the model rather than to the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from causalarms.changes.alarm import Alarm

IN_A_ROW = 3
SOON = 200  # rounds


def misfits(alarms: Sequence[Alarm]) -> list[tuple[int, int]]:
    """Mechanisms (regime, node) with three alarms, each within 200 rounds of the one before.

    >>> alarms = [Alarm(t, 0, 2, t - 5, 30.0, 20.0) for t in (300, 400, 520)]
    >>> misfits(alarms), misfits(alarms[:2])
    ([(0, 2)], [])
    """
    found = []
    for mechanism in sorted({(alarm.regime, alarm.node) for alarm in alarms}):
        rounds = [a.round for a in alarms if (a.regime, a.node) == mechanism]
        row = 1
        for before, after in pairwise(rounds):
            row = row + 1 if after - before <= SOON else 1
            if row == IN_A_ROW:
                found.append(mechanism)
                break
    return found
