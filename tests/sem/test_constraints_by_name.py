"""Constraints and costs on interventions, by brute force over all of them."""

from __future__ import annotations

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

    def combination() -> dict[str, int]:
        size = min(n_nodes, int(rng.integers(2, 4)))
        return {f"x{i}": int(rng.integers(2)) for i in rng.choice(n_nodes, size, replace=False)}

    nodes = [f"x{i}" for i in rng.permutation(n_nodes)]
    always_on = [{node: 0} for node in nodes[3 : 3 + rng.integers(0, 3)]] if some(0.4) else []
    apart = [tuple(nodes[:2])] if some(0.3) else []
    costs = np.abs(rng.normal(size=n_nodes)) * rng.choice([1, 3])
    return Constraints(
        intervenable=nodes[rng.integers(0, 2) :] if some(0.4) else None,
        max_interventions=int(rng.integers(1, n_nodes + 1)) if some(0.5) else None,
        forbidden=[
            *always_on, *apart, *(combination() for _ in range(rng.integers(1, 4)) if some(0.5))
        ],
        required=[combination() for _ in range(rng.integers(1, 3))] if some(0.4) else (),
        costs=dict(zip(nodes, costs.tolist(), strict=True)) if some(0.5) else {},
    )  # fmt: skip


def by_brute_force(sem: LinearSEM, constraints: Constraints) -> np.ndarray:
    """Values of all interventions; -inf where not allowed."""
    A = all_interventions(sem.n_nodes)

    def literals(combination: Any) -> np.ndarray:
        if isinstance(combination, tuple):
            combination = dict.fromkeys(combination, 1)
        return np.array([A[:, int(node[1:])] == level for node, level in combination.items()])

    allowed = np.ones(len(A), dtype=bool)
    if constraints.intervenable is not None:
        for node in set(sem.nodes) - set(constraints.intervenable):
            allowed &= A[:, int(node[1:])] == 0
    if constraints.max_interventions is not None:
        allowed &= A.sum(axis=1) <= constraints.max_interventions
    for combination in constraints.forbidden:
        allowed &= ~literals(combination).all(axis=0)
    for combination in constraints.required:
        allowed &= literals(combination).all(axis=0) | ~literals(combination).any(axis=0)
    cost = np.array([constraints.costs.get(node, 0.0) for node in sem.nodes])
    return np.where(allowed, sem.all_expected_rewards() - A @ cost, -np.inf)


@given(st.integers(2, 11), st.integers(0, 10**6), st.booleans())
def test_best_and_top_by_brute_force(n_nodes: int, seed: int, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    sem = random_sem(n_nodes, seed=seed, edge_probability=2 / n_nodes if sparse else 0.5)
    sem = sem.replace(noise_mean=rng.normal(size=(2, n_nodes)), reward=int(rng.integers(n_nodes)))
    constraints = drawn(n_nodes, rng)
    values = by_brute_force(sem, constraints)
    if np.isneginf(values).all():
        with pytest.raises(ModelError, match="nothing satisfies"):
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
    for k in (1, 2, 5):
        best = sem.best_arm(Constraints(max_interventions=k))
        assert best.exact
        assert best.intervention.sum() <= k
        assert best.value >= before
        before = best.value
    single = np.vstack([np.zeros(60), np.eye(60)])
    alone = sem.best_arm(Constraints(max_interventions=1)).value
    assert alone == pytest.approx(sem.expected_reward(single).max(), rel=1e-9)


def test_ways_to_say_the_same() -> None:
    sem = random_sem(6, seed=1).replace(nodes=["a", "b", "c", "d", "e", "f"])
    by_name = Constraints(costs={"a": 2.0, "f": {"on": 3.0}}, intervenable=["a", "b", "e", "f"])
    numbers: Any = {0: {1: 2.0}, -1: 3.0}
    by_number = Constraints(costs=numbers, forbidden=[{2: [1]}, {"d": "on"}])
    found = [sem.best_arm(rules) for rules in (by_name, by_number)]
    assert found[0].intervention.tolist() == found[1].intervention.tolist()
    assert found[0].value == found[1].value


ON, OFF = "on", "off"
REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"intervenable": ["x0"], "forbidden": [{"x1": OFF}]},
        "intervenable without 'x1', forbidden {'x1': 'off'}$",
    ),
    (
        {"forbidden": [{"x0": OFF}, {"x1": OFF}, {"x2": OFF}], "max_interventions": 2},
        "satisfies max_interventions 2, .*'x0'.*'x1'.*'x2': 'off'}$",
    ),
    (
        {"forbidden": [{"x0": ON}, {"x1": OFF}], "required": [{"x0": ON, "x1": ON}]},
        "forbidden {'x0': 'on'}, forbidden {'x1': 'off'}, required {'x0': 'on', 'x1': 'on'}$",
    ),
    ({"forbidden": [{"x0": 1}, {"x0": 0}, {"x1": 0, "x2": 0}]}, "{'x0': 'on'}, .*{'x0': 'off'}$"),
    ({"intervenable": ["x9"]}, "there is no factor 'x9'"),
    ({"intervenable": [4]}, "there is no factor 4: there are 4"),
    ({"max_interventions": 0}, "max_interventions must be an integer of at least 1, not 0"),
    ({"forbidden": [{"x0": 2}]}, "factor 'x0' has no level 2; it has off, on, 0, 1"),
    ({"forbidden": [{}]}, "a forbidden combination is empty"),
    ({"required": [{"x0": 1}]}, "name at least two factors to join"),
    ({"costs": [1.0, 2.0]}, "costs must be names with values"),
    ({"costs": {"x0": np.nan}}, "the cost of switching 'x0' is nan"),
    ({"costs": {"x0": -1.0}}, "not a number from 0 on"),
]


@pytest.mark.parametrize(("constraints", "message"), REFUSED)
def test_constraints_that_are_refused(constraints: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        random_sem(4, seed=0).best_arm(Constraints(**constraints))
