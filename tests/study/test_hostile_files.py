"""Files and texts made by enemies: refused, never executed, never believed."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_rounds import SETTINGS, play

from causalarms import Study
from causalarms.errors import CausalArmsError, StudyError
from causalarms.study.exchange import FORMAT
from causalarms.study.log import chain
from causalarms.study.store import ROOT, Entry, MemoryStore

SOURCE = Path(__file__).parents[2] / "src" / "causalarms" / "study"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
KIND = st.sampled_from(
    ["created", "asked", "told", "failed", "abandoned", "imported", "alarm acknowledged",
     "settings changed", "note", "corrected"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["trial", "values", "intervention", "wanted", "worker", "first", "interventions", "settings",
     "alarm", "text", "reason", "learned"]
)  # fmt: skip
NAMES = st.sampled_from(
    ["nodes", "reward", "seed", "horizon", "policy", "policy_settings", "costs", "intervenable",
     "forbidden", "max_interventions", "noise_mean", "direction"]
)  # fmt: skip
LIKELY = JSON | st.sampled_from([0, 1, [0, 0, 1], [1.0, 2.0, 3.0], [None, 1, 2], 10**400, -1])


def forged(*events: object) -> MemoryStore:
    """A store whose hashes are right, whatever its events say."""
    entries, hash_ = list[Entry](), ROOT
    for number, event in enumerate(events, start=1):
        text = event if isinstance(event, str) else json.dumps(event)
        hash_ = chain(hash_, text)
        entries.append(Entry(number, text, hash_))
    return MemoryStore(entries)


def created() -> dict[str, object]:
    study = Study.create(None, **SETTINGS)
    record: dict[str, object] = json.loads(study.store.entries()[0].text)
    return record


CREATED = created()


@given(st.lists(st.tuples(KIND, st.dictionaries(KEYS, LIKELY, max_size=6)), max_size=3))
def test_forged_events_are_refused_or_make_sense(
    events: list[tuple[str, dict[str, object]]],
) -> None:
    records = [
        {"number": number, "kind": kind, "at": "", "data": data}
        for number, (kind, data) in enumerate(events, start=2)
    ]
    study = Study(forged(CREATED, *records))
    with contextlib.suppress(CausalArmsError):
        study.ask(worker="me")
        study.history()


@given(st.text(max_size=60) | JSON.map(json.dumps))
def test_a_first_event_may_be_anything(text: str) -> None:
    study = Study(forged(text))
    with pytest.raises(CausalArmsError):
        study.ask()


@given(st.dictionaries(NAMES, LIKELY))
def test_settings_may_be_anything(settings: dict[str, object]) -> None:
    event = json.loads(json.dumps(CREATED))
    event["data"]["settings"] |= settings
    study = Study(forged(event))
    with contextlib.suppress(CausalArmsError):
        study.ask()


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"number": 1' * 50_000, '{"a": NaN}', "\x00", '"' + "a" * 10**6 + '"'],
    ids=["deep", "nested", "nan", "zero", "long"],
)
def test_texts_meant_to_break_a_parser(text: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError):
        Study(forged(text)).ask()
    exported = tmp_path / "log.json"
    exported.write_text(json.dumps({"format": FORMAT}) + "\n" + text + "\n")
    with pytest.raises(StudyError):
        Study.import_from(exported, tmp_path / "s.db")
    assert not (tmp_path / "s.db").exists()


def test_random_bytes_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Study.create(path, **SETTINGS) as study:
        play(study, 20)
        right = [entry.text for entry in study.store.entries()]
    content, chance = path.read_bytes(), random.Random(0)
    for number in range(60):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 4, 64])):
            place = chance.randrange(len(damaged))
            length = chance.choice([1, 8, 200])
            damaged[place : place + length] = chance.randbytes(min(length, len(damaged) - place))
        victim = tmp_path / f"{number}.db"
        victim.write_bytes(damaged)
        try:
            with Study.open(victim) as study:
                study.ask()
                assert [entry.text for entry in study.store.entries()][: len(right)] == right
        except StudyError:
            pass


def test_a_view_or_trigger_in_a_file_does_not_run(tmp_path: Path) -> None:
    """SQLite itself knows triggers: one that rewrites what is written is found by the hashes."""
    path = tmp_path / "s.db"
    Study.create(path, **SETTINGS).close()
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TRIGGER evil AFTER INSERT ON events BEGIN "
        "UPDATE events SET text = replace(text, '1', '2') WHERE number = new.number; END"
    )
    connection.close()
    with pytest.raises(StudyError, match="triggers or views"):
        Study.open(path)


def test_nothing_that_executes_is_imported_or_called() -> None:
    words = ("pickle", "eval(", "exec(", "__import__", "os.system", "subprocess", "allow_pickle",
             "marshal", "shelve", "enable_load_extension")  # fmt: skip
    for file in SOURCE.glob("*.py"):
        text = file.read_text()
        assert not [word for word in words if word in text], file.name


def test_a_file_that_another_program_switched_to_write_ahead_logging(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Study.create(path, ["a", "b"], "b", policy="random", seed=1).close()
    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode = wal").fetchone() == ("wal",)
    for _ in range(2):  # nothing is left behind that would make the second time another one
        with pytest.raises(StudyError, match="write-ahead logging by another program"):
            Study.open(path)
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"]
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
    with Study.open(path) as study:
        assert study.verify().ok
