"""What a round with missing values says to each mechanism, as one weighted row of its moments.

Along the order of a drawn system the values that were measured have the likelihood
prod over i of N(x_i; b_i + w . z, s^2 + w^T C w), where z holds the measured predecessors of i and
the expectations of the missing ones given the predecessors measured, and C the covariance of those.
So to mechanism i the round is a regression row (z, x_i) with noise 1/omega times as large as usual,
omega = s^2 / (s^2 + w^T C w). A filter that walks along the order gives z and C of all nodes. Rows
are averaged over draws of the system; what they differ in is doubt about z, and adds to w^T C w.

A mechanism whose node is missing learns nothing. Nodes that come later than i in a draw are filled
by what is expected of them before x_i is known.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


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
        if extra[node] > 0.0:
            error = values[node] - expected
            for j in order[:place]:
                gain = shared[j] / variance
                mean[j] += gain * error
                for k in order[:place]:
                    spread[j, k] -= gain * shared[k]


@kernel
def add_round(
    gram: FloatArray,  # (R, N, N+1, N+1), added to
    values: FloatArray,  # (N,), nan where missing, from the zero of the draws
    move: FloatArray,  # (N,), added on the way to the zero of the moments
    regimes: npt.NDArray[np.uint8],  # (N,)
    taught: BoolArray,  # (N,) whose mechanism learns from this round
    order: IntArray,  # (draws, N), and so on as in `Draws`
    weights: FloatArray,
    intercept: FloatArray,
    noise_std: FloatArray,
) -> None:
    n, n_draws = len(values), len(order)
    filled, extra = np.empty((n_draws, n, n)), np.empty((n_draws, n))
    for d in range(n_draws):
        expectations(
            values, regimes, order[d], weights[d], intercept[d], noise_std[d], filled[d], extra[d]
        )
    row = np.ones(n + 1)
    for node in range(n):
        if not taught[node] or math.isnan(values[node]):
            continue
        for j in range(n):
            if math.isnan(values[j]):
                row[j] = 0.0
                for d in range(n_draws):
                    row[j] += filled[d, node, j] / n_draws
            else:
                row[j] = values[j]
        share = error = 0.0
        for d in range(n_draws):
            expected, doubt = intercept[d, regimes[node], node], 0.0
            for j in range(n):
                w = weights[d, regimes[node], j, node]
                if w != 0.0:
                    expected += w * row[j]
                    if math.isnan(values[j]):
                        doubt += w * (filled[d, node, j] - row[j])
            own = noise_std[d, regimes[node], node] ** 2
            share += own / (own + extra[d, node] + doubt**2) / n_draws
            error += (values[node] - expected) / n_draws
        for j in range(n):
            row[j] += move[j]
        if not math.isfinite(share + error + row.sum()):
            continue  # a draw so wild that it says nothing
        matrix = gram[regimes[node], node]
        for j in range(n + 1):
            for k in range(n + 1):
                matrix[j, k] += share * row[j] * row[k]
        # an error is 1 / share times too large, squared: `share` samples of plain noise are meant
        matrix[node, node] -= share * (1.0 - share) * error**2


@kernel
def add_rounds(
    gram: FloatArray,
    values: FloatArray,  # (n, N)
    move: FloatArray,
    regimes: npt.NDArray[np.uint8],  # (n, N)
    taught: BoolArray,  # (n, N)
    order: IntArray,
    weights: FloatArray,
    intercept: FloatArray,
    noise_std: FloatArray,
) -> None:
    """As `add_round`, of several rounds."""
    for t in range(len(values)):
        add_round(
            gram, values[t], move, regimes[t], taught[t], order, weights, intercept, noise_std
        )
