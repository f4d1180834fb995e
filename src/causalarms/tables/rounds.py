"""Rounds from tables: one set of rules for `learn`, `study import` and `Study.import_rounds`.

A row is a round, a column holds the values of a node. What was switched is said in one of three
ways: columns `do:NODE` with the regime of the node (0 natural); one column that names the switched
nodes, separated by `;`; or a second table with a column of regimes per node. A table that
`study export` wrote is read as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError, ModelError, shown
from causalarms.sem.factor import UNKNOWN
from causalarms.sem.factors import PREFIX, NamedFactors
from causalarms.sem.regimes import (
    Counts,
    as_name,
    checked_name,
    node_index,
    node_names,
    regime_counts,
    why_no_regime,
)
from causalarms.tables.cells import (
    Cells,
    Columns,
    FactorLevels,
    factor_levels,
    is_nan,
    numbers_of_text,
    refuse_names_of_nodes,
)
from causalarms.tables.read import NumberColumn, PlainTable, as_frame, check_width, read_table
from causalarms.tables.write import FIRST, LAST, OWN, WITH_RESULT, column_of

NAME_COLUMNS = (
    "intervened",
    "interventions",
    "targets",
    "intervention_targets",
)  # found by themselves
SEPARATOR = ";"


class TableRounds(NamedTuple):
    """What a table says. It shows regimes that were played; a node may have more of them."""

    nodes: tuple[str, ...]
    values: npt.NDArray[np.float64]  # (n, N), nan if not measured
    regimes: npt.NDArray[np.int64]  # (n, N), from 0
    rows: npt.NDArray[np.int64]  # (n,), the rows of the table, as people count them
    source: str  # how the interventions were given
    left_out: tuple[str, ...]  # a remark for each kind of rows that are not here
    factors: FactorLevels | None = None  # what was set, besides regimes of nodes

    def shown_regimes(self, told: Mapping[str, int] | None = None) -> Counts:
        """How many regimes each node has, (N,): as told by name, else the largest seen and 0.

        A node that was never switched has one: all rounds are of its only mechanism.
        """
        counts = self.regimes.max(axis=0) + 1
        for node, count in (told or {}).items():
            try:
                counts[node_index(node, self.nodes)] = count
            except ModelError as error:
                raise DataError(f"regimes: {error}") from None
        self.check_regimes(counts.tolist())
        return regime_counts(counts, len(self.nodes))

    def check_regimes(self, n_regimes: int | Sequence[int]) -> None:
        """DataError for a regime that its node does not have."""
        most = np.broadcast_to(n_regimes, len(self.nodes))
        wrong = np.argwhere(self.regimes >= most)
        if len(wrong):
            row, node = wrong[0]
            raise DataError(
                f"row {self.rows[row]} of node {self.nodes[node]!r}: "
                f"regime {self.regimes[row, node]} {why_no_regime(int(most[node]))}"
            )


def rounds_of(
    given: Any,
    interventions: Any = None,
    *,
    nodes: Sequence[str] | None = None,
    factors: NamedFactors | str | None = None,
    only_nodes: bool = False,
    intervened: str | None = None,
    ignore: Iterable[str] = (),
    incomplete: str = "keep",
) -> TableRounds:
    """Rounds of a file (CSV, Parquet), a frame or a dict of columns.

    interventions   a second table
    nodes           their names; None: all columns that are nothing else
    factors         of these nodes: what was set is said of them, by level; None: by regime of
                    nodes; "unknown": so, and what has a column and is not a node is a factor
    only_nodes      refuse columns that are nothing to these nodes
    intervened      the column of names; None: looked for
    ignore          columns to leave out
    incomplete      rows that lack a value: "keep" (nan), "skip", "refuse"
    """
    if isinstance(ignore, str):
        raise DataError(f"ignore is a list of columns, not {shown(ignore)}")
    ignore = tuple(ignore)
    unknown = list[str]() if factors == UNKNOWN else None
    factors = factors if isinstance(factors, NamedFactors) else None
    first = _cells(given, "observations")
    second = None if interventions is None else _switches(interventions, nodes)
    for name in ignore:
        if name not in first.columns and (second is None or name not in second.columns):
            raise DataError(f"{first.what} has no column {shown(name)} to ignore")
    table = first.without(ignore)
    if factors is not None:  # a column like a factor can be nothing else, but for a node's switch
        table = table.prefixed(set(factors.names) - set(factors.nodes))
    columns, what = table.columns, table.what
    trials = all(name in columns for name in FIRST)  # as `study export` writes them
    aside = {*FIRST, *LAST} if trials else set[str]()
    place = _places(columns, nodes, what)
    flags = [name for name in columns if name.startswith(PREFIX)]
    if trials and intervened is None:
        named = None  # what was switched is in columns do:NAME; a node may be called `targets`
    else:
        named = _name_column(columns, intervened, {*place.values(), *aside}, what)
    if nodes is None:
        rest = [name for name in columns if name not in {*aside, *flags, named}]
        place = {name.removeprefix(OWN) if trials else name: name for name in rest}
    if not place:
        raise DataError(f"{what} has no column of samples")
    # the names of a study were checked when it was made
    names = node_names(tuple(place), len(place), checked_name if factors is None else as_name)
    if only_nodes:
        _refuse_others(columns, {*place.values(), *aside, *flags, named}, names)
    if sum([second is not None, named is not None, bool(flags)]) > 1:
        raise DataError(
            f"{what}: interventions are given in more than one way "
            f"({PREFIX}NAME columns, a column of names, a second table); keep one"
        )
    if second is not None:
        switches = second.without(ignore)
        regimes = _from_flags(switches, names, table.n_rows, factors, unknown)
        source = f"columns of {Path(second.what).name}"
    elif named is not None:
        regimes, source = _from_names(table, named, names, factors), f"column {named!r}"
    else:
        others = [name for name in columns if name not in flags]
        switches = table.without(others)
        regimes = _from_flags(switches, names, table.n_rows, factors, unknown)
        source = f"{len(flags)} {PREFIX}NAME columns" if flags else "none given: all natural"
    # Trials without a result have empty cells, which must not count as incomplete rows.
    keep, remarks = np.ones(table.n_rows, dtype=bool), list[str]()
    if trials:
        keep, remarks = _finished(columns["state"])
    values = table.numbers(list(place.values()), keep)
    if incomplete != "keep":
        keep = table.complete(values, list(place.values()), keep, incomplete, remarks)
    rows = np.flatnonzero(keep)
    if not len(rows):
        raise DataError(f"{what}: no row has a result")
    return TableRounds(
        names, values[rows], regimes[rows], rows + table.first_row, source, tuple(remarks),
        _learned_factors(switches, unknown, rows) if unknown else None,
    )  # fmt: skip


def _learned_factors(
    table: Cells, columns: Sequence[str], rows: npt.NDArray[np.int64]
) -> FactorLevels:
    """Levels of the factors that are learned, of the rows that are kept."""
    found: dict[str, list[Any]] = {}
    for column in columns:
        cells = table.columns[column]
        found[column.removeprefix(PREFIX)] = (
            cells.numbers[rows].tolist() if isinstance(cells, NumberColumn)
            else numbers_of_text([cells[row] for row in rows])
        )  # fmt: skip
    return factor_levels(found, rows + table.first_row)


def _cells(given: Any, what: str) -> Cells:
    """Rows of a file count from 1, those of a frame from 0."""
    if isinstance(given, str | Path):
        return Cells(read_table(given), str(given), 1)
    return Cells(columns_of(given, what), what, 0)


def columns_of(given: Any, what: str) -> dict[str, list[Any]]:
    """Columns of one length by name, from a frame, a table or a mapping; null is None."""
    frame = as_frame(given, what)
    if frame is not None:
        columns = {
            str(c.name): [
                None if null else cell
                for cell, null in zip(c.to_list(), c.is_null().to_list(), strict=True)
            ]
            for c in frame.iter_columns()
        }
    else:
        if isinstance(given, PlainTable):
            given = given.to_dict()
        if not isinstance(given, Mapping):
            raise DataError(f"{what} are a frame (or a dict of columns) with a column per node")
        check_width(what, len(given))
        columns = {}
        for name, cells in given.items():
            if isinstance(cells, str) or not isinstance(cells, Iterable):
                raise DataError(
                    f"{what}: column {shown(name)} is {shown(cells)}, not a list of cells"
                )
            columns[name if isinstance(name, str) else shown(name)] = list(cells)
    lengths = {len(cells) for cells in columns.values()}
    if lengths <= {0}:
        raise DataError(f"{what} have no rows")
    if len(lengths) > 1:
        raise DataError(f"{what}: columns differ in length")
    return columns


def _places(columns: Columns, nodes: Sequence[str] | None, what: str) -> dict[str, str]:
    """The column of every node whose name is given."""
    place: dict[str, str] = {}
    for node in nodes or ():
        if node.startswith(PREFIX) and column_of(node) not in columns:
            raise DataError(
                f"{node!r} is a column of switches (the switch of {node.removeprefix(PREFIX)!r}, "
                f"not the node {shown(node)}); it cannot be a node as well"
            )
        # Exported tables have `node:NAME` for a node that is called like another column.
        column = column_of(node) if column_of(node) in columns else node
        if column not in columns:
            raise DataError(f"{what} has no column for node {shown(node)}")
        if column in place.values():
            raise DataError(f"{what}: column {column!r} would be that of two nodes")
        place[node] = column
    return place


def _name_column(
    columns: Columns, intervened: str | None, taken: set[str], what: str
) -> str | None:
    if intervened is not None:
        if not isinstance(intervened, str) or intervened not in columns:
            raise DataError(f"{what} has no column {shown(intervened)}")
        if intervened in taken or intervened.startswith(PREFIX):
            raise DataError(f"column {intervened!r} is something else, no column of names")
        return intervened
    found = [name for name in NAME_COLUMNS if name in columns and name not in taken]
    if len(found) > 1:
        raise DataError(
            f"{what}: {found[0]!r} or {found[1]!r} may be the column that names the switched "
            f"nodes; ignore one (--ignore {found[1]})"
        )
    return found[0] if found else None


def _refuse_others(columns: Columns, known: set[str | None], nodes: Sequence[str]) -> None:
    for name in columns:
        if name not in known:
            raise DataError(
                f"column {shown(name)} is not a node; the nodes are {', '.join(nodes)}. "
                f"To leave it out, ignore it: --ignore {name:.240}"
            )


def _switches(given: Any, nodes: Sequence[str] | None) -> Cells:
    """A second table, or an array with a column per node if their names are given."""
    if isinstance(given, np.ndarray) and nodes is not None:
        if given.ndim != 2 or given.shape[1] != len(nodes):
            raise DataError(f"interventions must have shape (n, {len(nodes)}), not {given.shape}")
        given = dict(zip(nodes, given.T.tolist(), strict=True))
    return _cells(given, "interventions")


def _from_flags(
    table: Cells,
    nodes: Sequence[str],
    n_rows: int,
    factors: NamedFactors | None,
    unknown: list[str] | None,
) -> npt.NDArray[np.int64]:
    """Regimes (n, N) of columns of regimes, or of levels if there are factors.

    Columns that are not about a node are added to `unknown`; None: they are refused.
    """
    if table.columns and table.n_rows != n_rows:
        raise DataError(f"{table.what} has {table.n_rows} rows for {n_rows} rows of samples")
    kind, known = ("node", nodes) if factors is None else ("factor", factors.names)
    found = np.zeros((n_rows, len(known)), dtype=np.int64)
    seen: dict[int, str] = {}
    for column in table.columns:
        name = column.removeprefix(PREFIX)
        if factors is not None and name in factors.nodes and name not in factors.names:
            table.refuse_switched(column, name)  # the node has no switch
            continue
        if unknown is not None and name not in nodes:
            twins = [other for other in unknown if other.removeprefix(PREFIX) == name]
            if twins:
                raise DataError(f"columns {twins[0]!r} and {column!r} are about the same factor")
            refuse_names_of_nodes([name], nodes)
            unknown.append(column)
            continue
        try:
            at = node_index(name, nodes) if factors is None else factors.factor(name)
        except ModelError as error:
            raise DataError(f"column {column!r}: {error}") from None
        if seen.setdefault(at, column) != column:
            raise DataError(f"columns {seen[at]!r} and {column!r} are about the same {kind}")
        found[:, at] = (
            table.regimes(column) if factors is None else table.levels(column, factors.factors[at])
        )
    return _as_regimes(found, factors)


def _from_names(
    table: Cells, column: str, nodes: Sequence[str], factors: NamedFactors | None
) -> npt.NDArray[np.int64]:
    """Regimes (n, N) of a column that names what was switched."""
    kind, known = "node", nodes
    if factors is not None:
        kind, known = "node that is switched nor a factor", factors.names
    place = {name: i for i, name in enumerate(known)}
    found = np.zeros((table.n_rows, len(known)), dtype=np.int64)
    for row, cell in enumerate(table.columns[column]):
        for target in _targets(cell):
            if target not in place:
                raise DataError(
                    f"{table.at(row, column)} names {target!r}, which is not a {kind}; separate "
                    f"names by {SEPARATOR!r}"
                )
            if factors is not None and len(factors.factors[place[target]].levels) > 2:
                raise DataError(
                    f"{table.at(row, column)} names {target!r}, which has more than two levels: "
                    f"use a column {PREFIX}{target} of levels"
                )
            found[row, place[target]] = 1
    return _as_regimes(found, factors)


def _as_regimes(
    found: npt.NDArray[np.int64], factors: NamedFactors | None
) -> npt.NDArray[np.int64]:
    """Levels of factors as regimes of nodes; without factors they are regimes already."""
    return found if factors is None else factors.numbers.interventions(found).astype(np.int64)


def _targets(cell: Any) -> list[str]:
    if cell is None or is_nan(cell):
        return []
    if isinstance(cell, list | tuple | np.ndarray):
        return [str(name) for name in cell]
    parts = (part.strip() for part in str(cell).split(SEPARATOR))
    return [part for part in parts if part]


def _finished(states: Sequence[Any]) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """Trials of an exported table that have a result."""
    kept = np.array([state in WITH_RESULT for state in states])
    n_others = int((~kept).sum())
    has = "1 trial of the table has" if n_others == 1 else f"{n_others} trials of the table have"
    return kept, [f"{has} no result: left out"] if n_others else []
