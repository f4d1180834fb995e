"""A learned graph per regime and its export to the formats people use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.graphs.regime_names import REGIME_NAMES, regime_names
from causalarms.outputs import Mark, write_output
from causalarms.sem.regimes import Counts, existing, regime_counts
from causalarms.tables.write import csv_text

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

FORMAT = "causalarms.graph/1"
COLUMNS = ("regime", "parent", "child", "weight")
MADE_BY = "`causalarms learn`, `study graph` or `demo`"
MARKS = {  # of the files that `Graph.save` writes, by their ending
    ".json": Mark(MADE_BY, f'{{\n "format": "{FORMAT}"'.encode()),
    ".csv": Mark(MADE_BY, ",".join(COLUMNS).encode()),
    ".graphml": Mark(MADE_BY, b"<graphml", b'"natural_known"'),
    ".dot": Mark(MADE_BY, b"digraph causalarms {"),
}
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Graph:
    """One adjacency per regime over named nodes.

    `known` (R, N) says which mechanisms had data: the others are unknown, not without parents.
    `measures` are further numbers per edge (score, stability, probability), each (R, N, N).
    `regimes` (N,) says how many regimes each node has, None: all R.
    """

    nodes: tuple[str, ...]
    adjacency: BoolArray  # (R, N, N)
    weights: FloatArray  # (R, N, N)
    known: BoolArray  # (R, N)
    order: tuple[str, ...] | None  # None where the regimes mix into a cycle
    measures: dict[str, FloatArray]
    regimes: Counts | None = None

    @property
    def regime_names(self) -> tuple[str, ...]:
        return regime_names(len(self.adjacency))

    def edges(self) -> list[dict[str, Any]]:
        """One record per edge and regime, sorted by regime, child and falling |weight|."""
        records, names = [], self.regime_names
        for regime, parent, child in np.argwhere(self.adjacency):
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
        unknown = self._exist & ~self.known
        return [(self.regime_names[r], self.nodes[i]) for r, i in np.argwhere(unknown)]

    @property
    def _exist(self) -> BoolArray:
        """Which mechanisms there are, (R, N)."""
        counts = regime_counts(self.regimes, len(self.nodes), default=len(self.known))
        return existing(counts, len(self.known))

    def to_networkx(self) -> nx.DiGraph:
        """The union of all regimes; an edge carries `weight_natural`, `weight_intervened`, ..."""
        graph = nx.DiGraph()
        for i, node in enumerate(self.nodes):
            graph.add_node(
                node,
                **{
                    f"{name}_known": bool(self.known[r, i])
                    for r, name in enumerate(self.regime_names)
                    if self._exist[r, i]
                },
            )
        for edge in self.edges():
            regime = edge["regime"]
            attributes = {
                f"{key}_{regime}": value
                for key, value in edge.items()
                if key not in ("regime", "parent", "child") and value is not None
            }
            graph.add_edge(edge["parent"], edge["child"], **{regime: True}, **attributes)
        for _, _, attributes in graph.edges(data=True):
            for regime in self.regime_names:
                attributes.setdefault(regime, False)
        return graph

    def to_json(self) -> str:
        """Nodes, edges with all their numbers, order and unknown mechanisms."""
        record = {
            "format": FORMAT,
            "nodes": list(self.nodes),
            "order": list(self.order) if self.order else None,
            "edges": self.edges(),
            "unknown": [{"regime": r, "node": node} for r, node in self.unknown()],
        }
        return json.dumps(record, indent=1) + "\n"

    def to_csv(self) -> str:
        """The edge list."""
        columns = (*COLUMNS, *self.measures)
        return csv_text(columns, ([edge[name] for name in columns] for edge in self.edges()))

    def to_graphml(self) -> str:
        """XML; DataError names a node whose name holds what XML cannot."""
        for node in self.nodes:
            found = NOT_XML.search(node)
            if found:
                raise DataError(
                    f"node {node!r}: GraphML cannot hold the character {found.group()!r}; "
                    "save the graph as .json"
                )
        return "\n".join(nx.generate_graphml(self.to_networkx())) + "\n"

    def to_dot(self) -> str:
        """Solid edges are natural, dashed ones those of other regimes."""
        lines = ["digraph causalarms {", "  rankdir=LR;"]
        lines += [f"  {_quoted(node)};" for node in self.nodes]
        for edge in self.edges():
            style = "solid" if edge["regime"] == REGIME_NAMES[0] else "dashed"
            lines.append(
                f"  {_quoted(edge['parent'])} -> {_quoted(edge['child'])} "
                f'[label="{edge["weight"]:.3g}", style={style}];'
            )
        return "\n".join([*lines, "}"]) + "\n"

    def save(
        self, path: str | Path, *, inputs: Iterable[str | Path] = (), force: bool = False
    ) -> Path:
        """Write as JSON, CSV, GraphML or DOT, by the ending of the file's name.

        A study, one of `inputs` and, without `force`, a file that is no graph is not written over.
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
