"""Forks, second handles and files moved under an open study: what was acknowledged is there."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext
from pathlib import Path

import pytest
from study_rounds import SETTINGS, play, result

from causalarms import Study
from causalarms.errors import ChangedStudyError, StudyError
from causalarms.study import sqlite
from causalarms.study.repair import verify

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

CHEAP = SETTINGS | {"policy": "random"}
HERE = Path(__file__).parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


def tell_some(path: Path, worker: str, rounds: int) -> list[int]:
    """A worker with a study of its own; the trials it acknowledges."""
    with Study.open(path) as study:
        return tell_with(study, worker, rounds)


def tell_with(study: Study, worker: str, rounds: int) -> list[int]:
    told = []
    for _ in range(rounds):
        trial = study.ask(worker=worker)
        study.tell(trial, result(trial))
        told.append(trial.number)
    return told


def told_in(path: Path) -> list[int]:
    with Study.open(path, read_only=True) as study:
        assert study.verify().ok
        return [r.number for r in study.ledger().trials if r.state == "told"]


def in_child(work: Callable[[], object]) -> int:
    """Run `work` in a forked child that exits without tidying; its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_workers(context: BaseContext, path: Path, parent: Study, *, close_early: bool) -> list[int]:
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        futures = [pool.submit(tell_some, path, f"w{i}", 10) for i in range(2)]
        if close_early:
            time.sleep(0.05)
            parent.close()
        return sorted(n for future in futures for n in future.result())


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("close_early", [True, False])
def test_workers_of_a_process_that_has_the_study_open(
    path: Path, method: str, close_early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    parent = Study.create(path, **CHEAP)
    told = run_workers(multiprocessing.get_context(method), path, parent, close_early=close_early)
    parent.close()
    assert told_in(path) == told
    assert len(told) == 20


def refused_in_child(study: Study) -> None:
    for use in (study.history, study.ask, study.verify, study.best):
        with pytest.raises(StudyError, match="opened before a fork: open it again in the child"):
            use()


def test_a_study_carried_into_a_child_is_refused_there_and_works_here(path: Path) -> None:
    study = Study.create(path, **CHEAP)
    tell_with(study, "parent", 3)

    def child() -> None:
        refused_in_child(study)
        tell_some(path, "child", 3)

    assert in_child(child) == 0
    tell_with(study, "parent", 3)
    assert len(told_in(path)) == 9


def test_a_study_in_memory_is_refused_in_a_child(path: Path) -> None:
    study = Study.create(None, **CHEAP)
    assert in_child(lambda: refused_in_child(study)) == 0
    tell_with(study, "parent", 1)


def test_a_fork_waits_for_a_thread_that_is_writing(path: Path) -> None:
    study = Study.create(path, **CHEAP)
    stop = threading.Event()
    told: list[int] = []

    def write() -> None:
        while not stop.is_set():
            told.extend(tell_with(study, "thread", 1))

    thread = threading.Thread(target=write)
    thread.start()
    codes = [in_child(lambda i=i: tell_some(path, f"c{i}", 1)) for i in range(6)]  # type: ignore[misc]
    stop.set()
    thread.join()
    assert codes == [0] * 6
    assert set(told) <= set(told_in(path))
    assert len(told_in(path)) == len(told) + 6


def test_a_fork_in_the_middle_of_a_write_is_refused_in_the_child(path: Path) -> None:
    study = Study.create(path, **CHEAP)
    trial = study.ask()

    codes: list[int] = []
    log = study._log
    ordinary = log._clock

    def forking_clock() -> object:
        codes.append(in_child(lambda: refused_in_child(study)))
        return ordinary()

    log._clock = forking_clock  # type: ignore[assignment]
    study.tell(trial, result(trial))
    log._clock = ordinary
    assert codes == [0]
    assert told_in(path) == [0]


def test_a_child_that_unwinds_a_write_of_its_parent_changes_nothing(path: Path) -> None:
    study = Study.create(path, **CHEAP)
    trial = study.ask()
    parent = os.getpid()
    ordinary = study._log._clock
    children: list[int] = []

    def forking_clock() -> object:
        child = os.fork()
        if child == 0:
            raise KeyboardInterrupt  # leaves all blocks of the write in the child
        children.append(child)
        os.waitpid(child, 0)
        return ordinary()

    study._log._clock = forking_clock  # type: ignore[assignment]
    try:
        study.tell(trial, result(trial))
    finally:
        if os.getpid() != parent:
            os._exit(0)
    assert children
    assert told_in(path) == [0]


def test_fork_and_exec(path: Path) -> None:
    study = Study.create(path, **CHEAP)
    told = tell_with(study, "here", 2)
    subprocess.run([sys.executable, "-c", "pass"], check=True, preexec_fn=lambda: None)
    code = "import sys; from causalarms import Study; Study.open(sys.argv[1]).ask(worker='there')"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    told += tell_with(study, "here", 2)
    assert told_in(path) == told


def test_loky(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    monkeypatch.setenv("PYTHONPATH", f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    study = Study.create(path, **CHEAP)
    told = Parallel(2)(delayed(tell_some)(path, f"w{i}", 5) for i in range(2))
    get_reusable_executor().shutdown()
    mine = tell_with(study, "parent", 2)
    assert told_in(path) == sorted([*told[0], *told[1], *mine])


def other_handles(path: Path, stop: threading.Event) -> None:
    while not stop.is_set():
        path.read_bytes()
        shutil.copy(path, path.with_suffix(f".{os.getpid()}"))


def tell_beside_other_handles(path: Path, worker: str) -> list[int]:
    stop = threading.Event()
    thread = threading.Thread(target=other_handles, args=(path, stop))
    thread.start()
    told = tell_some(path, worker, 25)
    stop.set()
    thread.join()
    return told


def test_closing_another_handle_of_the_file_drops_no_lock(path: Path) -> None:
    Study.create(path, **CHEAP).close()
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("fork")) as pool:
        futures = [pool.submit(tell_beside_other_handles, path, f"w{i}") for i in range(3)]
        told = sorted(n for future in futures for n in future.result())
    assert told_in(path) == told == list(range(75))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def moved_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replaced_by_another(path: Path) -> None:
    other = path.with_name("other.db")
    with Study.create(other, **(CHEAP | {"seed": 5})) as study:
        play(study, 12)
    other.replace(path)


def written_over(path: Path) -> None:
    """The same number of events as the study itself: only the hashes tell them apart."""
    other = path.with_name("other.db")
    with Study.create(other, **(CHEAP | {"seed": 5})) as study:
        play(study, 12)
        study.ask()
    path.write_bytes(other.read_bytes())


def brought_back(path: Path) -> None:
    path.write_bytes(path.with_name("early.db").read_bytes())


@pytest.mark.parametrize(
    "change",
    [
        Path.unlink, moved_away, replaced_by_another, written_over, brought_back, emptied,
        made_a_folder,
    ],
)  # fmt: skip
def test_a_file_changed_under_an_open_study(path: Path, change: Callable[[Path], None]) -> None:
    study = Study.create(path, **CHEAP)
    play(study, 4)
    shutil.copy(path, path.with_name("early.db"))
    play(study, 8)
    trial = study.ask()
    change(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ChangedStudyError) as caught:
        study.tell(trial, result(trial))
    for read in (study.history, study.ask, study.best):
        with pytest.raises(ChangedStudyError):
            read()
    kept = path.with_name("s.db-untold.jsonl")
    assert str(kept) in str(caught.value)
    values = dict(zip(study.nodes, result(trial), strict=True))
    assert json.loads(kept.read_text()) == {"trial": trial.number, "values": values}
    assert (path.read_bytes() if path.is_file() else None) == before
    if before:
        with Study.open(path) as again:
            assert again.verify(replay=True).ok
            play(again, 2)


def test_what_cannot_be_read_back_is_not_acknowledged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.create(path, **CHEAP)
    trial = study.ask()
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "_insert", lambda *_: None)  # a disk that lies
        with pytest.raises(ChangedStudyError, match="cannot be read back"):
            study.tell(trial, result(trial))
    assert told_in(path) == []
    study.tell(trial, result(trial))
    assert told_in(path) == [0]


def test_the_same_history_in_another_file_is_the_same_study(path: Path) -> None:
    study = Study.create(path, **CHEAP)
    play(study, 3)
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)
    play(study, 3)
    assert len(told_in(path)) == 6


