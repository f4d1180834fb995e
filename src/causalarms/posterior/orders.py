"""Sums and maxima over all orders of the nodes, by dynamic programming over sets of nodes.

`local[i, S]` is what node i contributes when exactly S comes before it, all regimes together: the
log of the product of their sums over parent sets within S. A set without i is written without
its bit (`without`), so that the tables have 2^(N-1) columns.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@kernel
def without(mask: int, node: int) -> int:
    """The bits of the other nodes moved together.

    >>> bin(without(0b1011, 2))
    '0b111'
    """
    return ((mask >> (node + 1)) << node) | (mask & ((1 << node) - 1))


@kernel
def with_gap(mask: int, node: int) -> int:
    """The inverse of `without` for a set that lacks the node."""
    return ((mask >> node) << (node + 1)) | (mask & ((1 << node) - 1))


@kernel
def forward_sums(local: FloatArray) -> FloatArray:
    """F(S): log sum over the orders of S that come first."""
    n = len(local)
    sums = np.empty(1 << n)
    terms = np.empty(n)
    sums[0] = 0.0
    for mask in range(1, 1 << n):
        top, m = -np.inf, 0
        for i in range(n):
            if mask >> i & 1:
                terms[m] = sums[mask ^ (1 << i)] + local[i, without(mask, i)]
                top = max(top, terms[m])
                m += 1
        sums[mask] = _log_sum(terms, m, top)
    return sums


@kernel
def backward_sums(local: FloatArray) -> FloatArray:
    """log sum over the orders of the nodes that come after S."""
    n = len(local)
    sums = np.empty(1 << n)
    terms = np.empty(n)
    sums[(1 << n) - 1] = 0.0
    for mask in range((1 << n) - 2, -1, -1):
        top, m = -np.inf, 0
        for i in range(n):
            if not mask >> i & 1:
                terms[m] = sums[mask | (1 << i)] + local[i, without(mask, i)]
                top = max(top, terms[m])
                m += 1
        sums[mask] = _log_sum(terms, m, top)
    return sums


@kernel
def _log_sum(terms: FloatArray, m: int, top: float) -> float:
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(m):
        total += math.exp(terms[k] - top)
    return top + math.log(total)


@kernel
def restricted_log_sum(
    within: FloatArray, past: FloatArray, kept: IntArray, regimes: IntArray
) -> float:
    """Log sum over orders and over parent sets that are part of `kept` (R, N), sets without i.

    `within` (R, N, 2^(N-1)) holds the sums over the subsets of every set, `past` (N, 2^(N-1)) what
    former mechanisms add.
    """
    n = within.shape[1]
    sums = np.empty(1 << n)
    terms = np.empty(n)
    sums[0] = 0.0
    for mask in range(1, 1 << n):
        top, m = -np.inf, 0
        for i in range(n):
            if mask >> i & 1:
                before = without(mask, i)
                term = sums[mask ^ (1 << i)]
                for regime in range(regimes[i]):
                    term += within[regime, i, before & kept[regime, i]]
                terms[m] = term + past[i, before]
                top = max(top, terms[m])
                m += 1
        sums[mask] = _log_sum(terms, m, top)
    return float(sums[-1])


@kernel
def best_order(local: FloatArray) -> IntArray:
    """The order with the largest sum of local terms; the smallest last node wins a tie."""
    n = len(local)
    best = np.empty(1 << n)
    last = np.empty(1 << n, dtype=np.int8)
    best[0] = 0.0
    for mask in range(1, 1 << n):
        best[mask], last[mask] = -np.inf, -1
        for i in range(n):
            if mask >> i & 1:
                value = best[mask ^ (1 << i)] + local[i, without(mask, i)]
                if value > best[mask] or last[mask] < 0:
                    best[mask], last[mask] = value, i
    order = np.empty(n, dtype=np.int64)
    mask = (1 << n) - 1
    for position in range(n - 1, -1, -1):
        order[position] = last[mask]
        mask ^= 1 << order[position]
    return order
