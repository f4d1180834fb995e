"""Policies and experiments where 2^N interventions cannot be enumerated."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest

from causalarms import LinearSEM, make_policy, random_sem
from causalarms.policies.csl_ucb import CSLUCB
from causalarms.policies.explore_then_commit import ExploreThenCommit
from causalarms.simulation.experiment import Contestant, Experiment, run_unit
from causalarms.simulation.simulate import simulate


class Told:
    """A learner that was told the answer."""

    def __init__(self, sem: LinearSEM, weights: np.ndarray | None = None) -> None:
        self.weights_ = sem.weights if weights is None else weights
        self.intercept_ = np.array(sem.mechanism_mean)
        self.noise_std_ = np.array(sem.mechanism_std)

    def fit(
        self, X: Any, y: None = None, *, interventions: Any = None, noise_mean: Any = None
    ) -> Self:
        return self


@pytest.mark.parametrize("n_nodes", [25, 60])
def test_oracle_and_thompson_sampling(n_nodes: int) -> None:
    sem = random_sem(n_nodes, seed=0, expected_degree=3)
    oracle = make_policy("oracle", n_nodes=n_nodes, systems=[sem])
    assert simulate(oracle, sem, horizon=3).regret[-1] == 0
    sampler = make_policy(
        "linsem-ts", n_nodes=n_nodes, graph=sem.adjacency, noise_mean=sem.noise_mean
    )
    trace = simulate(sampler, sem, horizon=80)
    assert trace.gap[-20:].mean() < 0.5 * trace.gap[:20].mean()


def test_thompson_sampling_survives_the_scale_of_dense_systems() -> None:
    """Node values of 1e10 hide the prior in the rounding of the Gram matrix."""
    sem = random_sem(60, seed=1)
    sampler = make_policy("linsem-ts", n_nodes=60, graph=sem.adjacency, noise_mean=sem.noise_mean)
    trace = simulate(sampler, sem, horizon=15)
    assert np.isfinite(trace.regret).all()
    assert np.abs(trace.observations).max() > 1e7


@pytest.mark.parametrize("n_nodes", [25, 60])
def test_commitment_to_the_best_of_the_learned_model(n_nodes: int) -> None:
    sem = random_sem(n_nodes, seed=0, expected_degree=3)
    policy = ExploreThenCommit(n_nodes, horizon=200, learner=Told(sem), n_explore=n_nodes + 2)
    trace = simulate(policy, sem, horizon=2 * n_nodes + 8)
    assert policy.proven
    assert trace.gap[-1] == 0
    again = ExploreThenCommit(n_nodes, horizon=200, learner=Told(sem), n_explore=n_nodes + 2)
    again.restore(policy.state())
    rng = np.random.default_rng(0)
    assert again.ask(rng).tolist() == policy.ask(rng).tolist()


def test_commitment_where_the_learned_regimes_mix_into_a_cycle() -> None:
    sem = random_sem(60, seed=0, expected_degree=3)
    weights = sem.weights.copy()
    first, second = sem.order[20], sem.order[21]
    weights[0, first, second], weights[1, second, first] = 1.0, 1.0
    learner = Told(sem, weights)
    policy = ExploreThenCommit(60, horizon=200, learner=learner, n_explore=62)
    simulate(policy, sem, horizon=130)
    assert policy.proven
    assert policy.n_cyclic == 2**58  # natural second and intervened first close the cycle


def test_csl_ucb_scores_candidates_beyond_twenty_nodes() -> None:
    sem = random_sem(25, seed=0, expected_degree=2)
    settings: dict[str, Any] = {"horizon": 150, "noise_mean": sem.noise_mean, "min_samples": 27}
    policy = CSLUCB(25, **settings)
    trace = simulate(policy, sem, horizon=110)
    assert not trace.explored[-1]
    assert trace.gap[-1] < trace.gap[trace.explored].mean()
    again = CSLUCB(25, **settings)
    again.restore(policy.state())
    rng = np.random.default_rng(0)
    assert again.ask(rng).tolist() == policy.ask(rng).tolist()
    sixty = CSLUCB(60, horizon=200, noise_mean=1.0)
    assert simulate(sixty, random_sem(60, seed=0, expected_degree=3), horizon=5).explored.all()


def test_an_experiment_with_a_change_at_sixty_nodes() -> None:
    contestant = Contestant("oracle")
    experiment = Experiment(
        n_nodes=60, horizon=30, edge_probability=0.05, changes=(10,), block=10,
        contestants=(contestant,),
    )  # fmt: skip
    record = run_unit(experiment, contestant, 0)
    assert record["regret"] == 0
    assert not record["linear_regret"]
