"""What a study shows of nodes that have a mechanism per level of a factor in some draws."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from causalarms import Study
from causalarms.arrays import FloatArray
from causalarms.models.belief import Belief
from causalarms.posterior.base import Draws
from causalarms.service.views import Layout, graph_view, setting_view
from causalarms.study.effects import effects, least_certain_effect, remarks
from causalarms.study.explain import explain_by, model_checks
from causalarms.study.ledger import Ledger
from causalarms.study.report import Beliefs, best, graph, predict
from causalarms.study.settings import Settings

NODES = ["valve", "flow", "yield"]
FLOW, YIELD = 1, 2
PUMP = ["low", "mid", "high"]
LOAD: dict[str, Any] = {"levels": [1, 2], "effect": "shift"}
N_DRAWS = 6
ROUNDS = 60


def study_of(effect: str) -> Study:
    """The pump gives the flow a mechanism per level: told so, or as a factor that shifts nodes."""
    pump = {"levels": PUMP, "acts_on": ["flow"], "effect": effect}
    return Study.create(None, NODES, "yield", seed=1, factors={"pump": pump, "load": LOAD})


class Case(NamedTuple):
    settings: Settings
    ledger: Ledger
    beliefs: Beliefs


def case(effect: str, free: int = N_DRAWS) -> Case:
    """The same system in both words; learned, the first `free` draws have the flow free.

    The others have its mechanism at the lowest level, shifted by the pump.
    """
    with study_of(effect) as study:
        study.ask(8)
        settings, ledger = study.settings, study.ledger()
    named, rng = settings.named, np.random.default_rng(0)
    names, n, size = named.system_nodes, 3, len(named.system_nodes)
    load, most = names.index("do:load"), int(named.regimes.max())
    shape = (N_DRAWS, most, size)
    weights, intercept, noise_std = np.zeros((*shape, size)), np.zeros(shape), np.zeros(shape)
    by = np.tile(np.arange(size), (N_DRAWS, 1))
    for d in range(N_DRAWS):
        numbers = iter(rng.normal(size=(3, 5)).tolist())
        for level in range(3):
            slope, of_load, mean, std, shift = next(numbers)
            if effect == "shift" and d >= free:
                level, weights[d, 0, names.index("do:pump"), FLOW] = 0, shift
            if level == 0 or effect == "free" or d < free:
                # at the lowest level the valve is no cause of the flow
                weights[d, level, 0, FLOW] = slope if level else 0.0
                weights[d, level, load, FLOW] = of_load if level == 2 else 0.0
                intercept[d, level, FLOW], noise_std[d, level, FLOW] = mean, 1 + abs(std)
        weights[d, 0, [0, 1, load], YIELD] = rng.normal(size=3)
        intercept[d, 0, [0, YIELD]], noise_std[d, 0, [0, YIELD]] = rng.normal(size=2), 1.0
    intercept[:, : len(named.codes), n:] = named.codes
    if effect == "shift":
        by[:free, FLOW] = names.index("do:pump")
    adjacency = weights != 0
    order = np.tile([*range(n, size), *range(n)], (N_DRAWS, 1))
    draws = Draws(
        order, adjacency, weights, intercept, noise_std, by if effect == "shift" else None
    )
    # of edges between nodes, the average over levels; of the pump, what draws show beside `by`
    chance = adjacency.mean(axis=0)
    if effect == "shift":
        levels = np.where(np.arange(N_DRAWS) < free, 3, 1)
        chance[0, :n, FLOW] = np.mean(
            [adjacency[d, : levels[d], :n, FLOW].mean(axis=0) for d in range(N_DRAWS)], axis=0
        )
        chance[1:] = 0.0
    counts = np.full(shape[1:], 10)
    belief = Belief(draws, chance, counts, np.zeros_like(counts), weighs_graphs=True)
    rows = named.numbers.interventions(settings_of_rounds()).astype(np.uint8)
    values = np.random.default_rng(2).normal(size=(ROUNDS, n))
    return Case(settings, ledger, Beliefs(settings, values, rows, belief, True))


def settings_of_rounds() -> list[tuple[int, int]]:
    return list(product(range(3), range(2))) * (ROUNDS // 6)


ALL = [{"pump": p, "load": v} for p, v in product(PUMP, (1, 2))]


def test_predictions_and_the_best_are_those_of_regimes() -> None:
    free, told = case("shift"), case("free")
    rows = [
        [of.settings.named.intervention(setting) for setting in ALL] for of in (free, told)
    ]  # fmt: skip
    for one, other in zip(
        predict(free.beliefs, rows[0]), predict(told.beliefs, rows[1]), strict=True
    ):
        assert (one.levels, one.expected) == (other.levels, other.expected)
    found, same = best(free.beliefs), best(told.beliefs)
    assert found.levels == same.levels
    for name in ("reward", "low", "high", "probability", "expected_loss"):
        assert getattr(found, name) == pytest.approx(getattr(same, name))


def test_effects_are_those_of_regimes() -> None:
    free, told = effects(case("shift").beliefs), effects(case("free").beliefs)
    for one, other in zip(free, told, strict=True):
        assert one.factor == other.factor
        for ours, theirs in ((one.reward, other.reward), (one.direct, other.direct)):
            for level, interval in ours.items():
                numbers = (interval.mean, interval.low, interval.high)
                same = theirs[level]
                assert numbers == pytest.approx((same.mean, same.low, same.high), abs=1e-12)
    pump, load = free
    assert pump.acts_on == told[0].acts_on == {"valve": 0.0, "flow": 1.0, "yield": 0.0}
    assert pump.free == {"valve": 0.0, "flow": 1.0, "yield": 0.0}
    assert load.free == {"valve": 0.0, "flow": 0.0, "yield": 0.0}
    assert load.acts_on["flow"] == 1.0  # in one level of three: it does act
    assert (told[0].free, told[1].free) == ({}, {})


def test_free_in_some_draws() -> None:
    made = case("shift", free=2)
    pump, load = effects(made.beliefs)
    assert pump.acts_on["flow"] == 1.0  # the others are shifted
    assert pump.free["flow"] == pytest.approx(2 / 6)
    assert load.acts_on["flow"] == pytest.approx(2 / 6)
    named, draws = made.settings.named, made.beliefs.known.draws
    only = case("shift", free=0)
    assert only.beliefs.known.draws.by is not None
    assert effects(only.beliefs)[0].free["flow"] == 0.0
    plain = only.beliefs.known.draws._replace(by=None)
    assert _moved_reward(made, draws) == pytest.approx(pump.reward["high"].mean)
    known = replace(only.beliefs.known, draws=plain)
    other = replace(only.beliefs, belief=known)
    setting = named.intervention({"pump": "high"})
    one, two = graph(only.beliefs, setting), graph(other, setting)
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(graph(only.beliefs).weights, graph(other).weights)


def _moved_reward(made: Case, draws: Draws) -> float:
    """What the highest level adds to the yield, by a plain loop."""
    named, totals = made.settings.named, []
    assert draws.by is not None
    for level in ("high", "low"):
        row = named.intervention({"pump": level})
        for d in range(N_DRAWS):
            x: FloatArray = np.zeros(len(row))
            for node in draws.order[d]:
                seen = row[draws.by[d, node]]
                x[node] = draws.intercept[d, seen, node] + draws.weights[d, seen, :, node] @ x
            totals.append(x[YIELD])
    return float(np.mean(totals[:N_DRAWS]) - np.mean(totals[N_DRAWS:]))


def test_the_graph_of_a_setting_has_the_mechanism_of_its_level() -> None:
    free, told = case("shift"), case("free")
    for setting in ALL:
        graphs = [graph(of.beliefs, of.settings.named.intervention(setting)) for of in (free, told)]
        assert graphs[0].regime_names == graphs[1].regime_names
        one, other = ({(e["parent"], e["child"]): e for e in g.edges()} for g in graphs)
        assert set(one) == set(other) | {("pump", "flow")}  # told, the pump is no root
        for edge in other:
            for name in ("weight", "probability", "standard_error"):
                assert one[edge][name] == pytest.approx(other[edge][name], nan_ok=True)
        assert (("valve", "flow") in one) == (setting["pump"] != "low")
        assert (("load", "flow") in one) == (setting["pump"] == "high")


def test_the_graph_of_a_setting_mixes_draws() -> None:
    made = case("shift", free=4)
    draws, named = made.beliefs.known.draws, made.settings.named
    found = graph(made.beliefs, named.intervention({"pump": "mid", "load": 2}))
    slope = draws.weights[:4, 1, 0, FLOW]  # the other two draws do not have the edge
    assert found.weights[0, 0, FLOW] == pytest.approx(slope.mean())
    assert found.measures["probability"][0, 0, FLOW] == pytest.approx(4 / 6)
    assert found.measures["standard_error"][0, 0, FLOW] == pytest.approx(slope.std())
    # of free draws, what the level adds while the valve stays as it is at the first levels
    pump, kept = found.nodes.index("pump"), made.beliefs.known.expected(
        np.array([named.intervention({})], dtype=np.uint8)
    )[:, 0]  # fmt: skip
    added = []
    for d in range(N_DRAWS):
        if d < 4:
            high, low = (
                draws.intercept[d, level, FLOW] + draws.weights[d, level, :, FLOW] @ kept[d]
                for level in (1, 0)
            )
            added.append(high - low)
        else:
            steps = named.codes[1] - named.codes[0]
            own = named.bits == 1
            added.append(steps[own] @ draws.weights[d, 0, 3:, FLOW][own])
    assert found.weights[0, pump, FLOW] == pytest.approx(np.mean(added))
    assert found.measures["probability"][0, pump, FLOW] == 1.0


def test_the_whole_graph_averages_over_levels() -> None:
    made = case("shift", free=4)
    draws = made.beliefs.known.draws
    found = graph(made.beliefs)
    assert found.n_regimes == 1
    # two levels of three in four draws of six: less likely than not
    assert found.measures["probability"][0, 0, FLOW] == pytest.approx(4 / 6 * 2 / 3)
    always = graph(case("shift").beliefs)
    assert always.measures["probability"][0, 0, FLOW] == pytest.approx(2 / 3)
    every = case("shift").beliefs.known.draws.weights[:, 1:3, 0, FLOW]
    assert always.weights[0, 0, FLOW] == pytest.approx(every.mean())
    view = graph_view(made.beliefs, Layout(), 1)
    shown = {(e.parent, e.child): e for e in view.edges}
    assert shown["valve", "flow"].weight == pytest.approx(draws.weights[:4, 1:3, 0, FLOW].mean())
    assert shown["pump", "flow"].probability == 1.0
    setting = made.settings.named.intervention({"pump": "high"})
    one = {(e.parent, e.child): e for e in setting_view(view, made.beliefs, setting).edges}
    assert one["valve", "flow"].weight == pytest.approx(draws.weights[:4, 2, 0, FLOW].mean())


def test_explanations_are_those_of_regimes() -> None:
    free, told = case("shift"), case("free")
    asked = [
        {str(of.settings.named.levels(r.asked_intervention)): r.number for r in of.ledger.trials}
        for of in (free, told)
    ]
    both = sorted(set(asked[0]) & set(asked[1]))
    assert len(both) > 2
    for levels in both:
        one, other = (
            explain_by(of.beliefs, of.ledger, numbers[levels], [])
            for of, numbers in zip((free, told), asked, strict=True)
        )
        assert one.expected == other.expected
        assert one.uncertainty is not None
        assert other.uncertainty is not None
        before, after = other.uncertainty.before, other.uncertainty.after
        assert one.uncertainty.before == pytest.approx(before)
        assert one.uncertainty.after == pytest.approx(after)
        assert one.runner_up == other.runner_up
        assert one.edges is not None
        assert other.edges is not None
        for a, b in zip(one.edges, other.edges, strict=True):
            assert (a.parent, a.child) == (b.parent, b.child)
            assert (a.weight, a.carries) == pytest.approx((b.weight, b.carries))
        assert one.mechanisms is not None
        assert other.mechanisms is not None
        for c, d in zip(one.mechanisms, other.mechanisms, strict=True):
            assert c.node == d.node
            assert c.share_of_uncertainty == pytest.approx(d.share_of_uncertainty)


def test_mechanisms_are_checked_level_by_level() -> None:
    free, told = model_checks(case("shift").beliefs), model_checks(case("free").beliefs)
    assert [(c.node, c.regime, c.rounds, c.verdict) for c in free] == [
        (c.node, c.regime, c.rounds, c.verdict) for c in told
    ]
    rarely = [c for c in model_checks(case("shift", free=3).beliefs) if c.node == "flow"]
    assert [(c.regime, c.rounds) for c in rarely] == [("natural", ROUNDS)]


def test_what_is_least_certain_and_no_question_about_a_free_node() -> None:
    made = case("shift")
    known, named = made.beliefs.known, made.settings.named
    draws = known.draws
    draws.weights[:, 0, [0, 1, *range(3, 6)], YIELD] = 0.0
    draws.weights[:, 0, FLOW, YIELD] = 1.0
    high = np.array(named.intervention({"pump": "high"}), dtype=np.uint8)
    assert least_certain_effect(known, named, high, YIELD) == "what pump does to flow"
    draws.weights[:, 0, FLOW, YIELD] = 0.0
    assert least_certain_effect(known, named, high, YIELD) == ""
    asked = [remark.node for remark in remarks(made.beliefs)]
    assert "flow" not in asked
