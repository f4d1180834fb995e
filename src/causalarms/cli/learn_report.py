"""What `causalarms learn` says about a learned graph, to people and to machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from causalarms.cli.terminal import print_table, say
from causalarms.extras import require_extra
from causalarms.files import refuse_output
from causalarms.graphs.diagnostics import MechanismCheck, check_mechanisms
from causalarms.graphs.graph import MARKS, Graph, varsortability
from causalarms.graphs.inputs import Rounds
from causalarms.tables.rounds import TableRounds

MADE_BY = "causalarms learn"
PICTURES = (".png", ".pdf")
ENDINGS = (*MARKS, *PICTURES)
BAD_FIT_P_VALUE = 1e-3  # below this a mechanism is called a bad fit


class LearnReport(NamedTuple):
    """A graph, the data it came from, and how well the model fits them."""

    graph: Graph
    rounds: Rounds
    source: str  # how the interventions were given
    method: str
    checks: list[MechanismCheck]
    varsortability: float
    left_out: tuple[str, ...]  # remarks on rows of the table that were not learned from

    @classmethod
    def of(cls, graph: Graph, rounds: Rounds, table: TableRounds, method: str) -> Self:
        values, regimes, nodes = rounds
        return cls(
            graph,
            rounds,
            table.source,
            method,
            check_mechanisms(
                values,
                regimes,
                nodes,
                graph.adjacency,
                graph.weights,
                graph.known,
                graph.regime_names,
            ),
            varsortability(graph.adjacency.any(axis=0), values.var(axis=0)),
            table.left_out,
        )

    def as_dict(self) -> dict[str, Any]:
        order = self.graph.order
        return {
            "method": self.method,
            "n_rounds": len(self.rounds.values),
            "nodes": list(self.graph.nodes),
            "interventions": self.source,
            "regimes": dict(zip(self.graph.nodes, self.graph.counts.tolist(), strict=True)),
            "left_out": list(self.left_out),
            "order": None if order is None else list(order),
            "edges": self.graph.edges(),
            "unknown": [{"regime": r, "node": node} for r, node in self.graph.unknown()],
            "checks": [check._asdict() for check in self.checks],
            "varsortability": self.varsortability,
        }

    def print(self) -> None:
        graph = self.graph
        n_intervened = int(self.rounds.regimes.any(axis=1).sum())
        say(
            f"{len(self.rounds.values)} rounds of {len(graph.nodes)} nodes, {n_intervened} with an "
            f"intervention ({self.source}); method {self.method}"
        )
        for remark in self.left_out:
            say(remark)
        self._print_regimes()
        measures = list(graph.measures)
        rows = [
            [e["regime"], f"{e['parent']} -> {e['child']}", f"{e['weight']:.3f}"]
            + ["" if e[name] is None else f"{e[name]:.2f}" for name in measures]
            for e in graph.edges()
        ]
        print_table(["regime", "edge", "weight", *measures], rows)
        if graph.order is None:
            say(
                "The regimes mix into a cycle: some interventions have no expected reward. "
                "The posterior and --method csl learn one common order."
            )
        else:
            say("order: " + ", ".join(graph.order))
        unknown = graph.unknown()
        if unknown:
            names = ", ".join(f"{node} ({regime})" for regime, node in unknown)
            say("unknown, for lack of data: " + names)
        self._print_checks()
        if not np.isnan(self.varsortability):
            say(
                f"varsortability {self.varsortability:.2f} "
                "(near 1: the variances alone give the order away)"
            )

    def _print_regimes(self) -> None:
        """Only if not every node has two."""
        nodes, counts = self.graph.nodes, self.graph.counts.tolist()
        more = [f"{node} {k}" for node, k in zip(nodes, counts, strict=True) if k > 2]
        if more:
            say("regimes: " + ", ".join(more))
        fixed = [node for node, k in zip(nodes, counts, strict=True) if k == 1]
        if fixed:
            say("never switched, one mechanism each, learned from all rounds: " + ", ".join(fixed))

    def _print_checks(self) -> None:
        for name, words in (
            ("gaussian_p", "residuals are not Gaussian"),
            ("linear_p", "the relation to the parents bends"),
        ):
            bad = [c for c in self.checks if getattr(c, name) < BAD_FIT_P_VALUE]
            if bad:
                names = ", ".join(f"{c.node} ({c.regime})" for c in bad)
                say(
                    f"model check: in {len(bad)} of {len(self.checks)} mechanisms {words} "
                    f"(p < {BAD_FIT_P_VALUE:g}): {names}"
                )
        if any(min(c.gaussian_p, c.linear_p) < BAD_FIT_P_VALUE for c in self.checks):
            say("The linear Gaussian model is an approximation here; read edges as hypotheses.")


def refuse_graph(path: Path, inputs: list[Path], force: bool) -> None:
    """Before learning: an error if the graph could not be written afterwards."""
    if path.suffix in PICTURES:
        require_extra("plot", f"the picture {path}")
        from causalarms.pictures.style import picture_mark

        refuse_output(path, picture_mark(path, MADE_BY), inputs=inputs, force=force)
    else:
        refuse_output(path, MARKS[path.suffix], inputs=inputs, force=force)


def write_graph(graph: Graph, path: Path, inputs: list[Path], force: bool) -> None:
    """As a picture or as data, by the ending of the name."""
    if path.suffix in PICTURES:
        from causalarms.pictures.graph import draw_graph
        from causalarms.pictures.style import save_figure

        save_figure(draw_graph(graph), path, made_by=MADE_BY, inputs=inputs, force=force)
    else:
        graph.save(path, inputs=inputs, force=force)
