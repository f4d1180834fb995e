"""`causalarms learn` from tables in which nodes have one, two or more regimes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run

from causalarms import CSL, GraphPosterior, LinearSEM, random_sem

NODES = ("fixed", "two", "three", "y")
COUNTS = [1, 2, 3, 2]


def rounds(n: int = 240) -> tuple[LinearSEM, Any, Any]:
    sem = random_sem(4, seed=5, regimes=COUNTS).replace(nodes=NODES)
    rng = np.random.default_rng(0)
    regimes = np.column_stack([rng.integers(0, k, n) for k in COUNTS])
    return sem, sem.sample(regimes, rng), regimes


def write(path: Path, values: Any, regimes: Any, *, switches: tuple[str, ...] = NODES[1:]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*NODES, *(f"do:{node}" for node in switches)])
        flags = regimes[:, [NODES.index(node) for node in switches]]
        writer.writerows(
            [*row, *flag] for row, flag in zip(values.tolist(), flags.tolist(), strict=True)
        )
    return path


def test_as_many_regimes_as_are_seen(tmp_path: Path) -> None:
    _, values, regimes = rounds()
    data = write(tmp_path / "data.csv", values, regimes)
    found = json.loads(run("learn", data, "--json").out)
    assert found["regimes"] == dict(zip(NODES, COUNTS, strict=True))
    expected = GraphPosterior(noise_scale="estimate").fit(
        values, interventions=regimes, regimes=COUNTS
    )
    probability = list(found["edge_probability"].values())
    np.testing.assert_allclose(probability, expected.edge_probability_, atol=1e-9)
    assert list(found["edge_probability"]) == ["natural", "regime 1", "regime 2"]
    assert found["unknown"] == []
    of_fixed = [check for check in found["checks"] if check["node"] == "fixed"]
    assert [(check["regime"], check["n_samples"]) for check in of_fixed] == [("natural", 240)]
    shown = run("learn", data)
    assert "regimes: three 3" in shown.out
    assert "never switched, one mechanism each, learned from all rounds: fixed" in shown.out


def test_csl_by_name_learns_them_too(tmp_path: Path) -> None:
    _, values, regimes = rounds()
    data = write(tmp_path / "data.csv", values, regimes)
    found = json.loads(run("learn", data, "--method", "csl", "--json").out)
    expected = CSL().fit(values, interventions=regimes, regimes=COUNTS)
    assert len(found["edges"]) == expected.adjacency_.sum()
    assert found["regimes"]["three"] == 3


def test_all_outputs(tmp_path: Path) -> None:
    _, values, regimes = rounds()
    data = write(tmp_path / "data.csv", values, regimes)
    targets = [tmp_path / f"g{end}" for end in (".json", ".csv", ".graphml", ".dot", ".png")]
    outcome = run("learn", data, *[part for t in targets for part in ("--out", t)])
    assert (outcome.code, outcome.err) == (0, "")
    assert all(target.stat().st_size > 100 for target in targets)
    saved = json.loads(targets[0].read_text())
    assert saved["regimes"]["fixed"] == ["natural"]
    assert saved["regimes"]["three"] == ["natural", "regime 1", "regime 2"]


def test_regimes_that_are_told(tmp_path: Path) -> None:
    _, values, regimes = rounds()
    data = write(tmp_path / "data.csv", values, regimes)
    told = ("--regimes", "three=4", "--regimes", "fixed=2", "--json")
    found = json.loads(run("learn", data, *told).out)
    assert found["regimes"] == {"fixed": 2, "two": 2, "three": 4, "y": 2}
    unknown = {(mechanism["regime"], mechanism["node"]) for mechanism in found["unknown"]}
    assert unknown == {("regime 1", "fixed"), ("regime 3", "three")}


@pytest.mark.parametrize(
    ("told", "code", "message"),
    [
        ("three=2", 1, "of node 'three': regime 2 is neither 0 (natural) nor 1"),
        ("three=1", 1, "of node 'three': regime"),
        ("four=2", 1, "there is no node 'four'"),
        ("three", 2, "'three' is not of the form NODE=K"),
        ("three=", 2, "is not of the form NODE=K"),
        ("three=0", 2, "K from 1 to 256"),
        ("three=257", 2, "K from 1 to 256"),
        ("three=" + "9" * 5000, 2, "K from 1 to 256"),
        ("three=-3", 2, "is not of the form NODE=K"),
        ("three=3.0", 2, "is not of the form NODE=K"),
    ],
)
def test_regimes_that_cannot_be(tmp_path: Path, told: str, code: int, message: str) -> None:
    _, values, regimes = rounds(60)
    data = write(tmp_path / "data.csv", values, regimes)
    outcome = run("learn", data, "--regimes", told)
    assert outcome.code == code
    assert message in " ".join(outcome.err.split())
    assert "Traceback" not in outcome.err


def test_told_twice(tmp_path: Path) -> None:
    _, values, regimes = rounds(60)
    data = write(tmp_path / "data.csv", values, regimes)
    outcome = run("learn", data, "--regimes", "three=3", "--regimes", "three=4")
    assert outcome.code == 2
    assert "'three' is given twice" in outcome.err


@pytest.mark.parametrize("method", ["posterior", "csl"])
def test_a_table_without_switches(tmp_path: Path, method: str) -> None:
    sem = random_sem(4, seed=5).replace(nodes=NODES)
    values = sem.sample(np.zeros((200, 4), dtype=int), np.random.default_rng(0))
    data = write(tmp_path / "data.csv", values, np.zeros((200, 4), dtype=int), switches=())
    outcome = run("learn", data, "--method", method, "--json", "--out", tmp_path / "g.png")
    found = json.loads(outcome.out)
    assert outcome.code == 0
    assert found["regimes"] == dict.fromkeys(NODES, 1)
    assert found["unknown"] == []
    assert {edge["regime"] for edge in found["edges"]} == {"natural"}
    assert all(check["n_samples"] == 200 for check in found["checks"])
    assert found["left_out"] == []  # rows; edges that were given up are said elsewhere
    assert ("left_out_edges" in found) == (method == "posterior")
    assert any("no node's regime varies over the 200 rows" in text for text in found["warnings"])
    assert not any("these mechanisms are unknown" in text for text in found["warnings"])


def test_nodes_that_were_never_switched_are_named(tmp_path: Path) -> None:
    _, values, regimes = rounds()
    regimes = regimes * [0, 0, 1, 1]
    data = write(tmp_path / "data.csv", values, regimes, switches=("three", "y"))
    found = json.loads(run("learn", data, "--json").out)
    assert found["regimes"] == {"fixed": 1, "two": 1, "three": 3, "y": 2}
    assert any("the regime of 'fixed', 'two' never varies" in text for text in found["warnings"])


def test_methods_of_two_regimes_refuse_more(tmp_path: Path) -> None:
    _, values, regimes = rounds(60)
    data = write(tmp_path / "data.csv", values, regimes)
    for method in ("golem", "dagma"):
        outcome = run("learn", data, "--method", method)
        assert outcome.code == 1
        assert f"node 'three' has 3 regimes; {method} knows two" in outcome.err
