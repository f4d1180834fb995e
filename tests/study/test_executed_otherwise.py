"""What was executed may differ from what was asked: both are kept, the policy learns the former."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_rounds import NODES, SEM, SETTINGS, play, state_of

from causalarms import Study
from causalarms.errors import ChangedStudyError, StudyError
from causalarms.rng import stream
from causalarms.study.learner import policy_of
from causalarms.study.ledger import Record
from causalarms.study.store import MemoryStore

VALUES = [1.0, 2.0, 3.0]


def replayed(study: Study) -> Study:
    return Study(MemoryStore(study.store.entries()))


def last_event(study: Study) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(study.store.entries()[-1].text)["data"]
    return data


def other(asked: dict[str, int]) -> dict[str, int]:
    return {node: 1 - bit for node, bit in asked.items()}


@pytest.mark.parametrize(
    ("executed", "bits"),
    [
        ({"heat": 1, "yield": 0}, (1, 0, 0)),
        ({}, (1, 0, 1)),  # as asked
        ([], (0, 0, 0)),
        (["yield", "stir"], (0, 1, 1)),
        ({"yield"}, (0, 0, 1)),
        ((1, 1, 1), (1, 1, 1)),
        (np.array([0, 1, 0]), (0, 1, 0)),
    ],
)
def test_executed_is_said_by_name_or_by_node(executed: Any, bits: tuple[int, ...]) -> None:
    study = Study.create(None, **SETTINGS)
    trial = study.ask()
    study.tell(trial, VALUES, executed)
    record = study.ledger().trials[0]
    assert record.intervention == bits
    assert record.asked_intervention == tuple(trial.intervention.values())


def test_only_a_difference_is_stored() -> None:
    study = Study.create(None, **SETTINGS)
    trial = study.ask()
    study.tell(trial, VALUES, executed=trial.intervention)
    assert last_event(study) == {"trial": 0, "values": VALUES}
    trial = study.ask()
    study.tell(trial, VALUES, executed=other(trial.intervention))
    assert last_event(study)["executed"] == [1 - bit for bit in trial.intervention.values()]
    study.correct(0, VALUES, executed=trial.switch)
    study.correct(1, VALUES)
    assert "executed" not in last_event(study)
    assert study.ledger().trials[1].intervention == tuple(other(trial.intervention).values())
    study.correct(1, VALUES, executed=trial.intervention)
    assert last_event(study)["executed"] == list(trial.intervention.values())
    assert study.ledger().trials[1].intervention == tuple(trial.intervention.values())


def test_the_policy_learns_from_what_was_executed(tmp_path: Path) -> None:
    honest, wrong = (Study.create(tmp_path / n, **SETTINGS) for n in ("a.db", "b.db"))
    rounds = []
    for number in range(90):
        trial = honest.ask()
        bits = list(trial.intervention.values())
        if number % 3 == 0:
            bits[number % 2] = 1 - bits[number % 2]
        values = SEM.sample(np.array([bits], dtype=np.uint8), stream(3, "noise", number))[0]
        rounds.append((bits, values.tolist()))
        honest.tell(trial, values, dict(zip(NODES, bits, strict=True)))
    policy = policy_of(honest.settings)
    for bits, row in rounds:
        policy.tell(bits, row)
    live, alone = honest.policy.state(), policy.state()
    assert all(np.array_equal(live[name], alone[name]) for name in alone)
    assert state_of(replayed(honest)) == state_of(honest)
    assert honest.verify(replay=True).ok
    for _, row in rounds:
        wrong.tell(wrong.ask(), row)
    for number, (bits, row) in enumerate(rounds):
        wrong.correct(number, row, executed=bits)
    assert state_of(wrong) == state_of(honest)
    assert state_of(replayed(wrong)) == state_of(wrong)
    assert [r.intervention for r in wrong.ledger().trials] == [tuple(bits) for bits, _ in rounds]
    assert wrong.verify(replay=True).ok
    honest.close()
    wrong.close()
    with Study.open(tmp_path / "a.db") as again:
        assert [r.intervention for r in again.ledger().trials] == [tuple(b) for b, _ in rounds]


def test_history_and_explanation_show_it() -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 1)
    trial = study.ask()
    study.tell(trial, VALUES, other(trial.intervention))
    history = study.history()
    assert history["not_as_asked"].tolist() == ["", "heat;stir;yield"]
    assert [history[f"do:{node}"][1] for node in NODES] == [
        1 - bit for bit in trial.intervention.values()
    ]
    found = study.explain(1)
    assert found["switch"] == trial.switch
    assert found["executed"] == [node for node in NODES if node not in trial.switch]
    words = ", ".join(f"{node} {'on' if node in found['executed'] else 'off'}" for node in NODES)
    assert f"executed otherwise: {words}." in found["text"]
    first = study.explain(0)
    assert first["executed"] == first["switch"]
    assert "otherwise" not in first["text"]
    study.import_rounds({node: [1.0] for node in NODES} | {"do:heat": [1]})
    assert study.history()["not_as_asked"][2] == ""


@pytest.mark.parametrize(
    ("executed", "message"),
    [
        (["het"], "there is no factor 'het'; did you mean 'heat'"),
        ({"het": 1}, "there is no factor 'het'"),
        ({"heat": 2}, "'heat' has no level 2; it has off, on, 0, 1"),
        ({"heat": "warm"}, "no level 'warm'"),
        ([0, 2, 0], "node 'stir': regime 2 is neither 0"),
        ("heat", "say the level of each factor"),
        (7, "say the level of each factor"),
        ([1, 0], "say the level of each factor"),
        ({0, 1, 2}, "say the level of each factor"),
    ],
)
def test_wrong_words_for_it_are_refused_before_anything_is_written(
    executed: Any, message: str
) -> None:
    study = Study.create(None, **SETTINGS)
    trial = study.ask()
    before = study.store.entries()
    with pytest.raises(StudyError, match=message):
        study.tell(trial, VALUES, executed)
    assert study.store.entries() == before
    study.tell(trial, VALUES)
    with pytest.raises(StudyError, match=message):
        study.correct(trial, VALUES, executed=executed)
    with pytest.raises(StudyError, match="executed goes with values"):
        study.correct(trial, None, executed=["heat"])


def test_a_node_without_a_factor_cannot_have_been_switched() -> None:
    study = Study.create(None, **SETTINGS | {"intervenable": ["heat"]})
    with pytest.raises(StudyError, match="node 'stir' has no switch of its own"):
        study.tell(study.ask(), VALUES, ["heat", "stir"])
    study.tell(study.ask(), VALUES, ["heat"])
    assert study.policy.n_told == 1


def test_a_factor_that_is_not_asked_for_may_have_been_set() -> None:
    settings = SETTINGS | {"policy": None, "factors": {"heat": {}, "stir": {}}}
    study = Study.create(None, **settings | {"intervenable": ["heat"]})
    trial = study.ask()
    assert trial.levels["stir"] == "off"
    study.tell(trial, VALUES, ["stir"])
    assert study.policy.n_told == 1
    assert study.beliefs().regimes.tolist() == [[0, 1, 0]]


def test_a_result_that_cannot_be_told_is_kept_with_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    study = Study.create(path, **SETTINGS)
    trial = study.ask()
    path.unlink()
    with pytest.raises(ChangedStudyError, match="is kept in"):
        study.tell(trial, VALUES, {"stir": 1})
    kept = json.loads((tmp_path / "s.db-untold.jsonl").read_text())
    assert (kept["trial"], kept["executed"]) == (0, {"stir": "on"})


def test_a_record_that_nobody_asked_for_was_asked_as_executed() -> None:
    assert Record(0, "imported", (1, 0)).asked_intervention == (1, 0)


def test_factors_that_are_not_named_were_as_asked() -> None:
    factors = {"oven": {"levels": [1, 2, 3]}, "stir": {}, "heat": {}}
    study = Study.create(None, ["heat", "yield"], "yield", factors=factors, seed=2)
    trials = study.ask(30)
    trial = next(t for t in trials if t.levels["oven"] == 2 and t.levels["stir"] == "on")
    levels = study.settings.named.levels

    def recorded() -> dict[str, Any]:
        return levels(study.ledger().trials[trial.number].intervention)

    study.tell(trial, [1.0, 2.0], executed={"heat": "on"})
    assert recorded() == {**trial.levels, "heat": "on"}
    study.correct(trial, [1.0, 2.0], executed={"oven": 3})
    assert recorded() == {**trial.levels, "oven": 3}
    # a list names all that was on, of what is just on or off
    study.correct(trial, [1.0, 2.0], executed=["heat"])
    assert recorded() == {"oven": 2, "stir": "off", "heat": "on"}
    study.correct(trial, [1.0, 2.0], executed={})
    assert recorded() == trial.levels


def test_two_who_correct_one_trial_at_once_keep_both_corrections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    with Study.create(path, ["heat", "yield"], "yield", seed=1) as one, Study.open(path) as other:
        one.tell(one.ask(), [1.0, 2.0])
        writing = one._log.writing

        def after_the_other() -> Any:
            other.correct(0, {"heat": 5.0})
            return writing()

        monkeypatch.setattr(one._log, "writing", after_the_other)
        one.correct(0, {"yield": 7.0})
        assert one.ledger().trials[0].values == (5.0, 7.0)
