"""Nodes and their regimes: names, numbers of regimes, rows of them, and orders of nodes.

Node i has K_i >= 1 regimes. Regime 0 is natural; a node without a switch has no other. Arrays over
mechanisms have R = max K_i rows; what they hold for regimes that a node does not have is zero and
never read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, IntArray, Intervention, Interventions
from causalarms.checks import integer
from causalarms.errors import DataError, ModelError, SettingError, shown
from causalarms.files import control_character
from causalarms.limits import MAX_NAME_LETTERS, MAX_NODES, MAX_REGIMES

Counts = IntArray
REGIME_NAMES = ("natural", "intervened")
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Regimes:
    """How many regimes each node has, checked once, and what follows from it.

    >>> some = regimes_of([1, 2, 3], 3)
    >>> some.n_regimes, some.n_interventions, some.all_two, some.existing.tolist()[2]
    (3, 6, False, [False, False, True])
    """

    key: tuple[int, ...]  # (N,)

    def __len__(self) -> int:
        return len(self.key)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.key, dtype=dtype or np.int64)

    def __reduce__(self) -> tuple[object, ...]:  # arrays would lose that they are read-only
        return _checked, (self.key,)

    @cached_property
    def counts(self) -> Counts:
        """K_i of every node, (N,), read-only."""
        return _fixed(np.array(self.key, dtype=np.int64))

    @cached_property
    def existing(self) -> BoolArray:
        """Which mechanisms there are, (R, N), read-only."""
        return _fixed(np.arange(self.n_regimes)[:, None] < self.counts)

    @cached_property
    def last(self) -> Intervention:
        """The highest regime of every node, (N,): K_i itself may not fit a byte."""
        return _fixed((self.counts - 1).astype(np.uint8))

    @cached_property
    def strides(self) -> IntArray:
        """By how much the index of an intervention grows with the regime of each node, (N,)."""
        largest = 2**62  # no index of an array reaches it
        sizes = [math.prod(self.key[i + 1 :]) for i in range(len(self))]
        return _fixed(np.array([min(size, largest) for size in sizes], dtype=np.int64))

    @cached_property
    def n_regimes(self) -> int:
        """The most that a node has, R."""
        return max(self.key, default=0)

    @cached_property
    def n_interventions(self) -> int:
        """The product of all K_i."""
        return math.prod(self.key)

    @cached_property
    def all_two(self) -> bool:
        """Whether every node has a natural and an intervened regime, as in the paper."""
        return set(self.key) <= {2}


GivenRegimes = Regimes | Counts


def regimes_of(given: object, n_nodes: int, *, default: int = 2) -> Regimes:
    """From one number, one per node, or None for the default."""
    if isinstance(given, Regimes):
        found = given
    elif isinstance(given, np.ndarray) and given.dtype == np.int64 and given.ndim == 1:
        found = _checked(tuple(given.tolist()))  # a policy asks in every round
    else:
        given = default if given is None else given
        given = given.tolist() if isinstance(given, np.ndarray) else given
        if isinstance(given, Sequence) and not isinstance(given, str):
            # checked before the cache is asked, to which (True, 2) and (1, 2) are the same
            found = _checked(tuple(_count(k) for k in given))
        else:
            found = _checked((_count(given),) * n_nodes)
    if len(found) != n_nodes:
        raise SettingError(f"regimes must be one number per node: {len(found)} of {n_nodes}")
    return found


@lru_cache(maxsize=1024)
def _checked(counts: tuple[int, ...]) -> Regimes:
    return Regimes(tuple(_count(k) for k in counts))


def _count(given: object) -> int:
    return integer("regimes", given, minimum=1, maximum=MAX_REGIMES)


def _fixed(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    array.setflags(write=False)
    return array


def regime_counts(given: object, n_nodes: int, *, default: int = 2) -> Counts:
    """K_i of every node, (N,), from one number, one per node, or None for the default.

    >>> regime_counts([1, 2, 3], 3).tolist(), regime_counts(None, 2).tolist()
    ([1, 2, 3], [2, 2])
    """
    return regimes_of(given, n_nodes, default=default).counts


def existing(regimes: Counts, n_regimes: int | None = None) -> BoolArray:
    """Which mechanisms there are, (R, N).

    >>> existing(np.array([1, 2])).tolist()
    [[True, True], [False, True]]
    """
    if n_regimes is None:
        return regimes_of(regimes, len(regimes)).existing
    return np.arange(n_regimes)[:, None] < regimes


def all_two(regimes: Counts) -> bool:
    """Whether every node has a natural and an intervened regime, as in the paper."""
    return regimes_of(regimes, len(regimes)).all_two


def n_interventions(regimes: Counts) -> int:
    """The product of all K_i."""
    return math.prod(regimes.tolist())


def regime_names(n_regimes: int) -> tuple[str, ...]:
    """What regimes are called in messages and tables.

    >>> regime_names(2), regime_names(3)
    (('natural', 'intervened'), ('natural', 'regime 1', 'regime 2'))
    """
    if n_regimes <= len(REGIME_NAMES):
        return REGIME_NAMES[:n_regimes]
    return (REGIME_NAMES[0], *(f"regime {r}" for r in range(1, n_regimes)))


def mechanism_name(nodes: Sequence[str], regime: int, node: int, n_regimes: int = 2) -> str:
    """
    >>> mechanism_name(["a", "b"], 1, 0)
    "node 'a' (intervened)"
    >>> mechanism_name(["a", "b"], 2, 1, 3)
    "node 'b' (regime 2)"
    """
    return f"node {nodes[node]!r} ({regime_names(max(n_regimes, regime + 1))[regime]})"


# -- names of nodes --------------------------------------------------------------------------------


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
    """Text that can be stored: enough for a study that exists, by whatever names it was made."""
    if not isinstance(given, str) or not given.strip():
        raise SettingError(f"{what} needs a name that is text, not {shown(given)}")
    if not given.isascii() and any("\ud800" <= letter <= "\udfff" for letter in given):
        raise SettingError(
            f"the name of {what} {shown(given)} holds what is no character: it cannot be stored"
        )
    return given


def node_names(
    names: Sequence[str] | None, n_nodes: int, check: Callable[[str, object], str] = checked_name
) -> tuple[str, ...]:
    """The given names, checked, or x0, x1, ... where none are given."""
    if n_nodes > MAX_NODES:
        raise SettingError(f"there are {n_nodes:,} nodes; at most {MAX_NODES:,} can be learned")
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


# -- interventions: rows of regimes ----------------------------------------------------------------


def as_interventions(
    given: npt.ArrayLike, nodes: Sequence[str], regimes: GivenRegimes | None = None
) -> Interventions:
    """A contiguous (n, N) array with 0 <= a_i < K_i, or an error that names the row and the node.

    Without `regimes` every node has two.
    """
    known = regimes_of(regimes, len(nodes))
    array = np.asarray(given)
    right_shape = array.ndim == 2 and array.shape[1] == len(nodes)
    if array.dtype.char == "B" and right_shape and (array <= known.last).all():
        return np.ascontiguousarray(array)  # as policies and systems hand them on in every round
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise DataError(
            "interventions must be numbers 0 (natural) or 1 (intervened)"
            if known.all_two
            else "interventions must be numbers, 0 (natural) and up"
        )
    if not right_shape:
        raise DataError(
            f"interventions must have shape (n, {len(nodes)}), one column per node, "
            f"not {array.shape}"
        )
    right = (array >= 0) & (array < known.counts) & (array == np.floor(array))
    if not right.all():
        row, node = np.argwhere(~right)[0]
        raise DataError(
            f"row {row} of node {nodes[node]!r}: regime {array[row, node]} "
            f"{why_no_regime(known.key[node])}"
        )
    return np.ascontiguousarray(array, dtype=np.uint8)


def why_no_regime(n_regimes: int) -> str:
    """What to say of something that is no regime of a node with so many."""
    if n_regimes == MAX_REGIMES:
        return f"is not an integer from 0 (natural) to {MAX_REGIMES - 1}"
    if n_regimes == 1:
        return "is not 0 (natural), and the node has 1 regime: it has no switch"
    if n_regimes == 2:
        return "is neither 0 (natural) nor 1 (intervened), and the node has 2 regimes"
    return f"is none of 0 (natural) to {n_regimes - 1}: the node has {n_regimes} regimes"


# -- orders and cycles of a graph, adjacency[parent, child] ----------------------------------------


def topological_order(adjacency: npt.ArrayLike) -> IntArray | None:
    """Parents before children, smallest index first among the free; None if there is a cycle.

    >>> topological_order([[0, 0], [1, 0]]).tolist()
    [1, 0]
    >>> topological_order([[0, 1], [1, 0]]) is None
    True
    """
    edges = np.asarray(adjacency, dtype=bool)
    n_nodes = len(edges)
    waiting_for = edges.sum(axis=0)
    placed = np.zeros(n_nodes, dtype=bool)
    order = np.empty(n_nodes, dtype=np.int64)
    for position in range(n_nodes):
        free = np.flatnonzero((waiting_for == 0) & ~placed)
        if not len(free):
            return None
        node = free[0]
        order[position] = node
        placed[node] = True
        waiting_for -= edges[node]
    return order


def find_cycle(adjacency: npt.ArrayLike) -> list[int]:
    """The nodes of one cycle in the direction of its edges, empty if there is none.

    >>> find_cycle([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    [0, 1, 2]
    """
    edges = np.asarray(adjacency, dtype=bool)
    inside = np.ones(len(edges), dtype=bool)
    while True:  # peel nodes without parents; each that is left has a parent among them
        sources = inside & ~edges[inside].any(axis=0)
        if not sources.any():
            break
        inside &= ~sources
    if not inside.any():
        return []
    # to a parent and on, until a node comes again: a cycle, read backwards
    path = [int(np.flatnonzero(inside)[0])]
    while path[-1] not in path[:-1]:
        path.append(int(np.flatnonzero(edges[:, path[-1]] & inside)[0]))
    cycle = path[path.index(path[-1]) : -1][::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def ancestors(adjacency: npt.ArrayLike) -> BoolArray:
    """`result[k, i]`: there is a directed path of at least one edge from k to i."""
    reach = np.array(adjacency, dtype=bool)
    # Warshall: after each step all paths through the nodes so far are known
    for via in range(len(reach)):
        reach[reach[:, via]] |= reach[via]  # rows of those that reach it: few, of a sparse graph
    return reach
