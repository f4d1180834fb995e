"""Where chains begin: nodes one by one, the least spread given those already placed comes next.

A cause varies less, given the earlier nodes, than its effects do: exact where all noise has the
same variance (Chen, Drton and Wang, 2019), a place to begin otherwise. Further chains choose with
random errors, so that they begin apart.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.prior import KernelPrior
from causalarms.posterior.swept import equations_of_all
from causalarms.statistics.normal_equations import sweep

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


@kernel
def order_by_spread(
    gram: FloatArray,  # (R, N, N+1, N+1)
    prior: KernelPrior,
    required: BoolArray,  # (R, N, N)
    errors: FloatArray,  # (N,) added to the log variances
) -> IntArray:
    """Ends with -1 where required edges leave no order."""
    n = gram.shape[1]
    order = np.full(n, -1)
    placed = np.zeros(n, dtype=np.bool_)
    systems = np.empty((len(gram), n, n + 2, n + 2))
    nothing = np.zeros(n, dtype=np.bool_)
    for node in range(n):
        for regime in range(prior.regimes[node]):
            systems[regime, node] = equations_of_all(
                gram[regime, node], regime, node, prior, nothing
            )
    for position in range(n):
        best, least = -1, np.inf
        for node in range(n):
            possible = not placed[node]
            for regime in range(prior.regimes[node]):
                for j in range(n):
                    if required[regime, j, node] and not placed[j]:
                        possible = False
            if not possible:
                continue
            squares, freedom = 1.0, 1.0
            for regime in range(prior.regimes[node]):
                squares += max(systems[regime, node, n + 1, n + 1], 0.0)
                freedom += max(gram[regime, node, n, n] - position, 0.0)
            value = math.log(squares / freedom) + errors[node]
            if best < 0 or value < least:
                best, least = node, value
        if best < 0:
            break
        order[position], placed[best] = best, True
        for node in range(n):
            for regime in range(prior.regimes[node]):
                if not placed[node]:
                    sweep(systems[regime, node], best)
    return order
