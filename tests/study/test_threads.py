"""Threads that share one study: every look is of one moment."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from study_rounds import SETTINGS, play, result

from causalarms import Study
from causalarms.errors import ClosedTrialError, StudyError
from causalarms.policies.csl_ucb import CSLUCB
from causalarms.study.ledger import Ledger, Record
from causalarms.study.sqlite import SqliteStore


def readers(study: Study, folder: Path) -> list[Callable[[], object]]:
    def history() -> None:
        table = study.history()
        told = [state == "told" for state in table["state"]]
        measured = [value == value and value is not None for value in table["heat"]]
        assert told == measured

    def export() -> None:
        study.export(folder / f"{threading.get_ident()}.csv")

    def numbers() -> None:
        trials = study.ledger().trials
        assert [r.number for r in trials] == list(range(len(trials)))

    def believed() -> None:
        with suppress(StudyError):  # too early
            study.best()
            study.predict()
            study.graph()

    return [history, export, numbers, believed, study.verify, study.alarms]


@pytest.mark.parametrize("stored", [True, False])
def test_every_look_is_of_one_moment(tmp_path: Path, stored: bool) -> None:
    settings = SETTINGS | {"policy": "csl-ucb-cd"}
    study = Study.create(tmp_path / "s.db" if stored else None, **settings)
    errors: list[BaseException] = []
    stop = threading.Event()

    def write() -> None:
        try:
            for _ in range(50):
                trial = study.ask()
                study.tell(trial, result(trial))
        except BaseException as error:
            errors.append(error)
        finally:
            stop.set()

    def read() -> None:
        looks = readers(study, tmp_path)
        try:
            while not stop.is_set():
                for look in looks:
                    look()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=write), *(threading.Thread(target=read) for _ in range(3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert study.verify(replay=True).told == 50


def test_what_was_looked_at_does_not_change(tmp_path: Path) -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 3)
    trial = study.ask()
    before, policy = study.ledger(), study.policy
    states = [r.state for r in before.trials]
    study.tell(trial, result(trial))
    study.correct(0, [1.0, 2.0, 3.0])
    assert [r.state for r in before.trials] == states
    assert before.trials[0].values != (1.0, 2.0, 3.0)
    assert list(before.pending) == [3]
    assert policy.n_told == 3
    assert study.policy.n_told == 4
    assert study.ledger() is study.ledger()
    with pytest.raises(AttributeError):
        Record.__setattr__(before.trials[0], "state", "x")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_interrupts_leave_nothing_locked_and_nothing_half_known(tmp_path: Path) -> None:
    script = Path(__file__).with_name("interrupted.py")
    command = [sys.executable, str(script), str(tmp_path / "s.db"), "300"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def test_an_interrupt_between_knowing_and_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.create(tmp_path / "s.db", **SETTINGS)
    play(study, 2)
    trial, apply, commit = study.ask(), Ledger.apply, SqliteStore.commit

    def applied(ledger: Ledger, event: Any) -> None:
        apply(ledger, event)
        raise KeyboardInterrupt

    def written(store: SqliteStore, entries: Any) -> None:
        commit(store, entries)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "apply", applied)
        with pytest.raises(KeyboardInterrupt):
            study.tell(trial, result(trial))
    assert study.ledger().trial(trial.number).state == "asked"  # nothing was written
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "commit", written)
        with pytest.raises(KeyboardInterrupt):
            study.tell(trial, result(trial))
    with pytest.raises(ClosedTrialError):  # it was written
        study.tell(trial, result(trial))
    play(study, 2)
    assert study.verify(replay=True).told == 5


def test_an_interrupt_while_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 5)
    learn = CSLUCB.learn

    def interrupted(policy: CSLUCB, *arguments: Any) -> None:
        learn(policy, *arguments)
        raise KeyboardInterrupt

    trial = study.ask()
    study.tell(trial, result(trial))
    with monkeypatch.context() as patch:
        patch.setattr(CSLUCB, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.ask()
    play(study, 3)
    assert study.policy.n_told == 9
    assert study.verify(replay=True).ok
