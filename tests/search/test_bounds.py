"""The bound at the root of the tree lies above everything that is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from expected import expected_reward

from causalarms.search import Constraints
from causalarms.search.bounds import find_ranges, options_at_root, unknown_ranges, upper
from causalarms.search.problem import Posed, pose


@pytest.mark.parametrize("regimes", [2, 3])
@pytest.mark.parametrize("at_most", [1, 2, 3, None])
def test_no_allowed_intervention_exceeds_the_bound(regimes: int, at_most: int | None) -> None:
    rng = np.random.default_rng(1)
    n = 6
    constraints = Constraints([regimes] * n, at_most=at_most)
    rows = constraints.interventions()
    for _ in range(60):
        weights = np.triu(rng.normal(size=(regimes, n, n)), 1)
        mean, order = rng.normal(size=(regimes, n)), np.arange(n)
        problem = pose(Posed(weights, mean, order, n - 1, constraints.rules, False))
        system, limit = problem.system, problem.limit
        ranges, options = unknown_ranges(problem), options_at_root(problem, True)
        find_ranges(problem, ranges, 50)
        best = expected_reward(weights, mean, rows, order, n - 1).max()
        for price in (0.0, 0.3, 2.0):
            bound, _ = upper(system, ranges, options, problem.root.copy(), n - 1, 0.0, limit, price)
            if at_most is not None or price == 0.0:
                assert bound >= best - 1e-9
