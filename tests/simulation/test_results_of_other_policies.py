"""A results file takes further policies, but no other meaning of a label it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalarms.errors import DataError
from causalarms.simulation import Contestant, Experiment, monte_carlo


def experiment(*contestants: Contestant) -> Experiment:
    return Experiment(n_nodes=3, horizon=100, contestants=contestants)


def test_policies_can_be_added_later(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    monte_carlo(experiment(Contestant("ucb")), runs=2, path=path, n_jobs=1)
    first = path.read_bytes()
    both = experiment(Contestant("ucb"), Contestant("random"))
    records = monte_carlo(both, runs=2, path=path, n_jobs=1)
    assert path.read_bytes().startswith(first)
    assert [r["policy"] for r in records] == ["ucb", "ucb", "random", "random"]


@pytest.mark.parametrize(
    "other", [Contestant("ucb", "a", {"alpha": 2.0}), Contestant("random", "a")]
)
def test_a_label_keeps_its_meaning(tmp_path: Path, other: Contestant) -> None:
    path = tmp_path / "results.jsonl"
    monte_carlo(experiment(Contestant("ucb", "a")), runs=1, path=path, n_jobs=1)
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"other settings for 'a'; give this one another label"):
        monte_carlo(experiment(other), runs=1, path=path, n_jobs=1)
    assert path.read_bytes() == before
