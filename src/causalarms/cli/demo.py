"""`causalarms demo`: the main job in small.

An unknown system with named nodes. The default of a study and the paper's CSL-UCB, which are told
nothing, play against vanilla UCB, which ignores causes, and LinSEM-TS, which is told the graph and
the means of the noise. Then: what the default has found, and how sure it is.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from causalarms.arrays import Intervention
from causalarms.cli.options import FORCE, JSON, PATH, SEED
from causalarms.cli.terminal import err, print_json, print_table, say
from causalarms.errors import MissingExtraError
from causalarms.extras import has_extra, require_extra
from causalarms.files import Mark, refuse_output
from causalarms.graphs.graph import MARKS as GRAPHS
from causalarms.graphs.graph import Graph, graph_errors
from causalarms.models.belief import Belief, Choice, likely_graph
from causalarms.policies.base import Policy, Suggestion
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import MARK as SYSTEM
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.rewards import all_interventions
from causalarms.simulation.experiment import Contestant, Experiment, trace_record
from causalarms.simulation.simulate import Trace
from causalarms.simulation.simulate import simulate as play
from causalarms.simulation.world import World
from causalarms.study.learner import chosen_policy

if TYPE_CHECKING:
    from rich.console import Console

MADE_BY = "causalarms demo"
NODES = ("feed", "heat", "stirring", "pressure", "catalyst", "cooling", "purity", "yield")
TOLD = "linsem-ts"  # the means of the noise too: it cannot do without them
DEFAULT, ITS_SETTINGS = chosen_policy(None, None, changes=False)
CONTESTANTS = (
    Contestant(DEFAULT, f"{DEFAULT} (is told nothing)", ITS_SETTINGS),
    Contestant("csl-ucb", "CSL-UCB (is told nothing)"),
    Contestant("ucb", "vanilla UCB (ignores causes)"),
    Contestant(TOLD, "LinSEM-TS (is told the graph)"),
)


@click.command()
@click.option(
    "--out",
    "folder",
    type=PATH,
    default=Path("out"),
    help="Folder for the pictures.",
)
@click.option(
    "--rounds",
    type=click.IntRange(200, 10**6),
    default=600,
    help="Number of rounds of each policy.",
)
@click.option(
    "--seed",
    type=SEED,
    default=4,
    help="Seed of the system and of all random numbers.",
)
@FORCE
@JSON
def demo(folder: Path, rounds: int, seed: int, force: bool, as_json: bool) -> None:
    """Find the best of 256 settings of an unknown 8-node system, and why it is the best."""
    # Refused before the policies play, which takes a minute the first time.
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
    world = World(sem)
    policies = fresh_policies(experiment, world)
    traces = [
        _play(policy, sem, rounds, seed, contestant.name, quiet=as_json)
        for contestant, policy in zip(CONTESTANTS, policies, strict=True)
    ]
    belief = policies[0].belief()
    assert belief is not None
    found = _best(belief, sem)
    graph = likely_graph(belief, sem.nodes, sem.regimes)
    files = [
        graph.save(folder / "graph.json", force=force),
        sem.save(folder / "system.json", force=force),
    ]
    if has_extra("plot"):
        files = _pictures(experiment, world, traces, graph, sem, folder, force) + files
    if as_json:
        print_json(_record(sem, traces, found, graph, files))
    else:
        _report(sem, found, graph, files)
    try:
        require_extra("plot", "drawing pictures")
    except MissingExtraError as error:
        say(f"no pictures: {error}", err=True)


def fresh_policies(experiment: Experiment, world: World) -> list[Policy]:
    """One per contestant; only who cannot do without the means of the noise is told them."""
    ignorant = dataclasses.replace(experiment, knows_noise_mean=False)
    return [
        (experiment if contestant.policy == TOLD else ignorant).policy(contestant, world)
        for contestant in experiment.contestants
    ]


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

    if live:
        _line(console, name, 0, total, "starting")
    trace = play(policy, sem, horizon=rounds, seed=seed, on_round=on_round)
    if live:
        console.file.write("\r\x1b[K")
    if not quiet:
        percent = 100 * trace.optimal[-100:].mean()
        say(
            f"  {name:31s} regret {trace.regret[-1]:8.1f}, best intervention in {percent:3.0f} % "
            "of the last 100 rounds"
        )
    return trace


def _line(console: Console, name: str, t: int, regret: float, reason: str) -> None:
    console.file.write(f"\r\x1b[K  {name:31s} round {t:4d}, regret {regret:8.1f}, {reason}")
    console.file.flush()


class Found(NamedTuple):
    """The intervention to settle on, and what is believed of it."""

    intervention: Intervention
    choice: Choice


def _best(belief: Belief, sem: LinearSEM) -> Found:
    rows = all_interventions(sem.n_nodes, sem.regimes)
    choice = belief.best(rows, sem.reward, np.zeros(len(rows)))
    return Found(rows[choice.row], choice)


def _pictures(
    experiment: Experiment,
    world: World,
    traces: list[Trace],
    graph: Graph,
    sem: LinearSEM,
    folder: Path,
    force: bool,
) -> list[Path]:
    from causalarms.pictures import draw_graph, draw_optimal_share, draw_regret, save_figure

    records = [
        trace_record(experiment, contestant, 0, world, trace)
        for contestant, trace in zip(experiment.contestants, traces, strict=True)
    ]
    figures = {
        "regret.png": draw_regret(experiment, records),
        "optimal_share.png": draw_optimal_share(experiment, records),
        "graph.png": draw_graph(graph, reward="yield", truth=sem.adjacency),
    }
    return [
        save_figure(figure, folder / name, made_by=MADE_BY, force=force)
        for name, figure in figures.items()
    ]


def _marks(folder: Path) -> dict[Path, Mark]:
    """How the files of an earlier demo are recognised; pictures only if they can be drawn."""
    data = {folder / "graph.json": GRAPHS[".json"], folder / "system.json": SYSTEM}
    if not has_extra("plot"):
        return data
    from causalarms.pictures.style import picture_mark

    pictures = [folder / name for name in ("regret.png", "optimal_share.png", "graph.png")]
    return {path: picture_mark(path, MADE_BY) for path in pictures} | data


def _report(sem: LinearSEM, found: Found, graph: Graph, files: list[Path]) -> None:
    best = sem.best_intervention()
    reward = sem.expected_reward(np.stack([found.intervention, best]))
    say()
    predicted = found.choice.reward
    say(f"Best intervention found by {DEFAULT}: {_names(sem, found.intervention)}")
    say(
        f"  predicted {sem.nodes[sem.reward]} {predicted.mean:.2f} ({predicted.low:.2f} to "
        f"{predicted.high:.2f}), true {reward[0]:.2f}; the best with probability "
        f"{found.choice.probability:.2f}"
    )
    say(f"  the true best: {_names(sem, best)}, {reward[1]:.2f}")
    rows = []
    for regime, name in enumerate(graph.regime_names):
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
    say("The graph it learned on the way, next to the truth:")
    print_table(["regime", "true edges", "found", "precision", "recall"], rows)
    for edge in graph.edges():
        if edge["child"] == sem.nodes[sem.reward]:
            regime = graph.regime_names.index(edge["regime"])
            true = sem.weights[regime, sem.nodes.index(edge["parent"]), sem.reward]
            say(
                f"  {edge['parent']} -> {edge['child']} ({edge['regime']}): {edge['weight']:+.2f}, "
                f"true {true:+.2f}, probability {edge['probability']:.2f}"
            )
    say()
    say("wrote " + ", ".join(str(path) for path in files))


def _record(
    sem: LinearSEM, traces: list[Trace], found: Found, graph: Graph, files: list[Path]
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
            "predicted": float(found.choice.reward.mean),
            "low": float(found.choice.reward.low),
            "high": float(found.choice.reward.high),
            "probability": found.choice.probability,
            "expected": float(reward[0]),
        },
        "best": {"intervention": best.tolist(), "expected": float(reward[1])},
        "edges": graph.edges(),
        "files": [str(path) for path in files],
    }


def _names(sem: LinearSEM, intervention: Any) -> str:
    switched = [sem.nodes[i] for i in np.flatnonzero(intervention)]
    return "switch " + ", ".join(switched) if switched else "leave all nodes natural"
