"""What a study says it knows, against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from study_rounds import SETTINGS, play, result

from causalarms import Study, random_sem
from causalarms.errors import StudyError
from causalarms.rng import stream
from causalarms.sem.rewards import all_interventions

SEM = random_sem(4, seed=11)
NODES = list(SEM.nodes)
WORLD = {"nodes": NODES, "reward": NODES[SEM.reward], "seed": 2, "horizon": 600, "noise_mean": 1.0}


@pytest.fixture(scope="module")
def study() -> Study:
    made = Study.create(None, policy="random", **WORLD)  # type: ignore[arg-type]
    rng = stream(3, "past")
    a = rng.integers(0, 2, (600, 4), dtype=np.uint8)
    x = SEM.sample(a, rng)
    columns = {node: x[:, i].tolist() for i, node in enumerate(NODES)}
    made.add_observations(columns | {f"do:{n}": a[:, i].tolist() for i, n in enumerate(NODES)})
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


def test_before_there_is_a_model() -> None:
    study = Study.create(None, **SETTINGS)
    with pytest.raises(StudyError, match="no round has been told"):
        study.best()
    play(study, 3)
    best = study.best()
    assert "no model yet" in best.basis
    assert np.isnan(best.probability)
    with pytest.raises(StudyError, match="too few rounds"):
        study.predict(["heat"])
    assert len(study.graph().unknown()) == 6
    assert "no model yet" in study.explain(0)["text"]


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
    study.add_observations({node: [1.0] for node in NODES})
    with pytest.raises(StudyError, match="not asked"):
        study.explain(150)


@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")  # the world changes
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
