"""What a study says of factors and context unasked, and the graph of one setting."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from causalarms import Study
from causalarms.arrays import FloatArray
from causalarms.errors import StudyError
from causalarms.models.belief import Belief
from causalarms.posterior.base import Draws
from causalarms.study.effects import least_certain_effect, remarks
from causalarms.study.report import Beliefs, best
from causalarms.study.settings import Settings

NODES = ["ambient", "heat", "yield"]
PUMP = {"pump": {"levels": [1, 2], "acts_on": ["heat"], "effect": "shift"}}
EDGES = {("pump", "heat"): 1.0, ("heat", "yield"): 1.0, ("ambient", "yield"): 1.0}


def settings_of(**more: Any) -> Settings:
    given: dict[str, Any] = {"nodes": NODES, "reward": "yield", "factors": PUMP}
    with Study.create(None, **given | more) as study:
        return study.settings


def made(
    settings: Settings,
    chances: dict[tuple[str, str], float],
    rounds: int = 30,
    *,
    weighs_graphs: bool = True,
) -> Beliefs:
    """A belief of 100 draws, in which edges are as often as they are probable, with weight 1."""
    names = settings.named.shown
    size, n_draws, n_regimes = len(names), 100, int(settings.named.regimes.max())
    probability = np.zeros((n_regimes, size, size))
    for (parent, child), chance in chances.items():
        probability[0, names.index(parent), names.index(child)] = chance
    often = np.arange(n_draws)[:, None, None, None] < n_draws * probability
    order = np.tile([*range(settings.n_nodes, size), *range(settings.n_nodes)], (n_draws, 1))
    shape = (n_draws, n_regimes, size)
    intercept = np.zeros(shape)
    intercept[:, : len(settings.named.codes), settings.n_nodes :] = settings.named.codes
    belief = Belief(
        Draws(order, often, often.astype(float), intercept, np.ones(shape)),
        probability,
        np.full((n_regimes, size), rounds),
        np.zeros((n_regimes, size), dtype=np.int64),
        weighs_graphs=weighs_graphs,
    )
    values: FloatArray = np.zeros((rounds, settings.n_nodes))
    return Beliefs(settings, values, np.zeros((rounds, size), dtype=np.uint8), belief, True)


def test_a_factor_may_act_on_more_than_was_told() -> None:
    settings = settings_of(context=["ambient"])
    found = remarks(made(settings, EDGES | {("pump", "yield"): 0.97}))
    assert [r.text for r in found] == ["pump also seems to act on yield (probability 0.97)"]
    assert (found[0].factor, found[0].node, found[0].probability) == ("pump", "yield", 0.97)
    assert remarks(made(settings, EDGES | {("pump", "yield"): 0.9})) == []
    sure = remarks(made(settings, EDGES | {("pump", "yield"): 0.999}))
    assert sure[0].text.endswith("(probability > 0.99)")


def test_what_nobody_told_is_no_surprise() -> None:
    settings = settings_of(factors={"pump": {"levels": [1, 2]}}, context=["ambient"])
    assert remarks(made(settings, EDGES | {("pump", "yield"): 1.0})) == []


def test_a_node_that_no_factor_moves_may_be_context() -> None:
    settings = settings_of()
    (found,) = remarks(made(settings, EDGES))
    assert found.text == (
        "ambient has not answered to any factor so far; is it context? "
        "(causalarms study change FILE --context ambient)"
    )
    assert (found.node, found.factor, found.probability) == ("ambient", "", 1.0)
    assert best(made(settings, EDGES)).remarks == [found]


@pytest.mark.parametrize(
    ("chances", "rounds"),
    [
        (EDGES, 19),  # too early
        (EDGES | {("pump", "ambient"): 0.4}, 30),
        (EDGES | {("heat", "ambient"): 0.4}, 30),  # through another node
        ({("ambient", "yield"): 1.0}, 30),  # the factor moves nothing at all
    ],
)
def test_the_question_needs_evidence(chances: dict[tuple[str, str], float], rounds: int) -> None:
    assert remarks(made(settings_of(), chances, rounds)) == []


def test_no_question_about_context_the_reward_or_nodes_with_a_switch() -> None:
    assert remarks(made(settings_of(context=["ambient"]), EDGES)) == []
    both = {"pump": {"levels": [1, 2]}, "ambient": {}}
    assert remarks(made(settings_of(factors=both), EDGES)) == []
    quiet_reward = {("pump", "heat"): 1.0, ("pump", "ambient"): 1.0}
    untold = settings_of(factors={"pump": {"levels": [1, 2]}})
    assert remarks(made(untold, quiet_reward)) == []


def test_one_learned_graph_is_no_evidence() -> None:
    assert remarks(made(settings_of(), EDGES, weighs_graphs=False)) == []


def test_the_effect_that_is_least_certain() -> None:
    settings = settings_of(factors={"pump": {"levels": [1, 2]}, "kind": {"levels": ["x", "z"]}})
    chances = EDGES | {("pump", "yield"): 0.5, ("kind", "heat"): 0.01}
    known, named = made(settings, chances).known, settings.named
    setting = np.array(named.intervention({"pump": 2}), dtype=np.uint8)
    assert least_certain_effect(known, named, setting, 2) == "whether pump acts on yield"
    certain = made(settings, EDGES).known
    assert least_certain_effect(certain, named, setting, 2) == ""
    certain.draws.weights[::2, 0, named.shown.index("pump"), 1] = 3.0
    assert least_certain_effect(certain, named, setting, 2) == "what pump does to heat"


# -- the graph of one setting ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed() -> Study:
    """The pump doubles what the valve does to the flow, and the load shifts the yield."""
    study = Study.create(
        None, ["valve", "flow", "yield"], "yield", seed=1,
        factors={"pump": {"acts_on": ["flow"], "effect": "free"}, "load": {"levels": [1, 2, 4]}},
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for _ in range(40):
        trial = study.ask()
        valve = 5 * rng.normal()
        flow = (4 if trial.levels["pump"] == "on" else 2) * valve + rng.normal()
        study.tell(trial, [valve, flow, 0.5 * flow + 10 * float(trial.levels["load"])])
    return study


def test_the_graph_of_a_setting_has_the_weights_in_force(mixed: Study) -> None:
    every = mixed.graph()
    assert (every.n_regimes, every.factors, every.context) == (2, ("load",), ())
    for levels, weight in (({}, 2), ({"pump": "on"}, 4), (["pump"], 4)):
        graph = mixed.graph(levels)
        assert graph.n_regimes == 1
        found = {(e["parent"], e["child"]): e["weight"] for e in graph.edges()}
        assert found["valve", "flow"] == pytest.approx(weight, abs=0.3)
    assert graph.regime_names == ("pump on",)
    assert mixed.graph({}).regime_names == ("every factor at its first level",)


def test_a_root_has_the_weight_of_its_level(mixed: Study) -> None:
    for level, weight in ((1, 0.0), (2, 10.0), (4, 30.0)):
        graph = mixed.graph({"load": level})
        at = graph.nodes.index("load"), graph.nodes.index("yield")
        assert graph.weights[0][at] == pytest.approx(weight, abs=3)
        assert graph.known.all()


def test_a_wrong_setting_is_refused_by_name(mixed: Study) -> None:
    with pytest.raises(StudyError, match="'load' has no level 3"):
        mixed.graph({"load": 3})


def test_exports_tell_factors_and_context_apart(mixed: Study) -> None:
    graph = mixed.graph()
    assert '"load" [shape=box];' in graph.to_dot()
    assert '"factors": [\n  "load"\n ]' in graph.to_json()
    assert '"context"' not in graph.to_json()


def test_a_suggestion_says_what_is_least_certain(mixed: Study) -> None:
    assert re.search("; least certain is (what|whether) load (does to|acts on)", mixed.ask().why)
