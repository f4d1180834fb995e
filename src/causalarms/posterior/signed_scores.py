"""Scores of all parent sets when weights lie around +mean or -mean, both signs equally likely.

A weight then is unlikely to be near zero, and an edge that looks like nothing is nothing. The
marginal likelihood is a sum over the signs of all parents, 3^(N-1) regressions per mechanism. They
share the matrix of `score_parent_sets`; only the right-hand side depends on the signs, and that of
all signs of a set is updated at once. Signs whose share is below e^-40 are not summed up.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.parent_scores import score_by_size
from causalarms.statistics.normal_equations import normal_equations

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

NEGLIGIBLE = 40.0  # nats


@kernel
def log_sum_over_signs(
    squares: FloatArray, n_samples: float, noise_shape: float, known_variance: float
) -> float:
    """Log of the sum of the parts of the likelihood that depend on the sum of squares."""
    least = np.inf
    for k in range(len(squares)):
        least = min(least, squares[k])
    least = max(least, 0.0)  # rounding, where the parents explain everything
    total = 0.0
    if math.isnan(known_variance):
        shape = noise_shape + 0.5 * n_samples
        best = noise_shape + 0.5 * least
        limit = 2.0 * (best * math.exp(NEGLIGIBLE / shape) - noise_shape)
        for k in range(len(squares)):
            if squares[k] < limit:
                total += (best / (noise_shape + 0.5 * max(squares[k], 0.0))) ** shape
        return math.log(total) - shape * math.log(best)
    limit = least + 2.0 * NEGLIGIBLE * known_variance
    for k in range(len(squares)):
        if squares[k] < limit:
            total += math.exp(0.5 * (least - max(squares[k], 0.0)) / known_variance)
    return math.log(total) - 0.5 * least / known_variance


@kernel
def _add_regressor(
    matrix: FloatArray,  # (size, size) before, upper triangle
    further: FloatArray,  # (size, size) after
    sides: FloatArray,  # (rows, patterns): right-hand sides of this and later regressors, squares
    new_sides: FloatArray,  # (rows - 1, patterns, doubled where signed)
    added: int,
    depth: int,
    pull: float,  # what the prior mean adds to the right-hand side; 0 for an intercept
    offset: float,  # what it adds to the sum of squares
) -> None:
    """Row r of `sides` belongs to regressor r + depth: earlier ones are in or left out."""
    size, n_patterns = len(matrix), sides.shape[1]
    pivot = matrix[added, added]
    for k in range(added + 1, size):
        factor = matrix[added, k] / pivot
        for m in range(k, size):
            further[k, m] = matrix[k, m] - factor * matrix[added, m]
    own = sides[added - depth]
    for half in range(new_sides.shape[1] // n_patterns):
        shift = pull if half == 0 else -pull
        start = half * n_patterns
        for k in range(added + 1, size):
            factor = matrix[added, k] / pivot
            old, new = sides[k - depth], new_sides[k - depth - 1, start : start + n_patterns]
            for q in range(n_patterns):
                new[q] = old[q] - factor * (own[q] + shift)
        old, new = sides[size - depth], new_sides[size - depth - 1, start : start + n_patterns]
        for q in range(n_patterns):
            new[q] = old[q] + offset - (own[q] + shift) ** 2 / pivot


@kernel
def score_signed_parent_sets(
    gram: FloatArray,
    node: int,
    allowed: BoolArray,
    required: BoolArray,
    noise_mean: float,
    log_sizes: FloatArray,
    weight_mean: float,
    weight_precision: float,
    intercept_precision: float,
    noise_shape: float,
    known_variance: float,
    scores: FloatArray,
) -> None:
    """As `score_parent_sets`."""
    n = len(gram) - 1
    n_samples = gram[n, n]
    with_intercept = math.isnan(noise_mean)
    regressors = np.empty(n, dtype=np.int64)
    forced, size = 0, 0
    if with_intercept:
        regressors[0], size = n, 1
    for j in range(n):
        if required[j]:
            regressors[size] = j
            size += 1
    forced = size
    for j in range(n):
        if allowed[j] and not required[j] and j != node:
            regressors[size] = j
            size += 1
    equations = normal_equations(
        gram,
        node,
        regressors[:size],
        0.0 if with_intercept else noise_mean,
        weight_precision,
        intercept_precision,
    )
    by_size = score_by_size(
        n_samples,
        log_sizes,
        weight_precision,
        intercept_precision,
        with_intercept,
        noise_shape,
        known_variance,
    )
    scores[:] = -np.inf
    matrices = np.empty((size + 1, size, size))
    matrices[0] = equations[:size, :size]
    begins = np.zeros(size + 2, dtype=np.int64)
    for depth in range(size + 1):
        begins[depth + 1] = begins[depth] + (size + 1 - depth) * (1 << depth)
    room = np.empty(begins[size + 1])
    room[: size + 1] = equations[:, size]
    log_dets = np.zeros(size + 1)
    masks = np.zeros(size + 1, dtype=np.int64)
    following = np.zeros(size + 1, dtype=np.int64)  # next regressor to add at each depth
    pull, offset = weight_mean * weight_precision, weight_mean**2 * weight_precision
    depth = 0
    if forced == 0:
        squares = room[size : size + 1]
        scores[0] = by_size[0] + log_sum_over_signs(squares, n_samples, noise_shape, known_variance)
    while depth >= 0:
        added = following[depth]
        if added == size or (depth < forced and added > depth):
            depth -= 1  # nothing more to add, and forced regressors are never left out
            continue
        following[depth] = added + 1
        j = regressors[added]
        n_old, n_new = _n_patterns(depth, with_intercept), _n_patterns(depth + 1, with_intercept)
        rows = size + 1 - depth
        sides = room[begins[depth] : begins[depth] + rows * n_old].reshape(rows, n_old)
        end = begins[depth + 1] + (rows - 1) * n_new
        new_sides = room[begins[depth + 1] : end].reshape(rows - 1, n_new)
        _add_regressor(
            matrices[depth],
            matrices[depth + 1],
            sides,
            new_sides,
            added,
            depth,
            0.0 if j == n else pull,
            0.0 if j == n else offset,
        )
        log_dets[depth + 1] = log_dets[depth] + math.log(matrices[depth, added, added])
        masks[depth + 1] = masks[depth] | (0 if j == n else 1 << (j - (j > node)))
        depth += 1
        following[depth] = added + 1
        if depth >= forced:
            n_parents = depth - with_intercept
            scores[masks[depth]] = (
                by_size[n_parents]
                - n_parents * math.log(2.0)
                - 0.5 * log_dets[depth]
                + log_sum_over_signs(
                    new_sides[size - depth], n_samples, noise_shape, known_variance
                )
            )


@kernel
def _n_patterns(depth: int, with_intercept: bool) -> int:
    """Signs of all weights among the first regressors; the intercept comes first and has none."""
    return 1 << max(depth - with_intercept, 0)
