"""What every store of events does, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from causalarms.errors import StudyError
from causalarms.study.sqlite import SqliteStore
from causalarms.study.store import ROOT, Entry, MemoryStore, Store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = (
        MemoryStore() if request.param == "memory" else SqliteStore.create(tmp_path / "s.db")
    )
    yield made
    made.close()


def entry(number: int) -> Entry:
    return Entry(number, f"événement {number}", bytes([number]) * 32)


def write(store: Store, *entries: Entry) -> None:
    try:
        store.begin()
        store.commit(entries)
    finally:
        store.end()


def test_empty(store: Store) -> None:
    assert store.entries() == []
    assert store.head() == (0, ROOT)


def test_what_is_appended_is_there_in_order(store: Store) -> None:
    write(store, entry(1), entry(2))
    write(store, entry(3))
    assert store.entries() == [entry(1), entry(2), entry(3)]
    assert store.entries(after=2) == [entry(3)]
    assert store.entries(after=1, limit=1) == [entry(2)]
    assert store.head() == (3, entry(3).hash)


def test_a_transaction_that_ends_without_a_commit_leaves_nothing(store: Store) -> None:
    write(store, entry(1))
    store.begin()
    store.end()
    store.end()
    assert store.entries() == [entry(1)]
    assert store.head() == (1, entry(1).hash)
    write(store, entry(2))
    assert len(store.entries()) == 2


def test_a_transaction_ends_again_after_ctrl_c_at_its_end(tmp_path: Path) -> None:
    store = SqliteStore.create(tmp_path / "s.db")
    store.begin()
    assert store._locks is not None
    store._locks.close()  # and the interrupt comes before the store has noted it
    store.end()
    write(store, entry(1))


@pytest.mark.parametrize("numbers", [[2], [1, 3], [0], [1, 1]])
def test_a_gap_is_refused_and_nothing_is_written(tmp_path: Path, numbers: list[int]) -> None:
    store = SqliteStore.create(tmp_path / "s.db")
    with pytest.raises(StudyError, match="cannot follow"):
        write(store, *[entry(number) for number in numbers])
    assert store.entries() == []
    write(store, entry(1))
    assert store.entries() == [entry(1)]


def test_writing_to_a_file_needs_a_transaction(tmp_path: Path) -> None:
    store = SqliteStore.create(tmp_path / "s.db")
    with pytest.raises(StudyError, match="inside a transaction"):
        store.commit([entry(1)])
    assert store.entries() == []


def test_a_file_outlives_its_store(tmp_path: Path) -> None:
    store = SqliteStore.create(tmp_path / "s.db")
    write(store, entry(1))
    again = SqliteStore(tmp_path / "s.db", read_only=True)
    assert again.entries() == [entry(1)]
    with pytest.raises(StudyError, match="reading only"):
        again.begin()
    again.close()
    store.close()
    with pytest.raises(StudyError, match="was closed"):
        store.entries()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.db"]


def test_what_is_in_memory_outlives_closing() -> None:
    memory = MemoryStore()
    write(memory, entry(1))
    memory.close()
    assert memory.entries() == [entry(1)]


def test_a_reader_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    store = SqliteStore.create(tmp_path / "s.db")
    reader = SqliteStore(tmp_path / "s.db", read_only=True)
    store.begin()
    assert reader.entries() == []  # at once
    store.commit([entry(1)])
    store.end()
    assert reader.entries() == [entry(1)]
    reader.close()
    store.close()


def test_when_a_write_has_returned_the_one_file_holds_everything(tmp_path: Path) -> None:
    store = SqliteStore.create(tmp_path / "s.db")
    write(store, entry(1))
    assert [p.name for p in tmp_path.iterdir()] == ["s.db"]
    (tmp_path / "copy.db").write_bytes((tmp_path / "s.db").read_bytes())
    assert SqliteStore(tmp_path / "copy.db", read_only=True).entries() == [entry(1)]
