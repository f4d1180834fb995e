"""Posterior policies told rounds with missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import make_policy, random_sem
from causalarms.arrays import FloatArray
from causalarms.errors import DataError, SettingError
from causalarms.policies.posterior.rounds import MAX_INCOMPLETE
from causalarms.rng import stream

SEM = random_sem(4, seed=3)
KINDS: dict[str, dict[str, Any]] = {
    "means known": {"noise_mean": 1.0},
    "nothing known": {},
    "units estimated": {"noise_scale": "estimate"},
    "changes": {"noise_scale": "estimate", "name": "posterior-cd"},
    "chains": {"noise_scale": "estimate", "method": "sampled"},
}


def made(gaps: str = "learn", *, name: str = "posterior", **settings: Any) -> Any:
    return make_policy(name, n_nodes=4, reward=SEM.reward, gaps=gaps, **settings)


def rounds(n: int, share: float, *, sem: Any = SEM) -> tuple[npt.NDArray[np.uint8], FloatArray]:
    rng = np.random.default_rng(1)
    A = rng.integers(0, 2, (n, 4)).astype(np.uint8)
    X = sem.sample(A, rng)
    X[rng.random(X.shape) < share] = np.nan
    return A, X


@pytest.mark.parametrize("kind", KINDS)
def test_without_gaps_nothing_is_different(kind: str) -> None:
    A, X = rounds(40, 0.0)
    policies = [made("drop", **KINDS[kind]), made("learn", **KINDS[kind])]
    for a, x in zip(A, X, strict=True):
        for policy in policies:
            policy.tell(a, x)
    asked = [policy.suggest(stream(0, "ask")) for policy in policies]
    assert asked[0].intervention.tolist() == asked[1].intervention.tolist()
    assert asked[0][1:] == asked[1][1:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_policy_goes_on_with_the_same_bits(kind: str) -> None:
    A, X = rounds(45, 0.3)
    policy = made(**KINDS[kind])
    for t, (a, x) in enumerate(zip(A, X, strict=True)):
        if t in (3, 9, 30):
            state = policy.state()
            policy = made(**KINDS[kind])
            policy.restore(state)
        policy.tell(a, x)
    replayed = made(**KINDS[kind])
    for a, x in zip(A, X, strict=True):
        replayed.tell(a, x)
    for name, value in replayed.state().items():
        np.testing.assert_array_equal(policy.state()[name], value, name)
    assert policy.suggest(stream(0, "ask")).mean == replayed.suggest(stream(0, "ask")).mean


@pytest.mark.parametrize("kind", ["nothing known", "units estimated"])
def test_rounds_with_gaps_tell_nearly_what_complete_ones_tell(kind: str) -> None:
    """A quarter of all cells, so that two thirds of the rounds are incomplete."""
    A, X = rounds(400, 0.25)
    learner, dropper = made(**KINDS[kind]), made("drop", **KINDS[kind])
    complete = np.asarray(~np.isnan(X).any(axis=1), dtype=bool)
    for a, x, whole in zip(A, X, complete, strict=True):
        learner.tell(a, x)
        if whole:
            dropper.tell(a, x)
    beliefs = [policy.belief(stream(0, "draws")) for policy in (learner, dropper)]
    errors = [b.draws.weights.mean(axis=0) - SEM.weights for b in beliefs]
    assert np.abs(errors[0]).max() < 0.35
    spreads = [b.draws.weights.std(axis=0)[SEM.weights != 0].mean() for b in beliefs]
    assert spreads[0] < 0.9 * spreads[1]
    counts = beliefs[0].counts.sum(axis=0)
    np.testing.assert_array_equal(counts, (~np.isnan(X)).sum(axis=0))


def test_a_changed_mechanism_forgets_its_rounds_with_gaps_too() -> None:
    weights = SEM.weights.copy()
    weights[:, :, SEM.reward] *= -1.5
    n = 250  # alarms with a guarantee need more rounds of a mechanism before they can come
    A, X = rounds(n, 0.1)
    B, Y = rounds(n, 0.1, sem=SEM.replace(weights=weights))
    policy = made(name="posterior-cd", noise_scale="estimate", noise_mean=1.0)
    for a, x in zip([*A, *B], [*X, *Y], strict=True):
        policy.tell(a, x)
    changed = {(alarm.regime, alarm.node) for alarm in policy.alarms}
    assert {(0, SEM.reward), (1, SEM.reward)} <= changed
    assert all(alarm.round > n for alarm in policy.alarms)
    belief = policy.belief()
    found = belief.draws.weights.mean(axis=0)[:, :, SEM.reward]
    np.testing.assert_allclose(found, weights[:, :, SEM.reward], atol=0.5)
    since = belief.starts[:, SEM.reward]
    now = np.concatenate([A, B])[:, SEM.reward]
    told = ~np.isnan(np.concatenate([X, Y])[:, SEM.reward])
    for regime in (0, 1):
        later = (np.arange(1, 2 * n + 1) > since[regime]) & (now == regime) & told
        assert belief.counts[regime, SEM.reward] <= later.sum()


def test_held_rounds_are_few_and_older_ones_stay_counted() -> None:
    policy = made(noise_mean=1.0)
    A, X = rounds(500, 0.4)
    for a, x in zip(A, X, strict=True):
        policy.tell(a, x)
        assert len(policy._system.rounds.gaps) <= MAX_INCOMPLETE
    assert policy.belief().counts.sum() == (~np.isnan(X)).sum()
    assert np.abs(policy.belief().draws.weights.mean(axis=0) - SEM.weights).max() < 0.35


def test_a_node_that_is_never_measured_holds_nobody_up() -> None:
    A, X = rounds(60, 0.0)
    X[:, 1] = np.nan
    policy = made(noise_scale="estimate")
    for a, x in zip(A, X, strict=True):
        policy.tell(a, x)
    assert np.isfinite(policy.suggest(stream(0, "ask")).mean)


def test_units_and_zeros_change_no_decision() -> None:
    A, X = rounds(40, 0.2)
    unit, zero = np.array([2.0**20, 1.0, 2.0**-9, 8.0]), np.array([0.0, 512.0, 0.0, -64.0])
    plain, other = made(noise_scale="estimate"), made(noise_scale="estimate")
    for t, (a, x) in enumerate(zip(A, X, strict=True)):
        asked = [policy.suggest(stream(0, "ask", t)) for policy in (plain, other)]
        assert asked[0].intervention.tolist() == asked[1].intervention.tolist()
        plain.tell(a, x)
        other.tell(a, (x + zero) * unit)
    np.testing.assert_allclose(plain.edge_probability, other.edge_probability, atol=1e-6)


def test_only_those_who_can_take_gaps_and_nobody_takes_infinity() -> None:
    a, x = [0, 0, 0, 0], [1.0, np.nan, 2.0, 3.0]
    for policy in (made("drop"), make_policy("random", n_nodes=4)):
        assert not policy.learns_from_gaps
        with pytest.raises(DataError, match="node 1 is nan"):
            policy.tell(a, x)
    policy = made()
    policy.tell(a, x)
    for value, message in ((np.inf, "node 0 is inf"), (1e200, "node 0 is 1e"), (-1e200, "node 0")):
        with pytest.raises(DataError, match=message):
            policy.tell(a, [value, np.nan, 2.0, 3.0])
    assert policy.n_told == 1
    with pytest.raises(SettingError, match="gaps must be one of learn, drop"):
        made("fill")


@pytest.mark.parametrize("kind", ["nothing known", "units estimated", "chains"])
@pytest.mark.parametrize("values", [0, 1])
def test_a_node_without_values_has_no_influence(kind: str, values: int) -> None:
    """One value does not say how the node varies; the second one lets it in."""
    A, X = rounds(40, 0.0)
    node = int(SEM.order[0])
    X[values:, node] = np.nan
    policy = made(**KINDS[kind])
    for t, (a, x) in enumerate(zip(A, X, strict=True)):
        policy.tell(a, x)
        if t == 30:
            state = policy.state()
            policy = made(**KINDS[kind])
            policy.restore(state)
    probability = policy.edge_probability
    assert not probability[:, node].any()
    assert not probability[:, :, node].any()
    arms = np.eye(4, dtype=np.uint8)
    spread = policy.belief(stream(0, "draws")).rewards(arms, SEM.reward).std(axis=0)
    assert spread.max() < 2.0  # hundreds if inventions count
    for a, x in zip(*rounds(2, 0.0), strict=True):
        policy.tell(a, x)
    assert policy.edge_probability[:, node].any()
