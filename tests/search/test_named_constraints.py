"""Constraints and costs on interventions, by brute force over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms import LinearSEM, random_sem
from causalarms.errors import ModelError
from causalarms.sem import Constraints, all_interventions


def drawn(n_nodes: int, rng: np.random.Generator) -> Constraints:
    def some(chance: float) -> bool:
        return bool(rng.random() < chance)

    def combination() -> dict[str | int, int]:
        size = min(n_nodes, int(rng.integers(2, 4)))
        return {int(i): int(rng.integers(2)) for i in rng.choice(n_nodes, size, replace=False)}

    nodes = [int(i) for i in rng.permutation(n_nodes)]
    return Constraints(
        never_on=nodes[: rng.integers(0, 3)] if some(0.4) else (),
        always_on=nodes[3 : 3 + rng.integers(0, 3)] if some(0.4) else (),
        at_most=int(rng.integers(0, n_nodes + 1)) if some(0.5) else None,
        cost=rng.normal(size=n_nodes) * rng.choice([1, 3]) if some(0.5) else 0.0,
        forbidden=[combination() for _ in range(rng.integers(1, 4))] if some(0.5) else (),
        required=[combination() for _ in range(rng.integers(1, 3))] if some(0.4) else (),
    )


def by_brute_force(sem: LinearSEM, constraints: Constraints) -> np.ndarray:
    """Values of all interventions; -inf where not allowed."""
    A = all_interventions(sem.n_nodes)

    def literals(combination: Mapping[Any, int]) -> np.ndarray:
        return np.array([A[:, node] == regime for node, regime in combination.items()])

    allowed = np.ones(len(A), dtype=bool)
    for node in constraints.never_on:
        allowed &= A[:, int(node)] == 0
    for node in constraints.always_on:
        allowed &= A[:, int(node)] == 1
    if constraints.at_most is not None:
        allowed &= A.sum(axis=1) <= constraints.at_most
    for combination in constraints.forbidden:
        allowed &= ~literals(combination).all(axis=0)
    for combination in constraints.required:
        allowed &= literals(combination).all(axis=0) | ~literals(combination).any(axis=0)
    cost = np.broadcast_to(np.asarray(constraints.cost, dtype=float), sem.n_nodes)
    return np.where(allowed, sem.all_expected_rewards() - A @ cost, -np.inf)


@given(st.integers(2, 11), st.integers(0, 10**6), st.booleans())
def test_best_and_top_by_brute_force(n_nodes: int, seed: int, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    sem = random_sem(n_nodes, seed=seed, edge_probability=2 / n_nodes if sparse else 0.5)
    sem = sem.replace(noise_mean=rng.normal(size=(2, n_nodes)), reward=int(rng.integers(n_nodes)))
    constraints = drawn(n_nodes, rng)
    values = by_brute_force(sem, constraints)
    if np.isneginf(values).all():
        with pytest.raises(ModelError, match="no intervention satisfies"):
            sem.best_arm(constraints)
        return
    best = sem.best_arm(constraints)
    scale = max(1.0, abs(values.max()))
    first = np.flatnonzero(values >= values.max() - 1e-11 * scale)[0]
    assert best.exact
    assert best.value == pytest.approx(values.max(), rel=1e-9, abs=1e-9)
    assert best.intervention.tolist() == all_interventions(n_nodes)[first].tolist()
    top = sem.top(5, constraints)
    expected = np.sort(values[values > -np.inf])[::-1][:5]
    np.testing.assert_allclose([arm.value for arm in top], expected, rtol=1e-9, atol=1e-9)
    hurried = sem.best_arm(constraints, budget=3)
    assert hurried.value + hurried.gap >= values.max() - 1e-9 * scale
    places = hurried.intervention @ (2 ** np.arange(n_nodes - 1, -1, -1))
    assert values[places] == pytest.approx(hurried.value, rel=1e-9, abs=1e-9)


def test_at_most_k_of_sixty() -> None:
    sem = random_sem(60, seed=0)
    before = -np.inf
    for k in (0, 1, 5):
        best = sem.best_arm(Constraints(at_most=k))
        assert best.exact
        assert best.intervention.sum() <= k
        assert best.value >= before
        before = best.value
    single = np.vstack([np.zeros(60), np.eye(60)])
    alone = sem.best_arm(Constraints(at_most=1)).value
    assert alone == pytest.approx(sem.expected_reward(single).max(), rel=1e-9)


def test_names_and_ways_to_state_a_cost() -> None:
    sem = random_sem(6, seed=1).replace(nodes=["a", "b", "c", "d", "e", "f"])
    by_name = sem.best_arm(Constraints(cost={"a": 2.0, "f": 3.0}, never_on=["c"]))
    by_number = sem.best_arm(Constraints(cost=[2.0, 0, 0, 0, 0, 3.0], never_on=[2]))
    assert by_name.intervention.tolist() == by_number.intervention.tolist()
    assert by_name.value == by_number.value


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (Constraints(never_on=["x1"], always_on=["x1"]), "never_on 'x1', always_on 'x1'$"),
        (Constraints(always_on=[0, 1, 2], at_most=2, cost=1.0), "'x2', at_most 2$"),
        (
            Constraints(never_on=[0], always_on=[1], required=[{0: 1, 1: 1}], at_most=3),
            "never_on 'x0', always_on 'x1', required {x0=1, x1=1}$",
        ),
        (
            Constraints(forbidden=[{0: 1}, {0: 0}, {1: 0, 2: 0}]),
            "satisfies forbidden {x0=1}, forbidden {x0=0}$",
        ),
        (Constraints(never_on=["x9"]), "there is no node 'x9'"),
        (Constraints(at_most=-1), "at_most must not be negative"),
        (Constraints(forbidden=[{0: 2}]), "the regime of 'x0' is neither 0 nor 1"),
        (Constraints(forbidden=[{}]), "a forbidden combination is empty"),
        (Constraints(required=[{0: 1}]), "joins one node to nothing; use always_on"),
        (Constraints(cost=[1.0, 2.0]), r"cost must have shape \(4,\), not \(2,\)"),
        (Constraints(cost=np.nan), "cost of node 'x0' is nan"),
    ],
)  # fmt: skip
def test_constraints_that_are_refused(constraints: Constraints, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        random_sem(4, seed=0).best_arm(constraints)
