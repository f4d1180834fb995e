"""Edges, what factors act on and expected rewards, against all tuples of hypotheses.

A tuple is an order, and of every node: whether a factor is free, and in each cell (a regime, or a
level of the free factor) parents, shifting factors, the scale of the weights and the size of the
noise. The reference is written from these definitions; it shares no code with the package.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t

from causalarms.models.belief import rewards_of
from causalarms.posterior.base import Draws
from causalarms.posterior.exact import ExactPosterior
from causalarms.posterior.mechanism import acting_factors, open_in, variants_of
from causalarms.posterior.prior import MechanismPrior
from causalarms.posterior.roots import factor_columns
from causalarms.posterior.weights import mean_mechanism
from causalarms.sem.factors import NamedFactors
from causalarms.statistics.dataset import Moments

EDGE, SHAPE, INTERCEPT, FREE = 0.4, 0.5, 10.0, 0.1
PAIR = 0.2  # size of what two factors do together
NUMBERS = np.array([1.0, 2.0, 5.0])
NAMES = ["x", "y", "z"]
N_DRAWS = 20_000


class Case(NamedTuple):
    chances: Any  # (F, N) that a factor acts on a node; the last node is the reward
    kinds: tuple[str, ...]  # of the factors: "numbers" or "names"
    n_levels: tuple[int, ...]
    regimes: tuple[int, ...]
    context: tuple[int, ...] = ()
    mean: float | None = None
    std: float | None = None
    scales: tuple[float, ...] = (1.0, 4.0)
    sizes: tuple[float, ...] = (1.0,)
    seed: int = 0
    beside: bool = True  # whether other factors may shift a node that has a free one


TWO = np.array([[0.3, 0.1, 0.6], [0.2, 1.0, 0.3]])
CASES = {
    "two factors": Case(TWO, ("numbers", "names"), (3, 2), (1, 1, 1)),
    "a free factor, and no other": Case(
        TWO, ("numbers", "names"), (3, 2), (1, 1, 1), beside=False
    ),
    "context, and several sizes of the noise": Case(
        TWO * [0, 1, 1], ("numbers", "names"), (3, 2), (1, 1, 1), context=(0,), sizes=(0.5, 3.0)
    ),
    "two nodes are context": Case(
        TWO * [0, 0, 1], ("names", "names"), (3, 2), (1, 1, 1), context=(0, 1), sizes=(3.0, 0.5, 1)
    ),
    "a node with a switch": Case(TWO[:1], ("names",), (3,), (1, 2, 1), sizes=(0.5, 3.0)),
    "known means": Case(TWO, ("names", "numbers"), (2, 3), (1, 1, 1), mean=0.7),
    "known means, and a switch": Case(
        TWO[1:], ("numbers",), (3,), (2, 1, 1), mean=-0.4, sizes=(0.5, 3.0)
    ),
    "known noise": Case(TWO[:, 1:], ("names", "names"), (2, 3), (1, 1), mean=0.7, std=1.2),
    "known variance": Case(TWO[:, 1:], ("names", "numbers"), (3, 2), (1, 1), std=0.8),
}  # fmt: skip


class Data(NamedTuple):
    values: Any  # (n, N)
    levels: Any  # (n, F)
    switched: Any  # (n, N) the regime of every node


def made(case: Case) -> Data:
    rng, n, n_nodes = np.random.default_rng(case.seed), 15, len(case.regimes)
    levels = np.column_stack([rng.integers(k, size=n) for k in case.n_levels])
    switched = np.column_stack([rng.integers(k, size=n) for k in case.regimes])
    values = np.zeros((n, n_nodes))
    for j in range(n_nodes):
        values[:, j] = 0.4 + rng.normal(size=n) + switched[:, j] + 0.8 * values[:, max(j - 1, 0)]
        if j not in case.context:
            values[:, j] += 0.7 * levels[:, 0]
    return Data(values, levels, switched)


# -- the reference ---------------------------------------------------------------------------------


def columns(case: Case, levels: Any) -> tuple[Any, list[tuple[int, ...]]]:
    """(n, C) contrasts of names, lines and parabolas, products; and the factors of each column."""
    found: list[Any] = []
    of: list[tuple[int, ...]] = []
    lines: list[Any] = []
    for f, (kind, k) in enumerate(zip(case.kinds, case.n_levels, strict=True)):
        if kind == "names":
            # any orthonormal contrasts will do, with as many columns as levels less one
            basis = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, : k - 1]])).Q[:, 1:]
            own = basis * math.sqrt(k)
            lines.append(own)
        else:
            line = (NUMBERS[:k] - NUMBERS[:k].mean()) / NUMBERS[:k].std()
            bend = line**2 - 1 - (line**3).mean() * line
            own = np.column_stack([line, bend / bend.std()] if k > 2 else [line])
            lines.append(own[:, :1])
        found += list(own[levels[:, f]].T)
        of += [(f,)] * own.shape[1]
    for f, g in itertools.combinations(range(len(case.kinds)), 2):
        for one, other in itertools.product(lines[f].T, lines[g].T):
            found.append(PAIR * one[levels[:, f]] * other[levels[:, g]])
            of.append((f, g))
    return np.array(found).T, of


def subsets(members: Any) -> list[tuple[int, ...]]:
    return [s for k in range(len(members) + 1) for s in itertools.combinations(members, k)]


class Terms(NamedTuple):
    """Of a node, or of one of its cells, given the nodes before it."""

    log: float
    edges: Any  # cells: (M,); nodes: (1 + F, L, M) by hypothesis and cell
    free: Any  # (F,)
    mean: Any  # (1 + M,) expected intercept and weights, of the cell in force


def parents_prior(case: Case, j: int, before: frozenset[int]) -> dict[tuple[int, ...], float]:
    n = len(case.regimes)
    possible = [k for k in sorted(before) if j not in case.context or k in case.context]
    return {p: EDGE ** len(p) * (1 - EDGE) ** (n - 1 - len(p)) for p in subsets(possible)}


def of_cell(case: Case, data: Data, j: int, rows: Any, free: int | None, before: Any) -> Terms:
    n = len(case.regimes)
    u, of = columns(case, data.levels)
    others = [
        f for f in range(len(case.kinds))
        if f != free and (free is None or case.beside or case.chances[f, j] == 1)
    ]  # fmt: skip
    y, logs, edges, means = data.values[rows, j] - (case.mean or 0.0), [], [], []
    for parents, prior in parents_prior(case, j, before).items():
        for acting in subsets(others):
            chance = math.prod(
                case.chances[f, j] if f in acting else 1 - case.chances[f, j] for f in others
            )
            if chance == 0.0:
                continue
            # pairs act on the reward, and wherever a factor does
            own = [
                c
                for c, factors in enumerate(of)
                if free not in factors
                and (factors[0] in acting if len(factors) == 1 else acting or j == n - 1)
            ]
            z = np.hstack([data.values[np.ix_(rows, parents)], u[np.ix_(rows, own)]])
            for scale, size in itertools.product(case.scales, case.sizes):
                weight = prior * chance / len(case.scales) / len(case.sizes)
                penalty = np.full(z.shape[1], scale**-2.0)
                x = z
                if case.mean is None:
                    wide = INTERCEPT if free is None else scale
                    x, penalty = np.column_stack([np.ones(len(z)), z]), np.append(wide**-2, penalty)
                spread = np.eye(len(x)) + (x / penalty) @ x.T
                zero = np.zeros(len(x))
                if case.std is not None:
                    log = multivariate_normal(zero, case.std**2 * spread).logpdf(y)
                else:
                    log = multivariate_t(zero, size**2 * spread, df=2 * SHAPE).logpdf(y)
                logs.append(math.log(weight) + float(log))
                w = np.linalg.solve(x.T @ x + np.diag(penalty), x.T @ y)
                mean = np.zeros(1 + n + len(of))
                at = [1 + k for k in (*parents, *(n + c for c in own))]
                mean[at if case.mean is not None else [0, *at]] = w
                mean[0] += case.mean or 0.0
                means.append(mean)
                edges.append(np.isin(np.arange(n + len(of)), np.array(at) - 1))
    total = float(logsumexp(logs))
    chances = np.exp(np.array(logs) - total)
    return Terms(total, chances @ np.array(edges), None, chances @ np.array(means))


def of_node(case: Case, data: Data, j: int, setting: Data, before: frozenset[int]) -> Terms:
    n_factors, of = len(case.kinds), columns(case, data.levels)[1]
    chances = FREE * case.chances[:, j] * (case.regimes[j] == 1)
    # each is free or not by itself, given that one at most is
    weights = [
        math.prod(c if f == h - 1 else 1 - c for f, c in enumerate(chances))
        for h in range(1 + n_factors)
    ]
    possible = sum(parents_prior(case, j, before).values())
    shape = (1 + n_factors, max(*case.n_levels, *case.regimes), len(case.regimes) + len(of))
    edges, logs, means = np.zeros(shape), [], []
    for h in range(1 + n_factors):
        free = None if h == 0 else h - 1
        prior = weights[h] / sum(weights)
        if prior == 0.0:
            logs.append(-math.inf)
            means.append(np.zeros(1 + shape[2]))
            continue
        by, now, count = (
            (data.switched[:, j], setting.switched[0, j], case.regimes[j]) if free is None
            else (data.levels[:, free], setting.levels[0, free], case.n_levels[free])
        )  # fmt: skip
        cells = [
            of_cell(case, data, j, np.flatnonzero(by == k), free, before) for k in range(count)
        ]
        more = (count - case.regimes[j]) * math.log(possible)
        logs.append(math.log(prior) + sum(cell.log for cell in cells) - more)
        means.append(cells[now].mean)
        edges[h, :count] = [cell.edges for cell in cells]
        if free is not None:  # it acts on the node at all of its levels
            edges[h, :count, [len(case.regimes) + c for c, f in enumerate(of) if f == (free,)]] = 1
    total = float(logsumexp(logs))
    weight = np.exp(np.array(logs) - total)
    edges *= weight[:, None, None]
    return Terms(total, edges, weight[1:], weight @ np.array(means))


class Truth(NamedTuple):
    edges: Any  # (L, M, N) by regime; of nodes that may be free, in the likeliest level
    free: Any  # (F, N)
    evidence: float
    values: Any  # (N,) expected in this setting


def reference(case: Case, data: Data, setting: Data) -> Truth:
    n, u = len(case.regimes), columns(case, setting.levels)[0][0]
    logs, edges, free, values = [], [], [], []
    known = cache(lambda j, before: of_node(case, data, j, setting, before))
    for order in itertools.permutations(range(n)):
        terms = {j: known(j, frozenset(order[:place])) for place, j in enumerate(order)}
        logs.append(sum(term.log for term in terms.values()))
        edges.append(np.array([terms[j].edges for j in range(n)]))
        free.append(np.array([terms[j].free for j in range(n)]).T)
        # mechanisms are independent given the order, so that means of products are products
        means = np.concatenate([[1.0], np.zeros(n), u])
        for j in order:
            means[1 + j] = terms[j].mean @ means
        values.append(means[1 : 1 + n])
    weight = np.exp(np.array(logs) - logsumexp(logs))
    by_hypothesis = np.tensordot(weight, edges, axes=1)  # (N, H, L, M)
    found = by_hypothesis[:, 0]
    found[:, 0] += by_hypothesis[:, 1:].max(axis=2).sum(axis=1)
    return Truth(
        found.transpose(1, 2, 0),
        np.tensordot(weight, free, axes=1),
        float(logsumexp(logs)),
        weight @ np.array(values),
    )


# -- the package -----------------------------------------------------------------------------------


def named_of(case: Case) -> NamedFactors:
    nodes = tuple("abc"[: len(case.regimes)])
    given: dict[str, Any] = {
        node: {} for node, k in zip(nodes, case.regimes, strict=True) if k == 2
    }
    for f, (kind, k) in enumerate(zip(case.kinds, case.n_levels, strict=True)):
        given[f"f{f}"] = {"levels": (NUMBERS.tolist() if kind == "numbers" else NAMES)[:k]}
    return NamedFactors.of(given, nodes)


def rows_of(case: Case, data: Data) -> Any:
    """The intervention of every round."""
    named = named_of(case)
    switches = [j for j, k in enumerate(case.regimes) if k == 2]
    numbers = np.column_stack([data.switched[:, switches], data.levels])
    return np.array(named.numbers.interventions(numbers), dtype=np.uint8)


def posterior_of(case: Case, data: Data) -> ExactPosterior:
    named, rows, n = named_of(case), rows_of(case, data), len(case.regimes)
    size = len(named.system_nodes)
    moments = Moments(size, regimes=named.regimes)
    for x, row in zip(data.values, rows, strict=True):
        moments.add(np.concatenate([x, named.values(row)]), row)
    allowed = np.ones((size, size), dtype=bool)
    allowed[np.ix_([k for k in range(n) if k not in case.context], case.context)] = False
    known = None if case.mean is None else np.full((int(named.regimes.max()), size), case.mean)
    return ExactPosterior(
        size,
        moments,
        prior=MechanismPrior(
            weight_scale=case.scales, noise_shape=SHAPE, noise_scales=case.sizes,
            intercept_scale=INTERCEPT, edge_probability=EDGE, free_probability=FREE,
        ),
        noise_mean=known,
        noise_std=case.std,
        allowed=allowed,
        regimes=named.regimes,
        columns=factor_columns(named, case.chances, reward=n - 1),
    )  # fmt: skip


def put_together(posterior: ExactPosterior, row: Any) -> Any:
    """Expected values of a setting from the package's scores and means, order by order, (N,)."""
    prior, tables, cells = posterior.kernel_prior, posterior.tables, posterior.kernel_prior.cells
    n, m = len(tables.local), len(posterior.regimes)

    def of_cell(j: int, cell: int, before: int) -> Any:
        """Probabilities of all parents and variants within `before`, times what is expected."""
        free, source = cells.free[cell, j], cells.source[cell, j]
        gram, found, room = (
            posterior.gram[cells.regime[cell, j], source],
            np.zeros(1 + m),
            np.zeros(m),
        )
        variants, n_sets = variants_of(tables, cell, j), 1 << len(open_in(prior, j, free))
        for number, parents in np.ndindex(*variants.shape):
            score = variants[number, parents]
            if score == -np.inf or parents & ~before:
                continue
            acting, _ = acting_factors(prior, j, number % n_sets, free)
            regressors = np.zeros(m, dtype=bool)
            regressors[[k for k in range(n) if k != j]] = parents >> np.arange(n - 1) & 1
            regressors[n:] = (prior.factors & acting > 0) & ~(prior.made_of & free > 0)
            intercept, _ = mean_mechanism(gram, cell, j, regressors, number // n_sets, prior, room)
            chance = math.exp(score - tables.within[cell, j, before])
            found = found + chance * np.append(intercept, room)
        return found

    @cache
    def of_node(j: int, before: int) -> Any:
        logs, means = [], []
        for h in np.flatnonzero(cells.log_prior[:, j] > -np.inf):
            own = range(cells.first[h, j], cells.end[h, j])
            more = len(own) - cells.end[0, j]
            log = cells.log_prior[h, j] + tables.within[own, j, before].sum()
            logs.append(log - (more * tables.possible[j, before] if more else 0.0))
            now = next(z for z in own if cells.regime[z, j] == row[cells.source[z, j]])
            means.append(of_cell(j, now, before))
        assert logsumexp(logs) == pytest.approx(tables.local[j, before], abs=1e-9)
        return np.exp(np.array(logs) - logsumexp(logs)) @ np.array(means)

    weights, values = [], []
    for order in itertools.permutations(range(n)):
        before, log = 0, 0.0
        means = np.concatenate([[1.0], np.zeros(n), prior.codes[row[n:], np.arange(m - n)]])
        for j in order:
            others = (before & (1 << j) - 1) | before >> 1 & ~((1 << j) - 1)
            log += tables.local[j, others]
            means[1 + j] = of_node(j, others) @ means
            before |= 1 << j
        weights.append(log)
        values.append(means[1 : 1 + n])
    return np.exp(np.array(weights) - posterior._forward[-1]) @ np.array(values)


def drawn_edges(draws: Draws, named: NamedFactors) -> Any:
    """How often edges are there, (R, M, N), of nodes that are free in the likeliest level."""
    assert draws.by is not None
    n = named.n_measured
    edges = draws.adjacency[:, :, :, :n]
    found = (edges & (draws.by[:, :n] == np.arange(n))[:, None, None]).mean(axis=0)
    for root in range(len(named.shifting)):
        own = n + np.flatnonzero(named.bits == 1 << root)
        free = draws.by[:, :n] == own[0]
        levels = range(named.regimes[own[0]])
        found[0] += (edges[:, levels] & free[:, None, None]).mean(axis=0).max(axis=0)
        found[0, own] += free.mean(axis=0)
    return found


@pytest.mark.parametrize("name", CASES)
def test_edges_targets_and_rewards_are_sums_over_all_tuples(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    data, n = made(case), len(case.regimes)
    monkeypatch.setattr("causalarms.posterior.exact.WORTH_DRAWING", 0.0)
    if not case.beside:
        n_sets = sum(case.n_levels) << (n - 1)
        monkeypatch.setattr("causalarms.posterior.sharing.MAX_FREE_SETS", n_sets)
    posterior = posterior_of(case, data)
    settings = [
        Data(data.values[:1], data.levels[[k]], data.switched[[k]]) for k in (0, 3, 7)
    ]  # some of those that were played
    truths = [reference(case, data, setting) for setting in settings]
    truth = truths[0]
    assert posterior._forward[-1] == pytest.approx(truth.evidence, abs=1e-9)
    n_factors = len(case.kinds)
    assert np.abs(posterior.free_probability[:n_factors] - truth.free).max() < 1e-9
    edges = posterior.edge_probability[: max(case.regimes), :, :n]
    # rotations of contrasts are another choice of columns, of which all act or none
    assert np.abs(edges - truth.edges[: max(case.regimes)]).max() < 1e-9
    rows = [rows_of(case, setting)[0] for setting in settings]
    for row, told in zip(rows, truths, strict=True):
        assert np.abs(put_together(posterior, row) - told.values).max() < 1e-9
    draws = posterior.draw(np.random.default_rng(1), N_DRAWS)
    often = drawn_edges(draws, named_of(case))[: max(case.regimes)]
    assert (np.abs(often - edges) < 5 * 0.5 / math.sqrt(N_DRAWS)).all()
    drawn = rewards_of(draws, np.array(rows), n - 1)
    error = drawn.std(axis=0) / math.sqrt(len(drawn))
    rewards = np.array([told.values[-1] for told in truths])
    assert (np.abs(drawn.mean(axis=0) - rewards) < 5 * error).all()
    assert (error < 0.1).all()
