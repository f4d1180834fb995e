"""Exact probabilities of edges: forward and backward sums over orders meet at every node.

The probability of parent set P of a mechanism is exp(score) times the sum, over the sets S that
contain P and come before the node, of what all other mechanisms contribute.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.orders import with_gap
from causalarms.posterior.refresh import ScoreTables
from causalarms.posterior.subset_sums import superset_log_sums

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@kernel
def edge_probabilities(
    tables: ScoreTables,
    regimes: IntArray,  # (N,)
    forward: FloatArray,  # (2^N,)
    backward: FloatArray,  # (2^N,)
) -> FloatArray:
    """(R, N, N) as [regime, parent, child]."""
    scores, within = tables.scores, tables.within
    n, n_sets = scores.shape[1], scores.shape[2]
    probability = np.zeros((len(scores), n, n))
    others = np.empty(n_sets)
    total = forward[-1]
    for regime in range(len(scores)):
        for node in range(n):
            if regime >= regimes[node]:
                continue
            for before in range(n_sets):
                others[before] = forward[with_gap(before, node)]
            for r in range(regimes[node]):
                if r != regime:
                    others += within[r, node]
            for before in range(n_sets):
                after = backward[with_gap(before, node) | (1 << node)]
                others[before] = others[before] + tables.past[node, before] + after - total
            superset_log_sums(others, others, tables.mantissa, tables.exponent)
            for parents in range(n_sets):
                chance = math.exp(scores[regime, node, parents] + others[parents])
                if chance == 0.0:
                    continue
                for j in range(n - 1):
                    if parents >> j & 1:
                        probability[regime, j + (j >= node), node] += chance
    return np.minimum(probability, 1.0)
