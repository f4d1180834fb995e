"""The knowledge gradient, piece by piece, against computations that share no code with it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from causalarms import random_sem
from causalarms.arrays import FloatArray, IntArray
from causalarms.models.knowledge_gradient.losses import (
    Decisions,
    Learned,
    Outcome,
    PosteriorDraws,
    expected_rewards,
    losses_after,
    sample_outcome,
    score_parent_sets,
    update_order_weights,
)
from causalarms.models.knowledge_gradient.model import (
    Model,
    averages,
    copied,
    model_of,
    predictive_log_density,
    rank_one_update,
)
from causalarms.posterior.exact import ExactPosterior
from causalarms.posterior.orders import with_gap, without
from causalarms.sem.rewards import all_interventions, expected_values
from causalarms.statistics.dataset import Dataset, Moments

WEIGHT_SCALE, NOISE_SHAPE, INTERCEPT_SCALE = 1.5, 0.5, 100.0
SETTINGS: dict[str, dict[str, Any]] = {
    "means known": {"noise_mean": 0.3},
    "means unknown": {},
    "all of the noise known": {"noise_mean": 0.3, "noise_std": 1.2},
}
MANY = 4000  # points: an average over parent sets is exact to within 1 / MANY


def rounds(
    n_nodes: int, n_rows: int, seed: int, regimes: Any = None
) -> tuple[FloatArray, IntArray]:
    sem = random_sem(n_nodes, seed=seed, regimes=2 if regimes is None else regimes)
    rng = np.random.default_rng(seed)
    A = rng.integers(0, sem.regimes, (n_rows, n_nodes))
    return sem.sample(A, rng), A


def posterior_of(
    X: FloatArray, A: IntArray, regimes: Any = None, **settings: Any
) -> ExactPosterior:
    n_nodes = X.shape[1]
    counts = np.full(n_nodes, 2) if regimes is None else np.array(regimes)
    data = Dataset(n_nodes, regimes=counts)
    data.append(X, A)
    known: dict[str, Any] = {
        name: np.full((int(counts.max()), n_nodes), value) for name, value in settings.items()
    }
    return ExactPosterior(n_nodes, Moments.of(data), regimes=counts, **known)


def model_with(posterior: ExactPosterior, orders: Any, points: int) -> Model:
    return model_of(posterior, np.array(orders, dtype=np.int64), np.random.default_rng(0), points)


def outcome_of(model: Model, arm: Any, x: Any) -> Outcome:
    """A round that no parent set was told of."""
    n_sets = len(model.sets.parents)
    x = np.ascontiguousarray(x, dtype=float)
    return Outcome(arm.astype(np.uint8), x, np.empty(n_sets), np.zeros((n_sets, len(x) - 1)))


class Fit:
    """A mechanism's regression from its samples, by the formulas of a textbook."""

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        *,
        noise_mean: float | None = None,
        noise_std: float | None = None,
    ) -> None:
        precision = np.full(X.shape[1], WEIGHT_SCALE**-2.0)
        if noise_mean is None:
            X = np.column_stack([X, np.ones(len(X))])
            precision = np.append(precision, INTERCEPT_SCALE**-2.0)
        else:
            y = y - noise_mean
        self.inverse = np.linalg.inv(X.T @ X + np.diag(precision))
        self.mean = self.inverse @ X.T @ y
        squares = ((y - X @ self.mean) ** 2).sum() + precision @ self.mean**2
        self.freedom = 2 * NOISE_SHAPE + len(y)
        self.variance = (2 * NOISE_SHAPE + squares) / self.freedom
        if noise_std is not None:
            self.freedom, self.variance = np.inf, noise_std**2


def nodes_of(model: Model, m: int, node: int) -> list[int]:
    chosen = with_gap(int(model.sets.parents[m]), node)
    return [j for j in range(len(model.regimes)) if chosen >> j & 1]


