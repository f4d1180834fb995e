"""Any interleaving of what people do to a study equals the replay of its log."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_rounds import NODES, SETTINGS, result, state_of

from causalarms import Study
from causalarms.errors import LearningWarning
from causalarms.study import learner
from causalarms.study.store import MemoryStore

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rounds"), st.integers(1, 12)),
        st.tuples(st.just("ask"), st.sampled_from("abc")),
        st.tuples(st.just("tell"), st.integers(0, 5)),
        st.tuples(st.just("tell part"), st.integers(0, 5)),
        st.tuples(st.just("tell otherwise"), st.integers(0, 5)),
        st.tuples(st.just("fail"), st.integers(0, 5)),
        st.tuples(st.just("abandon"), st.integers(0, 5)),
        st.tuples(st.just("import"), st.integers(1, 30)),
        st.tuples(st.just("correct"), st.integers(0, 40)),
        st.tuples(st.just("correct executed"), st.integers(0, 40)),
        st.tuples(st.just("withdraw"), st.integers(0, 40)),
        st.tuples(st.just("note"), st.integers(0, 1)),
        st.tuples(st.just("horizon"), st.integers(100, 200)),
        st.tuples(st.just("look"), st.integers(0, 1)),
        st.tuples(st.just("reopen"), st.integers(0, 1)),
    ),
    max_size=14,
)


def replayed(study: Study) -> Study:
    """A study that reads the same log from its first event, without a cached state."""
    return Study(MemoryStore(study.store.entries()))


def take(study: Study, path: Path, step: str, number: object) -> Study:
    pending = list(study.ledger().pending)
    if step == "rounds":
        assert isinstance(number, int)
        for _ in range(number):
            trial = study.ask(worker="rounds")
            study.tell(trial, result(trial))
    elif step == "ask":
        study.ask(worker=str(number))
    elif step in ("tell", "tell part", "tell otherwise", "fail", "abandon"):
        assert isinstance(number, int)
        if number >= len(pending):
            return study
        trial = study.ask(worker=study.ledger().trials[pending[number]].worker)
        if step == "tell":
            study.tell(trial, result(trial))
        elif step == "tell otherwise":
            study.tell(trial, result(trial), {n: 1 - bit for n, bit in trial.intervention.items()})
        elif step == "tell part":
            with pytest.warns(LearningWarning):
                study.tell(trial, [None, *result(trial)[1:]])
        else:
            getattr(study, step)(trial)
    elif step == "import":
        assert isinstance(number, int)
        columns = {node: [float(i * k % 7) for i in range(number)] for k, node in enumerate(NODES)}
        study.import_rounds(columns | {"do:heat": [i % 2 for i in range(number)]})
    elif step in ("correct", "correct executed", "withdraw"):
        done = [r.number for r in study.ledger().trials if r.values is not None]
        if done:
            assert isinstance(number, int)
            values = None if step == "withdraw" else [1.0, 2.0, 0.5]
            executed = [NODES[number % 3]] if step == "correct executed" else None
            study.correct(done[number % len(done)], values, executed=executed)
    elif step == "note":
        study.note("a remark")
    elif step == "horizon":
        study.change_settings(horizon=number)
    elif step == "look":
        study.alarms()
    elif step == "reopen":
        study.close()
        return Study.open(path)
    return study


@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")
@pytest.mark.filterwarnings("ignore:all .* rows are in the study:causalarms.errors.LearningWarning")
@settings(max_examples=30)
@given(STEPS)
def test_state_is_the_replay_of_the_log(steps: list[tuple[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "KEEP_AFTER_ROUNDS", 5)  # states are cached all the time
        path = Path(folder) / "s.db"
        study = Study.create(path, **(SETTINGS | {"horizon": 150}))
        for step, number in steps:
            study = take(study, path, step, number)
        twin = replayed(study)
        assert state_of(twin) == state_of(study)
        assert twin.problem == study.problem
        assert study.verify(replay=True).ok
        following = study.ask(worker="last")
        assert twin.ask(worker="last") == following

        study.export(Path(folder) / "log.json")
        same = Study.import_from(Path(folder) / "log.json", Path(folder) / "t.db")
        assert same.store.entries() == study.store.entries()
        assert state_of(same) == state_of(study)
        study.close()
        same.close()
