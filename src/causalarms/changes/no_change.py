"""The stationary case: nothing ever changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.changes.alarm import Alarm
from causalarms.limits import MAX_REGIMES

FloatArray = npt.NDArray[np.float64]


class NoChange:
    """A detector that never alarms."""

    window = 0
    n_regimes = MAX_REGIMES  # any number

    def observe(
        self,
        round_: int,
        regimes: npt.NDArray[np.uint8],
        residuals: FloatArray,
        noise_mean: FloatArray,
        noise_std: FloatArray,
    ) -> list[Alarm]:
        return []

    def rebuild(self, regime: int, node: int, rounds: npt.ArrayLike, residuals: FloatArray) -> None:
        pass

    def forget(self, regime: int, node: int) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass
