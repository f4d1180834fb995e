"""Logged rounds from files: samples, and which nodes were intervened on in each row.

Three ways to say it: 0/1 columns `do:NAME`; one column that names the intervened nodes, separated
by `;`; or a second file with a 0/1 column per node.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.graphs.inputs import Rounds, checked_rounds
from causalarms.sem.interventions import as_interventions
from causalarms.sem.nodes import node_index
from causalarms.tables import numeric_columns, read_table

PREFIX = "do:"
TARGET_COLUMNS = ("intervened", "interventions", "targets")


class LoggedRounds(NamedTuple):
    rounds: Rounds
    source: str  # how the interventions were found, for the report


def read_rounds(
    path: Path,
    *,
    interventions: Path | None = None,
    intervened: str | None = None,
    nodes: list[str] | None = None,
    ignore: tuple[str, ...] = (),
) -> LoggedRounds:
    """Samples and regimes of a table on disk."""
    table = read_table(path)
    for name in ignore:
        if name not in table:
            raise DataError(f"{path} has no column {name!r} to ignore")
    if intervened is None:
        intervened = next((name for name in TARGET_COLUMNS if name in table), None)
    elif intervened not in table:
        raise DataError(f"{path} has no column {intervened!r}")
    flags = [name for name in table if name.startswith(PREFIX)]
    aside = {*ignore, *flags, intervened}
    for name in nodes or ():
        if name.startswith(PREFIX):
            raise DataError(f"{name!r} is a column of switches; it cannot be a node as well")
    names = nodes or [name for name in table if name not in aside]
    missing = [name for name in names if name not in table]
    if missing:
        raise DataError(f"{path} has no column {missing[0]!r}")
    if not names:
        raise DataError(f"{path} has no column of samples")
    values = numeric_columns(table, names)
    given = [interventions is not None, intervened is not None, bool(flags)]
    if sum(given) > 1:
        raise DataError(
            f"{path}: interventions are given in more than one way "
            f"({PREFIX}NAME columns, a column of names, a second file); keep one"
        )
    if interventions is not None:
        regimes = _from_second_file(interventions, names, len(values))
        source = f"columns of {interventions.name}"
    elif intervened is not None:
        regimes = _from_names(table[intervened], names, intervened)
        source = f"column {intervened!r}"
    else:
        regimes = np.zeros(values.shape)
        for flag in flags:
            target = flag.removeprefix(PREFIX)
            regimes[:, node_index(target, names)] = numeric_columns(table, [flag])[:, 0]
        source = f"{len(flags)} {PREFIX}NAME columns" if flags else "none given: all natural"
    rounds = checked_rounds(values, as_interventions(regimes, names), tuple(names))
    return LoggedRounds(rounds, source)


def _from_second_file(path: Path, names: list[str], n_rows: int) -> npt.NDArray[np.float64]:
    table = read_table(path)
    columns = list(table)
    flags = numeric_columns(table, columns)
    if len(flags) != n_rows:
        raise DataError(f"{path} has {len(flags)} rows for {n_rows} rows of samples")
    regimes = np.zeros((n_rows, len(names)))
    for position, column in enumerate(columns):
        regimes[:, node_index(column.removeprefix(PREFIX), names)] = flags[:, position]
    return regimes


def _from_names(cells: list[str], names: list[str], column: str) -> npt.NDArray[np.float64]:
    regimes = np.zeros((len(cells), len(names)))
    for row, cell in enumerate(cells):
        for target in filter(None, (part.strip() for part in cell.split(";"))):
            if target not in names:
                raise DataError(
                    f"row {row + 1} of column {column!r} names {target!r}, which is no node"
                )
            regimes[row, names.index(target)] = 1
    return regimes
