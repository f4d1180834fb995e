"""What the user knows about edges beforehand, enforced exactly.

Forbidden edges never start, required ones are never removed, and an earlier tier has no parent in a
later one. An edge that would close a cycle with required edges is forbidden by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError, SettingError, shown
from causalarms.sem.regimes import ancestors, find_cycle, node_index

BoolArray = npt.NDArray[np.bool_]
Edges: TypeAlias = Iterable[tuple[str | int, str | int]]
Tiers: TypeAlias = Sequence[Sequence[str | int]]


def edge_constraints(
    nodes: Sequence[str],
    *,
    forbidden: Edges | None = None,
    required: Edges | None = None,
    tiers: Tiers | None = None,
) -> tuple[BoolArray, BoolArray]:
    """`allowed` and `required` adjacency (N, N), which hold in both regimes.

    >>> allowed, needed = edge_constraints(["a", "b", "c"], required=[("a", "b"), ("b", "c")])
    >>> bool(allowed[2, 0]), bool(allowed[0, 2])
    (False, True)
    """
    n_nodes = len(nodes)
    needed = _edge_matrix("required", required, nodes)
    banned = _edge_matrix("forbidden", forbidden, nodes) | _against_tiers(tiers, nodes)
    cycle = find_cycle(needed)
    if cycle:
        names = [nodes[i] for i in [*cycle, cycle[0]]]
        raise SettingError("the required edges contain the cycle " + " -> ".join(names))
    for parent, child in np.argwhere(needed & banned)[:1]:
        raise SettingError(
            f"edge {nodes[parent]} -> {nodes[child]} is required and forbidden (or against tiers)"
        )
    allowed = ~banned & ~ancestors(needed).T & ~np.eye(n_nodes, dtype=bool)
    return allowed, needed


def _edge_matrix(name: str, edges: Edges | None, nodes: Sequence[str]) -> BoolArray:
    matrix = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for edge in _listed(name, edges, "pairs (parent, child)"):
        pair = [] if isinstance(edge, str) or not isinstance(edge, Iterable) else list(edge)
        if len(pair) != 2:
            raise SettingError(f"{name}: an edge is a pair (parent, child), not {shown(edge)}")
        parent, child = (_position(name, node, nodes) for node in pair)
        if parent == child:
            raise SettingError(f"{name}: node {nodes[parent]!r} cannot be its own parent")
        matrix[parent, child] = True
    return matrix


def _against_tiers(tiers: Tiers | None, nodes: Sequence[str]) -> BoolArray:
    against = np.zeros((len(nodes), len(nodes)), dtype=bool)
    tier_of = np.full(len(nodes), -1)
    for number, tier in enumerate(_listed("tiers", tiers, "lists of nodes")):
        for node in _listed("tiers", tier, "lists of nodes"):
            position = _position("tiers", node, nodes)
            if tier_of[position] >= 0:
                raise SettingError(f"tiers: node {nodes[position]!r} stands in two tiers")
            tier_of[position] = number
    placed = tier_of >= 0
    against[:] = (tier_of[:, None] > tier_of[None, :]) & placed[:, None] & placed[None, :]
    return against


def _listed(name: str, given: object, of_what: str) -> list[object]:
    """Anything that can be gone through, but for text; None is nothing."""
    if given is None:
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise SettingError(f"{name} must be {of_what}, not {shown(given)}")
    return list(given)


def _position(name: str, node: object, nodes: Sequence[str]) -> int:
    if not isinstance(node, str | Integral) or isinstance(node, bool):
        raise SettingError(f"{name}: a node is a name or a position, not {shown(node)}")
    try:
        return node_index(node if isinstance(node, str) else int(node), nodes)
    except ModelError as error:
        raise SettingError(f"{name}: {error}") from error
