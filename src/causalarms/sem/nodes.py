"""Names of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from causalarms.errors import ModelError


def node_names(names: Sequence[str] | None, n_nodes: int) -> tuple[str, ...]:
    """The given names, checked, or x0, x1, ... where none are given."""
    if names is None:
        return tuple(f"x{node}" for node in range(n_nodes))
    checked = tuple(names)
    if len(checked) != n_nodes:
        raise ModelError(f"{len(checked)} node names for {n_nodes} nodes")
    seen: set[str] = set()
    for position, name in enumerate(checked):
        if not isinstance(name, str) or not name.strip():
            raise ModelError(f"node {position} needs a name that is text, not {name!r}")
        if name in seen:
            raise ModelError(f"node name {name!r} is used twice")
        if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise ModelError(f"node name {name!r} holds what is no character: it cannot be stored")
        seen.add(name)
    return checked


def node_index(node: str | int, names: Sequence[str]) -> int:
    """The position of a node given by name or by position (negative counts from the end)."""
    if isinstance(node, str):
        if node in names:
            return list(names).index(node)
        near = get_close_matches(node, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; the nodes are {', '.join(names)}"
        raise ModelError(f"there is no node {node!r}{hint}")
    position = int(node)
    if not -len(names) <= position < len(names):
        raise ModelError(f"there is no node {position}: there are {len(names)} nodes")
    return position % len(names)
