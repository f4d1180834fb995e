"""Expected node values and rewards of interventions (eq. mu_a), never by one inverse each.

Two passes over an order that all regimes share:
forward, for a batch of interventions, each node's mean from its parents' means;
backward, for all interventions depth first, the reward as a linear function of the nodes not yet
decided. Deciding the last undecided node multiplies the number of functions by its K_i and shortens
each by one, so the work per intervention is a constant: with K = 2 the sum over d of 2^d (N - d) is
below 2^(N+1).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray, Intervention, Interventions
from causalarms.errors import ModelError
from causalarms.kernels import kernel
from causalarms.limits import MAX_ENUMERATED_NODES
from causalarms.search.constraints import Constraints, unconstrained
from causalarms.search.worth import Worth
from causalarms.sem.regimes import GivenRegimes, Regimes, regimes_of


@kernel
def propagate(
    weights: FloatArray,  # (R, N, N)
    order: IntArray,
    interventions: Interventions,  # (n, N)
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
            # values of parents are there already: no inverse of I - B_a is needed
            for earlier in range(position):
                parent = order[earlier]
                total += weights[regime, parent, node] * values[row, parent]
            values[row, node] = total
    return values


@kernel
def sampled_values(
    weights: FloatArray,  # (R, N, N)
    mean: FloatArray,  # (R, N)
    std: FloatArray,  # (R, N)
    order: IntArray,
    interventions: Interventions,  # (n, N)
    normals: FloatArray,  # (n, N) becomes the exogenous variables
) -> FloatArray:
    """Node values (n, N) with normal noise."""
    # in place and in one call: a round draws one row, for which every NumPy call is overhead
    for row in range(normals.shape[0]):
        for node in range(normals.shape[1]):
            regime = interventions[row, node]
            normals[row, node] = normals[row, node] * std[regime, node] + mean[regime, node]
    return propagate(weights, order, interventions, normals)


def expected_values(
    weights: FloatArray,  # (R, N, N)
    noise_mean: FloatArray,  # (R, N)
    order: IntArray,
    interventions: Interventions,  # (n, N)
) -> FloatArray:
    """The mean of every node under every intervention, (n, N)."""
    means = of_regimes(noise_mean, interventions)
    return propagate(weights, order, interventions, means)


def of_regimes(
    values: FloatArray,  # (R, N)
    interventions: Interventions,  # (..., N)
) -> FloatArray:
    """The value of every node in the regime it is in, (..., N)."""
    return np.asarray(values)[interventions, np.arange(interventions.shape[-1])]


def reward_tables(
    weights: FloatArray,  # (n, R, N, N)
    noise_mean: FloatArray,  # (n, R, N)
    order: IntArray,  # (n, N)
    reward: int,
    regimes: GivenRegimes | None = None,  # None: all R
) -> FloatArray:
    """Rewards of all interventions, in the order of `all_interventions`, in each of n systems.

    (n, product of all K_i)
    """
    n_nodes = order.shape[1]
    known = regimes_of(regimes, n_nodes, default=weights.shape[1])
    check_enumerable(n_nodes, known)
    return _reward_tables(
        np.ascontiguousarray(weights),
        np.ascontiguousarray(noise_mean, dtype=float),
        np.ascontiguousarray(order, dtype=np.int64),
        reward,
        known.counts,
        known.strides,
        known.n_interventions,
    )


@kernel
def _reward_tables(
    weights: FloatArray,
    noise_mean: FloatArray,
    order: IntArray,
    reward: int,
    regimes: IntArray,
    strides: IntArray,
    n_leaves: int,
) -> FloatArray:
    n_systems, n = order.shape
    tables = np.empty((n_systems, n_leaves))
    # after d decided nodes: over the undecided ones in topological order, the rest, what is decided
    coefficients, constant = np.zeros((n + 1, n)), np.zeros(n + 1)
    decided = np.zeros(n + 1, dtype=np.int64)
    # by depth: the regime, how many there are, and by how much each adds to the index
    by_depth = np.zeros((3, n), dtype=np.int64)
    chosen, most, stride = by_depth[0], by_depth[1], by_depth[2]
    for s in range(n_systems):
        for position in range(n):
            node = order[s, position]
            coefficients[0, position] = 1.0 if node == reward else 0.0
            most[n - 1 - position] = regimes[node]
            stride[n - 1 - position] = strides[node]
        chosen[:] = 0
        # the last two nodes in loops of their own: most of the tree is there
        last_two, first = max(n - 2, 0), order[s, 0]
        depth = 0  # of the first decision that differs from the leaves before
        while depth >= 0:
            for d in range(depth, last_two):
                last = n - 1 - d
                node, regime = order[s, last], chosen[d]
                factor = coefficients[d, last]
                constant[d + 1] = constant[d] + factor * noise_mean[s, regime, node]
                decided[d + 1] = decided[d] + regime * stride[d]
                for k in range(last):
                    coefficients[d + 1, k] = (
                        coefficients[d, k] + factor * weights[s, regime, order[s, k], node]
                    )
            if n == 1:
                for regime in range(most[0]):
                    tables[s, regime * stride[0]] = coefficients[0, 0] * noise_mean[s, regime, 0]
                break
            second = order[s, 1]
            factor = coefficients[last_two, 1]
            for regime in range(most[last_two]):
                rest = constant[last_two] + factor * noise_mean[s, regime, second]
                of_first = coefficients[last_two, 0] + factor * weights[s, regime, first, second]
                leaf = decided[last_two] + regime * stride[last_two]
                for regime_of_first in range(most[n - 1]):
                    tables[s, leaf + regime_of_first * stride[n - 1]] = (
                        rest + of_first * noise_mean[s, regime_of_first, first]
                    )
            depth = last_two - 1
            while depth >= 0 and chosen[depth] + 1 == most[depth]:
                chosen[depth] = 0
                depth -= 1
            if depth >= 0:
                chosen[depth] += 1
    return tables


# -- interventions by their index, a mixed-radix number with the first node in front ---------------


def all_interventions(n_nodes: int, regimes: GivenRegimes | None = None) -> Interventions:
    """All interventions in lexicographic order: with K = 2 row k holds the binary digits of k.

    >>> all_interventions(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> all_interventions(2, np.array([1, 3])).tolist()
    [[0, 0], [0, 1], [0, 2]]
    """
    known = regimes_of(regimes, n_nodes)
    check_enumerable(n_nodes, known)
    return intervention_of(np.arange(known.n_interventions), n_nodes, known)


def intervention_of(
    index: npt.ArrayLike, n_nodes: int, regimes: GivenRegimes | None = None
) -> Interventions:
    """The row(s) of `all_interventions` at `index`."""
    known = regimes_of(regimes, n_nodes)
    indices = np.asarray(index, dtype=np.int64)[..., None]
    if known.all_two:  # shifts are several times as fast as divisions
        return ((indices >> np.arange(n_nodes - 1, -1, -1)) & 1).astype(np.uint8)
    return (indices // known.strides % known.counts).astype(np.uint8)


def index_of(interventions: npt.ArrayLike, regimes: GivenRegimes | None = None) -> IntArray:
    """The row of `all_interventions` that holds each of these, (...) for (..., N).

    >>> index_of([1, 0, 1]).tolist(), index_of([[1, 0, 2], [0, 0, 1]], np.array([2, 1, 3])).tolist()
    (5, [5, 1])
    """
    rows = np.asarray(interventions, dtype=np.int64)
    return rows @ regimes_of(regimes, rows.shape[-1]).strides


def check_enumerable(n_nodes: int, regimes: GivenRegimes | None = None) -> None:
    known = regimes_of(regimes, n_nodes)
    if known.n_interventions > 2**MAX_ENUMERATED_NODES:
        many, most = (
            (f"2^{n_nodes}", f"{MAX_ENUMERATED_NODES} nodes")
            if known.all_two
            else (f"{known.n_interventions:,}", f"{2**MAX_ENUMERATED_NODES:,}")
        )
        raise ModelError(
            f"{many} interventions cannot be enumerated (at most {most}): "
            "evaluate chosen interventions with expected_reward(interventions) instead"
        )


# -- interventions that are allowed ----------------------------------------------------------------


def within(regimes: GivenRegimes, constraints: Constraints | None = None) -> Constraints:
    """What is allowed, of regimes that exist."""
    counts = regimes.key if isinstance(regimes, Regimes) else tuple(regimes.tolist())
    if constraints is None:
        return unconstrained(counts)
    return constraints if constraints.regimes == counts else constraints.only(counts)


class Arms(NamedTuple):
    """All allowed interventions by their index, in the order of `all_interventions`."""

    indices: IntArray
    worth: Worth

    def columns(self, table: FloatArray) -> FloatArray:
        """The columns of these, of a table with a column for every intervention."""
        if len(self.indices) == table.shape[-1]:
            return table
        return np.ascontiguousarray(table[..., self.indices])


def allowed_arms(allowed: Constraints) -> Arms:
    """Remembered: the same constraints are asked about every round."""
    return _every_arm(allowed.regimes) if allowed.free else _listed_arms(allowed)


@lru_cache(maxsize=16)
def _every_arm(regimes: tuple[int, ...]) -> Arms:
    known = Regimes(regimes)
    check_enumerable(len(known), known)
    return Arms(np.arange(known.n_interventions), Worth(np.zeros(known.n_interventions)))


@lru_cache(maxsize=16)
def _listed_arms(allowed: Constraints) -> Arms:
    rows = allowed.interventions(2**MAX_ENUMERATED_NODES)
    index = index_of(rows, regimes_of(allowed.regimes, allowed.n_nodes))
    # listed by levels, which is another order if a factor acts on several nodes
    order = np.argsort(index)
    return Arms(index[order], allowed.worth(rows).of(order))


def neighbours(
    intervention: Intervention, regimes: GivenRegimes, nodes: IntArray | None = None
) -> Interventions:
    """All interventions that differ in one node (of `nodes`), by node and regime, (n, N)."""
    known = regimes_of(regimes, len(intervention))
    changes = np.argwhere(known.existing.T)  # (node, regime)
    changes = changes[changes[:, 1] != intervention[changes[:, 0]]]
    if nodes is not None:
        changes = changes[np.isin(changes[:, 0], nodes)]
    found = np.repeat(intervention[None], len(changes), axis=0)
    found[np.arange(len(changes)), changes[:, 0]] = changes[:, 1]
    return found
