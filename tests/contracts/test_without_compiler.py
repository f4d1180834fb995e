"""Kernels as plain Python (NUMBA_DISABLE_JIT=1, to step through) play the same rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from test_golden_traces import GOLDEN

from causalarms.policies.registry import policy_names

HERE = Path(__file__).parent
ROUNDS = dict.fromkeys(policy_names(), 48)
ROUNDS |= dict.fromkeys(("golem-mab-cd", "dagma-mab", "explore-then-commit"), 40)
# what they learn with is slow without a compiler
ROUNDS |= {"posterior sampled": 20}
PLAY = """
import json, sys, warnings
warnings.simplefilter("error")
import policy_cases
from causalarms.search.best import solve
assert not hasattr(solve, "py_func")
traces = {}
for label, policy_cases.N_ROUNDS in json.loads(sys.argv[1]).items():
    rounds = policy_cases.history(label)
    traces[label] = [sum(int(bit) << place for place, bit in enumerate(a)) for a, _ in rounds]
print(json.dumps(traces))
"""


def test_the_rounds_of_every_policy_without_a_compiler() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PLAY, json.dumps(ROUNDS)],
        cwd=HERE,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    for label, played in json.loads(told.stdout).items():
        assert "".join(f"{digit:x}" for digit in played) == GOLDEN[label][: ROUNDS[label]], label
