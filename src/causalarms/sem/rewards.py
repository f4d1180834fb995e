"""Expected node values and rewards of interventions (eq. mu_a), never by one inverse each.

Two passes over an order that both regimes share:
forward, for a batch of interventions, each node's mean from its parents' means;
backward, for all 2^N interventions depth first, the reward as a linear function of the nodes not
yet decided. Deciding the last undecided node doubles the number of functions and shortens each by
one, so the work per intervention is a constant: sum over d of 2^d (N - d) < 2^(N+1).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_ENUMERATED_NODES = 24  # 2^24 rewards are 128 MiB


@kernel
def propagate(
    weights: FloatArray,  # (2, N, N)
    order: IntArray,
    interventions: npt.NDArray[np.uint8],  # (n, N)
    exogenous: FloatArray,  # (n, N)
) -> FloatArray:
    """Node values (n, N) that solve x = B_a^T x + eps row by row (eq. LinSEM)."""
    n_rows, n_nodes = exogenous.shape
    values = np.empty((n_rows, n_nodes))
    for row in range(n_rows):
        for position in range(n_nodes):
            node = order[position]
            regime = interventions[row, node]
            total = exogenous[row, node]
            for earlier in range(position):
                parent = order[earlier]
                total += weights[regime, parent, node] * values[row, parent]
            values[row, node] = total
    return values


def expected_values(
    weights: FloatArray,  # (2, N, N)
    noise_mean: FloatArray,  # (2, N)
    order: IntArray,
    interventions: npt.NDArray[np.uint8],  # (n, N)
) -> FloatArray:
    """The mean of every node under every intervention, (n, N)."""
    means = np.where(interventions == 1, noise_mean[1], noise_mean[0])
    return propagate(weights, order, interventions, means)


def all_expected_rewards(
    weights: FloatArray, noise_mean: FloatArray, order: IntArray, reward: int
) -> FloatArray:
    """Rewards of all interventions in the order of `all_interventions`, (2^N,)."""
    return reward_tables(weights[None], noise_mean[None], order[None], reward)[0]


def reward_tables(
    weights: FloatArray,  # (n, 2, N, N)
    noise_mean: FloatArray,  # (n, 2, N)
    order: IntArray,  # (n, N)
    reward: int,
) -> FloatArray:
    """Rewards of all interventions in each of n systems, (n, 2^N)."""
    check_enumerable(order.shape[1])
    return _reward_tables(
        np.ascontiguousarray(weights),
        np.ascontiguousarray(noise_mean, dtype=float),
        np.ascontiguousarray(order, dtype=np.int64),
        reward,
    )


@kernel
def _reward_tables(
    weights: FloatArray, noise_mean: FloatArray, order: IntArray, reward: int
) -> FloatArray:
    n_systems, n = order.shape
    tables = np.empty((n_systems, 1 << n))
    # after d decided nodes: over the undecided ones in topological order, the rest, what is decided
    coefficients, constant = np.zeros((n + 1, n)), np.zeros(n + 1)
    decided = np.zeros(n + 1, dtype=np.int64)
    for s in range(n_systems):
        for position in range(n):
            coefficients[0, position] = 1.0 if order[s, position] == reward else 0.0
        for leaf in range(1 << n):
            depth = 0  # of the first decision that differs from the leaf before
            if leaf > 0:
                depth = n - 1
                while not leaf >> (n - 1 - depth) & 1:
                    depth -= 1
            for d in range(depth, n):
                last = n - 1 - d
                node, regime = order[s, last], leaf >> last & 1
                factor = coefficients[d, last]
                constant[d + 1] = constant[d] + factor * noise_mean[s, regime, node]
                decided[d + 1] = decided[d] | regime << (n - 1 - node)
                for k in range(last):
                    coefficients[d + 1, k] = (
                        coefficients[d, k] + factor * weights[s, regime, order[s, k], node]
                    )
            tables[s, decided[n]] = constant[n]
    return tables


def all_interventions(n_nodes: int) -> npt.NDArray[np.uint8]:
    """All of {0,1}^N in lexicographic order, (2^N, N): row k holds the binary digits of k.

    >>> all_interventions(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    check_enumerable(n_nodes)
    return intervention_of(np.arange(2**n_nodes), n_nodes)


def intervention_of(index: npt.ArrayLike, n_nodes: int) -> npt.NDArray[np.uint8]:
    """The row(s) of `all_interventions` at `index`."""
    shifts = np.arange(n_nodes - 1, -1, -1)
    return ((np.asarray(index, dtype=np.int64)[..., None] >> shifts) & 1).astype(np.uint8)


def index_of(intervention: npt.ArrayLike) -> int:
    """The row of `all_interventions` that holds this intervention."""
    return int("".join(str(int(a)) for a in np.asarray(intervention)), 2)


def check_enumerable(n_nodes: int) -> None:
    if n_nodes > MAX_ENUMERATED_NODES:
        raise ModelError(
            f"2^{n_nodes} interventions cannot be enumerated (at most {MAX_ENUMERATED_NODES} "
            "nodes): evaluate chosen interventions with expected_reward(interventions) instead"
        )
