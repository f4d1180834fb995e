"""Names of nodes, factors and levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral

from causalarms.errors import ModelError, SettingError, shown
from causalarms.files import control_character
from causalarms.limits import MAX_NAME_LETTERS, MAX_NODES


def checked_name(what: str, given: object) -> str:
    """A name that every screen, file and message can show as it is; `what` is called so.

    >>> checked_name("node", "heat")
    'heat'
    """
    name = as_name(what, given)
    if len(name) > MAX_NAME_LETTERS:
        raise SettingError(
            f"the name of {what} {name[:40]!r}... has {len(name):,} characters; "
            f"at most {MAX_NAME_LETTERS}"
        )
    odd = control_character(name)
    if odd is not None:
        raise SettingError(
            f"the name of {what} {name!r} holds a control character ({odd!a}): choose another name"
        )
    return name


def as_name(what: str, given: object) -> str:
    """Text that can be stored. Studies of earlier versions may hold any; new ones are stricter."""
    if not isinstance(given, str) or not given.strip():
        raise SettingError(f"{what} needs a name that is text, not {shown(given)}")
    if not given.isascii() and any("\ud800" <= letter <= "\udfff" for letter in given):
        raise SettingError(
            f"the name of {what} {shown(given)} holds what is no character: it cannot be stored"
        )
    return given


def refuse_many_nodes(n_nodes: int) -> None:
    if n_nodes > MAX_NODES:
        raise SettingError(f"there are {n_nodes:,} nodes; at most {MAX_NODES:,} can be learned")


def node_names(
    names: Sequence[str] | None,
    n_nodes: int,
    check: Callable[[str, object], str] = checked_name,
) -> tuple[str, ...]:
    """The given names, checked, or x0, x1, ... where none are given."""
    refuse_many_nodes(n_nodes)
    if names is None:
        return tuple(f"x{node}" for node in range(n_nodes))
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise SettingError(f"nodes must be a list of names, got {shown(names)}")
    checked = tuple(names)
    if len(checked) != n_nodes:
        raise ModelError(f"{len(checked)} node names for {n_nodes} nodes")
    seen: set[str] = set()
    for position, name in enumerate(checked):
        if check(f"node {position}", name) in seen:
            raise ModelError(f"node name {shown(name)} is used twice")
        seen.add(name)
    return checked


def node_index(node: str | int, names: Sequence[str]) -> int:
    """The position of a node given by name or by position (negative counts from the end)."""
    if isinstance(node, str):
        if node in names:
            return list(names).index(node)
        near = get_close_matches(node, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; the nodes are {', '.join(names)}"
        raise ModelError(f"there is no node {shown(node)}{hint}")
    if isinstance(node, bool) or not isinstance(node, Integral):
        raise ModelError(f"a node is given by its name or its position, not by {shown(node)}")
    position = int(node)
    if not -len(names) <= position < len(names):
        raise ModelError(f"there is no node {shown(node)}: there are {len(names)} nodes")
    return position % len(names)
