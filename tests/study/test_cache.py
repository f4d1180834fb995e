"""States are cached outside the file of record: they shorten the replay and decide nothing."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_rounds import SEM, SETTINGS, play, state_of

from causalarms import Study
from causalarms.errors import DataError
from causalarms.study import cache, learner
from causalarms.study.cache import pack, unpack
from causalarms.study.learner import StudyPolicy

ROUNDS = 45
TOLD: dict[str, Any] = {"policy_settings": {}, "noise_mean": 1.0, "horizon": 200}
GRAPH = {"graph": SEM.adjacency.tolist()}
POLICIES: dict[str, dict[str, Any]] = {
    "csl-ucb": {},
    "csl-ucb-cd": {},
    "ucb": {"window": 3},
    "golem-mab": {"n_explore": 15},
    "golem-mab-cd": {"n_explore": 12},
    "dagma-mab": {"n_explore": 15},
    "explore-then-commit": {"n_explore": 15, "learner": "csl"},
    "linsem-ts": GRAPH,
    "linsem-quantile": GRAPH,
    "linsem-ucb": GRAPH,
    "robust-linsem": GRAPH,
    "additive": {"epsilon": 8.0},
    "ga-lcb": {"n_observe": 15, "cycles": 3},
    "posterior": {"noise_scale": "estimate"},
    "posterior-cd": {},
    "random": {},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAUSALARMS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(learner, "KEEP_AFTER_ROUNDS", 20)
    monkeypatch.setattr(learner, "KEEP_AFTER_SECONDS", np.inf)
    return tmp_path / "cache"


@pytest.fixture
def path(folder: Path, tmp_path: Path) -> Path:
    with Study.create(tmp_path / "s.db", **SETTINGS) as study:
        play(study, ROUNDS)
    return tmp_path / "s.db"


def rounds_learned(path: Path, act: Callable[[Study], object] = state_of) -> int:
    """How many rounds the policy learns when somebody opens the study and looks."""
    learned: list[int] = []
    original = StudyPolicy._learn

    def counted(self: StudyPolicy, record: Any) -> None:
        learned.append(record.number)
        original(self, record)

    with pytest.MonkeyPatch.context() as patch, Study.open(path, read_only=True) as study:
        patch.setattr(StudyPolicy, "_learn", counted)
        act(study)
    return len(learned)


def replayed(path: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch, Study.open(path, read_only=True) as study:
        patch.setenv("CAUSALARMS_CACHE", "")
        return state_of(study)


def test_it_shortens_the_replay(path: Path, folder: Path) -> None:
    assert [file.suffix for file in folder.iterdir()] == [".state"]
    assert rounds_learned(path) < 20
    with Study.open(path) as study:
        assert state_of(study) == replayed(path)


def test_a_study_file_holds_events_only(path: Path) -> None:
    connection = sqlite3.connect(path)
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    connection.close()
    assert sorted(tables) == [("events",), ("head",)]


def test_who_only_reads_helps_the_next_reader(path: Path, folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    assert rounds_learned(path) == ROUNDS
    assert rounds_learned(path) == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_going_on_from_it_is_going_on(policy: str, folder: Path, tmp_path: Path) -> None:
    settings = SETTINGS | TOLD | {"policy": policy, "policy_settings": POLICIES[policy]}
    file = tmp_path / "s.db"
    Study.create(file, **settings).close()
    for rounds in (25, 20):
        with Study.open(file) as study:
            play(study, rounds)
    assert rounds_learned(file) < 25
    with Study.open(file) as study:
        assert repr(state_of(study)) == repr(replayed(file))  # nan is not equal to itself
        assert study.verify(replay=True).ok


@pytest.mark.filterwarnings("ignore::causalarms.errors.AlarmWarning")  # the world changes
@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")
def test_also_after_alarms(folder: Path, tmp_path: Path) -> None:
    settings = SETTINGS | TOLD | {"policy": "csl-ucb-cd", "horizon": 600}
    changed = SEM.replace(noise_mean=np.full(3, 30.0))
    path = tmp_path / "s.db"
    Study.create(path, **settings).close()
    for rounds, sem in ((240, SEM), (45, changed), (40, changed)):
        with Study.open(path) as study:
            play(study, rounds, sem)
    with Study.open(path) as study:
        assert study.alarms()
        assert state_of(study) == replayed(path)


def test_a_correction_and_other_settings_are_learned_from_the_beginning(path: Path) -> None:
    with Study.open(path) as study:
        study.correct(3, [1.0, 2.0, 3.0])
    assert rounds_learned(path) == ROUNDS
    with Study.open(path) as study:
        study.change_settings(horizon=300)
    assert rounds_learned(path) == ROUNDS
    with Study.open(path) as study:
        assert state_of(study) == replayed(path)


def rewritten(content: bytes, **own: Any) -> bytes:
    """The same state with another header and a digest that fits."""
    state = unpack(content[cache.DIGEST_BYTES :])
    packed = pack(state | {cache.OWN + name: value for name, value in own.items()})
    return hashlib.sha256(packed).digest() + packed


@pytest.mark.parametrize(
    "damage",
    [
        lambda good: b"",
        lambda good: good[:40],
        lambda good: good[:-1] + bytes([good[-1] ^ 1]),
        lambda good: bytes([good[0] ^ 1]) + good[1:],
        lambda good: rewritten(good, hash="00" * 32),
        lambda good: rewritten(good, event=10**6),
        lambda good: rewritten(good, event=2),
        lambda good: rewritten(good, made_for="csl-ucb 0 causalarms 0.0.1"),
    ],
)
def test_a_wrong_one_means_learning_the_log_again(
    path: Path, folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    (file,) = folder.iterdir()
    good = file.read_bytes()
    file.write_bytes(damage(good))
    assert rounds_learned(path) == ROUNDS


def test_a_state_that_the_policy_refuses_means_learning_the_log_again(
    path: Path, folder: Path
) -> None:
    (file,) = folder.iterdir()
    content = file.read_bytes()
    state = unpack(content[cache.DIGEST_BYTES :])
    del state["n_told"]
    packed = pack(state)
    file.write_bytes(hashlib.sha256(packed).digest() + packed)
    assert rounds_learned(path) == ROUNDS


def test_another_log_with_the_same_beginning_does_not_use_it(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with Study.create(tmp_path / "t.db", **SETTINGS) as study:
        study.backup(copy)
        play(study, 30)
    with Study.open(copy) as other:
        for _ in range(30):
            other.tell(other.ask(), [1.0, 2.0, 3.0])
        assert state_of(other) == replayed(copy)
    assert rounds_learned(tmp_path / "t.db") == 30


@pytest.mark.parametrize("folder_given", ["", "/dev/null/nowhere"])
def test_without_a_folder_there_is_no_cache(
    path: Path, monkeypatch: pytest.MonkeyPatch, folder_given: str
) -> None:
    monkeypatch.setenv("CAUSALARMS_CACHE", folder_given)
    assert rounds_learned(path) == ROUNDS
    with Study.open(path) as study:
        play(study, 25)


def test_the_folder_is_that_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAUSALARMS_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache.cache_folder() == Path("/x/causalarms")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_folder() == Path.home() / ".cache" / "causalarms"


def test_it_is_bounded(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kept,) = folder.iterdir()
    size = kept.stat().st_size
    monkeypatch.setattr(cache, "MAX_CACHE_BYTES", 3 * size)
    for age in range(1, 5):
        old = folder / f"{age}.state"
        old.write_bytes(bytes(size))
        os.utime(old, ns=(0, 10**9 * age))
    with Study.open(path) as study:
        play(study, 21)
    left = {file.name for file in folder.iterdir()}
    assert kept.name in left
    assert "4.state" in left
    assert "1.state" not in left
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 3 * size


def test_a_study_in_memory_leaves_nothing(folder: Path) -> None:
    play(Study.create(None, **SETTINGS), ROUNDS)
    assert not folder.exists()


def test_objects_are_not_packed() -> None:
    with pytest.raises(DataError, match="cannot keep"):
        pack({"x": np.array([object()])})
