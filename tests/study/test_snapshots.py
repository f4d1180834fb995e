"""A snapshot is an acceleration: used where it fits the log, ignored where it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from study_rounds import SEM, SETTINGS, play, state_of

from causalarms import Study
from causalarms.errors import DataError
from causalarms.study import learner
from causalarms.study.cache import pack, unpack
from causalarms.study.learner import Learner
from causalarms.study.store import Snapshot


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(learner, "SNAPSHOT_AFTER_ROUNDS", 30)
    with Study.create(tmp_path / "s.db", **SETTINGS) as study:
        play(study, 100)
    return tmp_path / "s.db"


def rounds_learned_by_opening(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    learned: list[int] = []
    original = Learner._learn

    def counted(self: Learner, record: object) -> None:
        learned.append(1)
        original(self, record)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, Study.open(path) as study:
        patch.setattr(Learner, "_learn", counted)
        assert study.policy.n_told == 100
        twin = Study.create(None, **SETTINGS)
        patch.setattr(Learner, "_learn", original)
        play(twin, 100)
        assert state_of(study) == state_of(twin)
        assert study.ask() == twin.ask()
    return len(learned)


def test_it_shortens_the_replay(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rounds_learned_by_opening(played, monkeypatch) < 35


@pytest.mark.parametrize("damage", ["state", "hash", "digest", "number", "nonsense", "version"])
def test_one_that_does_not_fit_is_ignored(
    played: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    with Study.open(played) as study:
        good = study.store.snapshot()
        assert good is not None
        bad = {
            "state": good._replace(state=good.state[:-1] + bytes([good.state[-1] ^ 1])),
            "hash": good._replace(hash=b"0" * 32),
            "digest": good._replace(digest=b"0" * 32),
            "number": good._replace(number=good.number - 1),
            "nonsense": resigned(good, b"\x05\0\0\0\0\0\0\0hello"),
            "version": resigned(good, pack(unpack(good.state) | {"study.version": "0.0.1"})),
        }[damage]
        with study.store.writing():
            study.store.keep_snapshot(bad)
    assert rounds_learned_by_opening(played, monkeypatch) == 100


def resigned(good: Snapshot, state: bytes) -> Snapshot:
    return good._replace(state=state, digest=learner._digest(state, good.hash))


def test_a_hostile_state_with_a_good_digest_is_ignored(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Study.open(played) as study:
        good = study.store.snapshot()
        assert good is not None
        state = unpack(good.state)
        state["data.values"] = np.zeros((2, 2))
        with study.store.writing():
            study.store.keep_snapshot(resigned(good, pack(state)))
    assert rounds_learned_by_opening(played, monkeypatch) == 100


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 20,
        b"\x02\0\0\0\0\0\0\0{}",
        pack({"x": np.eye(3)})[:-1],
        pack({"x": np.eye(3)}) + b"0",
        pack({"x": np.eye(3)}).replace(b"<f8", b"|O8"),
        pack({"x": np.eye(3)}).replace(b"[3, 3]", b"[9, 9]"),
        pack({"x": np.eye(3)}).replace(b"[3, 3]", b"[-3,3]"),
    ],
)
def test_states_that_were_not_packed_are_refused(content: bytes) -> None:
    with pytest.raises(DataError):
        unpack(content)


def test_objects_are_not_packed() -> None:
    with pytest.raises(DataError, match="cannot keep"):
        pack({"x": np.array([object()])})


@pytest.mark.parametrize("policy", ["csl-ucb-cd", "ucb", "ga-lcb"])
@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")  # the world changes
def test_going_on_from_a_snapshot_is_going_on(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after alarms, when mechanisms have forgotten."""
    monkeypatch.setattr(learner, "SNAPSHOT_AFTER_ROUNDS", 30)
    settings = SETTINGS | {"policy": policy, "horizon": 600, "noise_mean": 1.0}
    changed = SEM.replace(noise_mean=np.full(3, 30.0))
    through = Study.create(None, **settings)
    for rounds, sem in ((240, SEM), (45, changed), (40, changed)):
        play(through, rounds, sem)
    path = tmp_path / "s.db"
    Study.create(path, **settings).close()
    for rounds, sem in ((240, SEM), (45, changed), (40, changed)):
        with Study.open(path) as study:
            play(study, rounds, sem)
    with Study.open(path) as study:
        assert study.store.snapshot() is not None
        assert bool(study.alarms()) == (policy == "csl-ucb-cd")
        assert state_of(study) == state_of(through)
        assert study.ask() == through.ask()
