"""Theorem 1 and its two lemmas by Monte Carlo, on rounds that were not chosen adaptively.

How loose the bounds are is measured by benchmarks/paper_bounds.py bounds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from mechanism_models import fitted, post_intervention

from causalarms.models.linear import FORMS, form_code, score_interventions, singular_value_bound
from causalarms.sem.rewards import all_interventions

N_NODES = 5


def test_the_error_of_a_reward_is_the_one_the_proof_starts_from() -> None:
    """Eq. del_mu, exactly: Delta mu = (I - B-hat)^-T Delta B^T mu."""
    sem, model = fitted(N_NODES, 60, seed=3)
    arms = all_interventions(N_NODES)
    estimated = score_interventions(model, arms, sem.reward).mean
    for a, mean, truth in zip(arms, estimated, sem.expected_reward(arms), strict=True):
        B, nu = post_intervention(model, a)
        true_b = sem.post_intervention_weights(a)
        mu = np.linalg.solve((np.eye(N_NODES) - true_b).T, nu)
        error = np.linalg.solve((np.eye(N_NODES) - B).T, (B - true_b).T @ mu)
        assert mean - truth == pytest.approx(error[sem.reward], rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("n_parents", [1, 2, 4])
def test_lemma_1_moments_of_weight_errors_stay_below_their_bound(n_parents: int) -> None:
    """Errors given the parents' values are N(0, Phi) in the coordinates of the parents."""
    rng = np.random.default_rng(n_parents)
    X = rng.normal(size=(60, n_parents)) @ rng.normal(size=(n_parents, n_parents)) + 1
    phi = np.linalg.inv(X.T @ X)
    largest = np.linalg.eigvalsh(phi)[-1]
    norms = np.linalg.norm(rng.multivariate_normal(np.zeros(n_parents), phi, 20_000), axis=1)
    for m in (2, 3, 4, 6):
        N = N_NODES
        scale = math.factorial(m) * np.sqrt(4 * N / (N + 2))
        limit = scale * (largest * (N + 2) / 4) ** (m / 2)
        standard_error = (norms**m).std() / np.sqrt(len(norms))
        assert (norms**m).mean() + 4 * standard_error < limit


@pytest.mark.parametrize("form", FORMS)
def test_bounds_hold_at_least_as_often_as_they_say(form: str) -> None:
    """Lemma 2 and Theorem 1 at delta = 0.05, over systems and data sets."""
    nodes, log_term = np.arange(N_NODES), float(np.log(2 * N_NODES / 0.05))
    arms = all_interventions(N_NODES)[::3]
    of_sigma, of_reward = [], []
    for seed in range(40):
        sem, model = fitted(N_NODES, 80, seed=seed)
        scores = score_interventions(model, arms, sem.reward, delta=0.05, bound=form)
        error = np.abs(scores.mean - sem.expected_reward(arms))
        of_reward.append((error <= scores.width).mean())
        for a in arms:
            B, _ = post_intervention(model, a)
            sigma = np.linalg.norm(B - sem.post_intervention_weights(a), ord=2)
            spread, p = model.spread[a, nodes], model.n_regressors[a, nodes]
            limit = singular_value_bound(spread, p, form_code(form), log_term)
            of_sigma.append(sigma <= limit)
    assert np.mean(of_reward) >= 0.95
    assert np.mean(of_sigma) >= 0.95
