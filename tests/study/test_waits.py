"""Nobody who tells waits for somebody who asks for many trials, or who imports many rounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_rounds import NODES, SETTINGS, play, result

from causalarms import Study
from causalarms.errors import StudyError
from causalarms.limits import MAX_PENDING_TRIALS
from causalarms.policies.base import Policy, Suggestion
from causalarms.study import far_values as far
from causalarms.study import study as study_module
from causalarms.study.learner import StudyPolicy
from causalarms.study.ledger import Ledger, Record
from causalarms.study.log import Event, canonical, canonical_rows, encode

CHEAP = SETTINGS | {"policy": "random"}
LATE = 20.0  # seconds after which a test gives up


class Gate:
    """Holds a choice up until the test lets it go on."""

    def __init__(self) -> None:
        self.choosing, self.open = threading.Event(), threading.Event()
        self.passed = 0

    @contextmanager
    def before(self, number: int, patch: pytest.MonkeyPatch) -> Iterator[None]:
        """The choice of this trial waits, the first time it is made."""
        ordinary = StudyPolicy.choose

        def choose(learner: StudyPolicy, trial: int, pending: Any, *more: Any) -> Suggestion:
            if trial == number and not self.choosing.is_set():
                self.choosing.set()
                assert self.open.wait(LATE)
            return ordinary(learner, trial, pending, *more)

        with patch.context() as patched:
            patched.setattr(StudyPolicy, "choose", choose)
            try:
                yield
            finally:
                self.open.set()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.mark.parametrize("shared", [True, False])
def test_a_tell_goes_through_while_a_trial_is_being_chosen(
    path: Path, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a thread on the same object, and over another one as from another process."""
    study = Study.create(path, **SETTINGS)
    play(study, 5)
    mine = study.ask(2, worker="teller")
    teller = study if shared else Study.open(path)
    gate, asked = Gate(), list[Any]()
    with gate.before(9, monkeypatch):
        asking = threading.Thread(target=lambda: asked.extend(study.ask(6, worker="asker")))
        asking.start()
        assert gate.choosing.wait(LATE)
        done = threading.Thread(target=lambda: teller.tell(mine[0], result(mine[0])))
        done.start()
        done.join(LATE)
        waited = done.is_alive()
        gate.open.set()
        asking.join()
        done.join()
    assert not waited
    assert [trial.number for trial in asked] == list(range(7, 13))
    assert study.ledger().trials[mine[0].number].state == "told"
    events = [e.text.split('"kind":')[1] for e in study.store.entries()]
    assert events[-7].startswith('"told"')  # what was chosen before it was chosen again
    assert study.verify(replay=True).ok


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_another_process_tells_while_one_asks_for_many(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow choices; the writer lock is never held for more than one of them."""
    study = Study.create(path, **CHEAP)
    trials = study.ask(20, worker="teller")
    program = (
        "import sys, time; from causalarms import Study\n"
        "study, waits = Study.open(sys.argv[1]), []\n"
        "print('open', flush=True)\n"
        "for number in range(20):\n"
        "    began = time.perf_counter()\n"
        "    study.tell(number, [1.0, 2.0, float(number)])\n"
        "    waits.append(time.perf_counter() - began)\n"
        "    time.sleep(0.02)\n"
        "print(max(waits))\n"
    )
    ordinary = StudyPolicy.choose

    def slow(learner: StudyPolicy, trial: int, pending: Any, *more: Any) -> Suggestion:
        time.sleep(0.1)
        return ordinary(learner, trial, pending, *more)

    monkeypatch.setattr(StudyPolicy, "choose", slow)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    ) as teller:
        assert teller.stdout is not None
        assert teller.stdout.readline() == "open\n"
        asked = study.ask(60, worker="asker")
        answer = teller.communicate(timeout=60)[0]
    assert len({trial.number for trial in asked}) == 60
    assert not {trial.number for trial in asked} & {trial.number for trial in trials}
    assert float(answer) < 3.0  # six seconds of choosing; a tell waits for one choice of 0.1 s
    monkeypatch.undo()
    assert Study.open(path).verify(replay=True).told == 20


@pytest.mark.parametrize("results", [1, 2])
def test_who_asks_comes_to_an_end_though_others_write_all_the_time(
    path: Path, results: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_module, "SLICE_SECONDS", 0.0)  # one round at a time
    study = Study.create(path, **SETTINGS)
    play(study, 3)
    mine = iter(study.ask(40, worker="teller"))
    other = Study.open(path)
    ordinary, held = StudyPolicy.choose, list[bool]()

    def choose(learner: StudyPolicy, trial: int, pending: Any, *more: Any) -> Suggestion:
        locked = study.store._writer is not None  # type: ignore[attr-defined]
        held.append(locked)
        if not locked:  # results come in whenever a trial is chosen
            for told in islice(mine, results):
                other.tell(told, result(told))
        return ordinary(learner, trial, pending, *more)

    monkeypatch.setattr(StudyPolicy, "choose", choose)
    asked = study.ask(4, worker="asker")
    monkeypatch.undo()
    assert [trial.number for trial in asked] == [43, 44, 45, 46]
    assert sum(held) == 4
    assert not any(one and two for one, two in pairwise(held))  # then it is the others' turn
    assert study.verify(replay=True).ok


def test_who_asks_comes_to_an_end_though_results_come_in_faster_than_they_are_learned_from(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_module, "SLICE_SECONDS", 0.01)
    study = Study.create(path, **SETTINGS)
    mine = study.ask(100, worker="teller")
    other, told = Study.open(path), iter(mine)
    ordinary = StudyPolicy._learn

    def learn(learner: StudyPolicy, record: Record) -> None:
        if study.store._writer is None:  # type: ignore[attr-defined]
            for trial in islice(told, 2):
                other.tell(trial, result(trial))
            time.sleep(0.02)  # longer than a slice
        ordinary(learner, record)

    for trial in islice(told, 3):
        other.tell(trial, result(trial))
    monkeypatch.setattr(StudyPolicy, "_learn", learn)
    assert study.ask(worker="asker").number == 100
    assert len(list(told)) > 50  # it did not have to wait until all results were in
    monkeypatch.undo()
    assert study.verify(replay=True).ok


def test_two_who_ask_for_one_worker_get_the_same_trials(path: Path) -> None:
    Study.create(path, **SETTINGS).close()
    found: list[list[int]] = []

    def ask() -> None:
        with Study.open(path) as study:
            found.append([trial.number for trial in study.ask(30, worker="w")])

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(range(30))] * 3
    with Study.open(path) as study:
        assert study.verify(replay=True).trials == 30


def test_trials_of_an_interrupted_ask_come_first_at_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_module, "SLICE_SECONDS", 0.0)  # one trial at a time
    study = Study.create(path, **SETTINGS)
    play(study, 5)
    ordinary = StudyPolicy.choose

    def choose(learner: StudyPolicy, trial: int, pending: Any, *more: Any) -> Suggestion:
        if trial == 8:
            raise KeyboardInterrupt
        return ordinary(learner, trial, pending, *more)

    monkeypatch.setattr(StudyPolicy, "choose", choose)
    with pytest.raises(KeyboardInterrupt):
        study.ask(10, worker="w")
    monkeypatch.setattr(StudyPolicy, "choose", ordinary)
    assert list(Study.open(path).ledger().pending) == [5, 6, 7]
    assert [trial.number for trial in study.ask(2, worker="w")] == [5, 6]
    assert [trial.number for trial in study.ask(4, worker="w")] == [5, 6, 7, 8]
    assert study.verify(replay=True).ok


def test_a_round_that_was_interrupted_while_it_was_learned_is_learned_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.create(path, **SETTINGS)
    play(study, 5)
    trial = study.ask()
    study.tell(trial, result(trial))
    ordinary = Policy.tell

    def tell(policy: Policy, *arguments: Any, **named: Any) -> None:
        ordinary(policy, *arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(Policy, "tell", tell)
    with pytest.raises(KeyboardInterrupt):
        study.ask()
    monkeypatch.undo()
    assert study.policy.n_told == 6
    study.ask()
    assert study.verify(replay=True).ok


def test_a_round_that_a_policy_fails_on_is_not_told_twice(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.create(path, **SETTINGS)
    play(study, 6)
    learn, failures = type(study.policy).learn, [ValueError("a slip of somebody's policy")]

    def fails_once(policy: Policy, *arguments: Any) -> None:
        learn(policy, *arguments)
        if failures and policy.n_told == 7:
            raise failures.pop()

    monkeypatch.setattr(type(study.policy), "learn", fails_once)
    trial = study.ask()
    study.tell(trial, result(trial))
    with pytest.raises(ValueError, match="a slip"):
        study.ask()
    assert study.policy.n_told == 7
    study.ask()
    assert study.verify(replay=True).ok


def test_a_fork_while_another_thread_chooses(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    study = Study.create(path, **SETTINGS)
    play(study, 3)
    gate = Gate()
    with gate.before(3, monkeypatch):
        thread = threading.Thread(target=lambda: study.ask(worker="thread"))
        thread.start()
        assert gate.choosing.wait(LATE)
        child = os.fork()
        if child == 0:
            signal.alarm(int(LATE))  # rather than wait for ever
            code = 1
            try:
                with pytest.raises(StudyError, match="before a fork"):
                    study.ask(worker="child")
                with Study.open(path) as own:
                    code = int(own.ask(worker="child").number != 3)
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        gate.open.set()
        thread.join()
    assert [record.worker for record in study.ledger().trials[3:]] == ["child", "thread"]
    assert study.verify(replay=True).ok


def test_the_bound_of_pending_trials_names_itself_and_the_worker() -> None:
    study = Study.create(None, **CHEAP)
    study.ask(MAX_PENDING_TRIALS, worker="robot")
    for n in (MAX_PENDING_TRIALS + 1, 0, True, 2.0):
        with pytest.raises(StudyError, match=f"'robot' may have at most {MAX_PENDING_TRIALS}"):
            study.ask(n, worker="robot")  # type: ignore[arg-type]
    assert len(study.ledger().pending) == MAX_PENDING_TRIALS


def test_no_check_of_an_import_is_made_while_others_wait(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.create(path, **CHEAP)
    held: list[bool] = []

    def watch(module: Any, name: str) -> None:
        ordinary = getattr(module, name)

        def watched(*arguments: Any, **named: Any) -> Any:
            lock = study.store.lock
            held.append(lock._is_owned())  # type: ignore[attr-defined]
            return ordinary(*arguments, **named)

        monkeypatch.setattr(module, name, watched)

    watch(sys.modules["causalarms.study.inputs"], "far_values")
    watch(sys.modules["causalarms.study.inputs"], "canonical_rows")
    watch(study_module, "as_past_rounds")
    study.import_rounds({node: [1.0, 2.0, 3.0] for node in NODES})
    assert held == [False] * 4


def test_large_events_of_others_are_read_before_others_have_to_wait(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Study.create(path, **CHEAP)
    trial, two = one.ask(), Study.open(path)
    one.import_rounds({node: [1.0, 2.0, 3.0] for node in NODES})
    held: list[bool] = []
    ordinary = Ledger._imported

    def imported(ledger: Ledger, event: Event) -> None:
        held.append(two.store._writer is not None)  # type: ignore[attr-defined]
        ordinary(ledger, event)

    monkeypatch.setitem(sys.modules["causalarms.study.ledger"]._APPLY, "imported", imported)
    two.tell(trial, result(trial))
    assert held == [False]


def test_a_table_that_was_encoded_before_gives_the_same_text() -> None:
    values = [[1.5, None, -2e-7], [0.0, 1e99, 3.0]] * 1500
    data = {"first": 4, "values": values, "interventions": [], "source": 'é "x"'}
    event = Event(7, "imported", "2026-01-01T00:00:00.000+00:00", data)
    encoded = {name: canonical_rows(data[name]) for name in ("values", "interventions")}  # type: ignore[arg-type]
    assert encode(event, encoded) == encode(event) == canonical(event._asdict())


@pytest.mark.parametrize("seed", range(6))
def test_far_values_of_many_results_are_those_found_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(50, 700))
    x = rng.standard_t(2, (n, 3)) * [0.1, 10.0, 1e4] + [0.0, 300.0, -5.0]
    x[rng.random((n, 3)) < 0.3 * (seed % 3)] = np.nan
    x[:, 1] = np.round(x[:, 1] / (1 + 40 * (seed % 2)))
    study = Study.create(None, **CHEAP)
    columns = {
        node: [None if v != v else v for v in x[:, i].tolist()] for i, node in enumerate(NODES)
    }
    with pytest.warns() as _:
        study.import_rounds(columns)
    found = far.far_values(study.ledger())
    monkeypatch.setattr(far, "BLOCK", n)
    assert found
    assert found == far.far_values(study.ledger())
