"""A learned graph per regime and its export to the formats people use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray
from causalarms.errors import DataError
from causalarms.files import Mark, write_output
from causalarms.sem.regimes import Counts, existing, regime_counts, regime_names
from causalarms.tables.write import csv_text

if TYPE_CHECKING:
    import networkx as nx

FORMAT = "causalarms.graph/1"
COLUMNS = ("regime", "parent", "child", "weight")
MADE_BY = "`causalarms learn`, `study graph` or `demo`"
MARKS = {  # of the files that `Graph.save` writes, by their ending
    ".json": Mark(MADE_BY, f'{{\n "format": "{FORMAT}"'.encode()),
    ".csv": Mark(MADE_BY, ",".join(COLUMNS).encode()),
    ".graphml": Mark(MADE_BY, b"<graphml", b'_known"'),
    ".dot": Mark(MADE_BY, b"digraph causalarms {"),
}
SOLID_AND_DASHED = 2  # regimes that styles of lines tell apart
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Graph:
    """One adjacency per regime over named nodes.

    `known` (R, N) says which mechanisms had data: the others are unknown, not without parents.
    `measures` are further numbers per edge (score, stability, probability), each (R, N, N).
    `regimes` (N,) says how many regimes each node has, None: all R. Of others nothing is shown.
    `regime_names` are what the R regimes are called, if not natural, intervened, ...
    `factors` are nodes that a person sets, and `context` those that nothing but context causes.
    """

    nodes: tuple[str, ...]
    adjacency: BoolArray  # (R, N, N)
    weights: FloatArray  # (R, N, N)
    known: BoolArray  # (R, N)
    order: tuple[str, ...] | None  # None if the regimes mix into a cycle
    measures: dict[str, FloatArray]
    regimes: Counts | None = None
    regime_names: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    context: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n_regimes = len(self.adjacency)
        names = tuple(self.regime_names) or regime_names(n_regimes)
        if len(names) != n_regimes or len(set(names)) < n_regimes:
            raise DataError(
                f"regime_names must be {n_regimes} different names, one per regime, not {names}"
            )
        object.__setattr__(self, "regime_names", names)

    @property
    def n_regimes(self) -> int:
        """R: the most regimes that a node has."""
        return len(self.adjacency)

    @cached_property
    def counts(self) -> Counts:
        """How many regimes each node has, (N,)."""
        return regime_counts(self.regimes, len(self.nodes), default=self.n_regimes)

    @cached_property
    def exists(self) -> BoolArray:
        """Which mechanisms there are, (R, N)."""
        return existing(self.counts, self.n_regimes)

    def edges(self) -> list[dict[str, Any]]:
        """One record per edge and regime, sorted by regime, child and falling |weight|."""
        records, names = [], self.regime_names
        for regime, parent, child in np.argwhere(self.adjacency & self.exists[:, None, :]):
            records.append(
                {
                    "regime": names[regime],
                    "parent": self.nodes[parent],
                    "child": self.nodes[child],
                    "weight": float(self.weights[regime, parent, child]),
                }
                | {
                    name: _number(values[regime, parent, child])
                    for name, values in self.measures.items()
                }
            )
        place = {node: i for i, node in enumerate(self.order or self.nodes)}
        return sorted(
            records,
            key=lambda e: (
                names.index(e["regime"]),
                place[e["child"]],
                -abs(e["weight"]),
                e["parent"],
            ),
        )

    def unknown(self) -> list[tuple[str, str]]:
        """(regime, node) of the mechanisms without data."""
        unknown = self.exists & ~self.known
        return [(self.regime_names[r], self.nodes[i]) for r, i in np.argwhere(unknown)]

    def to_networkx(self) -> nx.DiGraph:
        """The union of all regimes; an edge carries `weight_natural`, `weight_intervened`, ...

        Of a regime that a node does not have, neither the node nor an edge to it says anything.
        """
        import networkx as nx  # takes longer to import than a study to open

        graph, names = nx.DiGraph(), self.regime_names
        has = {
            node: [name for r, name in enumerate(names) if self.exists[r, i]]
            for i, node in enumerate(self.nodes)
        }
        for i, node in enumerate(self.nodes):
            known = zip(has[node], self.known[:, i].tolist(), strict=False)
            graph.add_nodes_from([(node, {f"{name}_known": is_known for name, is_known in known})])
        for edge in self.edges():
            regime, ends = edge["regime"], (edge["parent"], edge["child"])
            attributes = {
                f"{key}_{regime}": value
                for key, value in edge.items()
                if key not in ("regime", "parent", "child") and value is not None
            }
            graph.add_edges_from([(*ends, {regime: True} | attributes)])
        for _, child, attributes in graph.edges(data=True):
            for regime in has[child]:
                attributes.setdefault(regime, False)
        return graph

    def to_json(self) -> str:
        """Nodes and their regimes, edges with all their numbers, order, unknown mechanisms."""
        record: dict[str, Any] = {
            "format": FORMAT,
            "nodes": list(self.nodes),
            "regimes": {
                node: list(self.regime_names[:count])
                for node, count in zip(self.nodes, self.counts.tolist(), strict=True)
            },
            "order": list(self.order) if self.order else None,
            "edges": self.edges(),
            "unknown": [{"regime": r, "node": node} for r, node in self.unknown()],
        }
        for kind in ("factors", "context"):
            if getattr(self, kind):
                record[kind] = list(getattr(self, kind))
        return json.dumps(record, indent=1) + "\n"

    def to_csv(self) -> str:
        """The edge list."""
        columns = (*COLUMNS, *self.measures)
        return csv_text(columns, ([edge[name] for name in columns] for edge in self.edges()))

    def to_graphml(self) -> str:
        """XML; DataError names a node or regime whose name holds what XML cannot."""
        for what, names in (("node", self.nodes), ("regime", self.regime_names)):
            for name in names:
                found = NOT_XML.search(name)
                if found:
                    raise DataError(
                        f"{what} {name!r}: GraphML cannot hold the character {found.group()!r}; "
                        "save the graph as .json"
                    )
        import networkx as nx

        return "\n".join(nx.generate_graphml(self.to_networkx())) + "\n"

    def to_dot(self) -> str:
        """Solid edges are natural, dashed ones those of other regimes, named if several.

        Factors are boxes and context hexagons.
        """
        lines = ["digraph causalarms {", "  rankdir=LR;"]
        shapes = dict.fromkeys(self.factors, " [shape=box]")
        shapes |= dict.fromkeys(self.context, " [shape=hexagon]")
        lines += [f"  {_quoted(node)}{shapes.get(node, '')};" for node in self.nodes]
        for edge in self.edges():
            style = "solid" if edge["regime"] == self.regime_names[0] else "dashed"
            label = f"{edge['weight']:.3g}"
            if self.n_regimes > SOLID_AND_DASHED:
                label += f" ({edge['regime']})"
            lines.append(
                f"  {_quoted(edge['parent'])} -> {_quoted(edge['child'])} "
                f"[label={_quoted(label)}, style={style}];"
            )
        return "\n".join([*lines, "}"]) + "\n"

    def save(
        self, path: str | Path, *, inputs: Iterable[str | Path] = (), force: bool = False
    ) -> Path:
        """Write as JSON, CSV, GraphML or DOT, by the ending of the file's name.

        A study, one of `inputs` and, without `force`, what is not a graph is not written over.
        """
        path = Path(path)
        writers = {
            ".json": self.to_json,
            ".csv": self.to_csv,
            ".graphml": self.to_graphml,
            ".dot": self.to_dot,
        }
        if path.suffix not in writers:
            raise DataError(
                f"{path.name}: unknown ending {path.suffix!r}; there are {', '.join(writers)}"
            )
        mark = MARKS[path.suffix]
        return write_output(path, writers[path.suffix](), mark, inputs=inputs, force=force)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# Errors of an estimated graph exactly as Sec. VI-A of the paper defines them.
#
# All take adjacency or weight matrices [parent, child]; any non-zero entry is an edge.


class GraphErrors(NamedTuple):
    """`false_negative` is the indicator whose mean over runs is the graph-FN rate."""

    false_negative: bool
    precision: float
    recall: float
    nshd: float


def graph_errors(truth: npt.ArrayLike, estimate: npt.ArrayLike) -> GraphErrors:
    """Compare two graphs of one regime.

    An empty estimate has precision 1 (nothing it says is wrong), an empty truth recall 1.

    >>> graph_errors([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    GraphErrors(false_negative=True, precision=0.0, recall=0.0, nshd=0.25)
    """
    true, guess = _edges(truth), _edges(estimate)
    if true.shape != guess.shape:
        raise DataError(f"graphs of {true.shape} and {guess.shape} cannot be compared")
    hits = int((true & guess).sum())
    missed = true & ~guess
    reversed_edges = missed & guess.T
    distance = (guess & ~true).sum() + missed.sum() - reversed_edges.sum()
    return GraphErrors(
        false_negative=bool(missed.any()),
        precision=float(hits / guess.sum()) if guess.any() else 1.0,
        recall=float(hits / true.sum()) if true.any() else 1.0,
        nshd=float(distance / len(true) ** 2),
    )


def varsortability(adjacency: npt.ArrayLike, variances: npt.ArrayLike) -> float:
    """Fraction of directed paths along which the variance grows (Reisach et al. 2021).

    Near 1, the order of the variances alone gives the causal order away; nan without an edge.
    Paths are counted once per length, ties as one half.
    """
    edges, variance = _edges(adjacency), np.asarray(variances, dtype=float)
    paths = np.eye(len(edges), dtype=bool)
    grows = total = 0.0
    for _ in range(len(edges) - 1):
        paths = (paths.astype(int) @ edges.astype(int)) > 0
        start, end = np.nonzero(paths)
        grows += (variance[start] < variance[end]).sum()
        grows += 0.5 * (variance[start] == variance[end]).sum()
        total += len(start)
    return float(grows / total) if total else float("nan")


def _edges(matrix: npt.ArrayLike) -> BoolArray:
    given = np.asarray(matrix)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise DataError(f"a graph is a square matrix, not {given.shape}")
    return given != 0
