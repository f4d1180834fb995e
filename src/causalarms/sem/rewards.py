"""Expected node values and rewards of interventions (eq. mu_a), never by one inverse each.

Two passes over an order that all regimes share:
forward, for a batch of interventions, each node's mean from its parents' means;
backward, for all 2^N interventions depth first, the reward as a linear function of the nodes not
yet decided. Deciding the last undecided node doubles the number of functions and shortens each by
one, so the work per intervention is a constant: sum over d of 2^d (N - d) < 2^(N+1).

Nodes with other numbers of regimes than two make the interventions mixed-radix numbers, the first
node the slowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Regimes = int | Sequence[int]  # a number of nodes with two regimes each, or one number per node

MAX_ENUMERATED_NODES = 24  # 2^24 rewards are 128 MiB


@kernel
def propagate(
    weights: FloatArray,  # (R, N, N)
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
    weights: FloatArray,  # (R, N, N)
    noise_mean: FloatArray,  # (R, N)
    order: IntArray,
    interventions: npt.NDArray[np.uint8],  # (n, N)
) -> FloatArray:
    """The mean of every node under every intervention, (n, N)."""
    means = noise_mean[interventions, np.arange(interventions.shape[1])]
    return propagate(weights, order, interventions, means)


def expected_reward(
    weights: npt.ArrayLike,  # (R, N, N)
    intercept: npt.ArrayLike,  # (N,) or (R, N)
    interventions: npt.ArrayLike,  # (n, N) regimes
    order: npt.ArrayLike,
    reward: int,
) -> FloatArray:
    """The reward's mean under every intervention, (n,), for any number of regimes."""
    w = np.ascontiguousarray(weights, dtype=float)
    mean = np.broadcast_to(np.asarray(intercept, dtype=float), w.shape[:2])
    rows = np.ascontiguousarray(interventions, dtype=np.uint8)
    return expected_values(w, mean, np.ascontiguousarray(order, dtype=np.int64), rows)[:, reward]


def all_expected_rewards(
    weights: FloatArray, noise_mean: FloatArray, order: IntArray, reward: int
) -> FloatArray:
    """Rewards of all interventions in the order of `all_interventions`, (2^N,)."""
    return reward_tables(weights[None], noise_mean[None], order[None], reward)[0]


def reward_tables(
    weights: FloatArray,  # (n, R, N, N)
    noise_mean: FloatArray,  # (n, R, N)
    order: IntArray,  # (n, N)
    reward: int,
    regimes: Sequence[int] | None = None,  # by default R of every node
) -> FloatArray:
    """Rewards of all interventions in each of n systems, (n, 2^N) where all have two regimes."""
    counts = (weights.shape[1],) * order.shape[1] if regimes is None else tuple(regimes)
    check_enumerable(counts)
    systems = (
        np.ascontiguousarray(weights),
        np.ascontiguousarray(noise_mean, dtype=float),
        np.ascontiguousarray(order, dtype=np.int64),
        reward,
    )
    if set(counts) == {2}:
        return _binary_tables(*systems)
    return _mixed_tables(*systems, np.array(counts, dtype=np.int64), _strides(counts))


@kernel
def _binary_tables(
    weights: FloatArray, noise_mean: FloatArray, order: IntArray, reward: int
) -> FloatArray:
    """The digits are the bits of the leaf's number: twice as fast as `_mixed_tables`."""
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


@kernel
def _mixed_tables(
    weights: FloatArray,
    noise_mean: FloatArray,
    order: IntArray,
    reward: int,
    counts: IntArray,
    strides: IntArray,
) -> FloatArray:
    n_systems, n = order.shape
    tables = np.empty((n_systems, counts.prod()))
    # after d decided nodes: over the undecided ones in topological order, the rest, what is decided
    coefficients, constant = np.zeros((n + 1, n)), np.zeros(n + 1)
    decided = np.zeros(n + 1, dtype=np.int64)
    regimes = np.zeros(n, dtype=np.int64)  # per position; the first one counts fastest
    for s in range(n_systems):
        for position in range(n):
            coefficients[0, position] = 1.0 if order[s, position] == reward else 0.0
        regimes[:] = 0
        for leaf in range(tables.shape[1]):
            depth = 0  # of the first decision that differs from the leaf before
            if leaf > 0:
                depth = n - 1
                while regimes[n - 1 - depth] == counts[order[s, n - 1 - depth]] - 1:
                    regimes[n - 1 - depth] = 0
                    depth -= 1
                regimes[n - 1 - depth] += 1
            for d in range(depth, n):
                last = n - 1 - d
                node, regime = order[s, last], regimes[last]
                factor = coefficients[d, last]
                constant[d + 1] = constant[d] + factor * noise_mean[s, regime, node]
                decided[d + 1] = decided[d] + regime * strides[node]
                for k in range(last):
                    coefficients[d + 1, k] = (
                        coefficients[d, k] + factor * weights[s, regime, order[s, k], node]
                    )
            tables[s, decided[n]] = constant[n]
    return tables


def all_interventions(regimes: Regimes) -> npt.NDArray[np.uint8]:
    """All interventions in lexicographic order, (2^N, N): row k holds the binary digits of k.

    >>> all_interventions(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> all_interventions([1, 3]).tolist()
    [[0, 0], [0, 1], [0, 2]]
    """
    check_enumerable(regimes)
    return intervention_of(np.arange(prod(_counts(regimes))), regimes)


def intervention_of(index: npt.ArrayLike, regimes: Regimes) -> npt.NDArray[np.uint8]:
    """The row(s) of `all_interventions` at `index`."""
    places = np.asarray(index, dtype=np.int64)[..., None]
    if isinstance(regimes, int | np.integer):
        return ((places >> np.arange(regimes - 1, -1, -1)) & 1).astype(np.uint8)
    return (places // _strides(regimes) % np.array(regimes, dtype=np.int64)).astype(np.uint8)


def index_of(intervention: npt.ArrayLike, regimes: Regimes | None = None) -> int:
    """The row of `all_interventions` that holds this intervention.

    >>> index_of([1, 0]), index_of([0, 2], [1, 3])
    (2, 2)
    """
    row = [int(regime) for regime in np.asarray(intervention)]
    index = 0
    for regime, count in zip(row, _counts(len(row) if regimes is None else regimes), strict=True):
        if not 0 <= regime < count:
            raise ValueError(f"regime {regime} of a node with {count} regimes")
        index = index * count + regime
    return index


def check_enumerable(regimes: Regimes) -> None:
    """Refuse what has more than 2^24 interventions."""
    counts = _counts(regimes)
    if prod(counts) > 2**MAX_ENUMERATED_NODES:
        two = set(counts) == {2}
        words = f"2^{len(counts)}" if two else str(prod(counts))
        most = f"{MAX_ENUMERATED_NODES} nodes" if two else f"2^{MAX_ENUMERATED_NODES}"
        raise ModelError(
            f"{words} interventions cannot be enumerated (at most {most}): evaluate chosen "
            "interventions with expected_reward(interventions) instead"
        )


def _counts(regimes: Regimes) -> tuple[int, ...]:
    if isinstance(regimes, int | np.integer):
        return (2,) * int(regimes)
    return tuple(int(count) for count in regimes)


def _strides(counts: Sequence[int]) -> IntArray:
    """What one regime of each node is worth in an index."""
    return np.array([prod(counts[node + 1 :]) for node in range(len(counts))], dtype=np.int64)
