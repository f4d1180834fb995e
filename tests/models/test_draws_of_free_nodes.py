"""Draws in which a node has a mechanism per level of a factor, against the same told as regimes."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import causalarms.models.belief
import causalarms.models.draws
from causalarms.arrays import FloatArray, Interventions
from causalarms.models.belief import (
    Belief,
    edge_weights,
    level_by_level,
    likely_graph,
    recommend,
)
from causalarms.models.draws import most_optimistic, rank_of
from causalarms.posterior.base import Draws
from causalarms.posterior.missing import complete_rounds
from causalarms.search.constraints import Constraints
from causalarms.search.factors import Factors
from causalarms.statistics.units import Units

N, COLUMNS, REWARD = 5, 3, 4  # nodes; columns of the factors "three" (two of them) and "two"
M = N + COLUMNS
THREE, TWO = N, N + 2
LEVELS = (3, 2)
NODE = 2  # free in some draws; node 1 is in others, by the other factor
REGIMES = np.array([1] * N + [3, 3, 2])
CODES = np.array([[-1.0, 0.3, 0.0], [0.0, -0.6, 1.0], [1.0, 0.3, 0.0]])


class Told(NamedTuple):
    """The same n draws and settings, with `by` and with regimes of the nodes' own."""

    free: Draws
    own: Draws
    rows: Interventions  # all, as `free` has them
    own_rows: Interventions
    allowed: Constraints
    own_allowed: Constraints


def told(n: int, seed: int = 0, **rules: Any) -> Told:
    """In a third of the draws node 2 is free by "three", and in another third node 1 by "two"."""
    rng = np.random.default_rng(seed)
    by = np.tile(np.arange(M), (n, 1))
    by[::3, NODE], by[1::3, 1] = THREE, TWO
    order = np.array([[*range(N, M), *rng.permutation(N)] for _ in range(n)])
    place = np.argsort(order)
    before = place[:, None, :, None] < place[:, None, None, :]
    adjacency = (rng.random((n, 3, M, M)) < 0.6) & before
    adjacency[:, :, :, N:] = False
    adjacency[:, 1:] &= np.arange(M) == -1
    weights, intercept = np.zeros((n, 3, M, M)), np.zeros((n, 3, M))
    noise_std = np.zeros((n, 3, M))
    for d, node in product(range(n), range(N)):
        count = REGIMES[by[d, node]]
        adjacency[d, :count, :, node] = (rng.random((count, M)) < 0.6) & before[d, 0, :, node]
        intercept[d, :count, node] = rng.normal(size=count)
        noise_std[d, :count, node] = rng.uniform(0.5, 2.0, count)
    weights[adjacency] = rng.normal(size=adjacency.sum())
    intercept[:, :, N:] = CODES
    free = Draws(order, adjacency, weights, intercept, noise_std, by)
    # as if nodes 1 and 2 had regimes of their own in all draws, equal ones where they are not free
    own = Draws(order, adjacency.copy(), weights.copy(), intercept.copy(), noise_std.copy())
    for d, (node, factor) in product(range(n), ((NODE, THREE), (1, TWO))):
        if by[d, node] == node:
            for regime in range(REGIMES[factor]):
                own.adjacency[d, regime, :, node] = adjacency[d, 0, :, node]
                own.weights[d, regime, :, node] = weights[d, 0, :, node]
                own.intercept[d, regime, node] = intercept[d, 0, node]
                own.noise_std[d, regime, node] = noise_std[d, 0, node]
    of_both = [Factors.acting_on(levels=LEVELS, nodes=[[*more, N, N + 1], [*less, TWO]], n_nodes=M)
               for more, less in (([], []), ([NODE], [1]))]  # fmt: skip
    allowed, own_allowed = (Constraints(f.regimes, factors=f, **rules) for f in of_both)
    listed = allowed.interventions(), own_allowed.interventions()
    return Told(free, own, *listed, allowed, own_allowed)


def belief(draws: Draws) -> Belief:
    none = np.zeros((3, M), dtype=np.int64)
    return Belief(draws, np.zeros((3, M, M)), none, none, weighs_graphs=True)


