"""Asking, telling, and everything else that writes an event."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from study_rounds import NODES, SEM, SETTINGS, play, result, state_of

from causalarms import Study, make_policy
from causalarms.errors import LearningWarning, StudyError
from causalarms.rng import stream
from causalarms.simulation import simulate


def test_a_study_is_what_simulate_plays(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "s.db", noise_mean=SEM.noise_mean, **SETTINGS)
    noise = stream(1, "noise")
    played = []
    for _ in range(120):
        trial = study.ask()
        played.append(list(trial.intervention.values()))
        a = np.array([played[-1]], dtype=np.uint8)
        study.tell(trial, SEM.sample(a, noise)[0])
    policy = make_policy("csl-ucb", n_nodes=3, noise_mean=SEM.noise_mean, horizon=200)
    assert played == simulate(policy, SEM, horizon=120, seed=1).interventions.tolist()


def test_workers_have_their_own_trials_and_keep_them(tmp_path: Path) -> None:
    with Study.create(tmp_path / "s.db", **SETTINGS) as study:
        first, second = study.ask(worker="a"), study.ask(worker="b")
        assert (first.number, second.number) == (0, 1)
        assert study.ask(worker="a") == first
        batch = study.ask(3, worker="a")
        assert [trial.number for trial in batch] == [0, 2, 3]
    with Study.open(tmp_path / "s.db") as again:
        assert again.ask(worker="b") == second
        again.tell(second, result(second))
        assert again.ask(worker="b").number == 4


@pytest.mark.parametrize("kind", ["dict", "series", "row", "list", "array", "pandas", "polars"])
def test_results_come_in_many_forms(kind: str) -> None:
    values = {"yield": 3.0, "heat": 1.0, "stir": 2}
    given = {
        "dict": values,
        "series": pd.Series(values),
        "row": next(pd.DataFrame([values]).iterrows())[1],
        "list": [1.0, 2, 3.0],
        "array": np.array([1.0, 2.0, 3.0]),
        "pandas": pd.DataFrame([values]),
        "polars": pl.DataFrame([values]),
    }[kind]
    study = Study.create(None, **SETTINGS)
    study.tell(study.ask(), given)
    assert study.ledger().trials[0].values == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"heat": 1.0, "stir": 2.0}, "node 'yield' is missing"),
        ({"heat": 1.0, "stir": 2.0, "yield": float("nan")}, "'yield' is nan"),
        ({"heat": float("inf"), "stir": 2.0, "yield": 1.0}, "'heat' is inf"),
        ({"heat": 1e300, "stir": 2.0, "yield": 1.0}, "too large"),
        ({"heat": "1", "stir": 2.0, "yield": 1.0}, "'1', not a number"),
        ({"heat": True, "stir": 2.0, "yield": 1.0}, "True, not a number"),
        ({"heat": 1.0, "stir": 2.0, "yeild": 1.0}, "did you mean 'yield'"),
        ([1.0, 2.0], "2 values for 3 nodes"),
        ("abc", "a number per node"),
        (7, "a number per node"),
    ],
)
def test_wrong_results_are_refused_before_anything_is_written(values: object, message: str) -> None:
    study = Study.create(None, **SETTINGS)
    trial = study.ask()
    before = study.store.entries()
    with pytest.raises(StudyError, match=message):
        study.tell(trial, values)
    assert study.store.entries() == before
    study.tell(trial, [1.0, 2.0, 3.0])


def test_telling_twice_or_to_nobody_is_refused() -> None:
    study = Study.create(None, **SETTINGS)
    trial = study.ask()
    study.tell(trial, [1, 2, 3])
    before = study.store.entries()
    with pytest.raises(StudyError, match="trial 0 is not pending: it was told already"):
        study.tell(trial, [1, 2, 3])
    with pytest.raises(StudyError, match="there is no trial 5"):
        study.tell(5, [1, 2, 3])
    with pytest.raises(StudyError, match="there is no trial -1"):
        study.fail(-1)
    with pytest.raises(StudyError, match="is not a trial"):
        study.tell("0", [1, 2, 3])  # type: ignore[arg-type]
    assert study.store.entries() == before


def test_failed_and_abandoned_trials_stay_and_teach_nothing() -> None:
    study = Study.create(None, **SETTINGS)
    study.fail(study.ask(), "tube broke")
    study.abandon(study.ask())
    history = study.history()
    assert list(history["state"]) == ["failed", "abandoned"]
    assert history["remark"][0] == "tube broke"
    assert study.policy.n_told == 0
    assert study.ask().number == 2


def test_a_value_not_measured_is_kept_and_left_out() -> None:
    study = Study.create(None, **SETTINGS)
    trial = study.ask()
    with pytest.warns(LearningWarning, match="'stir' not measured"):
        study.tell(trial, {"heat": 1.0, "stir": None, "yield": 2.0})
    assert study.policy.n_told == 0
    assert study.ledger().trials[0].values == (1.0, None, 2.0)
    study.correct(0, [1.0, 5.0, 2.0], "found in the notebook")
    assert study.policy.n_told == 1


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, dict])
def test_past_rounds_are_learned_from(library: type) -> None:
    study = Study.create(None, **SETTINGS)
    table = {"heat": [1.0, 2.0], "stir": [1.0, 3.0], "yield": [0.5, 0.1], "do:stir": [0, 1]}
    assert study.import_rounds(library(table), source="last year") == 2
    assert list(study.history()["state"]) == ["imported"] * 2
    assert study.ledger().trials[1].intervention == (0, 1, 0)
    assert study.policy.n_told == 2
    assert study.ask().number == 2


def test_empty_cells_of_past_rounds_are_not_measured() -> None:
    study = Study.create(None, **SETTINGS)
    frame = pd.DataFrame({"heat": [1.0, np.nan], "stir": [1.0, 3.0], "yield": [0.5, 0.1]})
    with pytest.warns(LearningWarning, match="1 of 2 rows"):
        study.import_rounds(frame)
    assert study.policy.n_told == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"heat": [1.0], "stir": [1.0]}, "no column for node 'yield'"),
        ({"heat": [1.0], "stir": [1.0], "yield": [1.0], "x": [0]}, "'x' is not a node"),
        ({"heat": [1.0], "stir": [1.0], "yield": [float("inf")]}, "row 0 of column 'yield' is inf"),
        ({"heat": [1.0], "stir": [1.0], "yield": [1.0], "do:heat": [2]}, "no level 2"),
        ({"heat": [], "stir": [], "yield": []}, "no rows"),
        ({"heat": [1.0], "stir": [1.0, 2.0], "yield": [1.0]}, "differ in length"),
    ],
)
def test_wrong_past_rounds_are_refused(table: dict[str, list[float]], message: str) -> None:
    study = Study.create(None, **SETTINGS)
    with pytest.raises(StudyError, match=message):
        study.import_rounds(table)
    assert not study.ledger().trials


@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")  # the 99
def test_corrections_are_events_and_change_what_was_learned() -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 60)
    wrong = Study.create(None, **SETTINGS)
    for number in range(60):
        trial = wrong.ask()
        values = result(trial) if number != 7 else [99.0, 99.0, 99.0]
        wrong.tell(trial, values)
    right = study.ledger().trials[7].values
    wrong.correct(7, right, "typing error")
    assert [t.values for t in wrong.ledger().trials[:8]] == [
        t.values for t in study.ledger().trials[:8]
    ]
    assert any("99.0" in entry.text for entry in wrong.store.entries())
    wrong.correct(7, None)
    assert wrong.ledger().trials[7].state == "withdrawn"
    assert wrong.policy.n_told == 59
    with pytest.raises(StudyError, match="no result to correct"):
        wrong.correct(7, [1, 2, 3])


def test_settings_may_change_and_the_past_is_learned_anew() -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 80)
    study.change_settings(policy="ucb", horizon=300)
    assert study.policy.n_told == 80
    assert type(study.policy).__name__ == "UCB"
    study.change_settings(policy="csl-ucb", horizon=200)
    other = Study.create(None, **SETTINGS)
    play(other, 80)
    assert state_of(study) == state_of(other)
    with pytest.raises(StudyError, match="nodes cannot change"):
        study.change_settings(nodes=["a", "b"])


def test_minimising_is_maximising_the_opposite() -> None:
    down = Study.create(None, direction="minimize", **SETTINGS)
    up = Study.create(None, **SETTINGS)
    for _ in range(100):
        low, high = down.ask(), up.ask()
        assert low.intervention == high.intervention
        values = result(high)
        up.tell(high, values)
        down.tell(low, [*values[:2], -values[2]])
    assert down.best().intervention == up.best().intervention
    assert down.best().reward == pytest.approx(-up.best().reward)


def test_notes_and_times() -> None:
    study = Study.create(None, **SETTINGS)
    study.note("new batch of feed")
    study.note("smelled odd", study.ask())
    assert [note.trial for note in study.ledger().notes] == [None, 0]
    for text in ("", "\ud800", 3):
        with pytest.raises(StudyError):
            study.note(text)  # type: ignore[arg-type]


def test_nodes_may_have_any_names() -> None:
    names = ("state", "node:state", "'; DROP TABLE events; --", "<b>", "yield")
    study = Study.create(None, nodes=names, reward="yield", policy="random")
    study.tell(study.ask(), [1, 2, 3, 4, 5])
    history = study.history()
    assert list(history["state"]) == ["told"]
    assert list(history["node:state"]) == [1.0]
    assert list(history["node:node:state"]) == [2.0]
    assert list(history["'; DROP TABLE events; --"]) == [3.0]


@pytest.mark.parametrize("policy", ["csl-ucb-cd", "ucb", "ga-lcb", "random", "golem-mab"])
def test_any_policy_of_the_registry_may_run_a_study(policy: str, tmp_path: Path) -> None:
    settings = SETTINGS | {"horizon": 2000, "policy": policy}
    study = Study.create(tmp_path / "s.db", noise_mean=1.0, **settings)
    play(study, 25)
    assert study.verify(replay=True).ok
    expected = study.ask().intervention
    study.close()
    with Study.open(tmp_path / "s.db") as again:
        assert again.ask().intervention == expected


def test_wrong_settings_are_refused_without_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    cases: list[tuple[dict[str, object], str]] = [
        ({"reward": "yeild"}, "did you mean 'yield'"),
        ({"direction": "up"}, "direction must be one of maximize, minimize"),
        ({"policy": "csl-ubc"}, "did you mean 'csl-ucb'"),
        ({"policy": "oracle"}, "knows the truth"),
        ({"policy_settings": {"jont": True}}, "did you mean 'joint'"),
        ({"policy_settings": {"detector": object()}}, "plain numbers and text"),
        ({"horizon": 10}, "too short"),
        ({"nodes": "abc"}, "list of names"),
        ({"nodes": ["yield"]}, "at least two nodes"),
        ({"nodes": ["yield", "yield"]}, "used twice"),
        ({"seed": -1}, "seed must be an integer from 0"),
        ({"noise_mean": float("nan")}, "not finite"),
        ({"intervenable": ["hat"]}, "did you mean 'heat'"),
        ({"intervenable": []}, "nothing to try"),
        ({"constraints": {"budget": 3}}, "a constraint must be one of .*, not 'budget'"),
    ]
    for change, message in cases:
        with pytest.raises(StudyError, match=message):
            Study.create(path, **(SETTINGS | {"intervenable": None} | change))
    assert not path.exists()
    Study.create(path, **SETTINGS).close()
    with pytest.raises(StudyError, match="exists already"):
        Study.create(path, **SETTINGS)
    assert Study.open(path).nodes == NODES


def test_two_objects_on_one_file_share_the_texts_of_their_trials(tmp_path: Path) -> None:
    with Study.create(tmp_path / "s.db", ["heat", "yield"], "yield", policy="random") as one:
        one.tell(one.ask(worker="bench 2"), [1.0, 2.0])
        with Study.open(tmp_path / "s.db") as other:
            a, b = one.ledger().trial(0), other.ledger().trial(0)
    assert a == b
    assert not hasattr(a, "__dict__")
    assert a.intervention is a.asked["intervention"]
    for text in ("worker", "asked_at", "done_at"):
        assert getattr(a, text) is getattr(b, text)
    assert {id(name) for name in a.asked} == {id(name) for name in b.asked}
    assert a.asked["why"] is b.asked["why"]
