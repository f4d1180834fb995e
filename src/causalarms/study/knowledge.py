"""What is known of edges before a study begins: tiers, forbidden and required edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from causalarms.errors import StudyError, shown
from causalarms.graphs.inputs import edge_constraints
from causalarms.policies.registry import accepted_settings, policy_factory, policy_names
from causalarms.sem.factors import NamedFactors
from causalarms.sem.regimes import node_index

KINDS = ("tiers", "forbidden", "required")
MASKS = ("allowed", "required")  # settings of a policy that can use it

Knowledge = dict[str, list[list[str]]]


def checked_knowledge(given: Any, nodes: tuple[str, ...]) -> Knowledge:
    """By name and without empty entries; whether it contradicts itself is seen when it is used."""
    if not isinstance(given, Mapping):
        raise StudyError(f"knowledge is {', '.join(KINDS)} with lists of nodes, not {shown(given)}")
    for kind in given:
        if kind not in KINDS:
            raise StudyError(f"there is no knowledge {shown(kind)}; there are {', '.join(KINDS)}")
    plain: Knowledge = {}
    for kind in KINDS:
        groups = given.get(kind)
        groups = () if groups is None else groups
        if isinstance(groups, str) or not isinstance(groups, Sequence):
            raise StudyError(f"knowledge {kind!r} is a list of lists of nodes, not {shown(groups)}")
        for group in groups:
            if isinstance(group, str) or not isinstance(group, Sequence):
                raise StudyError(
                    f"knowledge {shown(kind)} is a list of lists of nodes, not of {shown(group)}"
                )
            if kind != "tiers" and len(group) != 2:
                raise StudyError(f"an edge is a pair [parent, child], not {shown(group)}")
        if groups:
            plain[kind] = [[nodes[node_index(node, nodes)] for node in group] for group in groups]
    return plain


def known_edges(
    knowledge: Knowledge, nodes: tuple[str, ...], named: NamedFactors
) -> dict[str, Any]:
    """`allowed` and `required`, (R, N, N) each; nothing where nothing is known.

    A node that a level sets has no parents in the regimes of that level.
    """
    set_nodes = named.set_regimes
    if not knowledge and not set_nodes.any():
        return {}
    shape = (len(set_nodes), len(nodes), len(nodes))
    masks = edge_constraints(nodes, **knowledge)  # type: ignore[arg-type]
    free = ~set_nodes[:, None, :]
    return dict(zip(MASKS, (np.broadcast_to(m, shape) & free for m in masks), strict=True))


def refuse_knowledge(policy: str) -> None:
    """StudyError where this policy has no use for what is known."""
    if not _can_use(policy):
        able = [name for name in policy_names() if _can_use(name)]
        raise StudyError(
            f"policy {shown(policy)} cannot use knowledge of edges; {', '.join(able)} can"
        )


def _can_use(policy: str) -> bool:
    return set(MASKS) <= set(accepted_settings(policy_factory(policy)))
