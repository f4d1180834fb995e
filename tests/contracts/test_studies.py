"""What every study does, in its own file and over the network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalarms.errors import (
    ClosedTrialError,
    FarValueWarning,
    LearningWarning,
    NodeValueError,
    NoResultError,
    NotAskedError,
    RepeatedKeyError,
    StudyError,
    TooEarlyError,
    UnknownAlarmError,
    UnknownTrialError,
)
from causalarms.policies.stopping import StopRule
from causalarms.rng import stream
from causalarms.sem import random_sem
from causalarms.service.remote import RemoteStudy
from causalarms.study import Study, Trial

sys.path.append(str(Path(__file__).parents[1] / "service"))
from served import served

NODES = ("heat", "stir", "yield")
VALUES = {"heat": 1.0, "stir": 2.0, "yield": 3.0}
SEM = random_sem(3, seed=3)


class Place:
    """Where studies are made, and how they are used."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder, self.stack = kind, folder, ExitStack()

    def __call__(self, policy: str = "random", **settings: Any) -> Study:
        path = self.folder / "s.db"
        settings = {"intervenable": NODES} | settings  # as in the system
        study = Study.create(path, NODES, "yield", policy=policy, seed=1, **settings)
        if self.kind == "file":
            return self.stack.enter_context(study)
        study.close()
        site = self.stack.enter_context(served(path))
        remote = RemoteStudy(f"http://127.0.0.1:{site.port}/")
        return self.stack.enter_context(remote)

    @property
    def file(self) -> Study:
        """The same study from its file."""
        return self.stack.enter_context(Study.open(self.folder / "s.db", read_only=True))


