"""Means and bounds of all interventions against one inverse for each."""

from __future__ import annotations

import numpy as np
import pytest
from mechanism_models import fitted, model_of, post_intervention

from causalarms.models.linear import (
    FORMS,
    MechanismWeights,
    best_score,
    form_code,
    score_interventions,
    singular_value_bound,
)
from causalarms.sem.rewards import all_interventions

DELTA = 0.05


def one_inverse_each(
    model: MechanismWeights, reward: int, form: str, known_mean: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and U(X, a, delta) as in eq. U, from numpy's inverse."""
    n = model.weights.shape[1]
    means, widths = [], []
    for a in all_interventions(n):
        B, nu = post_intervention(model, a)
        inverse = np.linalg.inv(np.eye(n) - B)
        mu = inverse.T @ nu
        spread = model.spread[a, np.arange(n)]
        p = model.n_regressors[a, np.arange(n)]
        sigma = singular_value_bound(spread, p, form_code(form), float(np.log(2 * n / DELTA)))
        parents = mu if known_mean else np.append(mu, 1.0)  # the constant parent
        means.append(mu[reward])
        widths.append(np.linalg.norm(inverse[:, reward]) * np.linalg.norm(parents) * sigma)
    return np.array(means), np.array(widths)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("known_mean", [True, False], ids=["known", "intercepts"])
def test_scores_are_those_of_one_inverse_each(form: str, known_mean: bool) -> None:
    sem, model = fitted(5, 200, seed=4, known_mean=known_mean)
    for reward in (sem.reward, 1):
        scores = score_interventions(
            model,
            all_interventions(5),
            reward,
            delta=DELTA,
            bound=form,
            known_mean=known_mean,
        )
        mean, width = one_inverse_each(model, reward, form, known_mean)
        np.testing.assert_allclose(scores.mean, mean, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(scores.width, width, rtol=1e-9, atol=1e-10)
        assert scores.n_cyclic == 0


def test_means_are_those_of_the_true_system_for_the_true_weights() -> None:
    sem, _ = fitted(5, 50, seed=4)
    model = model_of(sem.weights, sem.mechanism_mean, 0.0, order=sem.order)
    scores = score_interventions(model, all_interventions(5), sem.reward)
    np.testing.assert_allclose(scores.mean, sem.all_expected_rewards(), rtol=1e-10, atol=1e-10)
    assert (scores.width == 0).all()


def test_a_common_order_and_one_order_each_agree() -> None:
    sem, model = fitted(5, 200, seed=4)
    alone = model_of(model.weights, model.intercept, model.spread, n_regressors=model.n_regressors)
    assert model.order is not None
    common = score_interventions(model, all_interventions(5), sem.reward)
    each = score_interventions(alone, all_interventions(5), sem.reward)
    np.testing.assert_allclose(each.mean, common.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(each.width, common.width, rtol=1e-10)


class TestCyclicMixtures:
    """x0 -> x1 when natural, x1 -> x0 when x0 is intervened on: a = (1, 0, *) is a cycle."""

    weights = np.zeros((2, 3, 3))
    weights[0, 0, 1] = 2.0
    weights[1, 1, 0] = 5.0
    weights[:, 1, 2] = 1.0
    model = model_of(weights, 1.0, 0.1)
    arms = all_interventions(3)

    def test_they_have_no_expected_reward_and_are_counted(self) -> None:
        scores = score_interventions(self.model, self.arms, 2)
        cyclic = (self.arms[:, 0] == 1) & (self.arms[:, 1] == 0)
        np.testing.assert_array_equal(np.isnan(scores.mean), cyclic)
        np.testing.assert_array_equal(np.isnan(scores.width), cyclic)
        assert scores.n_cyclic == 2

    def test_the_others_are_right(self) -> None:
        scores = score_interventions(self.model, self.arms, 2)
        for a, mean in zip(self.arms, scores.mean, strict=True):
            if not np.isnan(mean):
                B, nu = post_intervention(self.model, a)
                assert mean == pytest.approx(np.linalg.solve((np.eye(3) - B).T, nu)[2])

    def test_they_are_never_chosen(self) -> None:
        scores = score_interventions(self.model, self.arms, 2)
        for sign in (1, -1):
            best = best_score(sign * scores.mean)
            assert sign * scores.mean[best] == np.nanmax(sign * scores.mean)

    def test_a_singular_matrix_is_no_trouble(self) -> None:
        """b_01 b_10 = 1: I - B_a has no inverse at all."""
        weights = self.weights.copy()
        weights[1, 1, 0] = 0.5
        assert score_interventions(model_of(weights, 1.0, 0.1), self.arms, 2).n_cyclic == 2


def test_of_equal_scores_the_first_wins() -> None:
    assert best_score(np.array([1.0, np.nan, 3.0, 3.0, 2.0])) == 2
    assert best_score(np.array([np.nan, -np.inf, -5.0])) == 2
    model = model_of(np.zeros((2, 3, 3)), 1.0, 0.0, order=np.arange(3))
    scores = score_interventions(model, all_interventions(3), 2)
    assert best_score(scores.mean + scores.width) == 0


def test_a_batch_scores_as_its_rows() -> None:
    sem, model = fitted(4, 100, seed=1)
    arms = all_interventions(4)
    whole = score_interventions(model, arms, sem.reward)
    for row, arm in enumerate(arms):
        one = score_interventions(model, arm[None], sem.reward)
        assert (one.mean[0], one.width[0]) == (whole.mean[row], whole.width[row])
