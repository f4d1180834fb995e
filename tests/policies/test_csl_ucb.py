"""Algorithm 2: when it explores, what it chooses, and that the cached chains change no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import LinearSEM, random_sem
from causalarms.errors import CausalArmsError, ModelError
from causalarms.models.linear import score_interventions
from causalarms.policies.base import Policy
from causalarms.policies.csl_ucb import CSLUCB
from causalarms.rng import stream
from causalarms.sem.rewards import all_interventions, intervention_of
from causalarms.simulation.simulate import simulate

SEM = random_sem(4, seed=5)
HORIZON = 300


def csl_ucb(**settings: Any) -> CSLUCB:
    given: dict[str, Any] = {"horizon": HORIZON, "noise_mean": SEM.noise_mean} | settings
    return CSLUCB(4, SEM.reward, **given)


def play(policy: Policy, n_rounds: int, seed: int = 1) -> list[str]:
    """Tell the policy what it asks for; the reason of every round."""
    noise, reasons = stream(seed, "noise"), []
    for t in range(n_rounds):
        suggestion = policy.suggest(stream(seed, "policy", t))
        policy.tell(suggestion.intervention, SEM.sample(suggestion.intervention[None], noise)[0])
        reasons.append(suggestion.reason)
    return reasons


@pytest.mark.parametrize("min_samples", [20, 33])
def test_exploration_ends_when_every_mechanism_has_its_samples(min_samples: int) -> None:
    policy = csl_ucb(min_samples=min_samples)
    trace = simulate(policy, SEM, horizon=150, seed=3)
    counts = np.stack([(trace.interventions == regime).cumsum(axis=0) for regime in (0, 1)], axis=1)
    enough = np.asarray((counts >= min_samples).all(axis=(1, 2)))  # after each round
    np.testing.assert_array_equal(trace.explored[1:], ~enough[:-1])
    assert trace.explored[0]


def test_a_mechanism_needs_two_more_samples_than_nodes() -> None:
    assert csl_ucb(min_samples=2).min_samples == 6


def test_the_choice_is_the_largest_mean_plus_alpha_u() -> None:
    policy = csl_ucb()
    while policy.model is None:
        play(policy, 1, seed=policy.n_told)
    scores = score_interventions(policy.model, all_interventions(4), SEM.reward, delta=0.05)
    alpha_0 = 0.5 * scores.mean.max() / scores.width.max()
    alpha = alpha_0 * (1 + np.cos(np.pi * policy.n_told / HORIZON)) / 2
    arm = int(np.argmax(scores.mean + alpha * scores.width))
    suggestion = policy.suggest(np.random.default_rng(0))
    np.testing.assert_array_equal(suggestion.intervention, intervention_of(arm, 4))
    assert (suggestion.mean, suggestion.width) == (scores.mean[arm], scores.width[arm])
    assert policy._graph_round == policy.n_told


@pytest.mark.parametrize("alpha", [0.0, 1e6])
def test_a_given_alpha_weighs_mean_against_bound(alpha: float) -> None:
    policy = csl_ucb(alpha=alpha)
    play(policy, 100)
    assert policy.model is not None
    scores = score_interventions(policy.model, all_interventions(4), SEM.reward, delta=0.05)
    best = np.argmax(scores.width if alpha else scores.mean)
    np.testing.assert_array_equal(policy.ask(np.random.default_rng(0)), intervention_of(best, 4))


def test_the_choice_is_held_between_refreshes() -> None:
    policy = csl_ucb(refresh=20)
    trace = simulate(policy, SEM, horizon=200, seed=1)
    first = int(np.argmin(trace.explored))
    for start in range(first, 180, 20):
        block = trace.interventions[start : start + 20]
        assert (block == block[0]).all()


def test_graph_and_weights_have_their_own_rhythm() -> None:
    policy = csl_ucb(refresh=50, refresh_weights=10)
    graphs, weights = [], []
    for t in range(180):
        play(policy, 1, seed=t)
        state = policy.state()
        graphs.append(state["graph_round"])
        weights.append(state["weights_round"])
    learned = sorted(set(graphs) - {0})
    assert np.diff(learned).tolist() == [50] * (len(learned) - 1)
    fitted = sorted(set(weights) - {0})
    assert np.diff(fitted).tolist() == [10] * (len(fitted) - 1)
    assert set(learned) <= set(fitted)


@pytest.mark.parametrize("joint", [True, False], ids=["joint", "apart"])
def test_chains_kept_from_earlier_refreshes_change_no_bit(joint: bool) -> None:
    kept, anew = csl_ucb(joint=joint, max_samples=40), csl_ucb(joint=joint, max_samples=40)
    noise = stream(0, "noise")
    for t in range(HORIZON):
        a = kept.ask(stream(0, "policy", t))
        np.testing.assert_array_equal(anew.ask(stream(0, "policy", t)), a)
        x = SEM.sample(a[None], noise)[0]
        anew._chains.clear()
        kept.tell(a, x)
        anew.tell(a, x)
    one, other = kept.state(), anew.state()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_a_joint_graph_has_no_cyclic_intervention_and_regimes_apart_count_them() -> None:
    joint = csl_ucb(joint=True)
    play(joint, 200)
    assert joint.n_cyclic == 0
    counted = 0
    for seed in range(12):
        sem = random_sem(4, seed=seed)
        apart = CSLUCB(4, horizon=HORIZON, noise_mean=sem.noise_mean)
        trace = simulate(apart, sem, horizon=110, seed=seed)
        assert apart.model is not None
        assert (apart.n_cyclic > 0) <= (apart.model.order is None)
        assert np.isfinite(trace.regret).all()
        counted += apart.n_cyclic
    assert counted > 0


def test_unknown_noise_means_are_estimated() -> None:
    policy = csl_ucb(noise_mean=None)
    play(policy, 200)
    assert policy.model is not None
    error = policy.model.intercept - SEM.mechanism_mean
    assert np.abs(error).max() < 1.5
    assert (policy.model.n_regressors >= 1).all()


def test_a_single_node_is_a_choice_between_two_means() -> None:
    """Nothing has a parent, so no bound has a width."""
    sem = LinearSEM(weights=np.zeros((2, 1, 1)), noise_mean=[[1.0], [2.0]])
    policy = CSLUCB(1, horizon=200, noise_mean=sem.noise_mean)
    trace = simulate(policy, sem, horizon=200, seed=0)
    assert trace.optimal[~trace.explored].all()
    assert (~trace.explored).sum() > 100


@pytest.mark.parametrize(
    ("n_nodes", "settings", "message"),
    [
        (4, {"horizon": 40}, r"40 rounds is too short: 40 random rounds"),
        (20, {"horizon": 44}, r"44 rounds is too short"),
        (4, {"horizon": 300, "max_samples": 19}, r"max_samples is 19: .* never have the 20"),
        (
            4,
            {"horizon": 300, "bound": "wide"},
            r"bound must be one of theorem, .* not 'wide'",
        ),
        (4, {"horizon": 300, "noise_mean": [1.0]}, r"noise_mean must be a number or of shape"),
        (0, {"horizon": 300}, r"n_nodes must be an integer of at least 1, not 0"),
    ],
)
def test_what_cannot_work_is_refused_at_once(
    n_nodes: int, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(CausalArmsError, match=message):
        CSLUCB(n_nodes, **settings)


def test_the_reward_must_be_a_node() -> None:
    with pytest.raises(ModelError, match="no node 4 to be the reward of 4 nodes"):
        CSLUCB(4, 4, horizon=300)