@pytest.fixture(params=["file", "remote"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = Place(request.param, tmp_path)
    with place.stack:
        yield place


def play(study: Study, rounds: int) -> None:
    for _ in range(rounds):
        trial = study.ask()
        a = np.array([list(trial.intervention.values())], dtype=np.uint8)
        study.tell(trial, SEM.sample(a, stream(7, "noise", trial.number))[0])


def test_workers_have_their_own_trials_and_keep_them(make: Place) -> None:
    study = make()
    first, second = study.ask(worker="a"), study.ask(worker="b")
    assert isinstance(first, Trial)
    assert (first.number, second.number) == (0, 1)
    assert study.ask(worker="a") == first
    assert [trial.number for trial in study.ask(3, worker="a")] == [0, 2, 3]
    assert make.file.ledger().trials[0].worker == "a"
    for n in (0, 1001, True, "1"):
        with pytest.raises(StudyError, match="1 to 1000"):
            study.ask(n)  # type: ignore[arg-type]
    with pytest.raises(StudyError):
        study.ask(worker="")


def test_results_come_in_many_forms_and_wrong_ones_are_refused(make: Place) -> None:
    study = make()
    for given in (VALUES, [1.0, 2, 3.0], np.array([1.0, 2.0, 3.0])):
        study.tell(study.ask(), given)
    assert [r.values for r in study.ledger().trials] == [(1.0, 2.0, 3.0)] * 3
    trial = study.ask()
    before = study.store.entries()
    for node, values in (
        ("yield", {"heat": 1.0, "stir": 2.0}),
        ("heat", VALUES | {"heat": float("nan")}),
        ("heat", VALUES | {"heat": 1e300}),
        ("heat", VALUES | {"heat": "1"}),
        ("yeild", VALUES | {"yeild": 1.0}),
    ):
        with pytest.raises(NodeValueError) as refused:
            study.tell(trial, values)
        assert refused.value.node == node
    with pytest.raises(StudyError, match="2 values for 3 nodes"):
        study.tell(trial, [1.0, 2.0])
    assert study.store.entries() == before


def test_what_was_played_otherwise(make: Place) -> None:
    study = make()
    trial = study.ask()
    asked = trial.intervention
    study.tell(trial, VALUES, executed={"heat": 1 - asked["heat"]})
    others = (asked["stir"], asked["yield"])  # as asked
    assert study.ledger().trials[0].intervention == (1 - asked["heat"], *others)
    with pytest.raises(StudyError, match="no factor 'heta'"):
        study.correct(0, VALUES, executed={"heta": "on"})
    study.correct(0, VALUES, executed=["stir"])
    assert study.ledger().trials[0].intervention == (0, 1, 0)


def test_closed_and_unknown_trials(make: Place) -> None:
    study = make()
    study.ask(4)
    study.tell(0, VALUES)
    study.fail(1, "the pump broke")
    study.abandon(2)
    for number, state in ((0, "told"), (1, "failed"), (2, "abandoned")):
        for act in (lambda n: study.tell(n, VALUES), study.fail, study.abandon):
            with pytest.raises(ClosedTrialError, match=f"it was {state} already") as refused:
                act(number)
            assert (refused.value.trial, refused.value.state) == (number, state)
    with pytest.raises(UnknownTrialError, match="there is no trial 4; the last is trial 3"):
        study.tell(4, VALUES)
    with pytest.raises(StudyError, match="is not a trial"):
        study.tell("3", VALUES)  # type: ignore[arg-type]
    with pytest.raises(NoResultError, match="trial 3 is asked"):
        study.correct(3, None)
    assert list(study.history()["state"]) == ["told", "failed", "abandoned", "asked"]
    assert list(study.history()["remark"]) == ["", "the pump broke", "", ""]


def test_corrections_notes_and_keys(make: Place) -> None:
    study = make()
    study.tell(study.ask(), VALUES)
    study.correct(0, VALUES | {"heat": 9.0}, "typed wrongly", key="a")
    study.correct(0, VALUES | {"heat": 9.0}, "typed wrongly", key="a")
    with pytest.raises(RepeatedKeyError, match="belongs to event 4"):
        study.correct(0, None, key="a")
    study.note("hot day", 0, key="b")
    study.note("hot day", 0, key="b")
    study.note("hot day")
    with pytest.raises(UnknownTrialError):
        study.note("x", 5)
    record = study.ledger().trials[0]
    assert (record.values, record.corrected, record.reason) == (
        (9.0, 2.0, 3.0), True, "typed wrongly",
    )  # fmt: skip
    assert [note.trial for note in study.ledger().notes] == [0, None]
    study.correct(0, None, "wrong sample")
    assert study.ledger().trials[0].state == "withdrawn"
    with pytest.raises(StudyError, match="executed goes with values"):
        study.correct(0, None, executed={})


def test_past_rounds(make: Place) -> None:
    study = make()
    rows = {"heat": [1.0, 2.0], "stir": [1.0, None], "yield": [0.0, 1.0], "do:heat": [0, 1]}
    with pytest.warns(LearningWarning, match="1 of 2 rows"):
        assert study.import_rounds(rows, source="1998", key="k") == 2
    assert study.import_rounds(rows, source="1998", key="k") == 2
    found = study.ledger().trials
    assert [r.intervention for r in found] == [(0, 0, 0), (1, 0, 0)]
    assert [(r.state, r.reason) for r in found] == [("imported", "1998")] * 2
    with pytest.raises(NotAskedError, match="nothing to explain"):
        study.explain(0)
    with pytest.raises(StudyError, match="'odd'"):
        study.import_rounds(rows | {"odd": [1, 2]})


def test_far_values_and_gaps_are_said(make: Place) -> None:
    study = make()
    for number in range(12):
        study.tell(study.ask(), {"heat": 1.0 + number / 10, "stir": 2.0, "yield": 3.0})
    with pytest.warns(FarValueWarning, match="'heat' is 1000"):
        (said,) = study.tell(study.ask(), VALUES | {"heat": 1000.0})
    assert "'heat' is 1000" in said
    with pytest.warns(LearningWarning, match="'stir' not measured"):
        (said,) = study.tell(study.ask(), VALUES | {"stir": None})
    assert "'stir' not measured" in said
    assert study.correct(13, VALUES) == []
    assert [(far.trial, far.node) for far in study.far_values()] == [(12, "heat")]


def test_what_is_believed_is_of_everything_told(make: Place) -> None:
    study = make("posterior", changes=True)
    with pytest.raises(TooEarlyError, match="no round has been told yet"):
        study.best()
    with pytest.raises(TooEarlyError):
        study.graph()
    with pytest.raises(TooEarlyError):
        study.predict([{}])
    with pytest.raises(UnknownAlarmError, match="there is no alarm 0"):
        study.acknowledge(0)
    play(study, 25)
    file = make.file
    assert study.best() == file.best()
    assert study.predict([{"heat": "on"}, {}]) == file.predict([{"heat": "on"}, {}])
    found, wanted = study.graph(), file.graph()
    assert (found.nodes, found.order, found.regime_names) == (
        wanted.nodes, wanted.order, wanted.regime_names,
    )  # fmt: skip
    for name in ("adjacency", "weights", "known", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    for name, values in wanted.measures.items():
        np.testing.assert_array_equal(found.measures[name], values)
    for number in (24, 12, 0):
        assert study.explain(number) == file.explain(number)
    assert study.alarms() == file.alarms() == []
    assert (study.problem, study.watches, study.weighs_graphs) == (None, True, True)
    assert study.left_out() == file.left_out()
    rule = StopRule(probability=0.1)
    assert study.should_stop(rule) == file.should_stop(rule) is True


def test_averages_are_known_without_a_model(make: Place) -> None:
    study = make()
    for rounds in (1, 12):  # after one round an average has no spread
        play(study, rounds)
        assert np.isnan(study.best().low) == (rounds == 1)
        assert study.best() == make.file.best()
        assert study.best().rivals or rounds == 1


def test_the_log_is_the_same_and_can_be_checked(make: Place, tmp_path: Path) -> None:
    study = make()
    play(study, 3)
    assert study.store.entries() == make.file.store.entries()
    assert study.store.head() == make.file.store.head()
    assert study.verify(replay=True).ok
    study.export(tmp_path / "log.json")
    with Study.import_from(tmp_path / "log.json", tmp_path / "again.db") as again:
        assert again.ledger().trials == study.ledger().trials
    assert study.settings == make.file.settings
