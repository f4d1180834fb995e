"""Expected node values and rewards of interventions (eq. mu_a), never by one inverse each.

Two passes over an order that both regimes share:
forward, for a batch of interventions, each node's mean from its parents' means;
backward, for all 2^N interventions at once, the reward as a linear function of the nodes not yet
decided. Deciding the last undecided node doubles the number of functions and shortens each by one,
so the work per intervention is a constant: sum over d of 2^d (N - d) < 2^(N+1).
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
    n_nodes = len(order)
    check_enumerable(n_nodes)
    coefficients = np.zeros((1, n_nodes))  # over the undecided nodes, in topological order
    coefficients[0, np.flatnonzero(order == reward)[0]] = 1.0
    constant = np.zeros(1)
    for last in range(n_nodes - 1, -1, -1):
        node = order[last]
        column = weights[:, order[:last], node]  # (2, last)
        of_last = coefficients[:, last]
        constant = (constant[:, None] + of_last[:, None] * noise_mean[:, node]).ravel()
        coefficients = (
            coefficients[:, None, :last] + of_last[:, None, None] * column[None]
        ).reshape(len(constant), last)
    # axis d of the tensor is the regime of the node decided d-th, i.e. order[N-1-d]
    axis_of_node = n_nodes - 1 - np.argsort(order)
    return np.ascontiguousarray(constant.reshape((2,) * n_nodes).transpose(axis_of_node)).ravel()


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
