"""What the page shows of beliefs: best and its gains, rewards, graph, far values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms.rng import stream
from causalarms.sem import random_sem
from causalarms.service.views import (
    BUCKETS,
    FarValues,
    Layout,
    Views,
    checks_view,
    compute_views,
    rewards_view,
)
from causalarms.study import Study
from causalarms.study.far_values import far_values

SEM = random_sem(4, seed=3)


def played(direction: str, rounds: int) -> Study:
    study = Study.create(
        None, SEM.nodes, SEM.nodes[SEM.reward], direction, intervenable=SEM.nodes, seed=1
    )
    for _ in range(rounds):
        trial = study.ask()
        a = np.array([list(trial.intervention.values())], dtype=np.uint8)
        study.tell(trial, SEM.sample(a, stream(7, "noise", trial.number))[0])
    return study


@pytest.fixture(scope="module", params=["maximize", "minimize"])
def looked(request: pytest.FixtureRequest) -> tuple[Study, Views]:
    study = played(request.param, 30)
    return study, compute_views(study, Layout(), {})


def test_what_a_factor_is_worth_is_lost_if_it_alone_is_taken_back(
    looked: tuple[Study, Views],
) -> None:
    study, views = looked
    best, wanted = views.best, study.best()
    assert best.found is not None
    assert (best.found.levels, best.reward, best.low) == (wanted.levels, wanted.reward, wanted.low)
    assert sorted(back.factor for back in best.taken_back) == sorted(best.found.switch) != []
    assert [back.lost for back in best.taken_back] == sorted(
        (back.lost for back in best.taken_back), reverse=True
    )
    for back in best.taken_back:
        without = best.found.levels | {back.factor: back.first}
        mean = study.predict([without])[0]["expected"][study.settings.reward]["mean"]
        assert back.lost == pytest.approx(study.settings.sign * (wanted.reward - mean))
        assert back.low < back.lost < back.high


def test_the_graph_has_every_edge_with_its_probability(looked: tuple[Study, Views]) -> None:
    study, views = looked
    graph, wanted = views.graph, study.graph()
    likely = {(e.regime, e.parent, e.child) for e in graph.edges if e.likely}
    names = list(graph.regimes)
    assert likely == {(names.index(e["regime"]), e["parent"], e["child"]) for e in wanted.edges()}
    for edge in graph.edges:
        at = (edge.regime, wanted.nodes.index(edge.parent), wanted.nodes.index(edge.child))
        assert edge.probability == wanted.measures["probability"][at]
        if edge.likely:
            assert edge.weight == pytest.approx(wanted.weights[at])
    assert all(0 <= node.x <= 1 and 0 <= node.y <= 1 for node in graph.nodes)


def test_checks_say_something_of_every_mechanism_with_rounds(looked: tuple[Study, Views]) -> None:
    _, views = looked
    checks = checks_view(views)
    assert checks.why == ""
    assert sum(check.rounds for check in checks.checks) == 30 * SEM.n_nodes
    assert all(check.verdict for check in checks.checks)


def test_rewards_come_in_few_buckets_that_lose_nothing(looked: tuple[Study, Views]) -> None:
    _, views = looked
    study = Study.create(None, ["a", "y"], "y", policy="random")
    values = list(range(1203))
    study.import_rounds({"a": values, "y": values, "do:a": [0] * 1203, "do:y": [0] * 1203})
    rewards = rewards_view(study.ledger(), [], views.best, 2)
    assert len(rewards.buckets) <= BUCKETS
    assert sum(bucket.results for bucket in rewards.buckets) == 1203
    assert [b.first_round for b in rewards.buckets[1:]] == [
        b.last_round + 1 for b in rewards.buckets[:-1]
    ]
    assert (rewards.buckets[0].low, rewards.buckets[-1].high) == (0.0, 1202.0)
    assert rewards.buckets[1].mean == 4.0


def test_nodes_stay_where_they_are_while_no_edge_is_new() -> None:
    layout, edges = Layout(), np.zeros((4, 4), dtype=bool)
    edges[0, 1] = edges[1, 2] = edges[0, 3] = True
    layout.place(edges)
    number, positions = layout.number, layout.positions.copy()
    fewer = edges.copy()
    fewer[0, 3] = False
    layout.place(fewer)
    layout.place(edges)
    assert layout.number == number
    np.testing.assert_array_equal(layout.positions, positions)
    edges[2, 3] = True
    layout.place(edges)
    assert layout.number != number


def test_far_values_step_by_step_are_those_of_all_at_once() -> None:
    study = Study.create(None, ["a", "y"], "y", policy="random")
    noise, found = stream(1, "noise"), FarValues()
    numbers = noise.normal(size=(330, 2))
    numbers[[20, 150, 240, 300]] += 1000.0
    frame: dict[str, Any] = {"a": numbers[:, 0], "y": numbers[:, 1]} | {
        f"do:{n}": [0] * 330 for n in "ay"
    }

    for begin in range(0, 330, 30):
        part = {name: list(column[begin : begin + 30]) for name, column in frame.items()}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(study, "_warn", lambda *_: None)
            study.import_rounds(part)
            if begin == 270:
                study.correct(240, [0.0, 0.0])
        ledger = study.ledger()
        wanted = [(far.trial, far.node) for far in far_values(ledger)]
        assert [(f.trial, f.node) for fs in found.of(ledger).values() for f in fs] == wanted
    assert {trial for trial, _ in wanted} == {20, 150, 300}
