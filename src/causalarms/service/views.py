"""What is believed, as the page shows it: computed in the background, once per state of the log."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causalarms.errors import CausalArmsError, TooEarlyError
from causalarms.service import shapes
from causalarms.service.far import Far
from causalarms.service.layout import Layout
from causalarms.study import Study
from causalarms.study.ledger import Ledger, Record
from causalarms.study.report import Beliefs, model_fits
from causalarms.study.report import best as best_of
from causalarms.study.report import graph as graph_of

BUCKETS = 500


class Views(NamedTuple):
    """All of one moment."""

    as_of: int
    beliefs: Beliefs
    best: shapes.Best
    graph: shapes.Graph
    alarms: list[shapes.Alarm]
    watches: bool
    rewards: shapes.Rewards
    ledger: Ledger
    far: Far  # by trial; those of before until they are looked for anew, which takes its time
    left_out: list[shapes.LeftOut]
    problem: str


def look(study: Study, layout: Layout, far: Far) -> Views:
    """Learn what is new and compute everything; takes its time."""
    with study.learning():
        ledger = study.ledger()
        as_of = study.seen
        beliefs = study.beliefs()
        alarms = [shapes.Alarm(**alarm) for alarm in study.alarms()]
        left_out = [
            shapes.LeftOut(out.trial, out.node, out.value, out.message) for out in study.left_out()
        ]
        watches, problem = study.watches, study.problem or ""
    best = best_view(beliefs, as_of)
    return Views(
        as_of=as_of,
        beliefs=beliefs,
        best=best,
        graph=graph_view(beliefs, layout, as_of),
        alarms=alarms,
        watches=watches,
        rewards=rewards_view(ledger, alarms, best, as_of),
        ledger=ledger,
        far=far,
        left_out=left_out,
        problem=problem,
    )


def best_view(beliefs: Beliefs, as_of: int) -> shapes.Best:
    try:
        found = best_of(beliefs)
    except TooEarlyError as error:
        return shapes.Best(as_of=as_of, why=str(error))
    answer = shapes.Best(
        as_of=as_of,
        found=shapes.BestLevels(found.levels, found.switch, found.intervention),
        reward=found.reward,
        low=found.low,
        high=found.high,
        cost=found.cost,
        probability=found.probability,
        expected_loss=found.expected_loss,
        basis=found.basis,
    )
    if beliefs.belief is not None:
        _add_gains(answer, beliefs)
    return answer


def _add_gains(answer: shapes.Best, beliefs: Beliefs) -> None:
    """From all natural to the best, one factor at a time, the one that gains most first."""
    assert answer.found is not None
    settings, named = beliefs.settings, beliefs.settings.named
    reward, levels = settings.reward_index, answer.found.levels
    left, chosen = list(answer.found.switch), dict[str, shapes.Level]()

    def expected(rows: list[dict[str, shapes.Level]]) -> list[tuple[float, float, float]]:
        bits = np.array([named.intervention(row) for row in rows], dtype=np.uint8)
        numbers = [part[:, reward].tolist() for part in beliefs.expected(bits)]
        return list(zip(*numbers, strict=True))

    now, answer.natural_low, answer.natural_high = expected([{}])[0]
    answer.natural = now
    while left:
        tried = expected([chosen | {name: levels[name]} for name in left])
        at = int(np.argmax([settings.sign * mean for mean, _, _ in tried]))
        mean, low, high = tried[at]
        name = left.pop(at)
        chosen[name] = levels[name]
        answer.gains.append(shapes.Gain(name, levels[name], mean - now, mean, low, high))
        now = mean


def graph_view(beliefs: Beliefs, layout: Layout, as_of: int) -> shapes.Graph:
    """Every edge that has a probability; who asks says above which."""
    settings, named = beliefs.settings, beliefs.settings.named
    nodes = settings.nodes
    try:
        graph = graph_of(beliefs)
    except TooEarlyError as error:
        layout.place(np.zeros((len(nodes), len(nodes)), dtype=bool))
        drawn = [
            shapes.GraphNode(node, float(x), float(y), _regimes(beliefs, i), [])
            for i, (node, (x, y)) in enumerate(zip(nodes, layout.positions, strict=True))
        ]
        return shapes.Graph(as_of, str(error), False, [], drawn, [], None, layout.number)
    belief = beliefs.known
    layout.place(np.asarray(graph.adjacency.any(axis=0)))
    probability = np.where(graph.exists[:, None, :], belief.edge_probability, 0.0)
    present = belief.draws.adjacency.sum(axis=0)
    weights = belief.draws.weights.sum(axis=0) / np.maximum(present, 1)
    edges = [
        shapes.Edge(
            regime=regime,
            when=named.regime_name(child, regime),
            parent=nodes[parent],
            child=nodes[child],
            probability=float(probability[regime, parent, child]),
            weight=float(weights[regime, parent, child]),
            standard_error=float(graph.measures["standard_error"][regime, parent, child]),
            likely=bool(graph.adjacency[regime, parent, child]),
        )
        for regime, parent, child in np.argwhere(probability > 0).tolist()
    ]
    drawn = [
        shapes.GraphNode(
            node,
            float(layout.positions[i, 0]),
            float(layout.positions[i, 1]),
            _regimes(beliefs, i),
            graph.known[: int(graph.counts[i]), i].tolist(),
        )
        for i, node in enumerate(nodes)
    ]
    return shapes.Graph(
        as_of=as_of,
        why="",
        weighs_graphs=belief.weighs_graphs,
        regimes=list(graph.regime_names),
        nodes=drawn,
        edges=edges,
        order=None if graph.order is None else list(graph.order),
        layout=layout.number,
    )


def _regimes(beliefs: Beliefs, node: int) -> list[str]:
    named = beliefs.settings.named
    return [named.regime_name(node, regime) for regime in range(int(named.regimes[node]))]


def rewards_view(
    ledger: Ledger, alarms: list[shapes.Alarm], best: shapes.Best, as_of: int
) -> shapes.Rewards:
    """Results in the order they came in, in at most `BUCKETS` runs of equal length."""
    settings = ledger.settings
    assert settings is not None
    at = settings.reward_index
    told = [r for r in ledger.with_values() if r.values is not None and r.values[at] is not None]
    size = max(1, math.ceil(len(told) / BUCKETS))
    place = {r.number: i + 1 for i, r in enumerate(told)}
    return shapes.Rewards(
        as_of=as_of,
        reward=settings.reward,
        buckets=[
            _bucket(told[begin : begin + size], begin, at) for begin in range(0, len(told), size)
        ],
        alarms=[
            shapes.MarkedAlarm(a.alarm, place[a.trial], a.trial, a.node, a.acknowledged)
            for a in alarms
            if a.trial in place
        ],
        best_mean=best.reward,
        best_low=best.low,
        best_high=best.high,
    )


def _bucket(records: list[Record], begin: int, at: int) -> shapes.Bucket:
    rewards = [r.values[at] for r in records if r.values is not None]
    numbers = [x for x in rewards if x is not None]
    predicted = [r.asked["mean"] for r in records if "mean" in r.asked]
    return shapes.Bucket(
        first_round=begin + 1,
        last_round=begin + len(records),
        first_trial=records[0].number,
        last_trial=records[-1].number,
        results=len(records),
        mean=sum(numbers) / len(numbers),
        low=min(numbers),
        high=max(numbers),
        predicted=sum(predicted) / len(predicted) if predicted else None,
    )


def checks_view(views: Views) -> shapes.Checks:
    """The slowest of all: computed after the others."""
    answer = shapes.Checks(views.as_of, "", [], views.left_out, views.problem)
    try:
        found = model_fits(views.beliefs, graph_of(views.beliefs))
    except TooEarlyError as error:
        answer.why = str(error)
        return answer
    except (CausalArmsError, ArithmeticError, np.linalg.LinAlgError) as error:
        answer.why = f"the model cannot be tested: {error}"
        return answer
    answer.checks = [shapes.Check(*verdict) for verdict in found]
    return answer
