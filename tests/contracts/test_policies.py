"""What holds for every policy of the registry, whoever wrote it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from policy_cases import CASES, LABELS, N_NODES, N_ROUNDS, build, case, told

from causalarms.policies.registry import policy_names
from causalarms.testing.policies import POLICY_PROMISES

every_policy = pytest.mark.parametrize("label", LABELS)


def test_all_names_are_covered() -> None:
    assert set(policy_names()) == {name for name, _ in CASES.values()}


@pytest.mark.parametrize("promise", POLICY_PROMISES)
@every_policy
def test_every_promise_is_kept(label: str, promise: str) -> None:
    POLICY_PROMISES[promise](case(label))


@every_policy
def test_something_is_learned(label: str) -> None:
    policy, numbers = build(label), np.random.default_rng(99)
    for _ in range(60):
        policy.tell(numbers.integers(0, 2, N_NODES), numbers.normal(size=N_NODES))
    if label not in ("random", "oracle"):
        fresh, now = build(label).state(), policy.state()
        assert any(
            name != "n_told"
            and not name.startswith("failures.")
            and not np.array_equal(now[name], fresh.get(name, ()))
            for name in now
        )


def test_the_histories_exercise_the_detectors() -> None:
    """Otherwise the promises would say little about what happens after an alarm."""
    for label in LABELS:
        alarms = told(label, N_ROUNDS).alarms
        assert bool(alarms) == bool(re.search("-cd", label)), label
