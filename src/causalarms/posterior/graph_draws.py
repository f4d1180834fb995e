"""Exact draws of an order and, given it, of the parents of every mechanism."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.orders import without

FloatArray = npt.NDArray[np.float64]

NEGLIGIBLE = -60.0  # nats below the sum: all 2^19 parent sets together stay below 1e-20


@kernel
def draw_graph(
    scores: FloatArray,  # (R, N, 2^(N-1))
    within: FloatArray,  # (R, N, 2^(N-1))
    local: FloatArray,  # (N, 2^(N-1))
    forward: FloatArray,  # (2^N,)
    regimes: npt.NDArray[np.int64],  # (N,)
    uniforms: FloatArray,  # (N, 1 + R or more): who comes last, parents in each regime
    order: npt.NDArray[np.int64],  # (N,) out
    adjacency: npt.NDArray[np.bool_],  # (R, N, N) out
) -> None:
    n = len(order)
    adjacency[:] = False
    mask = (1 << n) - 1
    for position in range(n - 1, -1, -1):
        node = _draw_last(local, forward, mask, uniforms[position, 0])
        order[position] = node
        before = without(mask, node)
        for regime in range(regimes[node]):
            parents = draw_parents(
                scores[regime, node],
                within[regime, node, before],
                before,
                uniforms[position, 1 + regime],
            )
            for j in range(n - 1):
                if parents >> j & 1:
                    adjacency[regime, j + (j >= node), node] = True
        mask ^= 1 << node


@kernel
def _draw_last(local: FloatArray, forward: FloatArray, mask: int, uniform: float) -> int:
    chosen, reached = -1, 0.0
    for i in range(len(local)):
        if mask >> i & 1:
            value = forward[mask ^ (1 << i)] + local[i, without(mask, i)] - forward[mask]
            if value == -np.inf:
                continue
            chosen = i  # the last possible one stays, should rounding leave the sum below uniform
            reached += math.exp(value)
            if reached > uniform:
                break
    return chosen


@kernel
def draw_parents(scores: FloatArray, total: float, before: int, uniform: float) -> int:
    """One set within `before`; the bits of a number smaller by one run through all subsets."""
    chosen, best, reached = 0, -np.inf, 0.0
    subset = before
    while True:
        value = scores[subset] - total
        if value > NEGLIGIBLE:
            reached += math.exp(value)
            if reached > uniform:
                return subset
        if value > best:
            chosen, best = subset, value
        if subset == 0:
            return chosen  # rounding left the sum below uniform: the most probable one
        subset = (subset - 1) & before
