"""Factors as roots of the graph: their columns, and what is summed over or left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from causalarms.posterior.exact import WORTH_DRAWING, ExactPosterior
from causalarms.posterior.prior import MechanismPrior
from causalarms.posterior.roots import chances_of, factor_columns
from causalarms.sem.factors import NamedFactors
from causalarms.statistics.dataset import Moments

NODES = ("a", "b", "c")
FACTORS = {"load": {"levels": [1.0, 2.0, 4.0]}, "kind": {"levels": ["x", "y"]}}
ACTS = np.array([[0.3, 0.1, 0.6], [0.2, 1.0, 0.3]])  # (factors, nodes); 1: it was told
REWARD = 2
PRIOR = MechanismPrior(
    weight_scale=(1.0, 4.0),
    noise_shape=0.5,
    intercept_scale=10.0,
    edge_probability=0.4,
)


class Data(NamedTuple):
    named: NamedFactors
    levels: Any  # (n, F)
    values: Any  # (n, N)

    @property
    def rows(self) -> Any:
        pairs = [
            {f.name: f.levels[k] for f, k in zip(self.named.factors, row, strict=True)}
            for row in self.levels
        ]
        return np.array([self.named.intervention(pair) for pair in pairs], dtype=np.uint8)

    @property
    def columns(self) -> Any:
        return np.array([self.named.values(row) for row in self.rows])

    def posterior(self, prior: MechanismPrior = PRIOR, **settings: Any) -> ExactPosterior:
        named = self.named
        chances = settings.pop("chances", ACTS)
        reward = settings.pop("reward", REWARD)
        moments = Moments(len(named.system_nodes), regimes=named.regimes)
        for x, u, row in zip(self.values, self.columns, self.rows, strict=True):
            moments.add(np.concatenate([x, u]), row)
        return ExactPosterior(
            len(named.system_nodes), moments, prior=prior, regimes=named.regimes,
            columns=factor_columns(named, chances, reward=reward), **settings,
        )  # fmt: skip


def made(seed: int = 0, n: int = 14) -> Data:
    rng = np.random.default_rng(seed)
    named = NamedFactors.of(FACTORS, NODES)
    levels = np.column_stack([rng.integers(3, size=n), rng.integers(2, size=n)])
    e = rng.normal(size=(n, 3))
    a = e[:, 0] + 0.8 * levels[:, 0]
    b = 0.7 * a + 0.3 * levels[:, 1] + e[:, 1]
    return Data(named, levels, np.column_stack([a, b, b - 0.5 * a + e[:, 2]]))


def test_no_factor_moves_context_and_the_untold_is_unlikely() -> None:
    told = NamedFactors.of({"load": {"acts_on": ["b"], "effect": "shift"}, "kind": {}}, NODES)
    chances = chances_of(told, ["a"])
    assert chances[:, 0].tolist() == [0.0, 0.0]
    assert chances[0, 1] == 1.0
    assert 0.0 < chances[0, 2] < 0.1 < chances[1, 2]


def test_all_columns_of_a_factor_act_or_none() -> None:
    drawn = made().posterior().draw(np.random.default_rng(1), 200).adjacency[:, 0]
    assert (drawn[:, 3] == drawn[:, 4]).all()
    assert drawn[:, 3].any()
    assert not drawn[:, 3].all()


def test_nothing_depends_on_the_order_of_nodes_levels_or_factors() -> None:
    data = made()
    even = np.full((2, 3), 0.3)
    plain = data.posterior(chances=even).edge_probability[0]
    turned = np.array([2, 0, 1])
    other = Data(
        NamedFactors.of(
            {"kind": {"levels": ["y", "x"]}, "load": {"levels": [4.0, 1.0, 2.0]}},
            tuple(NODES[k] for k in turned),
        ),
        np.column_stack([1 - data.levels[:, 1], (data.levels[:, 0] + 1) % 3]),
        data.values[:, turned],
    )
    place = turned.tolist().index(REWARD)
    again = other.posterior(chances=even, reward=place).edge_probability[0]
    places = [*turned.tolist(), 5, 3, 4, 6]  # of what is now measured, kind, load, both
    assert again == pytest.approx(plain[np.ix_(places, places)], abs=1e-9)


def test_expected_values_of_a_draw_follow_the_levels() -> None:
    data = made(n=200)
    draws = data.posterior().draw(np.random.default_rng(0), 400)
    named = data.named
    low, high = (np.array(named.intervention({"load": load})) for load in (1.0, 4.0))
    means = []
    for row in (low, high):
        regimes = row.astype(np.int64)
        weights = draws.weights[:, regimes, :, np.arange(7)]  # (7, n, 7)
        intercept = draws.intercept[:, regimes, np.arange(7)]
        eye = np.eye(7)
        means.append(
            [np.linalg.solve(eye - weights[:, d], intercept[d])[0] for d in range(len(draws.order))]
        )
    shift = np.mean(means[1]) - np.mean(means[0])
    assert shift == pytest.approx(0.8 * 2, abs=0.5)  # two levels apart


def test_too_many_factors_are_screened(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two factors a node keeps those that matter, and they are summed over."""
    rng, n = np.random.default_rng(3), 80
    named = NamedFactors.of({f"f{k}": {"levels": [1, 2]} for k in range(5)}, NODES)
    levels = rng.integers(2, size=(n, 5))
    a = rng.normal(size=n) + 2 * levels[:, 3]
    b = a + rng.normal(size=n) + 2 * levels[:, 1]
    data = Data(named, levels, np.column_stack([a, b, b + rng.normal(size=n)]))
    even = np.full((5, 3), 0.3)
    whole = data.posterior(chances=even)
    monkeypatch.setattr("causalarms.posterior.prior.MAX_FACTOR_BITS", 4)
    screened = data.posterior(chances=even)
    assert screened.kernel_prior.open.shape == (3, 2)
    assert len(screened.tables.variants[0, 0]) < len(whole.tables.variants[0, 0])
    found = screened.edge_probability[0]
    assert found[3 + 3, 0] > 0.99
    assert found[3 + 1, 1] > 0.99
    # what is left out had hardly a chance
    assert np.abs(found[:8] - whole.edge_probability[0][:8]).max() < 0.35
    assert found[:3, :3] == pytest.approx(whole.edge_probability[0][:3, :3], abs=0.1)


