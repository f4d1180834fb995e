"""The results file: append-only, whole after any accident, never mixed."""

from __future__ import annotations

import errno
import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from causalarms.errors import CausalArmsError, DataError
from causalarms.simulation.results import ResultStore

SETTINGS = {"n_nodes": 4, "seed": 1}


def record(repetition: int, policy: str = "ucb", size: int = 10) -> dict[str, Any]:
    return {"policy": policy, "repetition": repetition, "curve": [0.1] * size}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with three records."""
    file = tmp_path / "results" / "run.jsonl"
    store = ResultStore(file, SETTINGS)
    for repetition in range(3):
        store.add(record(repetition))
    return file


def test_records_come_back(path: Path) -> None:
    store = ResultStore(path, SETTINGS)
    assert list(store.records.values()) == [record(0), record(1), record(2)]
    assert ("ucb", 2) in store
    assert ("ucb", 3) not in store
    header = json.loads(path.read_text().splitlines()[0])
    assert header["settings"] == SETTINGS
    assert set(header) == {"format", "version", "settings"}


def test_records_come_in_order_whatever_order_they_finished_in() -> None:
    store = ResultStore(None, SETTINGS)
    for repetition, policy in ((1, "b"), (0, "a"), (0, "b"), (1, "a"), (0, "c")):
        store.add(record(repetition, policy))
    found = [(r["policy"], r["repetition"]) for r in store.in_order(["b", "a"], 9)]
    assert found == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ResultStore(None, SETTINGS).add(record(0))
    assert list(tmp_path.iterdir()) == []


def test_other_settings_are_refused_and_named(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"other settings \(they differ in horizon, seed\)"):
        ResultStore(path, {"n_nodes": 4, "seed": 2, "horizon": 9})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"time,value\n1,2\n", b"\x89PNG\r\n\x1a\n\x00", b'{"format": "other"}\n', b"[]\n", b"x", b"{"],
    ids=["csv", "png", "json", "list", "letter", "brace"],
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine"
    file.write_bytes(content)
    if content == b"{":  # the beginning of our own first line: a kill left it
        ResultStore(file, SETTINGS)
        assert file.read_bytes().endswith(b"}\n")
        return
    with pytest.raises(DataError, match="holds no results of this package"):
        ResultStore(file, SETTINGS)
    assert file.read_bytes() == content


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_cut_off_by_a_kill_is_dropped_and_run_again(path: Path, cut: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    store = ResultStore(path, SETTINGS)
    assert ("ucb", 1) in store
    assert ("ucb", 2) not in store
    store.add(record(2))
    assert path.read_bytes() == whole


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_first_line_cut_off_by_a_kill_is_written_again(path: Path, kept: int) -> None:
    header = path.read_bytes().split(b"\n")[0] + b"\n"
    path.write_bytes(header[:kept])
    assert ResultStore(path, SETTINGS).records == {}
    assert path.read_bytes() == header


@pytest.mark.parametrize("damage", [b'{"policy": "ucb", "repe', b"[1, 2]", b"", b'{"policy": "u"}'])
def test_a_damaged_line_in_the_middle_is_named(path: Path, damage: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[2] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match=r"run\.jsonl, line 3: not a result"):
        ResultStore(path, SETTINGS)
    assert path.read_bytes() == b"\n".join(lines)


def test_a_disk_that_is_full_for_a_moment_leaves_the_file_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    store = ResultStore(path, SETTINGS)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            CausalArmsError, match="No space left on device; what is in it is whole"
        ):
            store.add(record(3))
    assert path.read_bytes() == before
    assert ("ucb", 3) not in store
    store.add(record(3))
    assert len(ResultStore(path, SETTINGS).records) == 4


@pytest.mark.parametrize("room", [0, 60, 200])
def test_a_write_that_only_half_fits_leaves_the_file_whole(path: Path, room: int) -> None:
    """A limit on the file's size: the system really writes a part of the line, then refuses."""
    before = path.read_bytes()
    store = ResultStore(path, SETTINGS)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, hard))
    try:
        with pytest.raises(CausalArmsError, match="what is in it is whole"):
            store.add(record(3, size=50))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_device_is_an_error_with_its_reason() -> None:
    with pytest.raises(CausalArmsError, match="cannot use /dev/full: No space left on device"):
        ResultStore("/dev/full", SETTINGS)


def test_a_place_that_cannot_be_written_is_an_error_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CausalArmsError, match=r"cannot use .*: (Not a directory|File exists)"):
        ResultStore(tmp_path / "file" / "run.jsonl", SETTINGS)
    with pytest.raises(CausalArmsError, match=r"cannot use .*: Is a directory"):
        ResultStore(tmp_path, SETTINGS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_can_be_read_and_not_added_to(path: Path) -> None:
    path.chmod(0o444)
    store = ResultStore(path, SETTINGS)
    with pytest.raises(CausalArmsError, match="Permission denied"):
        store.add(record(3))


def test_a_disk_turned_read_only_is_an_error_with_its_reason(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultStore(path, SETTINGS)

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CausalArmsError, match=r"cannot write to .*: Read-only file system"):
        store.add(record(3))
    assert ("ucb", 3) not in store
