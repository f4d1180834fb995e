"""`causalarms demo`: the main job in small.

An unknown system with named nodes. CSL-UCB and the posterior, which know neither graph nor effects,
play against vanilla UCB, which ignores causes, and LinSEM-TS, which is told the graph. Then: what
was found.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from causalarms.cli.options import FORCE, SEED
from causalarms.cli.terminal import err, out, print_json, say, table
from causalarms.environments.worlds import World
from causalarms.graphs.graph import MARKS as GRAPHS
from causalarms.graphs.graph import Graph
from causalarms.graphs.metrics import graph_errors
from causalarms.outputs import Mark, refuse_output
from causalarms.policies.base import Policy, Suggestion
from causalarms.policies.csl_ucb import CSLUCB
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import MARK as SYSTEM
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.experiment import Contestant, Experiment, trace_record
from causalarms.simulation.simulate import Trace
from causalarms.simulation.simulate import simulate as play

MADE_BY = "causalarms demo"
NODES = ("feed", "heat", "stirring", "pressure", "catalyst", "cooling", "purity", "yield")
CONTESTANTS = (
    Contestant("csl-ucb", "CSL-UCB (knows no graph)"),
    Contestant("posterior", "posterior (knows no graph)"),
    Contestant("ucb", "vanilla UCB (ignores causes)"),
    Contestant("linsem-ts", "LinSEM-TS (is told the graph)"),
)


@click.command()
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Folder for the pictures.",
)
@click.option("--rounds", type=click.IntRange(200, 10**6), default=600, show_default=True)
@click.option(
    "--seed", type=SEED, default=4, show_default=True, help="Another seed, another system."
)
@FORCE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def demo(folder: Path, rounds: int, seed: int, force: bool, as_json: bool) -> None:
    """Find the best of 256 settings of an unknown 8-node system, and why it is the best."""
    for path, mark in _marks(folder).items():
        refuse_output(path, mark, force=force)
    sem = random_sem(len(NODES), seed=seed).replace(nodes=NODES, reward="yield")
    experiment = Experiment(n_nodes=len(NODES), horizon=rounds, seed=seed, contestants=CONTESTANTS)
    if not as_json:
        say(
            f"An unknown system of {sem.n_nodes} nodes ({', '.join(NODES)}); every node can be "
            f"switched, so there are {2**sem.n_nodes} interventions."
        )
        say(f"{rounds} rounds each, compiled on first use:")
    world, traces, policies = World(sem), [], []
    for contestant in CONTESTANTS:
        policy = experiment.policy(contestant, world)
        traces.append(_play(policy, sem, rounds, seed, contestant.name, quiet=as_json))
        policies.append(policy)
    learner = policies[0]
    assert isinstance(learner, CSLUCB)
    found = learner.suggest(np.random.default_rng(0))
    graph = _learned(learner, sem)
    files = _pictures(experiment, world, traces, graph, sem, folder, force)
    if as_json:
        print_json(_record(sem, traces, found, graph, files))
    else:
        _report(sem, found, graph, files)


def _play(
    policy: Policy, sem: LinearSEM, rounds: int, seed: int, name: str, *, quiet: bool
) -> Trace:
    """One run with a line that moves on a terminal."""
    console = err()
    live = console.is_terminal and not quiet
    total = 0.0

    def on_round(t: int, suggestion: Suggestion, gap: float) -> None:
        nonlocal total
        total += gap
        if live and (t % 10 == 0 or t == rounds):
            _line(console, name, t, total, suggestion.reason)

    trace = play(policy, sem, horizon=rounds, seed=seed, on_round=on_round)
    if live:
        console.file.write("\r\x1b[K")
    if not quiet:
        share = 100 * trace.optimal[-100:].mean()
        say(
            f"  {name:31s} regret {trace.regret[-1]:8.1f}, best intervention in {share:3.0f} % "
            "of the last 100 rounds"
        )
    return trace


def _line(console: Console, name: str, t: int, regret: float, reason: str) -> None:
    console.file.write(f"\r\x1b[K  {name:31s} round {t:4d}, regret {regret:8.1f}, {reason}")
    console.file.flush()


def _learned(learner: CSLUCB, sem: LinearSEM) -> Graph:
    model, adjacency = learner.model, learner.adjacency
    assert model is not None
    assert adjacency is not None
    order = None if model.order is None else tuple(sem.nodes[i] for i in model.order)
    known = np.ones((2, sem.n_nodes), dtype=bool)
    return Graph(sem.nodes, adjacency, model.weights, known, order, {})


def _pictures(
    experiment: Experiment,
    world: World,
    traces: list[Trace],
    graph: Graph,
    sem: LinearSEM,
    folder: Path,
    force: bool,
) -> list[Path]:
    from causalarms.pictures.curves import draw_optimal_share, draw_regret
    from causalarms.pictures.graph import draw_graph
    from causalarms.pictures.style import save_figure

    records = [
        trace_record(experiment, contestant, 0, world, trace)
        for contestant, trace in zip(experiment.contestants, traces, strict=True)
    ]
    figures = {
        "regret.png": draw_regret(experiment, records),
        "optimal_share.png": draw_optimal_share(experiment, records),
        "graph.png": draw_graph(graph, reward="yield", truth=sem.adjacency),
    }
    paths = [
        save_figure(figure, folder / name, made_by=MADE_BY, force=force)
        for name, figure in figures.items()
    ]
    return [
        *paths,
        graph.save(folder / "graph.json", force=force),
        sem.save(folder / "system.json", force=force),
    ]


def _marks(folder: Path) -> dict[Path, Mark]:
    """How the files of an earlier demo are recognised."""
    from causalarms.pictures.style import picture_mark

    pictures = [folder / name for name in ("regret.png", "optimal_share.png", "graph.png")]
    return {
        **{path: picture_mark(path, MADE_BY) for path in pictures},
        folder / "graph.json": GRAPHS[".json"],
        folder / "system.json": SYSTEM,
    }


def _report(sem: LinearSEM, found: Suggestion, graph: Graph, files: list[Path]) -> None:
    best = sem.best_intervention()
    reward = sem.expected_reward(np.stack([found.intervention, best]))
    say()
    say(f"Best intervention found by CSL-UCB: {_names(sem, found.intervention)}")
    say(
        f"  predicted {sem.nodes[sem.reward]} {found.mean:.2f}, true {reward[0]:.2f}; "
        f"the true best is {_names(sem, best)} with {reward[1]:.2f}"
    )
    rows = []
    for regime, name in enumerate(("natural", "intervened")):
        errors = graph_errors(sem.adjacency[regime], graph.adjacency[regime])
        rows.append(
            [
                name,
                str(int(sem.adjacency[regime].sum())),
                str(int(graph.adjacency[regime].sum())),
                f"{errors.precision:.2f}",
                f"{errors.recall:.2f}",
            ]
        )
    say()
    say("The graph it learned on the way, beside the truth:")
    out().print(table(["regime", "true edges", "found", "precision", "recall"], rows))
    for edge in graph.edges():
        if edge["child"] == sem.nodes[sem.reward]:
            regime = 1 if edge["regime"] == "intervened" else 0
            true = sem.weights[regime, sem.nodes.index(edge["parent"]), sem.reward]
            say(
                f"  {edge['parent']} -> {edge['child']} ({edge['regime']}): {edge['weight']:+.2f}, "
                f"true {true:+.2f}"
            )
    say()
    say("wrote " + ", ".join(str(path) for path in files))


def _record(
    sem: LinearSEM, traces: list[Trace], found: Suggestion, graph: Graph, files: list[Path]
) -> dict[str, Any]:
    best = sem.best_intervention()
    reward = sem.expected_reward(np.stack([found.intervention, best]))
    return {
        "nodes": list(sem.nodes),
        "policies": [
            {
                "policy": c.policy,
                "regret": float(t.regret[-1]),
                "final_optimal_share": float(t.optimal[-100:].mean()),
            }
            for c, t in zip(CONTESTANTS, traces, strict=True)
        ],
        "found": {
            "intervention": found.intervention.tolist(),
            "predicted": found.mean,
            "expected": float(reward[0]),
        },
        "best": {"intervention": best.tolist(), "expected": float(reward[1])},
        "edges": graph.edges(),
        "files": [str(path) for path in files],
    }


def _names(sem: LinearSEM, intervention: Any) -> str:
    switched = [sem.nodes[i] for i in np.flatnonzero(intervention)]
    return "switch " + ", ".join(switched) if switched else "leave all nodes natural"
