"""What `causalarms learn` prints: the graph, how well the model fits, how sure the posterior is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from causalarms.cli.terminal import print_table, say
from causalarms.files import shown_number, shown_probability
from causalarms.graphs.diagnostics import MechanismCheck, check_mechanisms
from causalarms.graphs.graph import Graph, varsortability
from causalarms.graphs.inputs import Rounds
from causalarms.posterior.chains.convergence import GOOD_R_HAT
from causalarms.posterior.estimator import GraphPosterior
from causalarms.tables.rounds import TableRounds

BAD_FIT_P_VALUE = 1e-3  # below this a mechanism is called a bad fit
DOUBTFUL_PROBABILITIES = 0.1, 0.9  # edges between them are told apart from the likely ones


def graph_record(
    graph: Graph, learner: Any, rounds: Rounds, table: TableRounds, method: str
) -> dict[str, Any]:
    """A graph, the data it came from, and how well the model fits them."""
    if isinstance(learner, GraphPosterior):
        checks = learner.check_mechanisms(rounds, table.factors)
    else:
        checks = check_mechanisms(
            *rounds, graph.adjacency, graph.weights, graph.known, graph.regime_names
        )
    n = len(rounds.nodes)  # roots stand behind what was measured
    between = graph.adjacency[:, :n, :n].any(axis=0)
    return {
        "method": method,
        "n_rounds": len(rounds.values),
        "nodes": list(graph.nodes),
        "interventions": table.source,
        "factors": {} if table.factors is None else table.factors.levels,
        "regimes": dict(zip(graph.nodes, graph.counts.tolist(), strict=True)),
        "left_out": list(table.left_out),
        "order": None if graph.order is None else list(graph.order),
        "edges": graph.edges(),
        "unknown": [{"regime": r, "node": node} for r, node in graph.unknown()],
        "checks": checks,
        "varsortability": varsortability(between, rounds.values.var(axis=0)),
    }


def print_record(
    record: dict[str, Any], measures: list[str], n_intervened: int, learner: Any
) -> None:
    """The graph in words and tables: likely edges first, the doubtful ones apart."""
    factors = record["factors"]
    of = f"{len(record['nodes']) - len(factors)} nodes"
    of += f" and {len(factors)} factor{'s'[: len(factors) - 1]}" if factors else ""
    # Of factors no level is natural; they differ between rounds anyway.
    with_ = f", {n_intervened} with an intervention" if n_intervened or not factors else ""
    say(
        f"{record['n_rounds']} rounds of {of}{with_} ({record['interventions']}); "
        f"method {record['method']}"
    )
    for name, levels in factors.items():
        say(f"factor {name} ({', '.join(map(str, levels))}): what it acts on is learned")
    for remark in record["left_out"]:
        say(remark)
    # Two regimes are the usual case: only nodes with more or fewer are worth a line.
    more = [f"{node} {k}" for node, k in record["regimes"].items() if k > 2]
    if more:
        say("regimes: " + ", ".join(more))
    fixed = [node for node, k in record["regimes"].items() if k == 1 and node not in factors]
    if fixed and not factors:
        say("never switched, one mechanism each, learned from all rounds: " + ", ".join(fixed))
    rows = [
        [e["regime"], f"{e['parent']} -> {e['child']}", shown_number(e["weight"])]
        + [shown_number(e[name]) if name == "score" else shown_probability(e[name])
           for name in measures]
        for e in record["edges"]
        if e.get("probability", 1.0) >= DOUBTFUL_PROBABILITIES[1]
    ]  # fmt: skip
    print_table(["regime", "edge", "weight", *measures], rows)
    if isinstance(learner, GraphPosterior):
        _print_doubtful(learner)
    if any(edge["parent"] in factors for edge in record["edges"]):
        say("The weight of a factor is what its last level adds, compared with its first.")
    if record["order"] is None:
        say(
            "The regimes mix into a cycle: some interventions have no expected reward. "
            "The posterior and --method csl-joint learn one common order."
        )
    else:
        say("order: " + ", ".join(record["order"]))
    if record["unknown"]:
        unknown = ((one["node"], one["regime"]) for one in record["unknown"])
        say("unknown, for lack of data: " + _mechanisms(unknown))
    _print_checks(record["checks"])
    if not np.isnan(record["varsortability"]):
        say(
            f"varsortability {record['varsortability']:.2f} "
            "(near 1: the variances alone give the order away)"
        )


def _print_checks(checks: list[MechanismCheck]) -> None:
    doubted = False
    for name, words in (
        ("gaussian_p", "residuals are not Gaussian"),
        ("linear_p", "the relation to the parents bends"),
    ):
        bad = [check for check in checks if getattr(check, name) < BAD_FIT_P_VALUE]
        if bad:
            doubted = True
            where = _mechanisms((check.node, check.regime) for check in bad)
            say(
                f"model check: in {len(bad)} of {len(checks)} mechanisms {words} "
                f"(p < {BAD_FIT_P_VALUE:g}): {where}"
            )
    if doubted:
        say("The linear Gaussian model is an approximation here; read edges as hypotheses.")


def _mechanisms(found: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{node} ({regime})" for node, regime in found)


def posterior_record(learner: Any) -> dict[str, Any]:
    """What only the posterior can say, for --json; nothing for other learners."""
    if not isinstance(learner, GraphPosterior):
        return {}
    chains = learner.diagnostics_
    return {
        "log_evidence": learner.log_evidence_,
        "chains": None if chains is None else chains._asdict() | {"converged": chains.converged},
        "whole_graph_miss_probability": learner.whole_graph_miss_probability_,
        "largest_dropped_probability": learner.largest_dropped_probability_,
        "left_out_edges": learner.left_out_,
        "effects": learner.effects_,
        "edge_probability": dict(
            zip(learner.result_.regime_names, learner.edge_probability_.tolist(), strict=True)
        ),
    }


def _print_doubtful(learner: GraphPosterior) -> None:
    """Edges of which the data do not say whether they exist, the likelier first."""
    probability, has = learner.edge_probability_, learner.adjacency_
    low, high = DOUBTFUL_PROBABILITIES
    doubtful = learner.known_[:, None, :] & (probability < high) & (has | (probability >= low))
    rows = [
        [
            learner.result_.regime_names[r],
            f"{learner.nodes_[p]} -> {learner.nodes_[c]}",
            shown_number(float(learner.weights_[r, p, c])) if has[r, p, c] else "not in the graph",
            shown_probability(float(probability[r, p, c])),
        ]
        for r, p, c in sorted(np.argwhere(doubtful).tolist(), key=lambda e: -probability[tuple(e)])
    ]
    if rows:
        print_table(["regime", "doubtful edge", "weight", "probability"], rows)


def print_posterior(learner: Any) -> None:
    """How likely it is that the graph lacks an edge, and how well chains have mixed."""
    if not isinstance(learner, GraphPosterior):
        return
    edge = "an edge between nodes" if learner.effects_ else "an edge"
    lacks = shown_probability(learner.whole_graph_miss_probability_)
    said = f"probability that the graph lacks {edge}: {lacks}"
    chains = learner.diagnostics_
    if chains is None:
        say(f"{said}; log evidence {learner.log_evidence_:.1f}")
        return
    say(said)
    say(
        f"sampled: {chains.n_orders} orders of {chains.n_chains} chains, worst R-hat "
        f"{chains.worst_r_hat:.2f} (good: at most {GOOD_R_HAT}), at least "
        f"{chains.effective_size:.0f} effective orders per edge"
    )
