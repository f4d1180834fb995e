"""Looking ahead where there are too many interventions, or too many orders, to take them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import random_sem
from causalarms.models.lookahead import narrowed as module
from causalarms.models.lookahead.compared import net_rewards, rows_of
from causalarms.models.lookahead.drawn_sets import drawn_sets
from causalarms.models.lookahead.late import steady_arm
from causalarms.models.lookahead.model import Model, drawn_orders, model_of
from causalarms.models.lookahead.narrowed import climbed, first_draws, narrowed
from causalarms.models.lookahead.situation import Lookahead, Situation
from causalarms.models.over_draws import Systems, best_of_each
from causalarms.posterior.exact import Draws, ExactPosterior
from causalarms.posterior.orders import without
from causalarms.posterior.sampled import SampledPosterior
from causalarms.search.constraints import Constraints
from causalarms.sem.rewards import all_interventions
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.moments import Moments

N = 7
NONE = np.empty((0, N), dtype=np.uint8)
FREE = Constraints([2] * N)


def moments(n_nodes: int, n_rows: int, seed: int = 1) -> Moments:
    sem, rng = random_sem(n_nodes, seed=seed), np.random.default_rng(seed)
    A = rng.integers(0, 2, (n_rows, n_nodes))
    data = Dataset(n_nodes)
    data.append(sem.sample(A, rng), A)
    return Moments.of(data)


@pytest.fixture(scope="module")
def known() -> tuple[Model, Draws]:
    posterior = ExactPosterior(N, moments(N, 12))
    rng = np.random.default_rng(0)
    model = model_of(posterior, drawn_orders(posterior, rng, 6), rng, 6)
    return model, posterior.draw(rng, 10)


def asked(among: Constraints | None, recent: npt.NDArray[np.uint8] = NONE) -> Situation:
    regimes = np.full(N, 2)
    return Situation(N - 1, regimes, None, None, NONE, recent, 10, among)


@pytest.fixture
def searching(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if seven switches were too many to list."""
    monkeypatch.setattr(module, "MAX_AHEAD_LISTED", 4)


def has(rows: Any, row: Any) -> bool:
    return bool((np.asarray(rows) == np.asarray(row)).all(axis=1).any())