@pytest.mark.parametrize("name", SETTINGS)
def test_the_regressions_are_those_of_the_samples(name: str) -> None:
    X, A = rounds(4, 12, 1)
    model = model_with(posterior_of(X, A, **SETTINGS[name]), [[2, 0, 1, 3], [3, 1, 0, 2]], 8)
    found = model.regressions
    for regime in (0, 1):
        for node in range(4):
            rows = A[:, node] == regime
            for m in range(model.sets.first[regime, node], model.sets.end[regime, node]):
                size = found.size[m]
                parents = nodes_of(model, m, node)
                fit = Fit(X[rows][:, parents], X[rows, node], **SETTINGS[name])
                np.testing.assert_allclose(found.mean[m, :size], fit.mean, rtol=1e-8, atol=1e-10)
                np.testing.assert_allclose(
                    found.inverse[m, :size, :size], fit.inverse, rtol=1e-8, atol=1e-10
                )
                assert found.variance[m] == pytest.approx(fit.variance, rel=1e-8)
                assert found.freedom[m] == fit.freedom


@pytest.mark.parametrize("name", SETTINGS)
def test_one_more_round_is_a_regression_with_one_more_round(name: str) -> None:
    X, A = rounds(4, 15, 2)
    before = posterior_of(X[:-1], A[:-1], **SETTINGS[name])
    then, now = before.tables.scores, posterior_of(X, A, **SETTINGS[name]).tables.scores
    orders = [[2, 0, 1, 3], [3, 1, 0, 2]]
    old = model_with(before, orders, 8)
    x = np.append(X[-1], 1.0)
    direction = np.empty(4)
    taken = copied(old.regressions)
    for node in range(4):
        regime = A[-1, node]
        gained, densities, laws = [], [], []
        rows = A[:, node] == regime
        for m in range(old.sets.first[regime, node], old.sets.end[regime, node]):
            target = X[-1, node] - taken.target_mean[regime, node]
            h, e, density = predictive_log_density(taken, m, x, target, 1.0, direction)
            spread = np.sqrt(taken.variance[m] * (1 + h))
            law = (
                stats.norm(scale=spread)
                if np.isinf(taken.freedom[m])
                else stats.t(taken.freedom[m], scale=spread)
            )
            laws.append(law.logpdf(e))
            densities.append(density)
            rank_one_update(taken, m, h, e, direction)
            parents = nodes_of(old, m, node)
            fit = Fit(X[rows][:, parents], X[rows, node], **SETTINGS[name])
            size = taken.size[m]
            np.testing.assert_allclose(taken.mean[m, :size], fit.mean, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(
                taken.inverse[m, :size, :size], fit.inverse, rtol=1e-7, atol=1e-9
            )
            assert taken.variance[m] == pytest.approx(fit.variance, rel=1e-7)
            assert taken.freedom[m] == fit.freedom
            which = old.sets.parents[m]
            gained.append(now[regime, node, which] - then[regime, node, which])
        # up to what all sets have in common, three ways
        assert np.ptp(np.array(gained) - laws) < 1e-7
        assert np.ptp(np.array(densities) - laws) < 1e-9


def test_a_round_played_often_is_that_many_rounds_of_the_average() -> None:
    X, A = rounds(3, 9, 3)
    model = model_with(posterior_of(X, A), [[0, 1, 2]], 8)
    sets, regressions = model.sets, model.regressions
    arm = np.array([0, 1, 0], dtype=np.uint8)
    x = np.array([0.7, -1.1, 2.0, 1.0])
    outcome = outcome_of(model, arm, x)
    score_parent_sets(sets, regressions, 5.0, outcome, False)
    for node in range(3):
        rows = A[:, node] == arm[node]
        for m in range(sets.first[arm[node], node], sets.end[arm[node], node]):
            parents, size = nodes_of(model, m, node), regressions.size[m]
            told = np.vstack([X[rows][:, parents], np.repeat(x[None, parents], 5, axis=0)])
            fit = Fit(told, np.append(X[rows, node], np.full(5, x[node])))
            moved = regressions.mean[m, :size] + outcome.step[m, :size]
            np.testing.assert_allclose(moved, fit.mean, rtol=1e-8, atol=1e-10)


def test_a_set_is_named_as_often_as_it_is_likely() -> None:
    X, A = rounds(5, 20, 4)
    posterior = posterior_of(X, A)
    tables = posterior.tables
    order = [3, 0, 4, 1, 2]
    sets = model_with(posterior, [order, order[::-1]], 10).sets
    for o, nodes in enumerate((order, order[::-1])):
        for position, node in enumerate(nodes):
            before = without(sum(1 << j for j in nodes[:position]), node)
            for regime in (0, 1):
                count = sets.n_named[o, regime, node]
                which = sets.which[o, regime, node, :count]
                share = sets.fraction[o, regime, node, :count]
                assert len(set(which)) == count
                assert share.sum() == pytest.approx(1.0)
                parents = sets.parents[which]
                assert (parents & ~before == 0).all()
                chance = np.exp(tables.scores[regime, node] - tables.within[regime, node, before])
                named = np.zeros_like(chance)
                named[parents] = share
                inside = (np.arange(len(chance)) & ~before) == 0
                assert (np.abs(named - chance)[inside] <= 0.1 + 1e-12).all()


def averages_by_listing(
    X: FloatArray, A: IntArray, order: list[int], n_regimes: int
) -> tuple[FloatArray, FloatArray, float]:
    """Average weights and intercepts in an order, and the log density of the rounds in it."""
    n = len(order)
    weights, intercept = np.zeros((n_regimes, n, n)), np.zeros((n_regimes, n))
    log_density = 0.0
    for position, node in enumerate(order):
        for regime in range(n_regimes):
            rows = A[:, node] == regime
            y, earlier = X[rows, node], order[:position]
            logs, fits = [], []
            for size in range(position + 1):
                for parents in combinations(earlier, size):
                    Z = X[rows][:, list(parents)]
                    shape = np.eye(len(y)) + WEIGHT_SCALE**2 * Z @ Z.T + INTERCEPT_SCALE**2
                    zero = np.zeros(len(y))
                    degrees = 2 * NOISE_SHAPE
                    logs.append(
                        stats.multivariate_t(zero, shape, df=degrees).logpdf(y) if len(y) else 0.0
                    )
                    fits.append((parents, Fit(Z, y).mean))
            total = np.logaddexp.reduce(logs)
            log_density += total
            for log, (parents, mean) in zip(logs, fits, strict=True):
                share = np.exp(log - total)
                weights[regime, list(parents), node] += share * mean[:-1]
                intercept[regime, node] += share * mean[-1]
    return weights, intercept, float(log_density)


def test_average_weights_and_decisions_after_a_round_are_those_of_listing_all_graphs() -> None:
    """Three regimes, means unknown: nothing in the model but points of the parent sets."""
    regimes = [3, 2, 3]
    X, A = rounds(3, 14, 5, regimes)
    orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0]]
    model = model_with(posterior_of(X[:-1], A[:-1], regimes), orders, MANY)
    arm, x = A[-1].astype(np.uint8), np.append(X[-1], 1.0)
    outcome = outcome_of(model, arm, x)
    score_parent_sets(model.sets, model.regressions, 1.0, outcome, False)
    arms = all_interventions(3, np.array(regimes))
    chosen = (arms.T[:, None, :] == np.arange(3)[None, :, None]).astype(float)
    cost, keep = np.linspace(0.0, 0.3, len(arms)), np.linspace(1.0, 0.5, len(arms))
    learned = Learned(
        model.regressions, model.sets.fraction, model.weights, model.intercept, np.ones(3)
    )
    decisions = Decisions(np.ascontiguousarray(chosen), keep, cost, 2)
    found = expected_rewards(model, learned, outcome, decisions)
    rewards, logs = [], []
    for o, order in enumerate(orders):
        weights, intercept, before = averages_by_listing(X[:-1], A[:-1], order, 3)
        np.testing.assert_allclose(model.weights[o], weights, atol=0.01)
        exists = np.arange(3)[:, None] < np.array(regimes)
        np.testing.assert_allclose(model.intercept[o], np.where(exists, intercept, 0.0), atol=0.01)
        weights, intercept, after = averages_by_listing(X, A, order, 3)
        logs.append(after - before)
        rewards.append(expected_values(weights, intercept, np.array(order), arms)[:, 2])
    share = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    assert share.max() < 0.99  # else the orders are not tested
    np.testing.assert_allclose((found + cost) / keep, share @ np.array(rewards), atol=0.02)


