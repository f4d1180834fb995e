"""Moments of rounds with missing values, as they are expected by draws of the system.

Given a draw of the system a round is jointly Gaussian: the missing values have a mean and a
covariance given those measured, wherever in the order they are. With them the round has moments
like any other (data augmentation, in expectation), averaged over the draws.

What is filled in tells a mechanism only what is believed already, so the round must not count
fully. It counts alike for all of its mechanisms, those of missing nodes too: what a pair of nodes
says about their direction is the difference of what it says to the one and to the other mechanism.
A round that says more to one of them would speak for a direction without having seen it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NEEDED = 3  # nodes that a mechanism needs: its own and, in sparse systems, two parents


@kernel
def share_of_round(n_missing: int, n_nodes: int) -> float:
    """How much a round counts: how likely it is that none of what a mechanism needs is missing."""
    return (1.0 - n_missing / n_nodes) ** NEEDED


@kernel
def fill(
    values: FloatArray,  # (N,), nan where missing
    missing: IntArray,  # (k,) those nodes
    regimes: npt.NDArray[np.uint8],  # (N,)
    weights: FloatArray,  # (R, N, N) of one draw
    intercept: FloatArray,  # (R, N)
    noise_std: FloatArray,  # (R, N)
    row: FloatArray,  # (N,) out: values, and means of the missing ones given the others
    spread: FloatArray,  # (k, k) out: covariance of the missing ones
) -> None:
    """From e = S^-1 ((I - B^T) x - b), standard normal: its slopes J by the missing x, J^T J."""
    n, k = len(values), len(missing)
    row[:] = values
    row[missing] = 0.0
    slopes, error = np.zeros((n, k)), np.empty(n)
    for i in range(n):
        scale = noise_std[regimes[i], i]
        total = row[i] - intercept[regimes[i], i]
        for j in range(n):
            total -= weights[regimes[i], j, i] * row[j]
        error[i] = total / scale
        for m in range(k):
            slopes[i, m] -= weights[regimes[i], missing[m], i] / scale
            if missing[m] == i:
                slopes[i, m] += 1.0 / scale
    lower = np.zeros((k, k))  # Cholesky factor of the precision
    for a in range(k):
        for c in range(a + 1):
            total = 0.0
            for i in range(n):
                total += slopes[i, a] * slopes[i, c]
            for b in range(c):
                total -= lower[a, b] * lower[c, b]
            lower[a, c] = math.sqrt(total) if a == c else total / lower[c, c]
    inverse = np.zeros((k, k))  # of the factor
    for c in range(k):
        inverse[c, c] = 1.0 / lower[c, c]
        for a in range(c + 1, k):
            total = 0.0
            for b in range(c, a):
                total += lower[a, b] * inverse[b, c]
            inverse[a, c] = -total / lower[a, a]
    for a in range(k):
        for c in range(k):
            total = 0.0
            for b in range(max(a, c), k):
                total += inverse[b, a] * inverse[b, c]
            spread[a, c] = total
    for a in range(k):
        for c in range(k):
            for i in range(n):
                row[missing[a]] -= spread[a, c] * slopes[i, c] * error[i]


@kernel
def add_round(
    gram: FloatArray,  # (R, N, N+1, N+1), added to
    values: FloatArray,  # (N,), nan where missing, from the zero of the draws
    move: FloatArray,  # (N,), added on the way to the zero of the moments
    regimes: npt.NDArray[np.uint8],  # (N,)
    taught: BoolArray,  # (N,) whose mechanism learns from this round
    weights: FloatArray,  # (draws, R, N, N), and so on as in `Draws`
    intercept: FloatArray,
    noise_std: FloatArray,
) -> None:
    n, missing = len(values), np.flatnonzero(np.isnan(values))
    share = share_of_round(len(missing), n)
    if share == 0.0:
        return
    expected, n_used = np.zeros((n + 1, n + 1)), 0
    row, spread = np.ones(n + 1), np.empty((len(missing), len(missing)))
    for d in range(len(weights)):
        fill(values, missing, regimes, weights[d], intercept[d], noise_std[d], row[:n], spread)
        row[:n] += move
        if not (math.isfinite(row.sum()) and math.isfinite(spread.sum())):
            continue  # a draw so wild that nothing follows from it
        n_used += 1
        for j in range(n + 1):
            for k in range(n + 1):
                expected[j, k] += row[j] * row[k]
        for a in range(len(missing)):
            for c in range(len(missing)):
                expected[missing[a], missing[c]] += spread[a, c]
    if n_used:
        for i in range(n):
            if taught[i]:
                gram[regimes[i], i] += share / n_used * expected


@kernel
def add_rounds(
    gram: FloatArray,
    values: FloatArray,  # (n, N)
    move: FloatArray,
    regimes: npt.NDArray[np.uint8],  # (n, N)
    taught: BoolArray,  # (n, N)
    weights: FloatArray,
    intercept: FloatArray,
    noise_std: FloatArray,
) -> None:
    """As `add_round`, of several rounds."""
    for t in range(len(values)):
        add_round(gram, values[t], move, regimes[t], taught[t], weights, intercept, noise_std)
