"""`demo` and `simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import run

from causalarms.simulation import Experiment
from causalarms.study.learner import chosen_policy


def test_demo_writes_what_it_says(tmp_path: Path) -> None:
    outcome = run("demo", "--out", tmp_path, "--rounds", 300)
    assert outcome.code == 0
    assert outcome.err == ""  # nothing moves off a terminal
    assert "Best intervention found by posterior" in outcome.out
    assert "  it is the true best\n" in outcome.out or "the true best: switch" in outcome.out
    for name in ("posterior (is told nothing)", "CSL-UCB (is told the rounds)", "LinSEM-TS"):
        assert name in outcome.out
    for name in ("regret.png", "optimal_share.png", "graph.png", "graph.json", "system.json"):
        assert (tmp_path / name).stat().st_size > 100


def test_demo_json_says_the_same(tmp_path: Path) -> None:
    record = json.loads(run("demo", "--out", tmp_path, "--rounds", 300, "--json").out)
    regret = {p["policy"]: p["regret"] for p in record["policies"]}
    assert regret["linsem-ts"] < regret["ucb"]
    assert list(regret) == ["posterior", "csl-ucb", "ucb", "linsem-ts", "linsem-quantile"]
    assert regret["posterior"] < regret["csl-ucb"] < regret["ucb"]
    found = record["found"]
    assert found["expected"] <= record["best"]["expected"]
    equal = found["expected"] == pytest.approx(record["best"]["expected"], rel=1e-9)
    assert record["best"]["is_equal"] == equal
    assert found["low"] <= found["predicted"] <= found["high"]
    assert 0 < found["probability"] <= 1
    assert all(0.5 < edge["probability"] <= 1 for edge in record["edges"])


def test_the_demo_plays_the_default_of_a_study() -> None:
    """Units are estimated and no mean is known: other units and offsets change no decision."""
    from causalarms.cli.demo import CONTESTANTS, fresh_policies

    name, settings = chosen_policy(None, None, changes=False)
    assert (CONTESTANTS[0].policy, CONTESTANTS[0].settings) == (name, settings)
    assert settings["noise_scale"] == "estimate"
    experiment = Experiment(n_nodes=3, horizon=200, contestants=CONTESTANTS)
    world = experiment.world(0)
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (30, 3))
    X = world.systems[0].sample(A, rng)
    plain, moved = (fresh_policies(experiment, world)[0] for _ in range(2))
    for a, x in zip(A, X, strict=True):
        plain.tell(a, x)
        moved.tell(a, 8.0 * (x + 1e3))
    one, other = (policy.suggest(np.random.default_rng(0)) for policy in (plain, moved))
    assert one.intervention.tolist() == other.intervention.tolist()
    assert other.mean == pytest.approx(8 * (one.mean + 1e3), rel=1e-9)


SMALL = ("--nodes", 3, "--horizon", 120, "--runs", 2, "--jobs", 1)


def test_simulate_compares_the_default_of_a_study_with_the_paper_s_policies() -> None:
    record = json.loads(run("simulate", *SMALL, "--json").out)
    named = [p["policy"] for p in record["policies"]]
    assert named == ["posterior", "csl-ucb", "ucb", "linsem-ts", "linsem-quantile"]
    assert "[default: posterior, csl-ucb," in " ".join(run("simulate", "--help").out.split())


def test_simulate_prints_a_table_and_json(tmp_path: Path) -> None:
    policies = ("--policy", "csl-ucb,hold=False,label=free", "--policy", "random")
    outcome = run("simulate", *SMALL, *policies, "--out", tmp_path)
    assert outcome.code == 0
    assert "free" in outcome.out
    assert (tmp_path / "regret.png").exists()
    record = json.loads(run("simulate", *SMALL, *policies, "--json").out)
    assert [p["policy"] for p in record["policies"]] == ["free", "random"]


def test_simulate_marks_what_was_not_compared_with_a_full_text() -> None:
    policies = ("--policy", "linsem-ucb,label=mine", "--policy", "random")
    lines = run("simulate", *SMALL, *policies).out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:3]] == ["mine *", "random"]
    assert lines[3].startswith("* linsem-ucb was written from an abstract")
    record = json.loads(run("simulate", *SMALL, *policies, "--json").out)
    assert [bool(p["remark"]) for p in record["policies"]] == [True, False]


@pytest.mark.parametrize("regimes", ["3", "1,3,2"])
def test_simulate_with_other_regimes(regimes: str, tmp_path: Path) -> None:
    policies = ("--policy", "posterior", "--policy", "csl-ucb", "--policy", "linsem-ts")
    changes = ("--changes", 80, "--changed", 1, "--policy", "posterior-cd")
    path = tmp_path / "results.jsonl"
    told = (*SMALL, "--regimes", regimes, *policies, *changes, "--results", path, "--json")
    record = json.loads(run("simulate", *told).out)
    assert record["settings"]["regimes"] == (3 if regimes == "3" else [1, 3, 2])
    regret = {p["policy"]: p["regret"] for p in record["policies"]}
    assert set(regret) == {"posterior", "csl-ucb", "linsem-ts", "posterior-cd"}
    other = run("simulate", *SMALL, *policies, *changes, "--results", path)
    assert other.code == 1
    assert "they differ in regimes" in other.err


def test_results_say_that_regimes_are_as_in_the_paper() -> None:
    record = json.loads(run("simulate", *SMALL, "--policy", "random", "--json").out)
    assert record["settings"]["regimes"] is None


@pytest.mark.parametrize("policy", ["ga-lcb", "golem-mab", "golem-mab-cd", "dagma-mab"])
def test_policies_of_two_regimes_refuse_others(policy: str) -> None:
    outcome = run("simulate", *SMALL, "--regimes", "2,3,2", "--policy", policy)
    assert outcome.code == 1
    assert "needs two of every node" in outcome.err
    assert "node 'x1' has 3" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("regimes", "code", "message"),
    [
        ("2,3", 1, "regimes must be one number per node: 2 of 3"),
        ("0", 1, "regimes must be"),
        ("257", 1, "regimes must be"),
        ("2,,3", 2, "must be a number of regimes"),
        ("many", 2, "must be a number of regimes"),
        ("9" * 5000, 2, "must be a number of regimes"),
    ],
)
def test_wrong_regimes_are_refused(regimes: str, code: int, message: str) -> None:
    outcome = run("simulate", *SMALL, "--regimes", regimes, "--policy", "random")
    assert outcome.code == code
    assert message in " ".join(outcome.err.split())


def test_results_are_kept_and_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first = run("simulate", *SMALL, "--policy", "ucb", "--results", path, "--json")
    before = path.read_bytes()
    again = run("simulate", *SMALL, "--policy", "ucb", "--results", path, "--json")
    assert path.read_bytes() == before
    assert json.loads(first.out) == json.loads(again.out)
    other = run("simulate", *SMALL, "--policy", "ucb", "--seed", 1, "--results", path)
    assert other.code == 1
    assert "other settings (they differ in seed)" in other.err
    assert path.read_bytes() == before


def test_wrong_policies_are_refused_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    outcome = run("simulate", *SMALL, "--policy", "csl-ubc", "--results", path)
    assert (outcome.code, path.exists()) == (1, False)
    assert "did you mean 'csl-ucb'?" in outcome.err
    outcome = run("simulate", *SMALL, "--policy", "csl-ucb,jont=False")
    assert "did you mean 'joint'?" in outcome.err
    outcome = run("simulate", "--nodes", 3, "--horizon", 20, "--policy", "csl-ucb", "--runs", 1)
    assert outcome.code == 1
    assert "too short" in outcome.err
    outcome = run("simulate", "--nodes", 30, "--horizon", 200, "--policy", "ucb", "--runs", 1)
    assert outcome.code == 1
    assert "at most 24 nodes" in outcome.err
