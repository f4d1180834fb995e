"""The sweep operator: regressors go into a regression and out again in O(N^2) each.

In the normal equations swept by the regressors P, every other node's gain from entering and every
member's loss from leaving are read off its diagonal entry and its entry of the target's column:
    squares afterwards   M_tt - M_jt^2 / M_jj
    log determinant      + log |M_jj|
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.parent_scores import Noise, fit_score, noise_of, score_by_size
from causalarms.posterior.prior import KernelPrior
from causalarms.statistics.normal_equations import normal_equations, sweep

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

WORTH_A_STEP = 1e-6  # nats; steps that gain less may run in circles by rounding


@kernel
def equations_of_all(
    gram: FloatArray, regime: int, node: int, prior: KernelPrior, inside: BoolArray
) -> FloatArray:
    """Normal equations of all nodes, the constant and the target, swept by what is inside."""
    n = len(gram) - 1
    noise_mean = prior.noise_mean[regime, node]
    with_intercept = math.isnan(noise_mean)
    matrix = normal_equations(
        gram,
        node,
        np.arange(n + 1),
        0.0 if with_intercept else noise_mean,
        prior.weight_precision,
        prior.intercept_precision,
    )
    if with_intercept:
        sweep(matrix, n)
    for j in range(n):
        if inside[j] and matrix[j, j] > 0.0:  # else rounding has eaten it
            sweep(matrix, j)
    return matrix


@kernel
def toggle_gain(
    matrix: FloatArray,
    j: int,
    enters: bool,
    size: int,  # number of parents at present
    by_size: FloatArray,
    noise: Noise,
) -> float:
    """By how much the score rises where node j enters, or leaves."""
    target = len(matrix) - 1
    pivot, squares = matrix[j, j], matrix[target, target]
    if (pivot > 0.0) != enters or (enters and size == len(by_size) - 1):
        return -np.inf  # rounding has eaten the pivot: nothing is known of this node
    return (
        by_size[size + 1 if enters else size - 1]
        - by_size[size]
        - 0.5 * math.log(abs(pivot))
        + fit_score(squares - matrix[j, target] ** 2 / pivot, noise)
        - fit_score(squares, noise)
    )


@kernel
def toggle_gains(
    matrix: FloatArray,
    inside: BoolArray,
    by_size: FloatArray,
    noise: Noise,
    gains: FloatArray,  # (N,) out
) -> None:
    size = inside.sum()
    for j in range(len(inside)):
        gains[j] = toggle_gain(matrix, j, not inside[j], size, by_size, noise)


@kernel
def climb(
    matrix: FloatArray,
    inside: BoolArray,
    possible: BoolArray,
    by_size: FloatArray,
    noise: Noise,
    gains: FloatArray,
) -> float:
    """Parents enter or leave, each time the one with the largest gain, to the top; the gain."""
    n, total = len(possible), 0.0
    for _ in range(3 * n):
        toggle_gains(matrix, inside, by_size, noise, gains)
        best, gain = -1, WORTH_A_STEP
        for j in range(n):
            if possible[j] and gains[j] > gain:
                best, gain = j, gains[j]
        if best < 0:
            break
        sweep(matrix, best)
        inside[best] = not inside[best]
        total += gain
    return total


@kernel
def parent_log_odds(
    gram: FloatArray,
    regime: int,
    node: int,
    prior: KernelPrior,
    possible: BoolArray,  # (N,) may be parents
    required: BoolArray,  # (N,) are parents, and not among the possible
    log_odds: FloatArray,  # (N,) out
) -> None:
    """Log odds of every node being a parent, beside the best set of parents among the possible.

    The best set is the better of two, reached from none and from all. Odds compare it with the
    best set on the other side among the other top and the sets one step or one exchange away.
    Nodes that are not possible get them too, as if they alone were.
    """
    n = len(possible)
    noise = noise_of(gram, regime, node, prior)
    by_size = score_by_size(gram, regime, node, prior)
    inside = required.copy()
    matrix = equations_of_all(gram, regime, node, prior, inside)
    other_inside, other, ahead = inside.copy(), matrix.copy(), 0.0
    for j in range(n):
        if possible[j]:
            toggle_gains(other, other_inside, by_size, noise, log_odds)
            if log_odds[j] > -np.inf:
                ahead -= log_odds[j]
                sweep(other, j)
                other_inside[j] = True
    ahead -= climb(other, other_inside, possible, by_size, noise, log_odds)
    ahead += climb(matrix, inside, possible, by_size, noise, log_odds)
    if ahead < 0.0:
        matrix, inside, other_inside, ahead = other, other_inside, inside, -ahead
        toggle_gains(matrix, inside, by_size, noise, log_odds)
    for j in range(n):
        if inside[j]:
            log_odds[j] = -log_odds[j]
        if inside[j] != other_inside[j]:
            log_odds[j] = min(log_odds[j], ahead) if inside[j] else max(log_odds[j], -ahead)
    after = np.empty(n)
    for j in range(n):
        if not inside[j] or required[j]:
            continue
        exchanged = matrix.copy()
        sweep(exchanged, j)
        inside[j] = False
        toggle_gains(exchanged, inside, by_size, noise, after)
        inside[j] = True
        loss = after[j]
        for k in range(n):
            if k != j and not inside[k]:
                log_odds[k] = max(log_odds[k], after[k] - loss)
                if possible[k]:
                    log_odds[j] = min(log_odds[j], loss - after[k])
