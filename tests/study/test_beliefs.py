"""What a study says it knows, against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from study_rounds import SETTINGS, play, result

from causalarms import Study, random_sem
from causalarms.errors import StudyError
from causalarms.policies.stopping import StopRule
from causalarms.rng import stream
from causalarms.sem.rewards import all_interventions

SEM = random_sem(4, seed=11)
NODES = list(SEM.nodes)
SWITCHES = {"nodes": NODES, "reward": NODES[SEM.reward], "intervenable": NODES}
WORLD = {**SWITCHES, "seed": 2, "horizon": 600, "noise_mean": 1.0}


@pytest.fixture(scope="module")
def study() -> Study:
    made = Study.create(None, **WORLD)  # type: ignore[arg-type]
    rng = stream(3, "past")
    a = rng.integers(0, 2, (600, 4), dtype=np.uint8)
    x = SEM.sample(a, rng)
    columns = {node: x[:, i].tolist() for i, node in enumerate(NODES)}
    made.import_rounds(columns | {f"do:{n}": a[:, i].tolist() for i, n in enumerate(NODES)})
    return made


def test_the_graph_is_found(study: Study) -> None:
    graph = study.graph()
    assert graph.known.all()
    np.testing.assert_array_equal(graph.adjacency | SEM.adjacency, graph.adjacency)
    np.testing.assert_allclose(graph.weights, SEM.weights, atol=0.2)


def test_predictions_cover_the_truth(study: Study) -> None:
    arms = all_interventions(4)
    truth = SEM.mean(arms)
    inside = []
    for arm, mean in zip(arms.tolist(), truth, strict=True):
        (found,) = study.predict([arm])
        for node, value in zip(NODES, mean, strict=True):
            expected = found["expected"][node]
            assert expected["low"] <= expected["mean"] <= expected["high"]
            inside.append(expected["low"] - 1e-9 <= value <= expected["high"] + 1e-9)
    assert np.mean(inside) > 0.85  # correlated between interventions: not 64 separate draws


def test_best_is_best_and_says_how_sure(study: Study) -> None:
    best = study.best()
    arm = np.array([list(best.intervention.values())])
    gap = SEM.expected_reward(SEM.best_intervention()[None])[0] - SEM.expected_reward(arm)[0]
    assert gap < 0.1
    assert best.low <= best.reward <= best.high
    assert 0 <= best.probability <= 1
    assert best.expected_loss >= 0
    assert best == study.best()  # the same question, the same answer


def test_interventions_are_named_in_many_ways(study: Study) -> None:
    one = study.predict([["x0"]])
    assert study.predict(["x0"]) == one
    assert study.predict({"x0": 1}) == one
    assert study.predict([1, 0, 0, 0]) == one
    assert study.predict()[0]["intervention"] == dict.fromkeys(NODES, 0)
    for wrong in (["x9"], {"x0": 2}, [1, 0]):
        with pytest.raises(StudyError):
            study.predict(wrong)


@pytest.mark.parametrize("policy", ["posterior", "csl-ucb"])
def test_before_there_is_a_model(policy: str) -> None:
    study = Study.create(None, **(SETTINGS | {"policy": policy}))
    for ask in (study.best, study.graph, study.predict):
        with pytest.raises(StudyError, match="no round has been told yet"):
            ask()
    play(study, 3)
    for ask in (study.best, study.graph, study.predict):
        with pytest.raises(StudyError, match="too early: after 3 round"):
            ask()
    assert "too early: after 0" not in study.explain(2)["text"]
    assert "there was no model" in study.explain(2)["text"]


def test_a_policy_without_a_model_has_averages_only() -> None:
    study = Study.create(None, **(SETTINGS | {"policy": "random"}))
    trial = study.ask()
    study.tell(trial, [1.0, 2.0, 71.3])
    best = study.best()
    assert best.reward == 71.3
    assert np.isnan([best.low, best.high, best.probability]).all()  # one round has no spread
    play(study, 60)
    best = study.best()
    assert best.low < best.reward < best.high
    assert "has no model" in best.basis
    for ask in (study.graph, study.predict):
        with pytest.raises(StudyError, match="policy 'random' has no model"):
            ask()


def test_every_setting_is_predicted_wide_where_little_is_known() -> None:
    study = Study.create(None, **SWITCHES, seed=2)  # type: ignore[arg-type]
    play(study, 9, SEM)
    arms = all_interventions(4).tolist()
    early = [found["expected"][NODES[3]] for found in study.predict(arms)]
    play(study, 150, SEM)
    late = [found["expected"][NODES[3]] for found in study.predict(arms)]
    assert len(early) == len(late) == 16
    width = [np.median([e["high"] - e["low"] for e in found]) for found in (early, late)]
    assert width[0] > 1.5 * width[1]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_all_answers_come_from_one_belief(direction: str) -> None:
    """Interval, probability and loss of `best` are those of the policy's own draws."""
    study = Study.create(None, **SWITCHES, seed=2, direction=direction)  # type: ignore[arg-type]
    play(study, 60, SEM)
    sign = 1.0 if direction == "maximize" else -1.0
    belief = study.policy.belief()
    assert belief is not None
    rows = all_interventions(4)
    rewards = belief.rewards(rows, 3)
    best = study.best()
    row = int(np.argmax(rewards.mean(axis=0)))
    assert tuple(best.intervention.values()) == tuple(rows[row])
    assert best.reward == pytest.approx(sign * rewards[:, row].mean())
    as_good = float((rewards[:, row] >= rewards.max(axis=1) - 1e-12).mean())
    # After few rounds draws agree more than they should. Each of the mechanisms has n on average.
    n = belief.counts.sum() / belief.counts.size
    assert best.probability == pytest.approx(as_good * (1 - (3 / n) ** 2))
    assert best.expected_loss == pytest.approx((rewards.max(axis=1) - rewards[:, row]).mean())
    found = study.predict([best.switch])[0]["expected"]["x3"]
    assert (found["mean"], found["low"], found["high"]) == pytest.approx(
        (best.reward, best.low, best.high)
    )
    probability = study.graph().measures["probability"]
    np.testing.assert_array_equal(probability, study.policy.edge_probability)  # type: ignore[attr-defined]


