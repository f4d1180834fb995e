"""Whatever is wrong with a snapshot: it is ignored, that is said, and the log is replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import hostile_snapshots

from causalarms.policies.registry import POLICIES


def test_every_policy_of_a_study_is_attacked() -> None:
    attacked = {label.split(",")[0].split(" ")[0] for label in hostile_snapshots.CASES}
    assert attacked == set(POLICIES) - {"oracle"}


def test_no_wrong_snapshot_is_used_and_none_ends_the_process() -> None:
    done = subprocess.run(
        [sys.executable, hostile_snapshots.__file__, *hostile_snapshots.CASES],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["label"] for record in found] == list(hostile_snapshots.CASES)
    assert {record["label"]: record["used"] for record in found if record["used"]} == {}
    assert all(record["tried"] > 30 for record in found)
