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


class Possibility(NamedTuple):
    """One way in which a node may come about."""

    log_weight: float
    needed: set[int]  # parents, in any cell
    edges: Any  # (3, M) from every node of the system, in every level of a free factor
    more: int  # cells beyond the first
    free: int | None  # the factor, if there is one


def possibilities(data: Data, chances: Any, j: int) -> list[Possibility]:
    """Every tuple of hypothesis, parents and acting factors.

    Load has columns 0 and 1, kind has column 2, and 3 is what both do together.
    """
    free = PRIOR.free_probability * chances[:, j]
    found = []
    for hypothesis in (None, 0, 1):
        if hypothesis is None:
            each = [cells(data, chances, j, np.ones(len(data.values), dtype=bool), None)]
            prior = math.log(1 - free.sum())
        elif free[hypothesis] == 0.0:
            continue
        else:
            each = [
                cells(data, chances, j, data.levels[:, hypothesis] == level, hypothesis)
                for level in range(len(data.named.factors[hypothesis].levels))
            ]
            prior = math.log(free[hypothesis])
        for chosen in itertools.product(*each):
            edges = np.zeros((3, 7))
            edges[: len(chosen)] = [one[2] for one in chosen]
            if hypothesis is not None:
                edges[: len(chosen), [3, 4] if hypothesis == 0 else [5]] = 1.0
            weight = prior + sum(one[0] for one in chosen)
            needed = set().union(*(one[1] for one in chosen))
            found.append(Possibility(weight, needed, edges, len(each) - 1, hypothesis))
    return found


def cells(data: Data, chances: Any, j: int, rows: Any, free: int | None) -> list[Any]:
    """(log weight, parents, edges) of a mechanism in some of the rounds."""
    x, u = data.values[rows], data.columns[rows]
    own, chance, found = {0: [0, 1], 1: [2]}, PRIOR.edge_probability, []
    assert isinstance(chance, float)
    for parents in subsets([k for k in range(3) if k != j]):
        for acting in subsets([f for f in range(2) if f != free]):
            prior = chance ** len(parents) * (1 - chance) ** (2 - len(parents))
            for f in range(2):
                if f != free:
                    prior *= chances[f, j] if f in acting else 1 - chances[f, j]
            if prior == 0.0:
                continue
            pair = [3] if free is None and (acting or j == REWARD) else []
            columns = [*(c for f in acting for c in own[f]), *pair]
            z = np.hstack([x[:, parents], u[:, columns]])
            scores = [
                marginal_likelihood(x[:, j], z, scale, None if free is None else scale)
                for scale in PRIOR.weight_scales
            ]
            edges = np.zeros(7)
            edges[[*parents, *(3 + c for c in columns)]] = 1.0
            score = np.logaddexp.reduce(scores) - math.log(len(scores))
            found.append((math.log(prior) + score, set(parents), edges))
    return found


class Truth(NamedTuple):
    edges: Any  # (M, M)
    evidence: float
    free: Any  # (F, N)


def brute_force(data: Data, chances: Any = ACTS) -> Truth:
    chance = PRIOR.edge_probability
    assert isinstance(chance, float)
    by_node = [possibilities(data, chances, j) for j in range(3)]
    edges, free, total = np.zeros((3, 3, 7, 3)), np.zeros((2, 3)), 0.0
    top = sum(max(one.log_weight for one in each) for each in by_node)
    for order in itertools.permutations(range(3)):
        weights, means, frees = [], [], []
        for place, j in enumerate(order):
            before = set(order[:place])
            possible = sum(chance ** len(p) * (1 - chance) ** (2 - len(p)) for p in subsets(before))
            fitting = [one for one in by_node[j] if one.needed <= before]
            peak = max(one.log_weight for one in by_node[j])
            each = np.array(
                [math.exp(one.log_weight - peak) / possible**one.more for one in fitting]
            )
            weights.append(each.sum())
            each_edges = np.array([one.edges for one in fitting])
            of = np.array([[one.free == f for one in fitting] for f in (None, 0, 1)])
            means.append(np.einsum("p,hp,plm->hlm", each, of, each_edges) / each.sum())
            frees.append(of[1:] @ each / each.sum())
        weight = math.prod(weights)
        total += weight
        for j, mean, own in zip(order, means, frees, strict=True):
            edges[..., j] += weight * mean
            free[:, j] += weight * own
    return Truth(likeliest(edges / total), math.log(total) + top, free / total)


def likeliest(edges: Any) -> Any:
    """(M, N) from (hypotheses, levels, M, N): in the level in which an edge is likeliest."""
    found = np.zeros((7, 7))
    found[:, :3] = edges.max(axis=1).sum(axis=0)
    return found


def subsets(members: Any) -> list[tuple[int, ...]]:
    return [s for k in range(len(members) + 1) for s in itertools.combinations(members, k)]


def marginal_likelihood(y: Any, z: Any, scale: float, of_level: float | None = None) -> float:
    """`of_level`: the scale of the intercept, if it is that of a level."""
    n, shape = len(y), PRIOR.noise_shape
    intercept_scale = PRIOR.intercept_scale if of_level is None else of_level
    spread = np.eye(n) + intercept_scale**2 * np.ones((n, n)) + scale**2 * z @ z.T
    return float(multivariate_t(np.zeros(n), spread, df=2 * shape).logpdf(y))


@pytest.mark.parametrize("context", [(), ("a",)])
def test_it_is_the_sum_over_all_tuples(
    context: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causalarms.posterior.sharing.WORTH_SCORING", -np.inf)
    data = made()
    chances = np.where(np.isin(NODES, context), 0.0, ACTS)
    posterior = data.posterior(chances=chances)
    truth = brute_force(data, chances)
    assert np.abs(posterior.edge_probability[0] - truth.edges).max() < 1e-9
    assert np.abs(posterior.free_probability[:2] - truth.free).max() < 1e-9
    assert posterior._forward[-1] == pytest.approx(truth.evidence, abs=1e-9)
    draws = posterior.draw(np.random.default_rng(1), 20_000)
    assert draws.by is not None
    is_free = draws.by[:, :3] >= 3
    load, kind = draws.by[:, :3] == 3, draws.by[:, :3] == 5
    tolerance = 5 * 0.5 / math.sqrt(20_000)
    assert np.abs(np.array([load.mean(axis=0), kind.mean(axis=0)]) - truth.free).max() < tolerance
    assert (is_free == (load | kind)).all()
    drawn = np.zeros((3, 3, 7, 3))
    for h, which in enumerate((~is_free, load, kind)):
        drawn[h] = (draws.adjacency[:, :3, :, :3] * which[:, None, None]).mean(axis=0)
    drawn[1, :, 3:5], drawn[2, :, 5] = load.mean(axis=0), kind.mean(axis=0)
    drawn[0, 1:], drawn[2, 2] = 0.0, 0.0  # levels there are not
    assert np.abs(likeliest(drawn) - truth.edges).max() < tolerance


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


def test_a_node_with_other_rounds_than_its_levels_is_not_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rounds with gaps, or from before a change, are not in both: they cannot be compared."""
    monkeypatch.setattr("causalarms.posterior.sharing.WORTH_SCORING", -np.inf)
    posterior = made().posterior()
    assert (posterior.free_probability[:2] > 0).any(axis=0).all()
    moments = Moments(7, regimes=posterior.regimes)
    moments.gram[:] = posterior.gram
    moments.gram[0, 1] *= 0.5
    posterior.update(moments)
    assert (posterior.free_probability[:, 1] == 0).all()
    assert (posterior.free_probability[:2, [0, 2]] > 0).any(axis=0).all()
