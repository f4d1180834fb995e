"""The stationary case: nothing ever changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.changes.alarm import Alarm
from causalarms.changes.detector import Detector
from causalarms.changes.view import View
from causalarms.limits import MAX_REGIMES


class NoChange(Detector):
    """A detector that never alarms, for any number of nodes."""

    def __init__(self, n_nodes: int = 1, *, n_regimes: int = MAX_REGIMES) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)

    @property
    def watches(self) -> bool:
        return False

    def watch(
        self,
        round_: int,
        intervention: npt.NDArray[np.uint8],
        values: npt.NDArray[np.float64],
        view: View,
    ) -> list[Alarm]:
        return []

    def forget(self, regime: int, node: int) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass

    def check_fits(self, n_nodes: int, n_regimes: int) -> None:
        pass