def drawn(
    posterior: ExactPosterior, n: int, n_rounds: int, arms: Any, reward: int
) -> PosteriorDraws:
    rng = np.random.default_rng(1)
    draws = posterior.draw(rng, n)
    earned = np.stack(
        [
            expected_values(w, c, o, arms)[:, reward]
            for w, c, o in zip(draws.weights, draws.intercept, draws.order, strict=True)
        ]
    )
    normals = rng.standard_normal((n, n_rounds, posterior.n_nodes))
    return PosteriorDraws(
        draws.order, draws.weights, draws.intercept, draws.noise_std, normals, earned,
        earned.max(axis=1),
    )  # fmt: skip


def test_a_pending_round_counts_as_one_that_was_told() -> None:
    X, A = rounds(3, 8, 6)
    posterior = posterior_of(X, A)
    arms = all_interventions(3)
    draws = drawn(posterior, 6, 2, arms, 2)
    order = [[0, 1, 2]]
    model = model_with(posterior, order, MANY)
    chosen = (arms.T[:, None, :] == np.arange(2)[None, :, None]).astype(float)
    decisions = Decisions(np.ascontiguousarray(chosen), np.ones(len(arms)), np.zeros(len(arms)), 2)
    pending, candidates = arms[5:6], arms[[0, 3, 6]]
    kept = [array.copy() for array in model.regressions]
    found = losses_after(model, draws, pending, candidates, 1.0, decisions)
    for array, before in zip(model.regressions, kept, strict=True):
        np.testing.assert_array_equal(array, before)
    outcome = outcome_of(model, pending[0], np.ones(4))
    for d in range(6):
        sample_outcome(draws, d, 0, 1.0, outcome)
        told = posterior_of(np.vstack([X, outcome.x[:3]]), np.vstack([A, pending]))
        rows: list[Any] = [array[d : d + 1] for array in draws]
        one = PosteriorDraws(*rows)
        later = one._replace(normals=np.ascontiguousarray(one.normals[:, 1:]))
        expected = losses_after(
            model_with(told, order, MANY), later, pending[:0], candidates, 1.0, decisions
        )
        np.testing.assert_allclose(found[d], expected[0], atol=1e-12)


