"""Types of arrays, by what they hold. Shapes stand as comments next to the arguments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
Intervention = npt.NDArray[np.uint8]  # (N,): a regime for every node
Interventions = npt.NDArray[np.uint8]  # (n, N)