def one_by_one(draws: Draws, rows: Interventions) -> FloatArray:
    """Expected values by a plain loop, (n, rows, M)."""
    assert draws.by is not None
    found = np.zeros((len(draws.order), len(rows), M))
    for d, (k, row) in product(range(len(draws.order)), enumerate(rows)):
        for node in draws.order[d]:
            level = row[draws.by[d, node]]
            value = draws.intercept[d, level, node]
            for parent in range(M):
                value += draws.weights[d, level, parent, node] * found[d, k, parent]
            found[d, k, node] = value
    return found


def test_expected_values_and_rewards() -> None:
    case = told(12)
    both = belief(case.free), belief(case.own)
    found = both[0].expected(case.rows)
    np.testing.assert_allclose(found, one_by_one(case.free, case.rows), atol=1e-12)
    np.testing.assert_array_equal(found, both[1].expected(case.own_rows))
    np.testing.assert_array_equal(both[0].rewards(case.rows, REWARD), found[:, :, REWARD])
    part = belief(both[0].draws.first(5))
    np.testing.assert_array_equal(part.expected(case.rows), found[:5])
    factors = np.append(np.arange(1.0, N + 1.0) * -1, np.ones(COLUMNS))
    np.testing.assert_allclose(both[0].scaled(factors).expected(case.rows), found * factors)


def test_the_best_and_how_sure_it_is() -> None:
    for seed in range(4):
        case = told(12, seed, cost=[(0.0, 0.3, 0.1), (0.0, 0.2)])
        found = recommend(belief(case.free), REWARD, case.allowed, tolerance=0.1)
        same = recommend(belief(case.own), REWARD, case.own_allowed, tolerance=0.1)
        assert (case.allowed.levels(found.intervention[None])).tolist() == (
            case.own_allowed.levels(same.intervention[None])
        ).tolist()
        assert found[1:] == same[1:]


