"""The sum of the prior over all orders and parent sets that prior knowledge leaves possible.

Dividing by it makes the evidence that of a proper prior: the free one, conditioned on what the
user knows. Sums over parent sets depend on how many of the possible parents come before a node.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from causalarms.kernels import kernel
from causalarms.posterior.orders import forward_sums
from causalarms.sem.regimes import existing

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def log_prior_sum(
    log_sizes: FloatArray,
    allowed: BoolArray,
    required: BoolArray,
    regimes: npt.NDArray[np.int64],
) -> float:
    """`allowed` and `required` (R, N, N) as [regime, parent, child], `regimes` (N,)."""
    n = len(log_sizes)
    local = np.zeros((n, 1 << (n - 1)))
    for regime, node in np.argwhere(existing(regimes)).tolist():
        certain = np.delete(required[regime, :, node], node)
        free = np.delete(allowed[regime, :, node], node) & ~certain
        add_prior(
            bits_of(free),
            bits_of(certain),
            sums_by_count(log_sizes, int(certain.sum()), int(free.sum())),
            local[node],
        )
    return float(forward_sums(local)[-1])


def sums_by_count(log_sizes: FloatArray, n_required: int, n_free: int) -> FloatArray:
    """Log prior of the required parents with any of `count` free ones, count = 0 .. n_free."""
    return np.array(_sums_by_count(tuple(log_sizes.tolist()), n_required, n_free))


@lru_cache(maxsize=256)  # mechanisms differ little, and posteriors are made often
def _sums_by_count(log_sizes: tuple[float, ...], n_required: int, n_free: int) -> tuple[float, ...]:
    sizes, sums = np.array(log_sizes), []
    for count in range(n_free + 1):
        chosen = np.arange(count + 1)
        ways = gammaln(count + 1) - gammaln(chosen + 1) - gammaln(count - chosen + 1)
        sums.append(float(logsumexp(ways + sizes[n_required + chosen])))
    return tuple(sums)


def bits_of(members: BoolArray) -> int:
    return int((members * (1 << np.arange(len(members)))).sum())


@kernel
def add_prior(free: int, required: int, by_count: FloatArray, local: FloatArray) -> None:
    for mask in range(len(local)):
        if mask & required != required:
            local[mask] = -np.inf
            continue
        count, rest = 0, mask & free
        while rest:
            rest &= rest - 1
            count += 1
        local[mask] += by_count[count]
