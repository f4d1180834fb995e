"""What holds for every policy of the registry, whoever wrote it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from policy_cases import (
    CASES,
    LABELS,
    N_NODES,
    N_ROUNDS,
    assert_same_state,
    assert_same_suggestion,
    build,
    history,
    told,
)

from causalarms.errors import DataError
from causalarms.policies.base import Policy
from causalarms.policies.registry import policy_names

every_policy = pytest.mark.parametrize("label", LABELS)
MOMENTS = (0, 1, 62, 130, 215, N_ROUNDS)


def rng(key: int = 0) -> np.random.Generator:
    return np.random.default_rng([99, key])


def test_all_names_are_covered() -> None:
    assert set(policy_names()) == {name for name, _ in CASES.values()}


@every_policy
def test_asking_twice_gives_the_same_and_changes_nothing(label: str) -> None:
    policy = build(label)
    for t, (a, x) in enumerate(history(label)):
        if t in MOMENTS:
            before = policy.state()
            first, second = policy.suggest(rng(t)), policy.suggest(rng(t))
            policy.suggest(rng(t + 1))
            assert_same_suggestion(first, second)
            np.testing.assert_array_equal(policy.ask(rng(t)), first.intervention)
            assert_same_state(policy.state(), before)
        policy.tell(a, x)


@every_policy
def test_a_suggestion_says_what_to_play_why_and_what_to_expect(label: str) -> None:
    for n_rounds in MOMENTS:
        suggestion = told(label, n_rounds).suggest(rng())
        assert suggestion.intervention.shape == (N_NODES,)
        assert set(suggestion.intervention.tolist()) <= {0, 1}
        assert suggestion.reason in ("explore", "exploit")
        assert isinstance(suggestion.mean, float)
        assert isinstance(suggestion.width, float)
        assert isinstance(suggestion.why, str)
        if suggestion.reason == "exploit":
            assert np.isfinite(suggestion.mean)
        if np.isfinite(suggestion.width):
            assert suggestion.width >= 0


@every_policy
@pytest.mark.parametrize(
    ("intervention", "observation", "message"),
    [
        ([0, 0, 0, 0], [1.0, np.nan, 1.0, 1.0], r"node 1 is nan"),
        ([0, 0, 0, 0], [1.0, 1.0, -np.inf, 1.0], r"node 2 is -inf"),
        ([0, 0, 0, 0], [1.0, 1.0, 1.0], r"observation has shape \(4,\), not \(3,\)"),
        ([0, 0, 0, 0], [[1.0, 1.0, 1.0, 1.0]], r"observation has shape"),
        ([0, 0, 2, 0], [1.0, 1.0, 1.0, 1.0], r"node 'x2': regime 2"),
        ([0, 0, 0], [1.0, 1.0, 1.0, 1.0], r"interventions must have shape \(n, 4\)"),
        (["0", "1", "0", "1"], [1.0, 1.0, 1.0, 1.0], r"must be numbers 0"),
    ],
    ids=["nan", "inf", "short", "deep", "regime 2", "few regimes", "text"],
)
def test_what_cannot_be_learned_from_is_refused_and_leaves_no_trace(
    label: str, intervention: list[object], observation: list[object], message: str
) -> None:
    policy = told(label, 5)
    before = policy.state()
    with pytest.raises(DataError, match=message):
        policy.tell(intervention, observation)  # type: ignore[arg-type]
    assert_same_state(policy.state(), before)


@every_policy
def test_interventions_nobody_asked_for_are_welcome(label: str) -> None:
    policy = build(label)
    numbers = rng()
    for t in range(80):
        policy.tell(numbers.integers(0, 2, N_NODES), numbers.normal(size=N_NODES))
        policy.tell(np.full(N_NODES, t % 2, dtype=bool), numbers.normal(size=N_NODES))
    assert policy.n_told == 160
    assert policy.suggest(rng()).intervention.shape == (N_NODES,)
    if label not in ("random", "oracle"):
        fresh, now = build(label).state(), policy.state()
        assert any(
            name != "n_told" and not np.array_equal(now[name], fresh.get(name, ())) for name in now
        )


@every_policy
def test_what_was_told_stays_the_callers(label: str) -> None:
    """Arrays are copied: changing them afterwards changes nothing that was learned."""
    mine, other = build(label), build(label)
    for a, x in history(label)[:90]:
        given_a, given_x = a.copy(), x.copy()
        mine.tell(given_a, given_x)
        np.testing.assert_array_equal(given_x, x)
        given_a[:], given_x[:] = 1, 1e9
        other.tell(a, x)
    assert_same_state(mine.state(), other.state())


@every_policy
def test_replaying_a_history_gives_the_same_state_and_the_same_next_ask(label: str) -> None:
    for n_rounds in (40, 150, N_ROUNDS):
        one, other = told(label, n_rounds), told(label, n_rounds)
        assert_same_state(one.state(), other.state())
        assert_same_suggestion(one.suggest(rng()), other.suggest(rng()))


@every_policy
@pytest.mark.parametrize("n_rounds", [0, 25, 100, 230, 260])
def test_a_restored_policy_goes_on_as_the_old_one(label: str, n_rounds: int) -> None:
    old, new = told(label, n_rounds), build(label)
    new.restore(old.state())
    continue_together(old, new, label, n_rounds)


@every_policy
def test_restoring_replaces_all_that_was_known(label: str) -> None:
    old, new = told(label, 60), told(label, N_ROUNDS)
    new.restore(old.state())
    continue_together(old, new, label, 60)


def continue_together(old: Policy, new: Policy, label: str, n_rounds: int) -> None:
    assert_same_state(new.state(), old.state())
    for t, (a, x) in enumerate(history(label)[n_rounds : n_rounds + 30]):
        assert_same_suggestion(new.suggest(rng(t)), old.suggest(rng(t)))
        old.tell(a, x)
        new.tell(a, x)
    assert_same_state(new.state(), old.state())
    assert new.alarms == old.alarms
    np.testing.assert_array_equal(new.adjacency, old.adjacency)


@every_policy
def test_a_state_is_plain_arrays_and_scalars_and_a_copy(label: str) -> None:
    policy = told(label, 250)
    state = policy.state()
    for name, value in state.items():
        assert isinstance(name, str)
        assert isinstance(value, np.ndarray | np.generic | int | float | bool), name
        assert np.asarray(value).dtype.kind in "biuf", name
    kept = {name: np.array(value) for name, value in state.items()}
    for a, x in history(label)[250:]:
        policy.tell(a, x)
    for name, value in state.items():
        np.testing.assert_array_equal(value, kept[name], err_msg=f"{name} moved on")


@every_policy
def test_the_global_random_state_is_neither_used_nor_touched(label: str) -> None:
    asked = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        before = np.random.get_state(legacy=False)  # noqa: NPY002
        policy, choices = build(label), []
        for t, (a, x) in enumerate(history(label)[:130]):
            choices.append(policy.ask(rng(t)).tolist())
            policy.tell(a, x)
        after = np.random.get_state(legacy=False)  # noqa: NPY002
        np.testing.assert_equal(after, before)
        asked.append(choices)
    assert asked[0] == asked[1]


def test_the_histories_exercise_the_detectors() -> None:
    """Otherwise the tests above would say little about what happens after an alarm."""
    for label in LABELS:
        alarms = told(label, N_ROUNDS).alarms
        assert bool(alarms) == bool(re.search("-cd", label)), label
