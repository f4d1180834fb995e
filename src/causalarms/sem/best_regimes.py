"""The regimes that nodes have, for searches among interventions."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError
from causalarms.limits import MAX_ENUMERATED_NODES
from causalarms.search import Constraints
from causalarms.search.constraints import unconstrained
from causalarms.sem.regimes import GivenRegimes, Regimes, regimes_of
from causalarms.sem.rewards import indices_of

Intervention = npt.NDArray[np.uint8]


def within(regimes: GivenRegimes, constraints: Constraints | None = None) -> Constraints:
    """What is allowed, of regimes that exist.

    >>> within(np.array([1, 2]), Constraints([2, 2], at_most=1)).interventions().tolist()
    [[0, 0], [0, 1]]
    """
    counts = regimes.key if isinstance(regimes, Regimes) else tuple(regimes.tolist())
    if constraints is None:
        return unconstrained(counts)
    if constraints.regimes == counts:
        return constraints
    if constraints.n_nodes != len(counts):
        raise ModelError(f"constraints on {constraints.n_nodes} nodes, but there are {len(counts)}")
    given = dict(constraints.allowed)
    allowed = {
        node: [r for r in given.get(node, range(most)) if r < counts[node]]
        for node, most in enumerate(constraints.regimes)
    }
    return Constraints(
        constraints.regimes,
        factors=constraints.factors,
        allowed=allowed,
        forbidden=[dict(combination) for combination in constraints.forbidden],
        at_most=constraints.at_most,
        cost=constraints.level_cost,
    )


class Arms(NamedTuple):
    """All allowed interventions by their index, in the order of `all_interventions`."""

    indices: npt.NDArray[np.int64]
    cost: npt.NDArray[np.float64]


@lru_cache(maxsize=16)
def allowed_arms(allowed: Constraints) -> Arms:
    """Remembered: the same constraints are asked about every round."""
    rows = allowed.interventions(2**MAX_ENUMERATED_NODES)
    index = indices_of(rows, regimes_of(allowed.regimes, allowed.n_nodes))
    order = np.argsort(index)
    return Arms(index[order], allowed.cost(rows)[order])


def neighbours(
    intervention: Intervention, regimes: GivenRegimes, nodes: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.uint8]:
    """All interventions that differ in one node (of `nodes`), by node and regime, (n, N)."""
    known = regimes_of(regimes, len(intervention))
    changes = np.argwhere(known.existing.T)  # (node, regime)
    changes = changes[changes[:, 1] != intervention[changes[:, 0]]]
    if nodes is not None:
        changes = changes[np.isin(changes[:, 0], nodes)]
    found = np.repeat(intervention[None], len(changes), axis=0)
    found[np.arange(len(changes)), changes[:, 0]] = changes[:, 1]
    return found
