"""`posterior` by the knowledge gradient: what it refuses, keeps, tests and says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import make_policy, random_sem
from causalarms.changes.detector import Alarm
from causalarms.errors import SettingError
from causalarms.models.knowledge_gradient import (
    EARLY_ROUNDS,
    LONGEST_GAP,
    ROUNDS_PER_GAP,
    Chosen,
    is_judged,
)
from causalarms.policies.base import EXPLOIT, EXPLORE, TEST
from causalarms.policies.posterior import PosteriorPolicy, reason_of
from causalarms.rng import stream
from causalarms.search.constraints import Constraints
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.rewards import all_interventions
from causalarms.simulation.simulate import simulate

SEM = random_sem(5, seed=4)
MIXED = random_sem(5, seed=2, regimes=(3, 1, 2, 2, 2))


def looking(sem: LinearSEM = SEM, **settings: Any) -> PosteriorPolicy:
    told: dict[str, Any] = {
        "n_nodes": 5, "noise_mean": sem.noise_mean, "noise_scale": 1.0, "regimes": sem.regimes,
        "typing_errors": "kept",
    }  # fmt: skip
    made = make_policy("posterior", **(told | {"decide": "knowledge-gradient"} | settings))
    assert isinstance(made, PosteriorPolicy)
    return made


def told(n_rounds: int, sem: LinearSEM = SEM, **settings: Any) -> PosteriorPolicy:
    policy = looking(sem, **settings)
    noise = stream(1, "noise")
    for t in range(n_rounds):
        a = policy.ask(stream(1, "policy", t))
        policy.tell(a, sem.sample(a[None], noise)[0])
    return policy


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"decide": "guess"}, "decide"),
        ({"method": "sampled"}, "method 'exact', not 'sampled'; take decide='quantile'"),
        ({"n_nodes": 17}, "method 'exact', not 'sampled'; take decide='quantile'"),
        ({"n_nodes": 16}, r"at most 2\^15 = 32768, .* 16 nodes have 65536; take decide='quantile'"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        looking(**({"regimes": None, "noise_mean": None} | settings))


@pytest.mark.parametrize(
    ("settings", "ahead"),
    [
        ({}, True),
        ({"method": "sampled"}, False),
        ({"n_nodes": 15, "regimes": None, "noise_mean": None}, True),
        ({"n_nodes": 16, "regimes": None, "noise_mean": None}, False),
    ],
)
def test_auto_looks_ahead_where_that_is_better(settings: dict[str, Any], ahead: bool) -> None:
    assert looking(**settings, decide="auto")._by_gradient is ahead


def test_what_is_best_on_average_is_computed_again_when_more_is_known() -> None:
    """The same round, by a policy that was asked before and by one that was not."""
    asked, fresh = told(70), looking()
    rng = stream(3, "noise")
    for a in all_interventions(5):
        asked.tell(a, SEM.sample(a[None], rng)[0])
    fresh.restore(asked.state())
    found = [policy.suggest(stream(4, "policy")) for policy in (asked, fresh)]
    assert found[0].mean == found[1].mean
    np.testing.assert_array_equal(found[0].intervention, found[1].intervention)


def test_it_is_computed_once_while_nothing_more_is_known() -> None:
    policy = told(70)
    policy.suggest(stream(2, "policy"))
    first = policy._average
    assert first is not None
    policy.suggest(stream(3, "policy"))
    assert policy._average is first


@pytest.mark.parametrize(
    ("sem", "settings"),
    [
        (SEM, {}),
        (SEM, {"noise_mean": None, "noise_scale": "estimate"}),
        (SEM, {"noise_std": SEM.noise_std}),
        (MIXED, {}),
    ],
)
def test_the_best_intervention_is_found_and_kept(sem: LinearSEM, settings: dict[str, Any]) -> None:
    trace = simulate(looking(sem, **settings), sem, horizon=120)
    spread = sem.all_expected_rewards().max() - sem.average_reward()
    assert trace.optimal[-40:].mean() > 0.9
    assert trace.regret[-1] < 20 * spread


@pytest.mark.parametrize("sem", [SEM, MIXED])
def test_the_second_round_differs_in_every_switch(sem: LinearSEM) -> None:
    policy = looking(sem)
    first = policy.suggest(np.random.default_rng(0))
    assert first.reason == EXPLORE
    assert (first.intervention < sem.regimes).all()
    pending = policy.suggest(np.random.default_rng(1), pending=[first.intervention]).intervention
    policy.tell(first.intervention, np.zeros(5))
    second = policy.suggest(np.random.default_rng(2)).intervention
    switches = sem.regimes > 1
    for arm in (pending, second):
        assert (arm[switches] != first.intervention[switches]).all()


@pytest.mark.parametrize("n_rounds", [0, 1, 6, 70])
def test_constraints_and_costs_are_kept(n_rounds: int) -> None:
    policy = told(n_rounds)
    wanted = policy.ask(np.random.default_rng(0))
    node = 2
    without = Constraints([2] * 5, allowed={node: [1 - int(wanted[node])]}, at_most=3)
    dear = [[0.0, 0.0] for _ in range(5)]
    dear[node][int(wanted[node])] = 1e6
    costly = Constraints([2] * 5, cost=dear)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        arm = policy.constrain(without).suggest(rng).intervention
        assert arm[node] != wanted[node]
        assert arm.sum() <= 3
        if n_rounds >= 2:
            assert policy.constrain(costly).suggest(rng).intervention[node] != wanted[node]


def test_costs_are_in_the_units_of_the_data() -> None:
    """The same system in other units, with costs in these units, is decided the same."""
    scale = np.array([2.0, 0.5, 4.0, 8.0, 16.0])
    cost = [[0.0, 0.4 + 0.1 * i] for i in range(5)]
    arms = []
    for factor in (np.ones(5), scale):
        policy = looking(noise_mean=SEM.noise_mean * factor, noise_scale=factor)
        rng = np.random.default_rng(0)
        for a in all_interventions(5)[::5]:
            policy.tell(a, SEM.sample(a[None], rng)[0] * factor)
        of_reward = factor[policy.reward]
        dear = Constraints([2] * 5, cost=[[c * of_reward for c in of_node] for of_node in cost])
        found = [policy.constrain(dear).suggest(np.random.default_rng(s)) for s in range(5)]
        arms.append(np.array([s.intervention for s in found]))
        means = np.array([s.mean for s in found]) / of_reward
    np.testing.assert_array_equal(arms[0], arms[1])
    expected = SEM.expected_reward(arms[1])
    assert np.abs(means - expected).max() < 5.0  # a prediction of rewards, not of rewards less cost


def known_of_one_regime_only() -> PosteriorPolicy:
    """So late that not every round is judged."""
    policy, rng = looking(), np.random.default_rng(0)
    ones = np.ones(5, dtype=np.uint8)
    for t in range(64):
        arm = ones if t % 30 == 1 else 0 * ones
        policy.tell(arm, SEM.sample(arm[None], rng)[0])
    return policy


@pytest.mark.parametrize("late", [False, True])
def test_what_is_pending_is_not_tested_again_blindly(late: bool) -> None:
    policy = known_of_one_regime_only() if late else told(3)
    alone = [policy.suggest(np.random.default_rng(seed)) for seed in range(20)]
    tests, count = np.unique(
        [s.intervention for s in alone if s.reason == EXPLORE], axis=0, return_counts=True
    )
    usual = tests[count.argmax()]
    again = [
        policy.suggest(np.random.default_rng(seed), pending=[usual] * 6).intervention
        for seed in range(20)
    ]
    repeated = sum(np.array_equal(arm, usual) for arm in again)
    assert count.max() >= 5
    assert repeated < count.max()


def test_asking_changes_nothing_and_the_same_generator_gives_the_same() -> None:
    policy = told(62)
    state = policy.state()
    first = policy.suggest(np.random.default_rng(5))
    second = policy.suggest(np.random.default_rng(5))
    np.testing.assert_array_equal(first.intervention, second.intervention)
    assert first[1:] == second[1:] or np.isnan(first.width)
    for name, value in policy.state().items():
        np.testing.assert_array_equal(value, state[name])


def test_a_test_names_its_nodes_and_its_price() -> None:
    said = [told(n).suggest(np.random.default_rng(0)) for n in (3, 4, 5, 6, 7)]
    tests = [s.why for s in said if s.why is not None and s.why.kind == TEST]
    assert tests
    for why in tests:
        assert why.nodes
        assert why.saved > 0
        assert why.cost >= 0
        assert why.rounds > 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ([1], "tests 'x1' at another level"),
        ([0, 3], "tests 'x0' and 'x3' at other levels"),
        ([0, 1, 2, 4], "tests 'x0', 'x1', 'x2' and 'x4' at other levels"),
        ([0, 1, 2, 3, 4], "tests 'x0', 'x1', 'x2' and 2 other nodes at other levels"),
    ],
)
def test_a_reason_is_short(changed: list[int], words: str) -> None:
    instead = np.zeros(5, dtype=np.uint8)
    arm = instead.copy()
    arm[changed] = 1
    why = reason_of(Chosen(arm, 0.0, 0.0, 617.0, 40, 0.2, instead), 2.0)
    assert (why.kind, why.nodes, why.saved, why.rounds) == (TEST, tuple(changed), 1234.0, 40)
    said = why.in_words(["x0", "x1", "x2", "x3", "x4"])
    assert words in said
    assert "save 1234 over the next 40 rounds, costs 0.4" in said


def test_judged_rounds_get_rarer() -> None:
    judged = [t for t in range(EARLY_ROUNDS, 3000) if is_judged(t)]
    gaps = np.diff(judged)
    assert gaps[0] <= EARLY_ROUNDS // ROUNDS_PER_GAP + 1
    assert gaps.max() <= LONGEST_GAP + ROUNDS_PER_GAP
    assert (gaps[-20:] == LONGEST_GAP).all()


def test_a_test_between_refreshes_is_learned_at_once() -> None:
    policy = looking(refresh=50)
    arm, rng = np.zeros(5, dtype=np.uint8), np.random.default_rng(0)
    for _ in range(303):
        policy.tell(arm, SEM.sample(arm[None], rng)[0])
    assert policy._refreshed == 300
    other = 1 - arm
    policy.tell(other, SEM.sample(other[None], rng)[0])
    assert policy._refreshed == 304
    plain = looking(refresh=50, decide="quantile")
    for t in range(304):
        plain.tell(other if t == 303 else arm, SEM.sample(arm[None], rng)[0])
    assert plain._refreshed == 300


@pytest.mark.parametrize("n_rounds", [1, 6, 70])
def test_where_one_intervention_is_left_it_is_played(n_rounds: int) -> None:
    policy = told(n_rounds)
    only = Constraints([2] * 5, allowed={node: [node % 2] for node in range(5)})
    for seed in range(3):
        found = policy.constrain(only).suggest(np.random.default_rng(seed))
        assert found.intervention.tolist() == [0, 1, 0, 1, 0]


def test_after_a_change_every_round_is_judged_again() -> None:
    policy = told(70)
    held = [policy.suggest(np.random.default_rng(s)).reason for s in range(6)]
    policy.alarms.append(Alarm(68, 0, 1, 60, 30.0, 20.0))
    said = [policy.suggest(np.random.default_rng(s)) for s in range(6)]
    assert not any(np.isnan(s.width) for s in said)
    assert set(held) == {EXPLOIT}