@pytest.mark.parametrize("limits", [{}, {"MAX_ROWS": 1}], ids=["rows", "search"])
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"at_most": 1, "cost": [(0.0, 0.3, 0.1), (0.0, 0.2)]},
        {"forbidden": [{0: 2, 1: 1}], "allowed": {THREE: [0, 2]}},
    ],
    ids=["free", "costs", "forbidden"],
)
def test_optimism(
    limits: dict[str, int], rules: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(causalarms.models.draws, name, value)
    for seed in range(5):
        case = told(12, seed, **rules)
        table = one_by_one(case.free, case.rows)[:, :, REWARD]
        upper = np.sort(table, axis=0)[-rank_of(0.9, 12)] - case.allowed.cost(case.rows)
        found = most_optimistic(case.free, REWARD, 0.9, case.allowed)
        at = int(np.flatnonzero((case.rows == found.intervention).all(axis=1))[0])
        assert upper[at] == pytest.approx(upper.max())
        cost = case.allowed.cost(case.rows[at : at + 1])[0]
        assert (found.upper - cost, found.mean) == pytest.approx((upper[at], table[:, at].mean()))


def test_the_search_finds_the_best_of_every_draw() -> None:
    for seed in range(5):
        case = told(12, seed, cost=[(0.0, 0.3, 0.1), (0.0, 0.2)], at_most=1)
        net = one_by_one(case.free, case.rows)[:, :, REWARD] - case.allowed.cost(case.rows)
        found = causalarms.models.belief.best_of_each(case.free, REWARD, case.allowed)
        for d, row in enumerate(found):
            at = int(np.flatnonzero((case.rows == row).all(axis=1))[0])
            assert net[d, at] == pytest.approx(net[d].max())


def test_nodes_that_follow_others_have_their_regimes_and_no_more_levels() -> None:
    case = told(1, cost=[(0.0, 0.3, 0.1), (0.0, 0.2)], allowed={NODE: [0], THREE: [0, 1]})
    by = tuple(case.free.by[0].tolist()) if case.free.by is not None else ()
    seen = case.allowed.following(by)
    rows = seen.interventions()
    np.testing.assert_array_equal(rows, case.allowed.interventions()[:, by])
    np.testing.assert_array_equal(seen.cost(rows), case.allowed.cost(case.rows))
    assert case.allowed.following(tuple(range(M))) is case.allowed


def test_units_of_the_data() -> None:
    """Intercepts of the levels of a free node stay, and those of missing regimes are zero."""
    case = told(12)
    rng = np.random.default_rng(1)
    units = Units(
        shift=np.append(rng.normal(size=N), np.zeros(COLUMNS)),
        scale=np.append(rng.uniform(0.5, 2.0, N), np.ones(COLUMNS)),
    )
    moved = case.free.in_units_of_data(units, REGIMES)
    found = belief(moved).expected(case.rows)
    wanted = belief(case.free).expected(case.rows) * units.scale + units.shift
    np.testing.assert_allclose(found, wanted)
    assert case.free.by is not None
    for d, node in product(range(12), range(N)):
        count = REGIMES[case.free.by[d, node]]
        assert moved.intercept[d, :count, node].all()
        assert not moved.intercept[d, count:, node].any()


def test_context_leaves_free_nodes_free() -> None:
    case = told(9)
    draws = case.free._replace(weights=case.free.weights.copy())
    draws.weights[:, :, :, 0] = 0.0  # node 0 is context
    found = draws.given_context([0], {0: 3.0})
    np.testing.assert_array_equal(found.by, draws.by)
    wanted = draws._replace(intercept=draws.intercept.copy())
    wanted.intercept[:, :, 0] = 3.0
    np.testing.assert_allclose(belief(found).expected(case.rows), one_by_one(wanted, case.rows))


def test_weights_are_averaged_over_draws_and_levels() -> None:
    case = told(12)
    found = edge_weights(*level_by_level(case.free, REGIMES))
    by = case.free.by
    assert by is not None
    for parent, node in product(range(M), range(N)):
        values, parts = [], []
        for d in range(12):
            count = 1 if by[d, node] == node else REGIMES[by[d, node]]
            for level in range(count):
                if case.free.adjacency[d, level, parent, node]:
                    values.append(case.free.weights[d, level, parent, node])
                    parts.append(1 / count)
        mean = np.average(values, weights=parts) if values else 0.0
        assert found.mean[0, parent, node] == pytest.approx(mean)
        squares = (np.array(values) - mean) ** 2
        variance = np.average(squares, weights=parts) if values else 0.0
        assert found.deviation[0, parent, node] == pytest.approx(np.sqrt(variance))
    plain = belief(case.free._replace(by=None))
    same = belief(case.free._replace(by=np.tile(np.arange(M), (12, 1))))
    for made in (plain, same):
        made.edge_probability[0][np.triu_indices(N, 1)] = 0.9
    names = tuple(f"x{i}" for i in range(M))
    one, other = (likely_graph(made, names, REGIMES) for made in (plain, same))
    np.testing.assert_array_equal(one.weights, other.weights)


def test_missing_values_are_drawn_as_with_regimes() -> None:
    """Node 2 follows in one regime what it would follow in three: the same values."""
    case, rng = told(1), np.random.default_rng(3)
    at = rng.integers(0, len(case.rows), 30)
    values = np.zeros((30, M))
    values[:, :N] = rng.normal(size=(30, N))
    values[:, :N][rng.random((30, N)) < 0.4] = np.nan
    values[:, N:] = CODES[case.rows[at][:, N:], np.arange(COLUMNS)]
    taught, bounds = np.ones((30, M), dtype=bool), np.array([[-1e9] * M, [1e9] * M])
    found = []
    for draws, rows in ((case.free, case.rows), (case.own, case.own_rows)):
        numbers = np.random.default_rng(4)
        found.append(complete_rounds(values, rows[at], taught, draws, numbers, bounds))
    assert not np.isnan(found[0]).any()
    np.testing.assert_allclose(found[0], found[1], atol=1e-10)