@pytest.mark.usefixtures("searching")
def test_what_may_be_best_is_among_the_rows(known: tuple[Model, Draws]) -> None:
    model, draws = known
    recent = np.zeros((2, N), dtype=np.uint8)
    recent[1, 3] = 1
    found = narrowed(asked(FREE, recent), model, first_draws(draws, 8))
    assert found.rows is not None
    assert found.cost is None
    rows = found.rows
    assert len(np.unique(rows, axis=0)) == len(rows) < 2**N
    for row in [*best_of_each(draws, N - 1)[:8], *recent]:
        assert has(rows, row)
    mean = net_rewards(model.weights, model.intercept, model.orders, asked(None)).mean(axis=0)
    best = all_interventions(N)[mean.argmax()]
    assert has(rows, best)
    for node in range(N):
        neighbour = best.copy()
        neighbour[node] ^= 1
        assert has(rows, neighbour)
    np.testing.assert_array_equal(rows_of(found, np.array([2, 0])), rows[[2, 0]])
    of_rows = net_rewards(draws.weights, draws.intercept, draws.order, found)
    of_all = net_rewards(draws.weights, draws.intercept, draws.order, asked(None))
    index = rows.astype(np.int64) @ (1 << np.arange(N - 1, -1, -1))
    np.testing.assert_allclose(of_rows, of_all[:, index], rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("searching")
def test_rows_are_allowed_and_cost_what_they_cost(known: tuple[Model, Draws]) -> None:
    model, draws = known
    dear = Constraints([2] * N, at_most=3, cost=[[0.0, 2.0]] * N)
    recent = np.vstack([np.ones((3, N)), np.eye(N)[:2]]).astype(np.uint8)
    found = narrowed(asked(dear, recent), model, first_draws(draws, 8))
    assert found.rows is not None
    assert found.cost is not None
    assert dear.allows(found.rows).all()
    np.testing.assert_allclose(found.cost, 2.0 * found.rows.sum(axis=1))
    free = net_rewards(model.weights, model.intercept, model.orders, found._replace(cost=None))
    net = net_rewards(model.weights, model.intercept, model.orders, found)
    np.testing.assert_allclose(net, free - found.cost)


def test_few_allowed_ones_are_all_compared(known: tuple[Model, Draws]) -> None:
    model, _ = known
    few = Constraints([2] * N, at_most=2)
    found = narrowed(asked(few), model)
    np.testing.assert_array_equal(found.rows, few.interventions())
    everything = asked(None)
    assert narrowed(everything, model) is everything


def test_a_climb_ends_where_no_neighbour_is_better(known: tuple[Model, Draws]) -> None:
    model, _ = known
    averages = Systems(model.orders, model.weights, model.intercept)
    mean = net_rewards(model.weights, model.intercept, model.orders, asked(None)).mean(axis=0)
    best = climbed(averages, N - 1, FREE, all_interventions(N)[[mean.argmin()]])
    value = mean[int(best @ (1 << np.arange(N - 1, -1, -1)))]
    for row in FREE.neighbours(best):
        assert mean[int(row @ (1 << np.arange(N - 1, -1, -1)))] <= value
    dear = Constraints([2] * N, cost=[[0.0, 1e6]] * N)
    assert not climbed(averages, N - 1, dear, np.ones((1, N), dtype=np.uint8)).any()
    fixed = Constraints([2] * N, allowed={i: [1] for i in range(N)})
    assert climbed(averages, N - 1, fixed, np.ones((1, N), dtype=np.uint8)).all()


@pytest.mark.parametrize(("lead", "kept"), [(0.5e-3, True), (0.1, False)])
def test_what_is_being_played_stays_unless_another_is_clearly_better(
    lead: float, kept: bool
) -> None:
    rows = all_interventions(N)[:4]
    recent = rows[[3, 1, 1, 0]]
    mean = np.array([0.0, 1.0 - lead, 1.0, 0.0])
    situation = asked(FREE, recent)._replace(rows=rows)
    assert (steady_arm(mean, situation, Lookahead()) == 1) is kept
    elsewhere = situation._replace(recent=all_interventions(N)[[9, 9, 1]])
    assert steady_arm(mean, elsewhere, Lookahead()) == 2


def test_sets_are_drawn_as_often_as_they_are_likely() -> None:
    """Against the exact posterior, which all candidates make the same; five standard errors."""
    n, order, points = 5, np.array([3, 0, 4, 1, 2]), 4000
    data = moments(n, 20, 4)
    exact = ExactPosterior(n, data)
    sampled = SampledPosterior(n, data, n_candidates=4, n_sweeps=20)
    sets = drawn_sets(sampled, order[None], np.random.default_rng(0), points)
    for position, node in enumerate(order):
        before = without(int(sum(1 << j for j in order[:position])), int(node))
        for regime in (0, 1):
            count = sets.n_named[0, regime, node]
            which, share = sets.which[0, regime, node, :count], sets.share[0, regime, node, :count]
            assert len(set(which)) == count
            assert share.sum() == pytest.approx(1.0)
            first, end = sets.first[regime, node], sets.end[regime, node]
            assert sorted(which) == list(range(first, end))
            chance = np.exp(exact.scores[regime, node] - exact.within[regime, node, before])
            named = np.zeros_like(chance)
            named[sets.parents[which]] = share
            inside = (np.arange(len(chance)) & ~before) == 0
            assert not named[~inside].any()
            named, chance = named[inside], chance[inside]
            error = np.sqrt(chance * np.maximum(1 - chance, 0.0) / points) + 1e-3
            assert (np.abs(named - chance) < 5 * error).all()
