"""Limits on sizes stand in one file, and the documentation states the same numbers."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from causalarms import limits
from causalarms.sem.regimes import as_interventions, regime_counts

ROOT = Path(__file__).parents[2]
SIZE = re.compile(r"(MAX|MOST|MANY|LARGEST)_(\w+_)?(NODES|EDGES|REGIMES|INTERVENTIONS|LISTED)")


def test_no_other_file_states_a_size() -> None:
    for path in (ROOT / "src" / "causalarms").rglob("*.py"):
        if path.name == "limits.py" and path.parent.name == "causalarms":
            continue
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign):
                names = [ast.unparse(target) for target in statement.targets]
                assert not any(SIZE.fullmatch(name) for name in names), f"{path}: {names}"


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("posterior.md", f"Up to {limits.MAX_EXACT_NODES} nodes all orders are summed"),
        ("posterior.md", f"Up to {limits.MAX_TABLE_NODES} nodes all interventions are compared"),
        ("posterior.md", f"at most 2^{limits.MAX_TABLE_NODES} interventions"),
        ("baselines.md", f"Beyond {limits.MAX_SCORED_NODES} nodes only candidates are scored"),
        ("when-not-to-use.md", f"scores all 2^N up to {limits.MAX_SCORED_NODES} nodes"),
        ("when-not-to-use.md", f"compare all up to {limits.MAX_OPTIMISTIC_NODES}. `ucb`"),
        ("baselines.md", f"are compared, up to {limits.MAX_OPTIMISTIC_NODES} nodes"),
        ("when-not-to-use.md", f"enumerate, up to {limits.MAX_ENUMERATED_NODES} nodes"),
    ],
)
def test_the_documentation_states_them(page: str, sentence: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert sentence in " ".join(text.split())


def test_a_node_has_as_many_regimes_as_a_byte_holds() -> None:
    counts = regime_counts(limits.MAX_REGIMES, 1)
    rows = np.arange(limits.MAX_REGIMES)[:, None]
    assert np.array_equal(as_interventions(rows, ("x",), counts), rows)
