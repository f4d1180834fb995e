"""What a former mechanism still says: not its parents or weights, but the order of the nodes.

A mechanism that changed is replaced by one with parents and weights of its own among the same
predecessors. Given the set S before the node, its samples have the probability
sum over P in S of prior(P | S) exp(log likelihood of P): one more factor of that node in the sum
over orders.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.posterior.prior_sum import add_prior, bits_of, sums_by_count

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def evidence_of_order(
    within: FloatArray,  # (2^(N-1),) log sums over subsets, of one mechanism
    node: int,
    log_sizes: FloatArray,
    allowed: BoolArray,  # (N,) parents
    required: BoolArray,  # (N,)
) -> FloatArray:
    """Log probability of the samples given the set before the node, (2^(N-1),)."""
    certain = np.delete(required, node)
    free = np.delete(allowed, node) & ~certain
    prior = np.zeros_like(within)
    by_count = sums_by_count(log_sizes, int(certain.sum()), int(free.sum()))
    add_prior(bits_of(free), bits_of(certain), by_count, prior)
    possible = prior > -np.inf
    return np.where(possible, within - np.where(possible, prior, 0.0), -np.inf)
