"""`causalarms demo`: the main job in small.

An unknown system with named nodes. The default of a study, which is told nothing, and the paper's
CSL-UCB, which is told the number of rounds, play against vanilla UCB, which ignores causes, and
two that are told the graph and the means of the noise: LinSEM-TS and the stronger LinSEM-quantile.
Then: what the default has found, and how sure it is.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from causalarms.cli.options import FORCE, JSON, PATH, SEED, refuse_picture
from causalarms.cli.terminal import print_json, print_table, progress, say
from causalarms.errors import MissingExtraError
from causalarms.extras import has_extra, require_extra
from causalarms.files import refuse_output, shown_number, shown_probability
from causalarms.graphs.graph import MARKS as GRAPHS
from causalarms.graphs.graph import Graph, graph_errors
from causalarms.models.belief import TIE, Belief, likely_graph, recommend
from causalarms.policies.base import Policy, Suggestion
from causalarms.search.constraints import Constraints
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import MARK as SYSTEM
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.experiment import Contestant, Experiment, trace_record
from causalarms.simulation.simulate import Trace
from causalarms.simulation.simulate import simulate as play
from causalarms.simulation.world import World
from causalarms.study.learner import chosen_policy

MADE_BY = "causalarms demo"
NODES = ("feed", "heat", "stirring", "pressure", "catalyst", "cooling", "purity", "yield")
REGIMES = (2,) * (len(NODES) - 1) + (1,)  # nobody has a switch for the yield
PICTURES = ("regret.png", "optimal_share.png", "graph.png")
TOLD = ("linsem-ts", "linsem-quantile")  # the means too: they cannot do without them
# What a study takes if nobody chooses: the demo shows what its user would get.
DEFAULT, ITS_SETTINGS = chosen_policy(None, None, changes=False)
LAST_ROUNDS = 100  # of a run: enough to tell whether a policy has settled on the best
CONTESTANTS = (
    Contestant(DEFAULT, f"{DEFAULT} (is told nothing)", ITS_SETTINGS),
    Contestant("csl-ucb", "CSL-UCB (is told the rounds)"),
    Contestant("ucb", "vanilla UCB (ignores causes)"),
    Contestant(TOLD[0], "LinSEM-TS (is told the graph)"),
    Contestant(TOLD[1], "LinSEM-quantile (the same)"),
)


@click.command()
@click.option("--out", "folder", type=PATH, default=Path("out"), help="Folder for the pictures.")
@click.option(
    "--rounds",
    type=click.IntRange(200, 10**6),
    default=600,
    help="Number of rounds of each policy.",
)
@click.option("--seed", type=SEED, default=6, help="Seed of the system and of all random numbers.")
@FORCE
@JSON
def demo(folder: Path, rounds: int, seed: int, force: bool, as_json: bool) -> None:
    """Find the best of 128 settings of an unknown 8-node system, and why it is the best."""
    # Refused before the policies play, which takes a minute the first time.
    for name in PICTURES if has_extra("plot") else ():
        refuse_picture(folder / name, MADE_BY, force=force)
    refuse_output(folder / "graph.json", GRAPHS[".json"], force=force)
    refuse_output(folder / "system.json", SYSTEM, force=force)
    sem = random_sem(len(NODES), seed=seed, regimes=REGIMES).replace(nodes=NODES, reward="yield")
    experiment = Experiment(n_nodes=len(NODES), horizon=rounds, seed=seed, contestants=CONTESTANTS)
    if not as_json:
        say(
            f"An unknown system of {sem.n_nodes} nodes ({', '.join(NODES)}); every node but the "
            f"last, the reward, can be switched, so there are {math.prod(REGIMES)} interventions."
        )
        say(f"{rounds} rounds each, compiled on first use:")
    world = World(sem)
    policies = fresh_policies(experiment, world)
    traces = []
    for contestant, policy in zip(CONTESTANTS, policies, strict=True):
        traces.append(_play(policy, sem, rounds, seed, contestant.name))
        if not as_json:
            say(
                f"  {contestant.name:31s} regret {traces[-1].regret[-1]:8.1f}, best intervention "
                f"in {100 * _final_share(traces[-1]):3.0f} % of the last {LAST_ROUNDS} rounds"
            )
    belief = policies[0].belief()
    assert belief is not None
    graph = likely_graph(belief, sem.nodes, sem.regimes)
    files = [
        graph.save(folder / "graph.json", force=force),
        sem.save(folder / "system.json", force=force),
    ]
    if has_extra("plot"):
        files = _pictures(experiment, world, traces, graph, folder, force) + files
    record = _record(sem, traces, belief, graph, files)
    if as_json:
        print_json(record)
    else:
        _report(sem, record, graph)
    try:
        require_extra("plot", "drawing pictures")
    except MissingExtraError as error:
        say(f"no pictures: {error}", err=True)


def fresh_policies(experiment: Experiment, world: World) -> list[Policy]:
    """One per contestant; only who cannot do without the means of the noise is told them."""
    ignorant = dataclasses.replace(experiment, knows_noise_mean=False)
    return [
        (experiment if contestant.policy in TOLD else ignorant).policy(contestant, world)
        for contestant in experiment.contestants
    ]


def _play(policy: Policy, sem: LinearSEM, rounds: int, seed: int, name: str) -> Trace:
    """One run with a line that moves on a terminal."""
    columns = "round {task.completed}, regret {task.fields[regret]:.1f}, {task.fields[reason]}"
    with progress("  {task.description}", columns) as line:
        task = line.add_task(f"{name:31s}", total=rounds, regret=0.0, reason="starting")
        total = 0.0

        def on_round(t: int, suggestion: Suggestion, gap: float) -> None:
            nonlocal total
            total += gap
            line.update(task, completed=t, regret=total, reason=suggestion.reason)

        return play(policy, sem, horizon=rounds, seed=seed, on_round=on_round)


def _final_share(trace: Trace) -> float:
    """How often the best intervention was played at the end of a run."""
    return float(trace.optimal[-LAST_ROUNDS:].mean())


def _pictures(
    experiment: Experiment,
    world: World,
    traces: list[Trace],
    graph: Graph,
    folder: Path,
    force: bool,
) -> list[Path]:
    from causalarms.pictures import draw_graph, draw_optimal_share, draw_regret, save_figure

    records = [
        trace_record(experiment, contestant, 0, world, trace)
        for contestant, trace in zip(experiment.contestants, traces, strict=True)
    ]
    figures = (
        draw_regret(experiment, records),
        draw_optimal_share(experiment, records),
        draw_graph(graph, reward="yield", truth=world.adjacency()),
    )
    return [
        save_figure(figure, folder / name, made_by=MADE_BY, force=force)
        for name, figure in zip(PICTURES, figures, strict=True)
    ]


def _report(sem: LinearSEM, record: dict[str, Any], graph: Graph) -> None:
    """The record in words, and the graph next to the truth."""
    found, best = record["found"], record["best"]
    number = partial(shown_number, span=found["high"] - found["low"])
    say()
    say(f"Best intervention found by {DEFAULT}: {_names(sem, found['intervention'])}")
    say(
        f"  predicted {sem.nodes[sem.reward]} {number(found['predicted'])} ({number(found['low'])} "
        f"to {number(found['high'])}), true {number(found['expected'])}; the best with probability "
        f"{shown_probability(found['probability'])}"
    )
    true = f"{_names(sem, best['intervention'])}, {number(best['expected'])}"
    if found["intervention"] == best["intervention"]:
        say("  it is the true best")
    else:
        say(f"  {'equal to the true best' if best['is_equal'] else 'the true best'}: {true}")
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
    for edge in record["edges"]:
        if edge["child"] == sem.nodes[sem.reward]:
            regime = graph.regime_names.index(edge["regime"])
            true = sem.weights[regime, sem.nodes.index(edge["parent"]), sem.reward]
            say(
                f"  {edge['parent']} -> {edge['child']} ({edge['regime']}): "
                f"{shown_number(edge['weight'], edge['standard_error'], sign=True)}, true "
                f"{shown_number(true, edge['standard_error'], sign=True)}, probability "
                f"{shown_probability(edge['probability'])}"
            )
    say()
    say("wrote " + ", ".join(record["files"]))


def _record(
    sem: LinearSEM, traces: list[Trace], belief: Belief, graph: Graph, files: list[Path]
) -> dict[str, Any]:
    """Everything that was found, next to the truth."""
    choice = recommend(belief, sem.reward, Constraints(sem.regimes))  # nothing costs anything
    best = sem.best_intervention()
    found = choice.intervention
    expected = sem.expected_reward(np.stack([found, best])).tolist()
    return {
        "nodes": list(sem.nodes),
        "policies": [
            {
                "policy": c.policy,
                "regret": float(t.regret[-1]),
                "final_optimal_share": _final_share(t),
            }
            for c, t in zip(CONTESTANTS, traces, strict=True)
        ],
        "found": {
            "intervention": found.tolist(),
            "predicted": float(choice.reward.mean),
            "low": float(choice.reward.low),
            "high": float(choice.reward.high),
            "probability": choice.probability,
            "expected": expected[0],
        },
        "best": {
            "intervention": best.tolist(),
            "expected": expected[1],
            "is_equal": bool(np.isclose(expected[0], expected[1], rtol=TIE, atol=0.0)),
        },
        "edges": graph.edges(),
        "files": [str(path) for path in files],
    }


def _names(sem: LinearSEM, intervention: Any) -> str:
    switched = [sem.nodes[i] for i in np.flatnonzero(intervention)]
    return "switch " + ", ".join(switched) if switched else "leave all nodes natural"