def test_another_folder_does_not_lead_astray(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    study = Study.create("s.db", **CHEAP)
    (path.parent / "below").mkdir()
    monkeypatch.chdir(path.parent / "below")
    play(study, 2)
    assert len(told_in(path)) == 2


def test_a_program_that_writes_with_sqlite_alone_is_noticed(path: Path) -> None:
    study = Study.create(path, **CHEAP)
    play(study, 2)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE events SET text = 'x' WHERE number = 5")
    connection.commit()
    connection.close()
    assert verify(path).first_bad == 5


def test_a_reader_without_the_right_to_write_follows(path: Path) -> None:
    """As a user who may read the file but not write to its folder."""
    study = Study.create(path, **CHEAP)
    play(study, 3)
    path.parent.chmod(0o555)
    path.chmod(0o444)
    reader = Study.open(path, read_only=True)

    def look() -> None:
        if os.getuid() == 0:
            os.seteuid(65534)
        with Study.open(path, read_only=True) as mine:
            assert len(mine.history()) == 8

    try:
        assert len(reader.history()) == 3
        path.parent.chmod(0o755)
        path.chmod(0o644)
        play(study, 5)
        path.parent.chmod(0o555)
        path.chmod(0o444)
        for folder in (path.parent, *path.parent.parents):
            if folder.stat().st_uid == os.getuid() and str(folder).startswith("/tmp/pytest"):
                folder.chmod(0o755)
        assert in_child(look) == 0
    finally:
        path.parent.chmod(0o755)