def test_which_factors_are_kept_does_not_depend_on_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor if none of them explains more than its prior costs."""
    monkeypatch.setattr("causalarms.posterior.prior.MAX_FACTOR_BITS", 4)
    rng, n, names = np.random.default_rng(3), 25, [f"f{k}" for k in range(5)]
    levels = rng.integers(3, size=(n, 5))
    a = rng.normal(size=n) + 0.5 * (levels[:, 3] == 1)
    b = a + rng.normal(size=n) + 0.5 * (levels[:, 4] == 2)
    values = np.column_stack([a, b, b + rng.normal(size=n)])
    found = []
    for order in (np.arange(5), np.array([4, 2, 3, 0, 1])):
        named = NamedFactors.of({names[k]: {"levels": ["x", "y", "z"]} for k in order}, NODES)
        posterior = Data(named, levels[:, order], values).posterior(
            replace(PRIOR, weight_scale=16.0, free_probability=0.0),
            chances=np.full((5, 3), 0.3),
        )
        back = 3 + 2 * np.argsort(order)  # the first column of every factor
        found.append(posterior.edge_probability[0][[0, 1, 2, *back], :3])
    assert found[1] == pytest.approx(found[0], abs=1e-9)
    assert (found[0][3:] > 0).sum(axis=0).tolist() == [2, 2, 2]


def test_a_node_with_other_rounds_than_its_levels_is_not_free() -> None:
    """Rounds with gaps, or from before a change, are not in both: they cannot be compared."""
    posterior = made().posterior()
    assert (posterior.free_probability[:2] > 0).any(axis=0).all()
    moments = Moments(7, regimes=posterior.regimes)
    moments.gram[:] = posterior.gram
    moments.gram[0, 1] *= 0.5
    posterior.update(moments)
    assert (posterior.free_probability[:, 1] == 0).all()
    assert (posterior.free_probability[:2, [0, 2]] > 0).any(axis=0).all()


def test_many_factors_that_certainly_act_may_be_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them at most, each as likely as the others before any data."""
    monkeypatch.setattr("causalarms.posterior.prior.MAX_FACTOR_BITS", 2)
    named = NamedFactors.of({f"f{k}": {"levels": [1, 2]} for k in range(30)}, NODES)
    data = Data(named, np.zeros((0, 30), dtype=np.int64), np.zeros((0, 3)))
    posterior = data.posterior(chances=np.ones((30, 3)))
    free = posterior.free_probability[:30]
    odds = posterior.prior.free_probability / (1 - posterior.prior.free_probability)
    assert free == pytest.approx(odds / (1 + 30 * odds), abs=1e-9)


def test_a_factor_that_is_hardly_free_is_so_in_no_draw() -> None:
    """But it is in draws as often as it is likely, once it is likely."""
    posterior = made().posterior()
    free = posterior.free_probability[:2]
    assert free[0, 0] > 2 * WORTH_DRAWING
    assert 0.0 < free[1:].max() < WORTH_DRAWING
    assert 0.0 < free[:, 1:].max() < WORTH_DRAWING
    drawn = posterior.draw(np.random.default_rng(0), 4000)
    assert drawn.by is not None
    often = (drawn.by[:, :3] != np.arange(3)).mean(axis=0)
    assert often == pytest.approx([free[0, 0], 0.0, 0.0], abs=0.015)
    assert (often[1:] == 0.0).all()
