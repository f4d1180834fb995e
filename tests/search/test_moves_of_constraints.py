"""What constraints say about single regimes, neighbours and prices, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms.search.constraints import Constraints
from causalarms.search.factors import Factors

TIED = Factors.acting_on(levels=[3, 2, 2], nodes=[[0, 1], [2], [1]], n_nodes=4)
CASES = {
    "free": Constraints([2, 3, 1]),
    "at most one": Constraints([2, 3, 2], at_most=1),
    "forbidden": Constraints([2, 3, 2], forbidden=[{0: 1, 1: [1, 2]}, {2: 1}]),
    "never": Constraints([2, 3, 2], allowed={1: [0, 2]}),
    "tied": Constraints(TIED.regimes, factors=TIED, at_most=2, forbidden=[{0: 2, 1: 1}]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_regime_is_reached_if_an_allowed_intervention_has_it(name: str) -> None:
    allowed = CASES[name]
    rows = allowed.interventions()
    for node, count in enumerate(allowed.regimes):
        for regime in range(count):
            assert allowed.reaches(node, regime) == (rows[:, node] == regime).any()


@pytest.mark.parametrize("name", CASES)
def test_neighbours_are_allowed_and_one_factor_or_an_exchange_away(name: str) -> None:
    allowed = CASES[name]
    rows = allowed.interventions()
    levels = allowed.levels(rows)
    for row, own in zip(rows, levels, strict=True):
        found = {tuple(each) for each in allowed.neighbours(row).tolist()}
        for other, theirs in zip(rows, levels, strict=True):
            changed = np.flatnonzero(own != theirs)
            exchange = (
                allowed.at_most is not None
                and len(changed) == 2
                and sorted([bool(own[changed[0]]), bool(own[changed[1]])]) == [False, True]
                and sorted([bool(theirs[changed[0]]), bool(theirs[changed[1]])]) == [False, True]
            )
            assert (tuple(other.tolist()) in found) == (len(changed) == 1 or exchange)
        assert found <= {tuple(each) for each in rows.tolist()}


def test_prices_in_other_units() -> None:
    dear = Constraints([2, 3], cost=[[0, 2.0], [0, 1.0, 3.0]], at_most=1, forbidden=[{1: 2}])
    cheap = dear.priced(0.25)
    rows = dear.interventions()
    assert cheap.interventions().tolist() == rows.tolist()
    assert cheap.cost(rows).tolist() == (0.25 * dear.cost(rows)).tolist()
