"""What every learner's `fit` accepts, turned into checked arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray
from causalarms.checks import LARGEST, SMALLEST
from causalarms.errors import DataError, ModelError, SettingError, shown
from causalarms.sem.regimes import (
    Counts,
    ancestors,
    as_interventions,
    find_cycle,
    node_index,
    node_names,
    regime_counts,
)
from causalarms.tables.read import as_samples

ESTIMATE = "estimate"


class Rounds(NamedTuple):
    """Checked samples of named nodes with their regimes."""

    values: FloatArray  # (n, N)
    regimes: npt.NDArray[np.uint8]  # (n, N)
    nodes: tuple[str, ...]


def as_rounds(X: Any, interventions: Any, *, most_regimes: int = 2) -> Rounds:
    """Rounds from arrays or frames; no interventions means that all were natural."""
    values, names = as_samples(X)
    nodes = node_names(names, values.shape[1])
    rows = as_regimes(interventions, nodes, len(values), most_regimes=most_regimes)
    return checked_rounds(values, rows, nodes)


def regimes_in(rounds: Rounds, given: Any) -> Counts:
    """How many regimes each node has, (N,): as given, else two, or more if rounds show more."""
    if given is None:
        shown = rounds.regimes.max(axis=0).astype(int) + 1
        return regime_counts(np.maximum(shown, 2), len(rounds.nodes))
    counts = regime_counts(given, len(rounds.nodes))
    as_interventions(rounds.regimes, rounds.nodes, counts)
    return counts


def checked_rounds(
    values: FloatArray, regimes: npt.NDArray[np.uint8], nodes: tuple[str, ...]
) -> Rounds:
    """Refuse what no learner can use: too small a table, constant or identical columns."""
    n_samples, n_nodes = values.shape
    for found, what in ((n_nodes, "feature"), (n_samples, "sample")):
        if found < 2:
            raise DataError(
                f"Found array with {found} {what}(s) (shape={values.shape}) "
                "while a minimum of 2 is required."
            )
    _check_columns(values, nodes)
    return Rounds(values, regimes, nodes)


def as_regimes(
    interventions: Any, nodes: tuple[str, ...], n_samples: int, *, most_regimes: int = 2
) -> npt.NDArray[np.uint8]:
    """Regimes (n, N); columns of a frame are matched by name, absent ones are always natural."""
    if interventions is None:
        return np.zeros((n_samples, len(nodes)), dtype=np.uint8)
    given = as_samples(interventions, what="interventions")
    regimes = given.values
    if given.names is not None:
        regimes = np.zeros((len(given.values), len(nodes)))
        for position, name in enumerate(given.names):
            regimes[:, node_index(name, nodes)] = given.values[:, position]
    if len(regimes) != n_samples:
        raise DataError(f"{len(regimes)} rows of interventions for {n_samples} rows of samples")
    return as_interventions(regimes, nodes, regime_counts(most_regimes, len(nodes)))


def as_noise_mean(given: Any, nodes: tuple[str, ...], n_regimes: int = 2) -> FloatArray | None:
    """(R, N) from a number, (N,), (R, N) or a mapping from names; None stays unknown."""
    values = _per_mechanism(given, nodes, "noise_mean", n_regimes)
    if values is not None and not np.isfinite(values).all():
        raise SettingError(f"noise_mean is not finite: {values.tolist()}")
    return values


def as_noise_std(
    given: Any, nodes: tuple[str, ...], name: str = "noise_std", n_regimes: int = 2
) -> FloatArray | None:
    """As `as_noise_mean`, of numbers above zero."""
    values = _per_mechanism(given, nodes, name, n_regimes)
    if values is not None and not (np.isfinite(values) & (values >= SMALLEST)).all():
        raise SettingError(f"{name} must be finite and above 0: {values.tolist()}")
    return values


def as_noise_scale(noise_scale: Any, nodes: tuple[str, ...]) -> FloatArray | None:
    """The setting `noise_scale`, (N,); None if it is to be estimated."""
    if isinstance(noise_scale, str):
        if noise_scale != ESTIMATE:
            raise SettingError(f"noise_scale must be numbers or 'estimate', not {noise_scale!r}")
        return None
    n = len(nodes)
    try:
        scale = as_noise_std(noise_scale, nodes, "noise_scale")
    except SettingError as error:
        raise SettingError(f"{error}; give a number above 0 or {n} of them") from error
    if scale is None or (scale[0] != scale[1]).any():
        raise SettingError(f"noise_scale must be a number or of shape ({n},): {n} of them above 0")
    return scale[0]


def _per_mechanism(
    given: Any, nodes: tuple[str, ...], name: str, n_regimes: int
) -> FloatArray | None:
    if given is None:
        return None
    n_nodes = len(nodes)
    if isinstance(given, Mapping):
        missing = [node for node in nodes if node not in given]
        if missing:
            raise SettingError(f"{name} lacks node {missing[0]!r}")
        given = [given[node] for node in nodes]
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise SettingError(f"{name} must be numbers, not {shown(given)}") from error
    if isinstance(given, bool | str):
        raise SettingError(f"{name} must be numbers, not {shown(given)}")
    if values.shape not in ((), (n_nodes,), (n_regimes, n_nodes)):
        raise SettingError(
            f"{name} must be a number or of shape ({n_nodes},) or ({n_regimes}, {n_nodes}), "
            f"not {values.shape}"
        )
    if (np.isfinite(values) & (np.abs(values) > LARGEST)).any():
        raise SettingError(f"{name} is too large to compute with: {values.tolist()}")
    return np.array(np.broadcast_to(values, (n_regimes, n_nodes)))


def _check_columns(values: FloatArray, nodes: tuple[str, ...]) -> None:
    seen: dict[bytes, str] = {}
    for position, name in enumerate(nodes):
        column = np.ascontiguousarray(values[:, position])
        if (column == column[0]).all():
            raise DataError(
                f"node {name!r} is constant ({column[0]:g} in all {len(values)} rows): leave it out"
            )
        twin = seen.setdefault(column.tobytes(), name)
        if twin != name:
            raise DataError(
                f"nodes {twin!r} and {shown(name)} are identical: leave one of them out"
            )


# -- what the user knows about edges beforehand, enforced exactly ----------------------------------
#
# Excluded edges never start, required ones are never removed, and an earlier tier has no parent
# in a later one. An edge that would close a cycle with required edges is excluded by them.

Edges: TypeAlias = Iterable[tuple[str | int, str | int]]
Tiers: TypeAlias = Sequence[Sequence[str | int]]


def edge_constraints(
    nodes: Sequence[str],
    *,
    excluded: Edges | None = None,
    required: Edges | None = None,
    tiers: Tiers | None = None,
    context: Iterable[str | int] | None = None,
    n_roots: int = 0,
) -> tuple[BoolArray, BoolArray]:
    """`allowed` and `required` adjacency (N, N), which hold in all regimes.

    Nothing but context causes `context`. Nothing causes the last `n_roots`, which are factors.

    >>> allowed, needed = edge_constraints(["a", "b", "c"], required=[("a", "b"), ("b", "c")])
    >>> bool(allowed[2, 0]), bool(allowed[0, 2])
    (False, True)
    """
    n_nodes = len(nodes)
    needed = _edge_matrix("required", required, nodes)
    banned = _edge_matrix("excluded", excluded, nodes) | _against_tiers(tiers, nodes)
    cycle = find_cycle(needed)
    if cycle:
        names = [nodes[i] for i in [*cycle, cycle[0]]]
        raise SettingError("the required edges contain the cycle " + " -> ".join(names))
    for parent, child in np.argwhere(needed[:, n_nodes - n_roots :])[:1]:
        factor = nodes[n_nodes - n_roots + child]
        raise SettingError(
            f"edge {nodes[parent]} -> {factor} is required, and {factor} is a factor: nothing "
            "that is measured causes it"
        )
    outside = np.zeros(n_nodes, dtype=bool)
    for node in _listed("context", context, "a list of nodes"):
        outside[_position("context", node, nodes)] = True
    for factor in np.flatnonzero(outside[n_nodes - n_roots :])[:1]:
        raise SettingError(
            f"context: {nodes[n_nodes - n_roots + factor]!r} is a factor; context is what is "
            "measured and no factor moves"
        )
    for parent, child in np.argwhere(needed & ~outside[:, None] & outside)[:1]:
        raise SettingError(
            f"edge {nodes[parent]} -> {nodes[child]} is required, and {nodes[child]} is context: "
            "nothing but context causes it"
        )
    banned |= ~outside[:, None] & outside
    banned[:, n_nodes - n_roots :] = True
    for parent, child in np.argwhere(needed & banned)[:1]:
        raise SettingError(
            f"edge {nodes[parent]} -> {nodes[child]} is required and excluded (or against tiers)"
        )
    # A required edge is never removed, so what would close a cycle with some is never allowed.
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


# -- what a learner is to those who use one: `fit`, and these arrays afterwards --------------------


@runtime_checkable
class CanFit(Protocol):
    """A learner before it has learned anything."""

    def fit(
        self, X: Any, y: None = None, *, interventions: Any = None, noise_mean: Any = None
    ) -> Self: ...


class WeightLearner(CanFit, Protocol):
    """One that gives a whole system: what a policy needs."""

    weights_: FloatArray  # (R, N, N); nan in columns of mechanisms that are unknown
    intercept_: FloatArray  # (R, N), means of the noise
    noise_std_: FloatArray  # (R, N)


class Learner(WeightLearner, Protocol):
    """scikit-learn's contract, for rounds with interventions."""

    adjacency_: npt.NDArray[np.bool_]  # (R, N, N) as [regime, parent, child]
