"""What every policy played before the program was rebuilt: it still does, round by round.

data/golden_traces.json holds, for every case of policy_cases.py, one hexadecimal digit per round:
the switches of the four nodes. A change of a trace is a change of behaviour and needs a reason,
which is given here. Traces of new cases are added by

    python tests/contracts/test_golden_traces.py

Changed: the five cases of `posterior` that are not told the size of the noise. They begin with 4
balanced rounds instead of 8 random ones and sum over several sizes of the noise.

Renamed: `csl-ucb` and `csl-ucb-cd` learn the regimes apart, as the paper does. What they played
when they gave all regimes one order is what `csl-ucb-joint` and `csl-ucb-joint-cd` play; the trace
of `csl-ucb` is that of the former case `csl-ucb literal`.

Changed: `posterior-cd`. A mechanism is compared with its own earlier scores alone, and its alarm
level is not divided by an assumed overshoot, so that the rate of false alarms is guaranteed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from policy_cases import LABELS, history

TRACES = Path(__file__).parent / "data" / "golden_traces.json"
GOLDEN: dict[str, str] = json.loads(TRACES.read_text())


def trace(label: str) -> str:
    return "".join(
        f"{sum(int(bit) << place for place, bit in enumerate(a)):x}" for a, _ in history(label)
    )


@pytest.mark.parametrize("label", LABELS)
def test_same_rounds_as_before(label: str) -> None:
    assert label in GOLDEN, "a new case has no trace yet: run this file as a program"
    assert trace(label) == GOLDEN[label]


if __name__ == "__main__":
    new = {label: trace(label) for label in LABELS if label not in GOLDEN}
    TRACES.write_text(json.dumps(GOLDEN | new, indent=1))
