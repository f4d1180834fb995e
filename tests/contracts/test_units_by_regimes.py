"""The default, which is told nothing, in other units, from other zeros, with nodes renumbered.

No decision and no probability changes, whatever regimes the nodes have. Powers of two move
exponents only: there everything is equal bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import GraphPosterior, LinearSEM, make_policy, random_sem

FloatArray = npt.NDArray[np.float64]

N_ROUNDS = 40
SYSTEMS = {"mixed, 4 nodes": [1, 2, 3, 2], "mixed, 5 nodes": [3, 1, 2, 1, 3], "pairs": [2, 2, 2, 2]}
POLICIES: dict[str, dict[str, Any]] = {
    "posterior": {},
    "posterior-cd": {},
}  # all with units that are estimated, and without means


class Course(NamedTuple):
    choices: list[list[int]]
    means: list[float]  # predicted rewards, in the units and from the zero of the system
    probability: FloatArray


def system(label: str) -> LinearSEM:
    regimes = SYSTEMS[label]
    return random_sem(len(regimes), seed=3, regimes=regimes, edge_probability=0.7)


def played(sem: LinearSEM, label: str, unit: FloatArray, offset: FloatArray) -> Course:
    """Rounds of a policy that sees the nodes in these units, counted from these zeros."""
    policy: Any = make_policy(
        label.partition(",")[0],
        n_nodes=sem.n_nodes,
        reward=sem.reward,
        noise_scale="estimate",
        regimes=sem.regimes,
        **POLICIES[label],
    )
    noise, choices, means = np.random.default_rng(3), [], []
    for t in range(N_ROUNDS):
        suggestion = policy.suggest(np.random.default_rng([7, t]))
        choices.append(suggestion.intervention.tolist())
        means.append((suggestion.mean - offset[sem.reward]) / unit[sem.reward])
        x = sem.sample(suggestion.intervention[None], noise)[0]
        policy.tell(suggestion.intervention, x * unit + offset)
    return Course(choices, means[1:], policy.edge_probability)


@pytest.mark.parametrize("label", POLICIES)
@pytest.mark.parametrize("name", SYSTEMS)
def test_units_that_are_powers_of_two_change_no_bit(name: str, label: str) -> None:
    sem = system(name)
    n = sem.n_nodes
    plain = played(sem, label, np.ones(n), np.zeros(n))
    assert len({tuple(choice) for choice in plain.choices}) > 2
    for node in range(n):
        for power in (-30, 9):
            unit = np.ones(n)
            unit[node] = 2.0**power
            other = played(sem, label, unit, np.zeros(n))
            assert other.choices == plain.choices, (node, power)
            np.testing.assert_array_equal(other.probability, plain.probability)
            np.testing.assert_array_equal(other.means, plain.means)


@pytest.mark.parametrize("label", POLICIES)
@pytest.mark.parametrize("name", SYSTEMS)
def test_other_units_and_zeros_change_no_decision(name: str, label: str) -> None:
    sem = system(name)
    n = sem.n_nodes
    plain = played(sem, label, np.ones(n), np.zeros(n))
    rng = np.random.default_rng(0)
    for trial in range(6):
        unit = np.exp(rng.uniform(np.log(1e-4), np.log(1e4), n)) if trial % 3 else np.ones(n)
        offset = unit * rng.uniform(-1e4, 1e4, n) if trial % 3 != 1 else np.zeros(n)
        other = played(sem, label, unit, offset)
        assert other.choices == plain.choices, (unit, offset)
        np.testing.assert_allclose(other.probability, plain.probability, atol=1e-6)
        np.testing.assert_allclose(other.means, plain.means, rtol=1e-5, atol=1e-5)


def rounds(sem: LinearSEM, n: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    rng = np.random.default_rng(5)
    A = rng.integers(0, sem.regimes, (n, sem.n_nodes))
    return A, sem.sample(A, rng)


@pytest.mark.parametrize("name", SYSTEMS)
def test_renumbered_nodes_have_renumbered_probabilities_and_the_same_best(name: str) -> None:
    sem = system(name)
    n, order = sem.n_nodes, np.random.default_rng(1).permutation(sem.n_nodes)
    A, X = rounds(sem, 120)
    found = []
    for places in (np.arange(n), order):
        policy: Any = make_policy(
            "posterior",
            n_nodes=n,
            reward=places.tolist().index(sem.reward),
            noise_scale="estimate",
            regimes=sem.regimes[places],
        )
        for a, x in zip(A[:, places], X[:, places], strict=True):
            policy.tell(a, x)
        found.append(
            (policy.edge_probability, policy.recommend(np.random.default_rng(0)).reward.mean)
        )
    (plain, mean), (other, renumbered_mean) = found
    np.testing.assert_allclose(other, plain[:, order][:, :, order], atol=1e-8)
    assert renumbered_mean == pytest.approx(mean, rel=0.1)  # over 200 draws each


@pytest.mark.filterwarnings("ignore::causalarms.errors.IdentifiabilityWarning")
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("method", ["exact", "sampled"])
def test_what_is_learned_from_a_table(name: str, method: str) -> None:
    sem = system(name)
    n = sem.n_nodes
    A, X = rounds(sem, 90)
    rng = np.random.default_rng(2)
    order = rng.permutation(n)
    learner = GraphPosterior(noise_scale="estimate", method=method, n_sweeps=100)
    plain = learner.fit(X, interventions=A, regimes=sem.regimes).edge_probability_
    exact = learner.fit(X * 2.0 ** rng.integers(-20, 20, n), interventions=A, regimes=sem.regimes)
    np.testing.assert_array_equal(exact.edge_probability_, plain)
    moved = X * np.exp(rng.uniform(-9, 9, n))
    moved = moved + moved.std(axis=0) * rng.uniform(-1e3, 1e3, n)
    near = learner.fit(moved, interventions=A, regimes=sem.regimes)
    np.testing.assert_allclose(near.edge_probability_, plain, atol=1e-6)
    if method == "sampled":
        return  # chains are others where nodes are
    renumbered = learner.fit(X[:, order], interventions=A[:, order], regimes=sem.regimes[order])
    np.testing.assert_allclose(
        renumbered.edge_probability_, plain[:, order][:, :, order], atol=1e-8
    )