def test_sampled_outcomes_are_what_the_system_does() -> None:
    X, A = rounds(3, 8, 7)
    arm = np.array([1, 0, 1], dtype=np.uint8)
    posterior = posterior_of(X, A)
    draws = drawn(posterior, 4, 1, all_interventions(3), 2)
    outcome = outcome_of(model_with(posterior, [[0, 1, 2]], 8), arm, np.ones(4))
    for d in range(4):
        sample_outcome(draws, d, 0, 4.0, outcome)
        nodes = np.arange(3)
        noise = draws.noise_std[d, arm, nodes] * draws.normals[d, 0] / 2.0
        mechanisms = draws.weights[d, arm, :, nodes].T
        expected = np.linalg.solve(np.eye(3) - mechanisms.T, draws.intercept[d, arm, nodes] + noise)
        np.testing.assert_allclose(outcome.x[:3], expected)


def test_orders_are_weighed_by_what_they_predicted() -> None:
    X, A = rounds(3, 10, 8)
    orders = [[0, 1, 2], [2, 0, 1]]
    model = model_with(posterior_of(X[:-1], A[:-1]), orders, MANY)
    fraction, weight = model.sets.fraction.copy(), np.ones(2)
    taken = copied(model.regressions)
    outcome = outcome_of(model, A[-1], np.append(X[-1], 1.0))
    score_parent_sets(model.sets, taken, 1.0, outcome, True)
    update_order_weights(model.sets, fraction, outcome, weight)
    weights, _ = averages(model.sets, fraction, taken)
    logs = []
    for o, order in enumerate(orders):
        expected, _, after = averages_by_listing(X, A, order, 2)
        logs.append(after - averages_by_listing(X[:-1], A[:-1], order, 2)[2])
        np.testing.assert_allclose(weights[o], expected, atol=0.01)
    assert np.log(weight[1] / weight[0]) == pytest.approx(logs[1] - logs[0], abs=0.02)
