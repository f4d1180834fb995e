"""After an alarm only that mechanism forgets, and exploration lasts until it has samples again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import LinearSEM, make_policy, random_sem
from causalarms.changes import Alarm, MechanismGLR
from causalarms.errors import SettingError
from causalarms.policies.base import Policy
from causalarms.policies.csl_ucb import CSLUCB
from causalarms.rng import stream
from causalarms.simulation.world import World

SEM = random_sem(4, seed=5)
ALARM_ROUND, REGIME, NODE = 120, 1, 2


class Scripted(MechanismGLR):
    """Alarms once, about one mechanism, whatever it sees."""

    def observe(self, round_: int, *seen: Any) -> list[Alarm]:
        super().observe(round_, *seen)
        return [Alarm(round_, REGIME, NODE, 118, 9.0, 4.0)] if round_ == ALARM_ROUND else []


def scripted(n_rounds: int) -> tuple[CSLUCB, list[str], np.ndarray]:
    """The policy, why it played what it played, and what it played."""
    policy = CSLUCB(
        4,
        horizon=400,
        noise_mean=SEM.noise_mean,
        max_samples=None,
        detector=Scripted(4, threshold=1e9),
    )
    reasons, played = [], []
    for t in range(n_rounds):
        suggestion = policy.suggest(stream(0, "policy", t))
        a = suggestion.intervention
        policy.tell(a, SEM.sample(a[None], stream(0, "noise", t))[0])
        reasons.append(suggestion.reason)
        played.append(a)
    return policy, reasons, np.array(played)


def test_only_that_mechanism_forgets() -> None:
    policy, _, played = scripted(ALARM_ROUND)
    (alarm,) = policy.alarms
    assert (alarm.round, alarm.regime, alarm.node) == (ALARM_ROUND, REGIME, NODE)
    state = policy.state()
    counts = np.stack([(played == regime).sum(axis=0) for regime in (0, 1)])
    starts = np.zeros((2, 4), dtype=int)
    counts[REGIME, NODE], starts[REGIME, NODE] = 0, ALARM_ROUND
    np.testing.assert_array_equal(state["moments.counts"], counts)
    np.testing.assert_array_equal(state["data.starts"], starts)
    assert (state["moments.gram"][REGIME, NODE] == 0).all()
    assert state["detector.counts"][REGIME, NODE] == 0
    assert (np.delete(state["detector.counts"].ravel(), REGIME * 4 + NODE) > 0).all()


def test_interventions_are_random_until_it_has_samples_again() -> None:
    policy, reasons, played = scripted(250)
    since = (played[ALARM_ROUND:, NODE] == REGIME).cumsum()
    again = ALARM_ROUND + int(np.argmax(since >= policy.min_samples)) + 1
    assert ALARM_ROUND + policy.min_samples <= again < 200
    assert set(reasons[ALARM_ROUND - 20 : ALARM_ROUND]) == {"exploit"}
    assert set(reasons[ALARM_ROUND:again]) == {"explore"}
    assert set(reasons[again:]) == {"exploit"}
    assert len(np.unique(played[ALARM_ROUND:again], axis=0)) > 5


def test_the_weights_come_from_samples_after_the_alarm() -> None:
    """The mechanism of node 1 is another after round 150; the detector of the paper finds it."""
    weights = np.zeros((2, 3, 3))
    weights[:, 0, 1], weights[:, 1, 2] = 1.0, [1.0, -1.0]
    after = weights.copy()
    after[1, 0, 1] = -2.0
    world = World([LinearSEM(weights=w, noise_mean=1.0) for w in (weights, after)], [250])
    policy = make_policy(
        "csl-ucb-cd", n_nodes=3, horizon=600, noise_mean=1.0, detector="paper", zeta=1e-6
    )
    assert isinstance(policy, CSLUCB)
    noise = stream(2, "noise")
    for t in range(600):  # random rounds, so that every mechanism is seen
        a = stream(2, "rounds", t).integers(0, 2, 3).astype(np.uint8)
        policy.tell(a, world.play(t + 1, a, noise))
    found = {(alarm.regime, alarm.node) for alarm in policy.alarms}
    assert found == {(1, 1)}
    assert 250 < policy.alarms[0].round < 280
    assert abs(policy.alarms[0].change_point - 250) <= 12
    assert policy.model is not None
    assert policy.model.weights[1, 0, 1] == pytest.approx(-2.0, abs=0.3)


def test_an_alarm_about_weights_from_before_the_change_is_not_raised_again() -> None:
    """Until the mechanism is fitted anew its old weights say nothing."""
    policy, _, _ = scripted(ALARM_ROUND + 30)
    assert len(policy.alarms) == 1
    state = policy.state()
    assert state["weights_round"] <= ALARM_ROUND < state["n_told"]
    detector = MechanismGLR(4, threshold=-1.0)  # alarms about everything
    detector.restore(policy.detector.state())
    policy.detector = detector
    a = np.array([0, 0, REGIME, 0], dtype=np.uint8)
    policy.tell(a, np.full(4, 50.0))
    named = {(alarm.regime, alarm.node) for alarm in policy.alarms[1:]}
    assert (REGIME, NODE) not in named
    assert named == {(0, 0), (0, 1), (0, 3)}


# Ranks of noise of any distribution need more rounds than there are here to be sure.
TOLD: dict[str, Any] = {"noise_scale": 1.0, "noise": "gaussian", "typing_errors": "kept"}


def late_rounds(made_known: bool) -> Policy:
    """A node changes after 100 rounds; four rounds from before are told after it is known."""
    policy = make_policy("posterior-cd", n_nodes=3, noise_mean=0.0, **TOLD)
    rng = np.random.default_rng(3)
    rounds = []
    for t in range(120):
        a = (rng.integers(0, 2, 3) * [1, 0, 1]).astype(np.uint8)
        x = rng.normal(size=3)
        x[1] += (2.0 if t < 100 else -6.0) * x[0]
        x[2] += x[1]
        rounds.append((t, a, x))
    late = rounds[90:100]
    for t, a, x in [*rounds[:90], *rounds[100:110], *late, *rounds[110:]]:
        policy.tell(a, x, made=t if made_known else None)
    return policy


def test_results_from_before_a_known_change_teach_it_nothing() -> None:
    known, unknown = late_rounds(True), late_rounds(False)
    assert {alarm.node for alarm in known.alarms} == {1}
    for policy, right in ((known, True), (unknown, False)):
        belief = policy.belief()
        assert belief is not None
        weight = belief.draws.weights[:, 0, 0, 1].mean()
        assert (abs(weight + 6.0) < 0.5) == right, weight


def test_when_rounds_were_made_survives_a_state() -> None:
    policy = late_rounds(True)
    twin = make_policy("posterior-cd", n_nodes=3, noise_mean=0.0, **TOLD)
    twin.restore(policy.state())
    for made in (95, 130):
        a, x = np.zeros(3, dtype=np.uint8), np.array([1.0, -6.0, -6.0])
        policy.tell(a, x, made=made)
        twin.tell(a, x, made=made)
        counts = [p.state()["system.rounds.moments.counts"].tolist() for p in (policy, twin)]
        assert counts[0] == counts[1]
    with pytest.raises(SettingError, match="made"):
        policy.tell(a, x, made=-1)


def test_alarms_do_not_depend_on_units() -> None:
    """A predictor of a millionth: its weight must not vanish beside what keeps numbers safe."""
    found = []
    for unit in (1.0, 2.0**-30):
        policy = make_policy("posterior-cd", n_nodes=3, noise_scale="estimate")
        rng = np.random.default_rng(5)
        for _ in range(150):
            a = rng.integers(0, 2, 3).astype(np.uint8)
            x = rng.normal(size=3)
            x[1] += (3.0 + a[1]) * x[0]
            x[2] += x[1]
            policy.tell(a, x * [unit, 1.0, 1.0])
        found.append(policy)
    assert [policy.alarms for policy in found] == [[], []]
    scores = [policy.state()["detector.sums"] for policy in found]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)
