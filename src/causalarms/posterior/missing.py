"""What a round with missing values says to each mechanism, as weighted moments of its regression.

Along the order of a drawn system the values that were measured have the likelihood
prod over i of N(x_i; b_i + w . z, s^2 + w^T C w), where z holds the measured predecessors of i and
the expectations of the missing ones given the predecessors measured, and C the covariance of those.
So to mechanism i the round is a regression row (z, x_i) with noise 1/omega times as large as usual,
omega = s^2 / (s^2 + w^T C w). A filter that walks along the order gives z and C of all nodes. Rows
are averaged over draws of the system; what they differ in is doubt about z, and adds to w^T C w.
A mechanism whose node is missing learns nothing.

That is right for the graphs drawn. The same moments also judge the graphs in which a missing node j
causes i after all: x_i says nothing about j then if j is filled without it (such graphs lose
(r - 1 - log r) / 2 nats, where r is how much j would explain), and too much if j is filled with it
(they gain log(r) / 2). Where j is no parent, both are mixed, so that they lose and gain about
nothing for r of about three. Otherwise rounds with gaps would confirm whatever is believed.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.kernels import kernel
from causalarms.posterior.base import Draws
from causalarms.statistics.normal_equations import cholesky, invert_factored

WITHOUT = 0.6  # share of being filled without x_i: log(r) / (r - 1) is 0.55 at r = 3, 0.26 at 10


@kernel
def expectations(
    values: FloatArray,  # (N,), nan where missing
    regimes: npt.NDArray[np.uint8],  # (N,)
    order: IntArray,  # (N,)
    weights: FloatArray,  # (R, N, N) of one draw
    intercept: FloatArray,  # (R, N)
    noise_std: FloatArray,  # (R, N)
    filled: FloatArray,  # (N, N) out, as [node, other]: all values as expected before the node
    extra: FloatArray,  # (N,) out: variance that the missing ones add to the node's noise
) -> None:
    n = len(values)
    mean, spread = np.zeros(n), np.zeros((n, n))
    for place in range(n):
        node = order[place]
        # As expected before the node itself is measured: with it, the regression would explain the
        # node by itself.
        filled[node] = mean
        for later in range(place, n):
            k = order[later]
            filled[node, k] = intercept[regimes[k], k]
            for j in order[:later]:
                filled[node, k] += weights[regimes[k], j, k] * filled[node, j]
        w = weights[regimes[node], :, node]
        shared = np.zeros(n)  # covariance of the node with the missing ones
        for j in order[:place]:
            for k in order[:place]:
                shared[j] += spread[j, k] * w[k]
        extra[node] = 0.0
        for j in order[:place]:
            extra[node] += w[j] * shared[j]
        extra[node] = max(extra[node], 0.0)
        expected = filled[node, node]
        variance = extra[node] + noise_std[regimes[node], node] ** 2
        if math.isnan(values[node]):
            mean[node] = expected
            spread[node] = shared
            spread[:, node] = shared
            spread[node, node] = variance
            continue
        mean[node] = values[node]
        # a Kalman update: what was measured here also says something about missing predecessors
        if extra[node] > 0.0:
            error = values[node] - expected
            for j in order[:place]:
                gain = shared[j] / variance
                mean[j] += gain * error
                for k in order[:place]:
                    spread[j, k] -= gain * shared[k]


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
        error[i] = 0.0
        if scale == 0.0:
            continue  # it is set: never missing, and caused by nothing
        total = row[i] - intercept[regimes[i], i]
        for j in range(n):
            total -= weights[regimes[i], j, i] * row[j]
        error[i] = total / scale
        for m in range(k):
            slopes[i, m] -= weights[regimes[i], missing[m], i] / scale
            if missing[m] == i:
                slopes[i, m] += 1.0 / scale
    precision = np.zeros((k + 1, k + 1))  # the last row would be a right-hand side
    for a in range(k):
        for c in range(a + 1):
            for i in range(n):
                precision[a, c] += slopes[i, a] * slopes[i, c]
    cholesky(precision, k, 0.0, 0.0)
    invert_factored(precision, spread)
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
    seen: npt.NDArray[np.uint8],  # (n, N), which mechanism each node follows in every draw
    taught: BoolArray,  # (N,) whose mechanism learns from this round
    draws: Draws,
) -> None:
    weights, intercept, noise_std = draws.weights, draws.intercept, draws.noise_std
    n, n_draws, missing = len(values), len(weights), np.flatnonzero(np.isnan(values))
    k = len(missing)
    before, extra = np.empty((n_draws, n, n)), np.empty((n_draws, n))
    row, after = np.ones(n + 1), np.empty(n)
    given_all, spread, part = np.zeros(n), np.zeros((k, k)), np.empty((k, k))
    for d in range(n_draws):
        expectations(
            values, seen[d], draws.order[d], weights[d], intercept[d], noise_std[d],
            before[d], extra[d],
        )  # fmt: skip
        fill(values, missing, seen[d], weights[d], intercept[d], noise_std[d], after, part)
        given_all += after / n_draws
        spread += part / n_draws
    filled, without = np.empty(n), np.empty(k)
    for node in range(n):
        if not taught[node] or math.isnan(values[node]):
            continue
        filled[:] = values
        for m in range(k):
            j = missing[m]
            filled[j] = without[m] = 0.0
            for d in range(n_draws):
                filled[j] += before[d, node, j] / n_draws
                parent = weights[d, seen[d, node], j, node] != 0.0
                without[m] += (1.0 if parent else WITHOUT) / n_draws
        share = error = 0.0
        for d in range(n_draws):
            expected, doubt = intercept[d, seen[d, node], node], 0.0
            for j in range(n):
                w = weights[d, seen[d, node], j, node]
                if w != 0.0:
                    expected += w * filled[j]
                    if math.isnan(values[j]):
                        doubt += w * (before[d, node, j] - filled[j])
            own = noise_std[d, seen[d, node], node] ** 2
            share += own / (own + extra[d, node] + doubt**2) / n_draws
            error += (values[node] - expected) / n_draws
        row[:n] = filled
        for m in range(k):
            j = missing[m]
            row[j] = without[m] * filled[j] + (1.0 - without[m]) * given_all[j]
        row[:n] += move
        if not (math.isfinite(share + error + row.sum()) and math.isfinite(spread.sum())):
            continue  # draws so wild that nothing follows from them
        matrix = gram[regimes[node], node]
        for j in range(n + 1):
            for i in range(n + 1):
                matrix[j, i] += share * row[j] * row[i]
        for a in range(k):
            i = missing[a]
            # The variance of a mixture of the two fillings: their distance counts besides their
            # spread.
            apart = without[a] * (1.0 - without[a]) * (filled[i] - given_all[i]) ** 2
            matrix[i, i] += share * (apart + without[a] * (1.0 - without[a]) * spread[a, a])
            for c in range(k):
                both = (1.0 - without[a]) * (1.0 - without[c])
                matrix[i, missing[c]] += share * both * spread[a, c]
        # an error is 1 / share times too large, squared: `share` samples of plain noise are meant
        matrix[node, node] -= share * (1.0 - share) * error**2


def add_rounds(
    gram: FloatArray,
    values: FloatArray,  # (rounds, N)
    move: FloatArray,
    regimes: npt.NDArray[np.uint8],  # (rounds, N)
    taught: BoolArray,  # (rounds, N)
    draws: Draws,
) -> None:
    """As `add_round`, of several rounds."""
    seen = np.stack([draws.seen(d, regimes) for d in range(len(draws.order))], axis=1)
    # of one type, so that the kernel is compiled once
    _add_rounds(gram, values, move, regimes, seen, taught, draws._replace(by=None))


@kernel
def _add_rounds(
    gram: FloatArray,
    values: FloatArray,
    move: FloatArray,
    regimes: npt.NDArray[np.uint8],
    seen: npt.NDArray[np.uint8],  # (rounds, n, N)
    taught: BoolArray,
    draws: Draws,
) -> None:
    for t in range(len(values)):
        add_round(gram, values[t], move, regimes[t], seen[t], taught[t], draws)
