"""Factors as roots of the graph, against all tuples of (order, parents, acting factors, scale)."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import multivariate_t

from causalarms.posterior.exact import ExactPosterior
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


def brute_force(data: Data, chances: Any = ACTS) -> tuple[Any, float]:
    """Probability of every edge, (M, M), and the log evidence.

    Load has columns 0 and 1, kind has column 2, and 3 is what both do together.
    """
    x, u = data.values, data.columns
    own = {0: [0, 1], 1: [2]}
    chance = PRIOR.edge_probability
    assert isinstance(chance, float)
    local: dict[Any, float] = {}
    for j in range(3):
        others = [k for k in range(3) if k != j]
        for parents in subsets(others):
            for acting in subsets([0, 1]):
                prior = chance ** len(parents) * (1 - chance) ** (2 - len(parents))
                for f in range(2):
                    prior *= chances[f, j] if f in acting else 1 - chances[f, j]
                if prior == 0.0:
                    continue
                pair = [3] if acting or j == REWARD else []
                columns = (*(c for f in acting for c in own[f]), *pair)
                z = np.hstack([x[:, parents], u[:, columns]])
                local[j, parents, columns] = math.log(prior) + np.logaddexp.reduce(
                    [
                        marginal_likelihood(x[:, j], z, scale) - math.log(2)
                        for scale in PRIOR.weight_scales
                    ]
                )
    found, total, top = np.zeros((7, 7)), 0.0, 3 * max(local.values())
    for order in itertools.permutations(range(3)):
        each = [
            [key for key in local if key[0] == j and set(key[1]) <= set(order[:place])]
            for place, j in enumerate(order)
        ]
        for system in itertools.product(*each):
            weight = math.exp(sum(local[key] for key in system) - top)
            total += weight
            for j, parents, columns in system:
                found[list(parents), j] += weight
                found[[3 + c for c in columns], j] += weight
    return found / total, math.log(total) + top


def subsets(members: Any) -> list[tuple[int, ...]]:
    return [s for k in range(len(members) + 1) for s in itertools.combinations(members, k)]


def marginal_likelihood(y: Any, z: Any, scale: float) -> float:
    n, shape = len(y), PRIOR.noise_shape
    spread = np.eye(n) + PRIOR.intercept_scale**2 * np.ones((n, n)) + scale**2 * z @ z.T
    return float(multivariate_t(np.zeros(n), spread, df=2 * shape).logpdf(y))


@pytest.mark.parametrize("context", [(), ("a",)])
def test_it_is_the_sum_over_all_tuples(context: tuple[str, ...]) -> None:
    data = made()
    chances = np.where(np.isin(NODES, context), 0.0, ACTS)
    posterior = data.posterior(chances=chances)
    edges, evidence = brute_force(data, chances)
    assert np.abs(posterior.edge_probability[0] - edges).max() < 1e-9
    assert posterior._forward[-1] == pytest.approx(evidence, abs=1e-9)
    drawn = posterior.draw(np.random.default_rng(1), 20_000).adjacency[:, 0].mean(axis=0)
    assert np.abs(drawn - edges).max() < 5 * 0.5 / math.sqrt(20_000)


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
