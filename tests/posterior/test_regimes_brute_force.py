"""The posterior of nodes with any number of regimes, against listing all tuples of graphs.

Tuples of graphs are listed as mechanisms: every node in each of its regimes has a parent set; the
union of them must be acyclic, and counts once for every order it fits. Scores are those of
posterior_by_enumeration.py.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from posterior_by_enumeration import log_density
from sklearn.base import clone

from causalarms import GraphPosterior, random_sem
from causalarms.arrays import FloatArray
from causalarms.posterior.chains import SampledPosterior
from causalarms.posterior.exact import ExactPosterior
from causalarms.posterior.prior import MechanismPrior
from causalarms.sem.regimes import existing
from causalarms.statistics import Dataset, Moments

CASES = {
    "3 nodes": (3, [1, 2, 3], 12, 0.5),
    "3 nodes, one of four regimes": (3, [4, 1, 1], 15, 0.5),
    "3 nodes without a switch": (3, [1, 1, 1], 6, 0.5),
    "4 nodes, one switch": (4, [1, 2, 1, 1], 8, 0.4),
    "4 nodes": (4, [1, 2, 1, 3], 14, 0.3),
    "4 nodes, four regimes": (4, [4, 1, 1, 2], 14, 0.5),
}


class Listed(NamedTuple):
    """Sums over orders of products over mechanisms: an order fits if all parents come before."""

    edge_probability: FloatArray  # (R, N, N)
    log_evidence: float
    within: float  # probability that no edge but those of `kept` exists
    kept: npt.NDArray[np.bool_]


def data_of(case: str) -> tuple[Dataset, FloatArray]:
    n, regimes, n_rows, _ = CASES[case]
    sem = random_sem(n, seed=len(case), regimes=regimes)
    rng = np.random.default_rng(7)
    interventions = rng.integers(0, sem.regimes, (n_rows, n), dtype=np.uint8)
    data = Dataset(n, regimes=regimes)
    data.append(sem.sample(interventions, rng), interventions)
    return data, np.ones(n)


@cache
def listed(case: str, means_known: bool = True) -> Listed:
    """Every tuple (G_0, G_1, ...) with acyclic union, one by one."""
    n, regimes, _, chance = CASES[case]
    data, noise_mean = data_of(case)
    mechanisms = np.argwhere(existing(np.array(regimes))).tolist()
    sets = [[s for size in range(n) for s in combinations([j for j in range(n) if j != i], size)]
            for i in range(n)]  # fmt: skip
    logs, priors = [], []
    for regime, node in mechanisms:
        rows = data.values[data.regimes[:, node] == regime]
        target = rows[:, node] - (noise_mean[node] if means_known else 0.0)
        prior = [
            len(p) * np.log(chance) + (n - 1 - len(p)) * np.log(1 - chance) for p in sets[node]
        ]
        density = [
            log_density(target, rows[:, p], intercept=not means_known) if len(rows) else 0.0
            for p in sets[node]
        ]
        logs.append(np.array(prior) + density)
        priors.append(np.array(prior))
    orders = list(permutations(range(n)))
    fits = {
        (node, p): np.array([all(o.index(j) < o.index(node) for j in p) for o in orders])
        for node in range(n)
        for p in sets[node]
    }
    kept = np.zeros((max(regimes), n, n), dtype=bool)
    kept[:, 0, 1:] = kept[:, 1, 2:] = True
    total = prior_total = within = 0.0
    probability = np.zeros((max(regimes), n, n))
    shift = sum(values.max() for values in logs)
    own = [[fits[node, p] for p in sets[node]] for _, node in mechanisms]
    for chosen in product(*(range(len(sets[node])) for _, node in mechanisms)):
        extensions = np.logical_and.reduce([own[m][c] for m, c in enumerate(chosen)]).sum()
        if not extensions:
            continue
        prior_total += extensions * np.exp(sum(priors[m][c] for m, c in enumerate(chosen)))
        weight = extensions * np.exp(sum(logs[m][c] for m, c in enumerate(chosen)) - shift)
        total += weight
        inside = True
        for (regime, node), c in zip(mechanisms, chosen, strict=True):
            for parent in sets[node][c]:
                probability[regime, parent, node] += weight
                inside &= bool(kept[regime, parent, node])
        within += weight * inside
    return Listed(
        probability / total,
        float(np.log(total) + shift - np.log(prior_total)),
        within / total,
        kept,
    )


@pytest.mark.parametrize(
    ("case", "means_known"),
    [
        ("3 nodes", True),
        ("3 nodes", False),
        ("3 nodes, one of four regimes", True),
        ("3 nodes without a switch", False),
        ("4 nodes, one switch", True),
    ],
)
def test_exact_sums(case: str, means_known: bool) -> None:
    data, noise_mean = data_of(case)
    truth = listed(case, means_known)
    posterior = ExactPosterior(
        data.n_nodes,
        Moments.of(data),
        noise_mean=noise_mean if means_known else None,
        prior=MechanismPrior(edge_probability=CASES[case][3]),
    )
    assert np.allclose(posterior.edge_probability, truth.edge_probability, atol=1e-9)
    assert np.isclose(posterior.log_evidence, truth.log_evidence)
    assert np.isclose(posterior.probability_within(truth.kept), truth.within)


def by_orders(case: str) -> tuple[FloatArray, FloatArray]:
    """Edge probabilities and probabilities of orders of four nodes, order by order."""
    n, regimes, _, chance = CASES[case]
    data, noise_mean = data_of(case)
    orders = list(permutations(range(n)))
    weights, edges = [], []
    for order in orders:
        log_weight, found = 0.0, np.zeros((max(regimes), n, n))
        for regime, node in np.argwhere(existing(np.array(regimes))).tolist():
            before = [j for j in order if order.index(j) < order.index(node)]
            rows = data.values[data.regimes[:, node] == regime]
            sets = [p for size in range(len(before) + 1) for p in combinations(before, size)]
            logs = np.array([
                log_density(rows[:, node] - noise_mean[node], rows[:, p], intercept=False)
                + len(p) * np.log(chance) + (n - 1 - len(p)) * np.log(1 - chance)
                for p in sets
            ])  # fmt: skip
            log_weight += np.logaddexp.reduce(logs)
            shares = np.exp(logs - np.logaddexp.reduce(logs))
            for share, p in zip(shares, sets, strict=True):
                found[regime, list(p), node] += share
        weights.append(log_weight)
        edges.append(found)
    chances = np.exp(np.array(weights) - np.logaddexp.reduce(weights))
    return np.tensordot(chances, np.array(edges), axes=1), chances


@pytest.mark.parametrize("case", ["4 nodes", "4 nodes, four regimes"])
def test_four_nodes_order_by_order(case: str) -> None:
    data, noise_mean = data_of(case)
    truth, chances = by_orders(case)
    prior = MechanismPrior(edge_probability=CASES[case][3])
    posterior = ExactPosterior(4, Moments.of(data), noise_mean=noise_mean, prior=prior)
    assert np.allclose(posterior.edge_probability, truth, atol=1e-9)
    drawn = posterior.draw(np.random.default_rng(0), 4000)
    error = np.sqrt(np.maximum(truth * (1 - truth), 1e-4) / 4000)
    assert (np.abs(drawn.adjacency.mean(axis=0) - truth) < 5 * error).all()
    index = {order: k for k, order in enumerate(permutations(range(4)))}
    found = np.bincount([index[tuple(o)] for o in drawn.order.tolist()], minlength=24) / 4000
    assert (np.abs(found - chances) < 5 * np.sqrt(np.maximum(chances, 1e-3) / 4000)).all()
    absent = ~existing(posterior.regimes)
    assert not drawn.weights[:, absent.nonzero()[0], :, absent.nonzero()[1]].any()
    assert not drawn.noise_std[:, absent].any()
    assert (drawn.noise_std[:, ~absent] > 0).all()
    # a posterior that gets all its data in pieces is the same
    pieces = ExactPosterior(4, noise_mean=noise_mean, prior=prior, regimes=data.n_regimes)
    moments = Moments(4, regimes=data.n_regimes)
    for row, a in zip(data.values, data.regimes, strict=True):
        moments.add(row, a)
        pieces.update(moments)
    assert np.allclose(pieces.edge_probability, truth, atol=1e-9)
    best = posterior.most_probable()
    assert np.isclose(
        best.log_probability,
        max(float(s) for s in _log_joint(posterior)),
    )


def _log_joint(posterior: ExactPosterior) -> list[float]:
    """Of the best graphs inside every order."""
    found = []
    for order in permutations(range(4)):
        total = 0.0
        for regime, node in posterior._mechanisms:
            before = sum(1 << (j - (j > node)) for j in order if order.index(j) < order.index(node))
            total += max(
                posterior.tables.scores[regime, node, s] for s in range(8) if s & before == s
            )  # fmt: skip
        found.append(total - float(posterior._forward[-1]))
    return found


def test_chains_agree_with_sums() -> None:
    data, noise_mean = data_of("4 nodes")
    exact = ExactPosterior(4, Moments.of(data), noise_mean=noise_mean)
    chains = SampledPosterior(4, Moments.of(data), noise_mean=noise_mean, n_sweeps=4000,
                              n_orders=1000)  # fmt: skip
    assert np.abs(chains.edge_probability - exact.edge_probability).max() < 0.03
    absent = np.broadcast_to(~existing(exact.regimes)[:, None], (3, 4, 4))
    assert not chains.edge_probability[absent].any()
    drawn = chains.draw(np.random.default_rng(1), 2000)
    assert np.abs(drawn.adjacency.mean(axis=0) - exact.edge_probability).max() < 0.06
    other = SampledPosterior(4, noise_mean=noise_mean, regimes=data.n_regimes, n_sweeps=10,
                             n_orders=1000, seed=5)  # fmt: skip
    other.restore(chains.state())
    assert np.array_equal(other.edge_probability, chains.edge_probability)
    chains.retire(2, 3)
    exact.retire(2, 3)
    assert exact._retired[0][:2] == (2, 3)


def test_two_regimes_told_are_the_default_bit_for_bit() -> None:
    sem = random_sem(5, seed=3)
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (60, 5))
    X = sem.sample(A, rng)
    learner = GraphPosterior(miss_probability_per_edge=0.9)
    told = clone(learner).fit(X, interventions=A, regimes=[2] * 5)
    default = learner.fit(X, interventions=A)
    assert np.array_equal(told.edge_probability_, default.edge_probability_)
    for one, other in zip(told.draw(1, 5)[:5], default.draw(1, 5)[:5], strict=True):
        assert np.array_equal(one, other)


def test_relabelled_nodes_give_relabelled_probabilities() -> None:
    sem = random_sem(5, seed=3, regimes=[1, 3, 2, 1, 4])
    rng = np.random.default_rng(0)
    A = rng.integers(0, sem.regimes, (80, 5))
    X = sem.sample(A, rng)
    order = np.array([3, 0, 4, 2, 1])
    learner = GraphPosterior(miss_probability_per_edge=0.9)
    one = learner.fit(X, interventions=A, regimes=sem.regimes)
    edges, evidence, weights = one.edge_probability_, one.log_evidence_, one.weights_
    other = learner.fit(X[:, order], interventions=A[:, order], regimes=sem.regimes[order])
    assert np.allclose(other.edge_probability_, edges[:, order][:, :, order], atol=1e-9)
    assert np.isclose(other.log_evidence_, evidence)
    assert np.allclose(other.weights_, weights[:, order][:, :, order])


def test_the_estimator_and_its_graph() -> None:
    sem = random_sem(4, seed=2, regimes=[1, 2, 3, 1])
    rng = np.random.default_rng(0)
    A = rng.integers(0, sem.regimes, (600, 4))
    X = sem.sample(A, rng)
    model = GraphPosterior().fit(X, interventions=A, noise_mean=1.0, regimes=sem.regimes)
    assert model.weights_.shape == (3, 4, 4)
    assert (model.adjacency_ >= sem.adjacency).all()
    assert np.abs(model.weights_ - sem.weights)[sem.adjacency].max() < 0.5
    assert model.known_.sum() == 7
    assert not model.result_.unknown()
    assert {edge["regime"] for edge in model.result_.edges()} <= {"natural", "regime 1", "regime 2"}
    assert model.graph_.nodes["x0"] == {"natural_known": True}
    shown = GraphPosterior().fit(X, interventions=A, noise_mean=1.0)
    assert shown.regimes_.tolist() == [2, 2, 3, 2]
