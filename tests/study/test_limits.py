"""Nodes never switched, combinations never played, costs: kept, and learning goes on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from study_rounds import result

from causalarms import Study, random_sem
from causalarms.errors import StudyError

SEM = random_sem(5, seed=3).replace(nodes=("a", "b", "c", "d", "y"), reward="y")
SETTINGS = {
    "nodes": SEM.nodes, "reward": "y", "intervenable": SEM.nodes, "seed": 1, "horizon": 400,
    "noise_mean": 1.0,
}  # fmt: skip


def run(rounds: int = 250, **limits: object) -> Study:
    study = Study.create(None, **(SETTINGS | limits))  # type: ignore[arg-type]
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, result(trial, SEM))
    return study


def interventions(study: Study) -> npt.NDArray[np.uint8]:
    return np.array([r.intervention for r in study.ledger().trials], dtype=np.uint8)


def best_allowed(allowed: object, cost: object = 0.0) -> float:
    from causalarms.sem.rewards import all_interventions

    arms = all_interventions(5)
    return float(np.max((SEM.expected_reward(arms) - cost * arms.sum(axis=1))[allowed(arms)]))  # type: ignore[operator]


@pytest.mark.parametrize("policy", ["csl-ucb-joint", "random", "ucb"])
def test_a_node_that_may_not_be_switched_never_is(policy: str) -> None:
    study = run(policy=policy, intervenable=["a", "b", "c"])
    assert not interventions(study)[:, 3:].any()
    assert interventions(study)[:, :3].any(axis=0).all()
    assert study.verify(replay=True).ok
    assert set(study.best().switch) <= {"a", "b", "c"}


def test_learning_ends_its_exploration_and_finds_the_best_allowed() -> None:
    study = run(intervenable=["a", "b", "c"])
    history = study.history()
    assert list(history["reason"][-50:]).count("exploit") >= 48  # late tests are rare
    best = np.array([list(study.best().intervention.values())])
    goal = best_allowed(lambda arms: ~arms[:, 3:].any(axis=1))
    assert SEM.expected_reward(best)[0] == pytest.approx(goal, abs=1e-9)
    assert study.policy.regimes.tolist() == [2, 2, 2, 1, 1]


def test_past_rounds_of_a_node_without_a_switch_are_refused_by_row() -> None:
    study = Study.create(None, **(SETTINGS | {"intervenable": ["a"]}))  # type: ignore[arg-type]
    columns = {node: [1.0, 2.0] for node in SEM.nodes}
    with pytest.raises(StudyError, match="row 1 of column 'do:b': node 'b' has no switch"):
        study.import_rounds(columns | {"do:b": [0, 1]})
    study.import_rounds(columns | {"do:b": [0, 0]})
    assert study.policy.n_told == 2


def test_past_rounds_of_a_factor_that_may_not_be_moved_teach_something() -> None:
    study = Study.create(
        None, nodes=SEM.nodes, reward="y", factors={"a": {}, "b": {}}, intervenable=["a"]
    )
    study.import_rounds({node: [1.0, 2.0] for node in SEM.nodes} | {"do:b": [0, 1]})
    assert study.policy.n_told == 2
    assert all(study.ask(worker=str(w)).levels["b"] == "off" for w in range(20))


def test_combinations_are_kept_and_the_best_of_the_rest_is_found() -> None:
    limits = {"constraints": {"max_interventions": 2, "forbidden": [["b", "c"]]}}
    study = run(400, **limits)
    played = interventions(study)
    assert (played.sum(axis=1) <= 2).all()
    assert not (played[:, 1] & played[:, 2]).any()
    assert study.verify(replay=True).ok

    def allowed(arms: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        return (arms.sum(axis=1) <= 2) & ~((arms[:, 1] == 1) & (arms[:, 2] == 1))

    last = SEM.expected_reward(played[-1:])[0]
    assert last == pytest.approx(best_allowed(allowed), abs=0.2)
    assert "within the constraints" in study.explain(399)["text"]


def test_costs_make_idle_switches_disappear() -> None:
    study = run(400, costs=dict.fromkeys(SEM.nodes, 0.3))
    played = interventions(study)[-1:]
    net = SEM.expected_reward(played)[0] - 0.3 * played.sum()
    goal = best_allowed(lambda arms: np.ones(len(arms), dtype=bool), 0.3)
    assert net == pytest.approx(goal, abs=0.1)
    assert study.best().cost == pytest.approx(0.3 * len(study.best().switch))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"policy": "ga-lcb", "noise_mean": 0.0, "costs": {"a": 1.0}}, "cannot keep constraints"),
        (
            {"policy": "golem-mab", "horizon": 5000, "constraints": {"max_interventions": 2}},
            "cannot keep",
        ),
        ({"policy": "ga-lcb", "noise_mean": 0.0, "intervenable": ["a"]}, "needs two of every node"),
        (
            {"constraints": {"max_interventions": 0}},
            "must be an integer of at least 1",
        ),
        ({"constraints": {"forbidden": [["a"]]}}, "at least two factors"),
        (
            {"constraints": {"forbidden": ["ab"]}},
            "must be a list of factors",
        ),
        ({"costs": {"a": -1.0}}, "from 0 on"),
        ({"costs": {"z": 1.0}}, "no factor 'z'"),
    ],
)
def test_what_cannot_be_kept_is_refused(limits: dict[str, object], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        Study.create(None, **(SETTINGS | limits))  # type: ignore[arg-type]
