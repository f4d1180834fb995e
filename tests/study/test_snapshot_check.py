"""`verify` compares a snapshot with what the log gives; a forged one has fitting shapes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hostile_snapshots import CASES, played, resigned, snapshot_of
from study_rounds import SETTINGS, play, state_of

from causalarms import Study
from causalarms.cli.study import study as command
from causalarms.study import learner
from causalarms.study.cache import pack, unpack
from causalarms.study.repair import verify_file
from causalarms.study.snapshot_check import UNCHECKED
from causalarms.study.store import Snapshot


def keep(study: Study, snapshot: Snapshot) -> None:
    with study.store.writing():
        study.store.keep_snapshot(snapshot)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(learner, "SNAPSHOT_AFTER_ROUNDS", 20)
    with Study.create(tmp_path / "s.db", **SETTINGS) as study:
        play(study, 60)
    return tmp_path / "s.db"


@pytest.mark.parametrize("label", CASES)
def test_the_snapshot_of_every_policy_is_what_its_log_gives(label: str) -> None:
    study = played(label)
    keep(study, snapshot_of(study))
    verdict = study.verify()
    assert verdict.ok, verdict.message
    assert verdict.remarks == []


def test_one_made_after_a_snapshot_and_a_correction_is_too(path: Path) -> None:
    with Study.open(path) as study:
        study.correct(3, [1.0, 2.0, 3.0])
        assert "was changed since" in study.verify().remarks[0]
        assert study.snapshot_ignored is None
        play(study, 25)
        before = study.store.snapshot()
        assert study.verify().remarks == []
    with Study.open(path) as study:
        play(study, 25)
        assert study.store.snapshot() != before
        assert study.verify().ok
        assert study.verify().remarks == []


def test_a_forged_one_is_found_and_deleting_it_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "SNAPSHOT_AFTER_ROUNDS", 20)
    path = tmp_path / "s.db"
    with Study.create(path, **SETTINGS | {"policy": "ucb"}) as study:
        play(study, 30)
        honest, good = study.ask(), study.store.snapshot()
        assert good is not None
        means = unpack(good.state)["means"]
        other = np.where(np.arange(8) == np.argmin(means), 1000.0, means)
        keep(study, resigned(good, pack(unpack(good.state) | {"means": other})))
        study.abandon(honest)
    with Study.open(path) as study:
        misled = study.ask()
        assert misled.intervention != honest.intervention
        assert study.snapshot_ignored is None, "opening cannot know"
    verdict = verify_file(path)
    assert not verdict.ok
    assert verdict.first_bad is None
    words = f"made at event {good.number} is not what the log gives (means)"
    assert words in verdict.message
    assert "--drop-snapshot" in verdict.message
    with Study.open(path) as study:
        study.abandon(misled)
        study.drop_snapshot()
        assert study.verify().ok
        assert study.store.snapshot() is None
        assert study.ask().intervention == honest.intervention


def test_quick_says_what_it_left_out(path: Path) -> None:
    with Study.open(path) as study:
        good = study.store.snapshot()
        assert good is not None
        assert study.verify().ok
        state = unpack(good.state)
        state["moments.gram"][0, 0, 0, 0] = np.nextafter(state["moments.gram"][0, 0, 0, 0], 0)
        keep(study, resigned(good, pack(state)))
        assert not study.verify().ok, "one bit"
        verdict = study.verify(quick=True)
        assert verdict.ok
        assert verdict.remarks == [UNCHECKED]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hash": b"0" * 32}, "is not the one it was made at"),
        ({"digest": b"0" * 32}, "does not fit its digest"),
        ({"number": 10**6}, "the log has no event 1000000"),
        ({"number": -5}, "the log has no event -5"),
    ],
)
def test_why_one_is_ignored_is_said(path: Path, change: dict[str, Any], words: str) -> None:
    with Study.open(path) as study:
        good = study.store.snapshot()
        assert good is not None
        keep(study, good._replace(**change))
    with Study.open(path, read_only=True) as study:
        verdict = study.verify()
        assert verdict.ok
        assert words in verdict.remarks[0]
        assert words in (study.snapshot_ignored or "")


def test_one_of_another_version_is_ordinary(path: Path) -> None:
    with Study.open(path) as study:
        good = study.store.snapshot()
        assert good is not None
        keep(study, resigned(good, pack(unpack(good.state) | {"study.version": "0.0.1"})))
    with Study.open(path) as study:
        assert study.snapshot_ignored is None
        assert "it was made by '0.0.1'" in study.verify().remarks[0]


def test_a_row_of_the_wrong_kind_is_ignored(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE snapshot SET state = 'text'")
    connection.commit()
    connection.close()
    with Study.open(path) as study:
        assert study.policy.n_told == 60
        assert "cannot be read" in (study.snapshot_ignored or "")
        assert study.verify().ok


def test_a_state_no_round_can_follow_is_ignored(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may show only when the policy goes on from it."""
    with Study.open(path) as study:
        kind, expected = type(study.policy), state_of(study)
    original = kind.learn

    def fails_on_restored(self, a, x):  # type: ignore[no-untyped-def]
        if self.n_told == 55 and getattr(self, "restored", False):
            raise IndexError("out of bounds")
        original(self, a, x)

    def restore(self, state):  # type: ignore[no-untyped-def]
        self.restored = True
        original_restore(self, state)

    original_restore = kind.restore_own
    monkeypatch.setattr(kind, "learn", fails_on_restored)
    monkeypatch.setattr(kind, "restore_own", restore)
    with Study.open(path) as study:
        assert state_of(study) == expected
        assert study.snapshot_ignored == "IndexError: out of bounds"


def test_the_command_says_it_and_drops_it(path: Path) -> None:
    with Study.open(path) as study:
        good = study.store.snapshot()
        assert good is not None
        state = unpack(good.state)
        state["data.values"][0, 0] += 1.0
        keep(study, resigned(good, pack(state)))

    def verify(*options: str) -> tuple[int, str]:
        done = CliRunner().invoke(command, ["verify", str(path), *options])
        return done.exit_code, done.stdout

    code, said = verify()
    assert code == 1
    assert "DAMAGED: the log is intact, but the snapshot" in said
    assert "study recover" not in said
    assert verify("--quick")[0] == 0
    assert "remark: quick: the snapshot was not compared" in verify("--quick")[1]
    assert json.loads(verify("--json")[1])["first_bad"] is None
    code, said = verify("--drop-snapshot")
    assert (code, said[:3]) == (0, "ok:")
    assert verify() == (code, said)
    with Study.open(path, read_only=True) as study:
        assert study.store.snapshot() is None
