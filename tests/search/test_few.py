"""Few interventions are compared one by one: the answer of the search, and nothing compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_search_by_enumeration import World, factors, rules, world

from causalarms.errors import InfeasibleError
from causalarms.limits import MAX_FEW
from causalarms.search import Constraints, Factors, best_intervention
from causalarms.search import best as module
from causalarms.search.best import Best, best_of_few
from causalarms.search.factors import Levels
from causalarms.search.problem import Posed

FIRST_USE = """
from causalarms import random_sem
print(random_sem(4, seed=1).best_intervention().tolist())
"""


def searched(monkeypatch: pytest.MonkeyPatch, of: World, constraints: Constraints) -> Best:
    with monkeypatch.context() as patched:
        patched.setattr(module, "best_of_few", lambda posed: None)
        return best_intervention(*of, constraints=constraints)


@pytest.mark.parametrize("seed", range(150))
def test_the_search_says_the_same(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_nodes, rounded = int(rng.integers(1, 8)), bool(rng.random() < 0.3)
    regimes = [int(k) for k in rng.integers(1, 4, n_nodes)]
    over = Factors.per_node(regimes)
    if rng.random() < 0.5:
        over, regimes = factors([1] * n_nodes, rng)
    of = world(regimes, rng, rounded)
    keywords = rules(over, regimes, rng) | {"cost": None}
    try:
        constraints = Constraints(regimes, factors=over, **keywords)
    except InfeasibleError:
        return
    found = best_intervention(*of, constraints=constraints)
    expected = searched(monkeypatch, of, constraints)
    assert found.levels.tolist() == expected.levels.tolist()
    assert found.exact
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-13, atol=1e-13)


def test_values_are_those_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit, but where the search finds them in its tree, which adds in another order."""
    same = 0
    for seed in range(100):
        regimes = [2] * (2 + seed % 7)
        of, constraints = world(regimes, np.random.default_rng(seed)), Constraints(regimes)
        found, expected = (
            best_intervention(*of, constraints=constraints).value,
            searched(monkeypatch, of, constraints).value,
        )
        assert found == pytest.approx(expected, rel=1e-14)
        same += found == expected
    assert same > 95


def test_many_or_paid_ones_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[bool] = []

    def spied(posed: Posed) -> tuple[Levels, float, int] | None:
        found = best_of_few(posed)
        refused.append(found is None)
        return found

    monkeypatch.setattr(module, "best_of_few", spied)
    for n_nodes in (8, 9):
        weights = np.triu(np.ones((2, n_nodes, n_nodes)), 1)
        best_intervention(weights, [1.0] * n_nodes, range(n_nodes), n_nodes - 1)
    paid = Constraints([2], cost=[[0.0, 1.0]])
    best_intervention(np.zeros((2, 1, 1)), 1.0, [0], 0, constraints=paid)
    assert refused == [False, True, True]
    assert MAX_FEW == 2**8


def test_the_first_answer_compiles_nothing(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-c", FIRST_USE], env=environment, capture_output=True, text=True
    )
    assert told.stdout.startswith("[")
    assert not list(tmp_path.rglob("*.nbc"))
