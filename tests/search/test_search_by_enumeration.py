"""The search against full enumeration: mixed numbers of regimes, factors, all kinds of rules."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalarms.errors import InfeasibleError
from causalarms.search import Constraints, Factors, best_intervention, best_interventions

FloatArray = np.ndarray


class World(NamedTuple):
    """A random system; `rounded` weights and means give many exact ties."""

    weights: FloatArray
    mean: FloatArray
    order: FloatArray
    reward: int


def world(regimes: list[int], rng: np.random.Generator, rounded: bool = False) -> World:
    n, r = len(regimes), max(regimes)
    order = rng.permutation(n)
    place = np.argsort(order)
    edges = (rng.random((r, n, n)) < rng.choice([0.3, 0.7])) & (place[:, None] < place)
    weights = np.where(edges, rng.normal(size=(r, n, n)) * 1.5, 0.0)
    mean = rng.normal(size=(r, n))
    if rounded:
        weights, mean = np.round(weights), np.round(mean)
    return World(weights, mean, order, int(rng.integers(n)))


def reward_of(of: World, regimes: np.ndarray) -> float:
    """One intervention at a time, by solving the linear equations."""
    n = len(of.order)
    chosen = np.array([of.weights[regimes[i], :, i] for i in range(n)])  # [child, parent]
    mean = of.mean[regimes, np.arange(n)]
    return float(np.linalg.solve(np.eye(n) - chosen, mean)[of.reward])


def factors(regimes: list[int], rng: np.random.Generator) -> tuple[Factors, list[int]]:
    """Some nodes share a factor, some have two, some none."""
    n = len(regimes)
    levels: list[int] = []
    acting: list[list[int]] = [[] for _ in range(n)]
    for node in range(n):
        if rng.random() < 0.3 and levels:
            acting[node] = [int(rng.integers(len(levels)))]
        if len(acting[node]) == 0 or rng.random() < 0.2:
            acting[node].append(len(levels))
            levels.append(int(rng.integers(1, 4)))
    for node in range(n):
        if rng.random() < 0.15 and all(
            any(f in acting[other] for other in range(n) if other != node) for f in acting[node]
        ):
            acting[node] = []
    sizes = [int(np.prod([levels[f] for f in acting[node]])) for node in range(n)]
    for node in range(n):  # factors come in any order
        rng.shuffle(acting[node])
    return Factors(tuple(levels), tuple(tuple(a) for a in acting)), sizes


def rules(over: Factors, regimes: list[int], rng: np.random.Generator) -> dict[str, Any]:
    """Keyword arguments of random constraints."""
    n_factors = len(over.levels)

    def box() -> dict[int, list[int]]:
        chosen = rng.choice(n_factors, min(n_factors, int(rng.integers(1, 4))), replace=False)
        return {
            int(f): [level for level in range(over.levels[f]) if rng.random() < 0.5] or [0]
            for f in chosen
        }

    def some(chance: float) -> bool:
        return bool(rng.random() < chance)

    fixed = rng.permutation(len(regimes))[: rng.integers(1, 3)]
    return {
        "allowed": {int(i): [r for r in range(regimes[i]) if rng.random() < 0.7] for i in fixed}
        if some(0.4)
        else {},
        "forbidden": [box() for _ in range(rng.integers(1, 5))] if some(0.5) else [],
        "at_most": int(rng.integers(0, n_factors + 1)) if some(0.5) else None,
        "cost": [list(rng.normal(size=n) * rng.choice([0.3, 3])) for n in over.levels]
        if some(0.5)
        else None,
    }


def by_hand(
    over: Factors, keywords: dict[str, Any]
) -> list[tuple[tuple[int, ...], list[int], float]]:
    """(levels, regimes, cost) of everything that is allowed, written as one reads the rules."""
    found = []
    for levels in product(*(range(n) for n in over.levels)):
        regimes = []
        for acting in over.acting:
            at = 0
            for f in acting:
                at = at * over.levels[f] + levels[f]
            regimes.append(at)
        if any(regimes[node] not in kept for node, kept in keywords["allowed"].items()):
            continue
        if any(all(levels[f] in inside for f, inside in b.items()) for b in keywords["forbidden"]):
            continue
        if keywords["at_most"] is not None and np.count_nonzero(levels) > keywords["at_most"]:
            continue
        cost = (
            sum(c[level] for c, level in zip(keywords["cost"], levels, strict=True))
            if (keywords["cost"])
            else 0.0
        )
        found.append((levels, regimes, float(cost)))
    return found


def check(regimes: list[int], over: Factors, rng: np.random.Generator, rounded: bool) -> None:
    of = world(regimes, rng, rounded)
    keywords = rules(over, regimes, rng)
    if rounded and keywords["cost"]:
        keywords["cost"] = [[float(round(c)) for c in costs] for costs in keywords["cost"]]
    allowed = by_hand(over, keywords)
    if not allowed:
        with pytest.raises(InfeasibleError, match="no intervention satisfies"):
            Constraints(regimes, factors=over, **keywords)
        return
    constraints = Constraints(regimes, factors=over, **keywords)
    listed = constraints.interventions()
    assert listed.tolist() == [r for _, r, _ in allowed]
    assert constraints.allows(listed).all()
    np.testing.assert_allclose(constraints.cost(listed), [c for _, _, c in allowed], atol=1e-12)
    values = np.array([reward_of(of, np.array(r)) - c for _, r, c in allowed])
    scale = max(1.0, np.abs(values).max())
    best = best_intervention(*of, constraints=constraints)
    assert best.exact
    assert best.value == pytest.approx(values.max(), abs=1e-9 * scale)
    first = np.flatnonzero(values >= values.max() - 1e-11 * scale)[0]
    assert best.levels.tolist() == list(allowed[first][0])
    assert best.intervention.tolist() == allowed[first][1]
    m = int(rng.integers(2, 8))
    top = best_interventions(*of, m, constraints=constraints)
    np.testing.assert_allclose(
        [one.value for one in top], np.sort(values)[::-1][:m], atol=1e-9 * scale
    )
    assert len({tuple(one.levels) for one in top}) == len(top)
    hurried = best_intervention(*of, constraints=constraints, budget=int(rng.integers(1, 20)))
    assert hurried.value + hurried.gap >= values.max() - 1e-9 * scale
    assert constraints.allows(hurried.intervention[None])[0]
    paid = reward_of(of, hurried.intervention) - constraints.cost(hurried.intervention[None])[0]
    assert hurried.value == pytest.approx(paid, abs=1e-9 * scale)


@settings(max_examples=150)
@given(st.integers(1, 6), st.integers(0, 10**6), st.booleans())
def test_nodes_with_one_to_four_regimes(n_nodes: int, seed: int, rounded: bool) -> None:
    rng = np.random.default_rng(seed)
    regimes = [int(k) for k in rng.integers(1, 5, n_nodes)]
    check(regimes, Factors.per_node(regimes), rng, rounded)


@settings(max_examples=150)
@given(st.integers(1, 6), st.integers(0, 10**6), st.booleans())
def test_factors_on_several_nodes(n_nodes: int, seed: int, rounded: bool) -> None:
    rng = np.random.default_rng(seed)
    over, sizes = factors([1] * n_nodes, rng)
    if np.prod(over.levels) > 3000:
        over, sizes = Factors.per_node([2] * n_nodes), [2] * n_nodes
    check(sizes, over, rng, rounded)
