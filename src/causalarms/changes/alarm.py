"""What a detector reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.sem.regimes import Counts, existing

ANY = -1  # in place of regime and node: something changed, nobody knows what


class Alarm(NamedTuple):
    """A mechanism no longer produces what its model says."""

    round: int  # the round told last, counted from 1
    regime: int
    node: int
    change_point: int  # the last round before the change, as estimated
    statistic: float  # nats
    threshold: float

    def mechanisms(self, regimes: Counts) -> list[tuple[int, int]]:
        """Those that may have changed (regime, node), of nodes with so many regimes each.

        >>> Alarm(9, ANY, ANY, 5, 30.0, 20.0).mechanisms(np.array([1, 2]))
        [(0, 0), (0, 1), (1, 1)]
        """
        if (self.regime, self.node) != (ANY, ANY):
            return [(self.regime, self.node)]
        return [(regime, node) for regime, node in np.argwhere(existing(regimes)).tolist()]


def starts_after(alarms: Sequence[Alarm], regimes: Counts) -> npt.NDArray[np.int64]:
    """The round after which each mechanism began anew, (R, N); 0: never."""
    starts = np.zeros((int(regimes.max()), len(regimes)), dtype=np.int64)
    for alarm in alarms:
        for mechanism in alarm.mechanisms(regimes):
            starts[mechanism] = alarm.change_point
    return starts
