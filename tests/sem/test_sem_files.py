"""Systems as JSON files: the same system back, and a message for every broken file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms import LinearSEM, random_sem
from causalarms.errors import CausalArmsError, ModelError


@given(st.integers(1, 7), st.integers(0, 10**6), st.booleans())
def test_round_trip_through_text(n_nodes: int, seed: int, per_regime: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = (2, n_nodes) if per_regime else (n_nodes,)
    sem = random_sem(n_nodes, seed=seed).replace(
        noise_mean=rng.normal(size=shape),
        noise_std=rng.uniform(0.1, 2, shape),
        nodes=[f"Größe {i}" for i in range(n_nodes)],
        reward=int(rng.integers(n_nodes)),
    )
    again = LinearSEM.from_dict(json.loads(json.dumps(sem.to_dict())))
    assert again == sem
    assert again.noise_mean.shape == shape
    assert again.order.tolist() == sem.order.tolist()


def test_round_trip_through_a_file(tmp_path: Path) -> None:
    sem = random_sem(5, seed=2)
    path = sem.save(tmp_path / "new folder" / "system.json")
    assert LinearSEM.load(path) == sem
    assert [p.name for p in path.parent.iterdir()] == ["system.json"]


def test_a_refused_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(CausalArmsError, match=r"cannot write .*folder\.json"):
        random_sem(3, seed=0).save(tmp_path / "folder.json")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read a system from"),
        ("{", "cannot read a system from"),
        ("[1, 2]", "must hold a JSON object"),
        ("{}", "format is None"),
        ('{"reward": "a", "reward": "b"}', "the key 'reward' is given twice"),
        ('{"format": "other/1"}', "format is 'other/1'"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "system.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=message):
        LinearSEM.load(path)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"absent\.json"):
        LinearSEM.load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": "text"}, "malformed"),
        ({"weights": [[1.0]]}, "malformed.*shape"),
        ({"weights": [[[0, 1], [1, 0]]] * 2}, "cycle a -> b -> a"),
        ({"nodes": ["a", "a"]}, "'a' is used twice"),
        ({"reward": "c"}, "there is no node 'c'"),
        ({"noise_std": [1, -1]}, "noise_std of node 'b' is negative"),
        ({"order": [0, "x"]}, "malformed"),
    ],
)
def test_malformed_contents(change: dict[str, Any], message: str) -> None:
    sem = LinearSEM(weights=np.zeros((2, 2, 2)), nodes=["a", "b"])
    with pytest.raises(ModelError, match=message):
        LinearSEM.from_dict(sem.to_dict() | change)


@pytest.mark.parametrize("key", ["weights", "noise_mean", "noise_std", "nodes", "reward"])
def test_a_missing_part_is_named(key: str) -> None:
    record = random_sem(2, seed=0).to_dict()
    del record[key]
    with pytest.raises(ModelError, match=f"the system lacks {key}"):
        LinearSEM.from_dict(record)
