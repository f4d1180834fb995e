"""Could these be the chains of a sampled posterior? Compiled loops follow their numbers blindly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.limits import MAX_CORE_NODES
from causalarms.sem.regimes import Counts, existing

BoolArray = npt.NDArray[np.bool_]


def check_chains(
    state: dict[str, Any],
    required: BoolArray,
    regimes: Counts,
    *,
    most_orders: int,
    pool: int,
    slots: int,
) -> None:
    """DataError where orders are no orders, or candidates none that the tables have room for."""
    n = required.shape[1]
    possible = state["allowed"] & ~required & ~np.eye(n, dtype=bool)
    for name in ("orders", "kept"):
        orders = np.asarray(state[name])
        if not orders.size or not (np.sort(orders, axis=-1) == np.arange(n)).all():
            raise DataError(f"{name} are no orders of {n} nodes")
    if np.asarray(state["kept"]).shape[1] > most_orders:
        raise DataError(f"kept are more than {most_orders} orders of a chain")
    for regime, node in np.argwhere(existing(regimes)).tolist():
        free, core = int(state["n_free"][regime, node]), int(state["n_core"][regime, node])
        members = state["members"][regime, node, : free + core].tolist()
        distinct = free + core < n and len(set(members)) == len(members) and node not in members
        room = 1 << free <= pool and (core == 0 or pool >> free <= slots) and core <= MAX_CORE_NODES
        needed = 0 <= int(state["needed"][regime, node]) < 1 << core
        if not (distinct and room and needed and possible[regime, members[:free], node].all()):
            raise DataError(f"the candidates of node {node} in regime {regime} are none")
