"""Expected rewards of chosen interventions, by going through the nodes once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.sem.rewards import expected_values


def expected_reward(
    weights: npt.ArrayLike,  # (R, N, N)
    intercept: npt.ArrayLike,  # (N,) or (R, N)
    interventions: npt.ArrayLike,  # (n, N) regimes
    order: npt.ArrayLike,
    reward: int,
) -> npt.NDArray[np.float64]:
    w = np.ascontiguousarray(weights, dtype=float)
    mean = np.broadcast_to(np.asarray(intercept, dtype=float), w.shape[:2])
    rows = np.ascontiguousarray(interventions, dtype=np.uint8)
    return expected_values(w, mean, np.ascontiguousarray(order, dtype=np.int64), rows)[:, reward]
