"""What every learner's `fit` accepts, turned into checked arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.checks import LARGEST, SMALLEST
from causalarms.errors import DataError, SettingError, shown
from causalarms.sem.regimes import Counts, as_interventions, node_index, node_names, regime_counts
from causalarms.tables.read import as_samples

FloatArray = npt.NDArray[np.float64]


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
    """How many regimes each node has, (N,): as given, else two, or more where rounds show more."""
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
