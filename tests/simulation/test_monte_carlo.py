"""Repetitions: progress, going on where a file ends, and refusals before the first unit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from small_experiment import N_UNITS, OWN, RUNS, SMALL, reference, text

from causalarms.errors import DataError, ModelError
from causalarms.simulation.experiment import Contestant, Experiment
from causalarms.simulation.monte_carlo import monte_carlo

CHILD = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from small_experiment import RUNS, SMALL
from causalarms.simulation.monte_carlo import monte_carlo
monte_carlo(SMALL, runs=RUNS, path=sys.argv[1], n_jobs=1)
"""


def sorted_lines(path: Path) -> list[bytes]:
    return sorted(path.read_bytes().splitlines())


def test_two_processes_give_the_bits_of_one() -> None:
    assert text(monte_carlo(SMALL, runs=RUNS, n_jobs=2)) == text(reference())


def test_own_systems_noise_and_policies_give_the_same_bits_in_two_processes() -> None:
    one, two = (monte_carlo(OWN, runs=2, n_jobs=n) for n in (1, 2))
    assert text(one) == text(two)
    assert OWN.names == ["Mine", "random", "b"]
    assert one[0]["regret"] == one[2]["regret"] == one[4]["regret"]
    assert one[0]["told"]["policy"] == "small_experiment:Mine"


def test_records_come_by_policy_and_repetition() -> None:
    keys = [(r["policy"], r["repetition"]) for r in reference()]
    assert keys == [(c.name, i) for c in SMALL.contestants for i in range(RUNS)]
    assert len({r["regret"] for r in reference()}) == N_UNITS


def test_a_killed_run_goes_on_and_ends_with_the_same_file(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert text(monte_carlo(SMALL, runs=RUNS, path=whole, n_jobs=1)) == text(reference())
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(killed)])
    try:
        deadline = time.monotonic() + 60
        while n_lines(killed) < N_UNITS // 3:
            assert child.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    done = n_lines(killed) - 1
    assert 0 < done < N_UNITS
    calls: list[tuple[int, int]] = []
    records = monte_carlo(
        SMALL,
        runs=RUNS,
        path=killed,
        n_jobs=1,
        on_result=lambda n, total, _: calls.append((n, total)),
    )
    assert calls[0][0] in (done, done + 1)  # one more may have ended before the signal came
    assert calls[-1] == (N_UNITS, N_UNITS)
    assert text(records) == text(reference())
    assert sorted_lines(killed) == sorted_lines(whole)


def n_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_line_torn_by_a_kill_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    monte_carlo(SMALL, runs=3, path=path, n_jobs=1)
    whole = path.read_bytes()
    os.truncate(path, len(whole) - 100)
    calls: list[int] = []
    monte_carlo(SMALL, runs=3, path=path, n_jobs=1, on_result=lambda n, *_: calls.append(n))
    assert calls == [8, 9]
    assert path.read_bytes() == whole


def test_more_repetitions_go_on_from_fewer(tmp_path: Path) -> None:
    path = tmp_path / "more.jsonl"
    monte_carlo(SMALL, runs=2, path=path, n_jobs=1)
    calls: list[int] = []
    records = monte_carlo(
        SMALL, runs=4, path=path, n_jobs=1, on_result=lambda n, *_: calls.append(n)
    )
    assert calls == list(range(6, 13))
    expected = [r for r in reference() if r["repetition"] < 4]
    assert text(records) == text(expected)
    fewer = monte_carlo(SMALL, runs=1, path=path, n_jobs=1)
    assert [r["repetition"] for r in fewer] == [0, 0, 0]


def test_progress_is_told_from_the_start_to_the_end() -> None:
    calls: list[tuple[int, int, Any]] = []
    monte_carlo(SMALL, runs=1, n_jobs=1, on_result=lambda *told: calls.append(told))
    assert calls[0] == (0, 3, None)
    assert [(n, total) for n, total, _ in calls[1:]] == [(1, 3), (2, 3), (3, 3)]
    assert [r["policy"] for *_, r in calls[1:]] == ["csl-ucb", "linsem-ts", "ucb"]


def test_a_file_of_another_experiment_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    monte_carlo(SMALL, runs=1, path=path, n_jobs=1)
    before = path.read_bytes()
    other = Experiment(n_nodes=4, horizon=120, block=20, seed=4, contestants=SMALL.contestants)
    with pytest.raises(DataError, match=r"other settings \(they differ in seed\)"):
        monte_carlo(other, runs=1, path=path, n_jobs=1)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("contestant", "settings", "message"),
    [
        (Contestant("ucb"), {"runs": 0}, "runs must be an integer of at least 1, not 0"),
        (Contestant("ucb"), {"engine": "spark"}, "engine must be one of local, dask, not 'spark'"),
        (Contestant("ubc"), {}, "unknown policy 'ubc'; did you mean 'ucb'"),
        (Contestant("ucb", settings={"alpa": 1}), {}, "no setting 'alpa'; did you mean 'alpha'"),
        (Contestant("golem-mab"), {}, "120 rounds leaves nothing after 600"),
    ],
)
def test_wrong_settings_are_refused_before_the_first_unit(
    tmp_path: Path, contestant: Contestant, settings: dict[str, Any], message: str
) -> None:
    path = tmp_path / "never.jsonl"
    experiment = Experiment(n_nodes=4, horizon=120, contestants=(contestant,))
    with pytest.raises(ModelError, match=message):
        monte_carlo(experiment, path=path, **({"runs": 1, "n_jobs": 1} | settings))
    assert not path.exists()


def labelled(*contestants: Contestant) -> Experiment:
    return Experiment(n_nodes=3, horizon=100, contestants=contestants)


def test_policies_can_be_added_later(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    monte_carlo(labelled(Contestant("ucb")), runs=2, path=path, n_jobs=1)
    first = path.read_bytes()
    both = labelled(Contestant("ucb"), Contestant("random"))
    records = monte_carlo(both, runs=2, path=path, n_jobs=1)
    assert path.read_bytes().startswith(first)
    assert [r["policy"] for r in records] == ["ucb", "ucb", "random", "random"]


@pytest.mark.parametrize(
    "other", [Contestant("ucb", "a", {"alpha": 2.0}), Contestant("random", "a")]
)
def test_a_label_keeps_its_meaning(tmp_path: Path, other: Contestant) -> None:
    path = tmp_path / "results.jsonl"
    monte_carlo(labelled(Contestant("ucb", "a")), runs=1, path=path, n_jobs=1)
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"other settings for 'a'; give this one another label"):
        monte_carlo(labelled(other), runs=1, path=path, n_jobs=1)
    assert path.read_bytes() == before