def test_stopping_counts_costs_and_constraints() -> None:
    """Of two settings that differ by less than the cost of a switch, the cheaper one is sure."""
    world = {"nodes": ["a", "y"], "reward": "y", "intervenable": ["a", "y"], "seed": 3}
    free = Study.create(None, **world)  # type: ignore[arg-type]
    dear = Study.create(None, costs={"a": 1e6, "y": 1e6}, **world)  # type: ignore[arg-type]
    noise = stream(5, "noise")
    for _ in range(20):
        values = noise.standard_normal(2)
        for study in (free, dear):
            trial = study.ask()
            a = values[0] + 3.0 * trial.intervention["a"]
            study.tell(trial, [a, 0.3 * a + values[1]])
    assert free.best().probability < 0.9
    # In all draws: the most that 20 rounds of two nodes with two regimes can make sure.
    assert dear.best().probability == pytest.approx(1 - (3 / 10) ** 2)
    assert dear.best().switch == []
    rule = StopRule(probability=0.9, expected_loss=0.1)
    assert not free.should_stop(rule)
    assert dear.should_stop(rule)
    assert free.should_stop(StopRule(probability=0.9, tolerance=1e9))


def test_intervals_do_not_collapse_in_physical_units() -> None:
    """Kelvin, pascal and cubic metres: the answers are those of plain units, in those units."""
    scale = np.array([1.0, 1e5, 1e-3, 40.0])
    offset = np.array([350.0, 1e5, 2e-3, -7.0])
    plain = Study.create(None, **SWITCHES, seed=2)  # type: ignore[arg-type]
    physical = Study.create(None, **SWITCHES, seed=2)  # type: ignore[arg-type]
    for _ in range(60):
        one, two = plain.ask(), physical.ask()
        assert one.intervention == two.intervention
        values = np.array(result(one, SEM))
        plain.tell(one, values)
        physical.tell(two, offset + scale * values)
    a, b = plain.best(), physical.best()
    assert a.intervention == b.intervention
    assert (a.probability, a.expected_loss) == pytest.approx(
        (b.probability, b.expected_loss / 40), rel=1e-6
    )
    assert (a.low, a.high) == pytest.approx(((b.low + 7) / 40, (b.high + 7) / 40), rel=1e-6)


def test_explain_names_prediction_edges_teaching_and_rival() -> None:
    study = Study.create(None, **WORLD)  # type: ignore[arg-type]
    play(study, 150, SEM)
    told = study.explain(140)
    assert told["expected"]["low"] < told["expected"]["mean"] < told["expected"]["high"]
    assert told["uncertainty"]["after"] <= told["uncertainty"]["before"]
    assert told["runner_up"]["mean"] <= told["expected"]["mean"] + 1.0
    assert {"parent", "child", "weight", "carries"} <= set(told["edges"][0])
    assert sum(m["share_of_uncertainty"] for m in told["mechanisms"]) <= 1 + 1e-9
    with pytest.raises(StudyError, match="there is no trial"):
        study.explain(1000)
    study.import_rounds({node: [1.0] for node in NODES})
    with pytest.raises(StudyError, match="not asked"):
        study.explain(150)


@pytest.mark.filterwarnings("ignore::causalarms.errors.AlarmWarning")  # the world changes
@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")
def test_alarms_name_the_trial_and_can_be_acknowledged() -> None:
    study = Study.create(None, policy="csl-ucb-cd", **WORLD)  # type: ignore[arg-type]
    play(study, 250, SEM)
    changed = SEM.replace(noise_mean=np.full(4, 30.0))
    play(study, 60, changed)
    alarms = study.alarms()
    assert alarms
    assert 250 <= alarms[0]["trial"] < 310
    assert alarms[0]["node"] in NODES
    assert not alarms[0]["acknowledged"]
    study.acknowledge(0, "new supplier")
    assert (study.alarms()[0]["acknowledged"], study.alarms()[0]["note"]) == (True, "new supplier")
    with pytest.raises(StudyError, match="there is no alarm"):
        study.acknowledge(999)
    assert study.verify(replay=True).ok
    assert len(result(study.ask(), SEM)) == 4
