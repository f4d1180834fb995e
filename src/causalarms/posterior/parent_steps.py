"""Parents of a mechanism by steps, each node in or out given the others (Gibbs), without tables.

Every node that may be a parent takes its turn: the swept equations give the exact odds of its being
one, given the present others, in O(1), and in O(N^2) it enters or leaves. From a draw of the tables
a few rounds of this forget that only few nodes were candidates (George and McCulloch, 1993).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.parent_scores import noise_of, score_by_size
from causalarms.posterior.prior import KernelPrior
from causalarms.posterior.swept import equations_of_all, toggle_gain
from causalarms.statistics.normal_equations import sweep

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@kernel
def step_parents(
    gram: FloatArray,
    regime: int,
    node: int,
    prior: KernelPrior,
    possible: BoolArray,  # (N,)
    uniforms: FloatArray,  # (rounds, N)
    inside: BoolArray,  # (N,) changed in place
    chances: FloatArray,  # (N,) out: mean of the odds over the later half of the rounds, as chances
) -> None:
    n, n_rounds = len(possible), len(uniforms)
    noise = noise_of(gram, regime, node, prior)
    by_size = score_by_size(gram, regime, node, prior)
    matrix = equations_of_all(gram, regime, node, prior, inside)
    size = inside.sum()
    chances[:] = 0.0
    for t in range(n_rounds):
        for j in range(n):
            if not possible[j]:
                if inside[j]:
                    chances[j] = 1.0
                continue
            gain = toggle_gain(matrix, j, not inside[j], size, by_size, noise)
            chance = 1.0 / (1.0 + math.exp(gain if inside[j] else -gain))
            if t >= n_rounds // 2:
                chances[j] += chance / (n_rounds - n_rounds // 2)
            enters = uniforms[t, j] < chance
            if enters != inside[j]:
                sweep(matrix, j)
                inside[j] = enters
                size += 1 if enters else -1
