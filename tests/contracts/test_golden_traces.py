"""What every policy played before the program was rebuilt: it still does, round by round.

data/golden_traces.json holds, for every case of policy_cases.py, one hexadecimal digit per round:
the switches of the four nodes. A change of a trace is a change of behaviour and needs a reason,
which is given here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from policy_cases import LABELS, history

GOLDEN: dict[str, str] = json.loads(
    (Path(__file__).parent / "data" / "golden_traces.json").read_text()
)


@pytest.mark.parametrize("label", LABELS)
def test_same_rounds_as_before(label: str) -> None:
    digits = "".join(
        f"{sum(int(bit) << place for place, bit in enumerate(a)):x}" for a, _ in history(label)
    )
    assert digits == GOLDEN[label]
