"""Optimism over draws of the posterior: with change, in batches, to the stop, past 20 nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import make_policy, random_sem
from causalarms.errors import DataError, ModelError
from causalarms.policies.base import Policy
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.policies.stopping import StopRule
from causalarms.search.constraints import Constraints
from causalarms.sem.ensembles import regenerate
from causalarms.sem.rewards import all_interventions, index_of, intervention_of
from causalarms.simulation.simulate import simulate
from causalarms.simulation.world import World

SEM = random_sem(6, seed=4)


def posterior(name: str = "posterior", **settings: Any) -> PosteriorPolicy:
    """Of noise of order one, unless `settings` say otherwise."""
    told: dict[str, Any] = {
        "n_nodes": 6, "noise_mean": SEM.noise_mean, "noise_scale": 1.0, "decide": "quantile",
        "typing_errors": "kept",
    }  # fmt: skip
    if name == "posterior-cd":
        told["noise"] = "gaussian"
    made = make_policy(name, **(told | settings))
    assert isinstance(made, PosteriorPolicy)
    return made


@pytest.mark.parametrize("noise_mean", [SEM.noise_mean, None])
def test_the_best_intervention_is_found_and_kept(noise_mean: np.ndarray | None) -> None:
    trace = simulate(posterior(noise_mean=noise_mean), SEM, horizon=200)
    assert trace.optimal[-50:].mean() > 0.9
    assert trace.regret[-1] < 0.2 * 200 * (SEM.all_expected_rewards().max() - SEM.average_reward())


def changing_world(seed: int) -> World:
    return World([SEM, regenerate(SEM, 2, np.random.default_rng(seed), rule="authors").sem], [150])


def test_a_change_is_found_in_its_mechanisms_and_forgotten_there_only() -> None:
    found = missed = false = 0
    for seed in range(5):
        world = changing_world(seed)
        policy = posterior("posterior-cd")
        trace = simulate(policy, world, horizon=300, seed=seed)
        changed = {tuple(mechanism) for mechanism in world.changes[0].mechanisms}
        alarmed = {(alarm.regime, alarm.node) for alarm in policy.alarms if alarm.round > 150}
        found += len(alarmed & changed)
        missed += len(changed - alarmed)
        false += len(policy.alarms) - len(alarmed & changed)
        for alarm in policy.alarms:
            assert (
                policy._system.rounds.moments.counts[alarm.regime, alarm.node]
                <= 300 - alarm.change_point
            )
        untouched = [(r, i) for r in (0, 1) for i in range(6) if (r, i) not in alarmed]
        counts = sum(int(policy._system.rounds.moments.counts[m]) for m in untouched)
        played = sum(int((trace.interventions[:, i] == r).sum()) for r, i in untouched)
        assert counts == played
    assert found >= 3 * missed
    assert false <= 2


def test_without_a_detector_nothing_is_forgotten() -> None:
    policy = posterior()
    simulate(policy, changing_world(0), horizon=200)
    assert policy.alarms == []
    assert policy._system.rounds.moments.counts.sum() == 200 * 6


def test_probes_follow_an_alarm() -> None:
    policy = posterior("posterior-cd", probes=4)
    trace = simulate(policy, changing_world(1), horizon=200)
    alarm = policy.alarms[0]
    assert trace.explored[alarm.round : alarm.round + 4].all()
    first, second = trace.interventions[alarm.round : alarm.round + 2]
    assert (first != second).all()  # together they play every mechanism


def test_probes_stay_among_what_may_be_played() -> None:
    policy = posterior("posterior-cd", probes=4)
    rng = np.random.default_rng(0)
    simulate(policy, changing_world(1), horizon=120)
    policy._probes_left = 3  # the second of a pair
    opposite = index_of(1 - policy._system.rounds.recent.last_regimes())
    near, far = opposite ^ 1, opposite ^ 0b111110
    for arms, expected in (([far, opposite], opposite), ([far, near], near)):
        allowed = only(intervention_of(np.array(arms), policy.n_nodes))
        for _ in range(5):
            assert index_of(policy.constrain(allowed).suggest(rng).intervention) == expected


def only(rows: npt.NDArray[np.uint8]) -> Constraints:
    """All but these are forbidden."""
    kept = {tuple(row) for row in rows.tolist()}
    every = all_interventions(rows.shape[1]).tolist()
    boxes = [dict(enumerate(row)) for row in every if tuple(row) not in kept]
    return Constraints([2] * rows.shape[1], forbidden=boxes)


def test_a_batch_of_probes_is_made_of_opposites() -> None:
    policy = posterior("posterior-cd", probes=4)
    simulate(policy, changing_world(1), horizon=120)
    policy._probes_left = 3
    arms = np.array([s.intervention for s in policy.suggest_batch(np.random.default_rng(0), 5)])
    assert (
        arms[0] != policy._system.rounds.recent.last_regimes()
    ).all()  # ends the pair that is begun
    assert (arms[1::2] != arms[2::2]).all()
    assert len(np.unique(arms, axis=0)) == 5


def test_batches_are_asked_before_they_are_told() -> None:
    policy = posterior()
    suggestions = policy.suggest_batch(np.random.default_rng(0), 5)
    assert len(suggestions) == 5
    assert len({tuple(s.intervention) for s in suggestions}) > 1
    assert policy.n_told == 0
    batched = posterior()
    trace = simulate(batched, SEM, horizon=203, batch=10)
    assert len(trace.gap) == batched.n_told == 203  # the last batch of 3 is told too
    assert trace.optimal[-50:].mean() > 0.8
    with pytest.raises(ModelError, match="at least 1"):
        policy.suggest_batch(np.random.default_rng(0), 0)


def test_a_stop_rule_ends_the_run_with_what_it_promised() -> None:
    losses, correct = [], 0
    best = SEM.all_expected_rewards().max()
    for seed in range(10):
        rule = StopRule(expected_loss=0.2, probability=0.9, draws=200)
        trace = simulate(posterior(), SEM, horizon=400, seed=seed, stop=rule)
        advice = trace.recommendation
        assert advice is not None
        assert len(trace.gap) < 400
        assert len(trace.gap) % rule.every == 0
        assert advice.expected_loss <= 0.2
        assert advice.probability >= 0.9
        losses.append(best - SEM.expected_reward(advice.intervention[None])[0])
        correct += losses[-1] < 1e-9
    assert correct >= 7  # 10 runs at 90 %: fewer than 7 in 1 of 80
    assert np.mean(losses) < 0.6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs an expected_loss or a probability"),
        ({"probability": 1.0}, "between 0 and 1"),
        ({"expected_loss": 0.0}, "above 0"),
        ({"probability": 0.9, "every": 0}, "at least 1"),
        ({"probability": "0.9"}, "probability must lie between 0 and 1, not '0.9'"),
    ],
)
def test_stop_rules_that_never_or_always_stop(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        StopRule(**settings)  # type: ignore[arg-type]


def test_a_policy_that_is_not_sure_of_anything_cannot_stop() -> None:
    policy: Policy = make_policy("ucb", n_nodes=6, horizon=100)
    with pytest.raises(ModelError, match="use the policy 'posterior'"):
        simulate(policy, SEM, horizon=50, stop=StopRule(probability=0.9))


@pytest.mark.parametrize("noise_mean", [True, False])
def test_units_of_measurement_do_not_matter_where_they_are_estimated(noise_mean: bool) -> None:
    """The same world measured in other units, with an offset where means are unknown."""
    units = np.array([100.0, 0.01, 3.0, 1e4, 1.0, 0.2])
    offset = 0.0 if noise_mean else 50.0 * units
    told: dict[str, Any] = {"noise_mean": None, "noise_scale": "estimate"}
    plain = posterior(**(told | ({"noise_mean": SEM.noise_mean} if noise_mean else {})))
    other = posterior(**(told | ({"noise_mean": SEM.noise_mean * units} if noise_mean else {})))
    noise, asked = np.random.default_rng(0), []
    for t in range(60):
        a = plain.ask(np.random.default_rng(t))
        asked.append(np.array_equal(a, other.ask(np.random.default_rng(t))))
        x = SEM.sample(a[None], noise)[0]
        plain.tell(a, x)
        other.tell(a, offset + units * x)
    assert all(asked)
    one = plain.recommend(np.random.default_rng(0))
    two = other.recommend(np.random.default_rng(0))
    assert np.array_equal(one.intervention, two.intervention)
    shift = 0.0 if noise_mean else float(50.0 * units[5])
    assert two.reward.mean == pytest.approx(shift + units[5] * one.reward.mean, rel=1e-4)


def test_given_units_are_those_of_the_prior() -> None:
    scaled = posterior(noise_scale=2.0, noise_mean=2 * SEM.noise_mean)
    plain = posterior()
    noise = np.random.default_rng(0)
    for t in range(20):
        a = plain.ask(np.random.default_rng(t))
        assert np.array_equal(a, scaled.ask(np.random.default_rng(t)))
        x = SEM.sample(a[None], noise)[0]
        plain.tell(a, x)
        scaled.tell(a, 2.0 * x)


def test_past_twenty_nodes_orders_are_sampled() -> None:
    sem = random_sem(22, seed=1, expected_degree=3)
    policy = make_policy("posterior", n_nodes=22, noise_mean=sem.noise_mean)
    assert isinstance(policy, PosteriorPolicy)
    assert policy._system.method == "sampled"
    trace = simulate(policy, sem, horizon=50)
    assert trace.gap[-10:].mean() < 0.3 * trace.gap[:10].mean()
    again = make_policy("posterior", n_nodes=22, noise_mean=sem.noise_mean)
    again.restore(policy.state())
    ask = np.random.default_rng(0)
    assert np.array_equal(again.ask(ask), policy.ask(np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quantile": 1.5}, "quantile"),
        ({"draws": 0}, "draws"),
        ({"method": "guess"}, "method must be one of auto, exact, sampled, not 'guess'"),
        ({"probes": -1}, "probes"),
        ({"weight_scale": 0.0}, "weight_scale must be a number above 0"),
        ({"gaps": "guess"}, "gaps must be one of learn, drop"),
        ({"typing_errors": True}, "typing_errors must be one of kept, left out"),
        ({"draws": 2.5}, "draws must be an integer"),
        ({"quantile": "high"}, "quantile"),
        ({"noise_scale": ["a"] * 6}, "6 of them"),
        ({"noise_scale": "guess"}, "'estimate'"),
        ({"noise_scale": [1.0, 2.0]}, "6 of them"),
        ({"noise_scale": 0.0}, "above 0"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        posterior(**settings)


def test_what_is_known_of_the_noise_is_checked() -> None:
    with pytest.raises(DataError, match="noise_std must be finite and above 0"):
        posterior(noise_std=-1.0)
    with pytest.raises(ModelError, match="draws"):
        posterior().recommend(np.random.default_rng(0), draws=0)
    with pytest.raises(ModelError, match="false_alarms_per_1000_rounds"):
        posterior("posterior-cd", false_alarms_per_1000_rounds="few")


@pytest.mark.parametrize("noise", ["gaussian", "any"])
def test_a_single_outlier_is_an_alarm_unless_noise_may_have_tails(noise: str) -> None:
    policy = posterior("posterior-cd", noise=noise)
    rng = np.random.default_rng(0)
    for a in np.random.default_rng(1).integers(0, 2, (200, 6), dtype=np.uint8):
        policy.tell(a, SEM.sample(a[None], rng)[0])
    before = len(policy.alarms)
    x = SEM.sample(a[None], rng)[0]
    x[SEM.order[-1]] += 40.0
    policy.tell(a, x)
    assert (len(policy.alarms) == before) == (noise == "any")
