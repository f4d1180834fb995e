"""What must not change the answer, and answers where nothing can be enumerated."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from expected import expected_reward
from hypothesis import given
from hypothesis import strategies as st

from causalarms import random_sem
from causalarms.errors import ModelError
from causalarms.search import Constraints, Factors, best_intervention, best_interventions


def system(
    n: int, regimes: int, rng: np.random.Generator, chance: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    edges = (rng.random((regimes, n, n)) < chance) & np.triu(np.ones((n, n), dtype=bool), 1)
    weights = np.where(edges, rng.normal(size=(regimes, n, n)), 0.0)
    return weights, rng.normal(size=(regimes, n)), np.arange(n), n - 1


@given(st.integers(2, 9), st.integers(0, 10**6))
def test_relabelling_nodes_and_factors_relabels_the_answer(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, mean, order, reward = system(n, 3, rng)
    cost = rng.normal(size=(n, 3))
    pair = {0: [1, 2], n - 1: [0, 2]}
    best = best_intervention(
        weights, mean, order, reward,
        constraints=Constraints([3] * n, cost=cost.tolist(), forbidden=[pair], at_most=n - 1),
    )  # fmt: skip
    old = rng.permutation(n)  # node i was node old[i]
    new = np.argsort(old)
    factor = rng.permutation(n)  # factor f acts on node factor[f]
    factors = Factors.acting_on(levels=[3] * n, nodes=[[int(i)] for i in factor], n_nodes=n)
    factor_of = {int(node): f for f, node in enumerate(factor)}
    again = best_intervention(
        weights[:, old][:, :, old], mean[:, old], new[order], int(new[reward]),
        constraints=Constraints(
            [3] * n,
            factors=factors,
            cost=[cost[old[node]].tolist() for node in factor],
            forbidden=[{factor_of[int(new[node])]: levels for node, levels in pair.items()}],
            at_most=n - 1,
        ),
    )  # fmt: skip
    assert again.value == pytest.approx(best.value, rel=1e-9, abs=1e-9)
    assert again.intervention.tolist() == best.intervention[old].tolist()
    assert again.levels.tolist() == again.intervention[factor].tolist()


@given(st.integers(2, 8), st.integers(1, 4), st.integers(0, 10**6))
def test_nodes_that_do_not_reach_the_reward_change_nothing(n: int, extra: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, mean, _, reward = system(n, 3, rng)
    best = best_intervention(weights, mean, np.arange(n), reward)
    more = np.zeros((3, n + extra, n + extra))
    more[:, :n, :n] = weights
    more[:, :n, n:] = rng.normal(size=(3, n, extra))
    more_mean = np.hstack([mean, rng.normal(size=(3, extra))])
    order = np.arange(n + extra)
    again = best_intervention(more, more_mean, order, reward)
    assert again.value == best.value
    assert again.nodes == best.nodes
    assert again.intervention.tolist() == [*best.intervention, *[0] * extra]
    forced = Constraints(
        [3] * (n + extra), allowed={n: [1, 2]}, cost=[[0.0, 2.0, 1.0]] * (n + extra)
    )
    paid = best_intervention(more, more_mean, order, reward, constraints=forced)
    assert paid.intervention[n] == 2  # the cheaper one
    assert not paid.intervention[n + 1 :].any()


@given(st.integers(2, 8), st.integers(0, 10**6))
def test_a_factor_on_two_nodes_is_two_nodes_that_agree(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    of = system(n, 3, rng)
    one, other = (int(i) for i in rng.choice(n, 2, replace=False))
    nodes = [[i] for i in range(n) if i not in (one, other)] + [[one, other]]
    cost = rng.normal(size=(n, 3)) * 0.3
    paid_once = cost.copy()
    paid_once[other] = 0
    agree: list[dict[int, Any]] = [
        {one: level, other: [other_level for other_level in range(3) if other_level != level]}
        for level in range(3)
    ]
    apart = best_intervention(
        *of, constraints=Constraints([3] * n, forbidden=agree, cost=paid_once.tolist())
    )
    tied = best_intervention(
        *of,
        constraints=Constraints(
            [3] * n,
            factors=Factors.acting_on(levels=[3] * (n - 1), nodes=nodes, n_nodes=n),
            cost=[cost[on[0]].tolist() for on in nodes],
        ),
    )
    assert tied.exact
    assert tied.value == pytest.approx(apart.value, rel=1e-9, abs=1e-9)
    assert tied.intervention.tolist() == apart.intervention.tolist()


def test_a_node_without_a_switch_is_one_with_equal_regimes() -> None:
    rng = np.random.default_rng(3)
    weights, mean, order, reward = system(12, 2, rng)
    still = [1, 4, 11]
    regimes = [1 if node in still else 2 for node in range(12)]
    weights[1][:, still] = np.nan  # never read
    weights = np.where(np.isnan(weights), 1e300, weights)
    best = best_intervention(weights, mean, order, reward, constraints=Constraints(regimes))
    doubled, means = weights.copy(), mean.copy()
    doubled[1][:, still] = weights[0][:, still]
    means[1, still] = mean[0, still]
    again = best_intervention(doubled, means, order, reward)
    assert best.value == pytest.approx(again.value, rel=1e-12)
    assert best.intervention.tolist() == again.intervention.tolist()


def plain_ascents(sem: tuple[Any, ...], starts: int, rng: np.random.Generator) -> float:
    """The best of coordinate ascents from random starts."""
    weights, mean, order, reward = sem
    n, best = len(order), -np.inf
    for _ in range(starts):
        a, value = rng.integers(0, 2, n), -np.inf
        while True:
            x = np.zeros(n)
            for k in order:
                x[k] = mean[a[k], k] + weights[a[k], :, k] @ x
            if not x[reward] > value + 1e-12 * abs(value):
                break
            value = float(x[reward])
            flow = np.zeros(n)
            flow[reward] = 1.0
            for k in order[::-1]:
                gain = flow[k] * (mean[1, k] - mean[0, k] + (weights[1] - weights[0])[:, k] @ x)
                a[k] = a[k] if gain == 0 else gain > 0
                flow += flow[k] * weights[a[k], :, k]
        best = max(best, value)
    return best


@pytest.mark.parametrize("seed", [1, 3])
def test_dense_systems_with_small_weights_are_climbed_well(seed: int) -> None:
    """Of 100 nodes nothing is proven, but twenty plain ascents do not find more."""
    sem = random_sem(100, seed=seed)
    weights = sem.weights / np.sqrt(np.maximum(1, (sem.weights != 0).sum(axis=1, keepdims=True)))
    of = (weights, np.array(sem.mechanism_mean), sem.order, sem.reward)
    best = best_intervention(*of, budget=5000)
    assert not best.exact
    assert best.nodes <= 5002
    assert best.value >= plain_ascents(of, 20, np.random.default_rng(0)) - 1e-9
    assert best.value == pytest.approx(
        expected_reward(weights, of[1], best.intervention[None], *of[2:])[0]
    )


@pytest.mark.parametrize("n", [40, 80])
def test_large_systems_under_every_kind_of_constraint(n: int) -> None:
    rng = np.random.default_rng(n)
    of = system(n, 3, rng, 3 / n)
    regimes = [int(k) for k in rng.integers(1, 4, n)]
    cost = [[0.0, *rng.uniform(0, 0.3, k - 1)] for k in regimes]
    several = [node for node in range(n) if regimes[node] > 1]
    constraints = Constraints(
        regimes,
        cost=cost,
        at_most=n // 4,
        allowed={several[0]: [1], several[1]: [0]},
        forbidden=[{i: 1, j: [0, 1]} for i, j in pairwise(several[2:])],
    )
    best = best_intervention(*of, constraints=constraints, budget=20_000)
    assert constraints.allows(best.intervention[None])[0]
    assert best.value == pytest.approx(
        expected_reward(of[0], of[1], best.intervention[None], of[2], of[3])[0]
        - constraints.cost(best.intervention[None])[0]
    )
    others = np.array([constraints.random(rng) for _ in range(200)])
    near = np.repeat(best.intervention[None], n * 2, axis=0)
    near[np.arange(n * 2), np.arange(n * 2) % n] = np.arange(n * 2) // n
    others = np.vstack([others, near[constraints.allows(near)]])
    assert constraints.allows(others).all()
    values = expected_reward(of[0], of[1], others, of[2], of[3]) - constraints.cost(others)
    assert best.value >= values.max() - 1e-9
    top = best_interventions(*of, 5, constraints=constraints, budget=5_000)
    assert len(top) == 5
    assert constraints.allows(np.array([one.intervention for one in top])).all()
    assert [one.value for one in top] == sorted([one.value for one in top], reverse=True)


def test_the_tops_of_an_unproven_search_are_good() -> None:
    """The best found by climbing and its neighbours are among them, not what the tree met first."""
    rng = np.random.default_rng(5)
    weights, mean, order, reward = system(60, 2, rng)
    weights /= np.sqrt(15)
    best = best_intervention(weights, mean, order, reward, budget=5000)
    assert not best.exact
    top = best_interventions(weights, mean, order, reward, 5, distinct=True, budget=5000)
    assert top[0].value >= best.value - 1e-9
    near = best.intervention ^ np.eye(60, dtype=np.uint8)
    values = np.sort(expected_reward(weights, mean, near, order, reward))[::-1]
    different = values[values < best.value - 1e-9][:4]
    assert all(one.value >= value - 1e-9 for one, value in zip(top[1:], different, strict=True))


def test_the_same_question_has_the_same_answer() -> None:
    of = system(50, 2, np.random.default_rng(2))
    one, two = (best_intervention(*of, budget=2000) for _ in range(2))
    assert one.intervention.tolist() == two.intervention.tolist()
    assert one._replace(intervention=0, levels=0) == two._replace(intervention=0, levels=0)  # type: ignore[arg-type]


def test_what_is_refused() -> None:
    of = system(3, 2, np.random.default_rng(0))
    with pytest.raises(ModelError, match=r"shape \(regimes, N, N\), not \(3, 3\)"):
        best_intervention(of[0][0], *of[1:])
    with pytest.raises(ModelError, match="constraints on 2 nodes, but there are 3"):
        best_intervention(*of, constraints=Constraints([2, 2]))
    with pytest.raises(ModelError, match="are for 3 regimes, but there are weights of 2"):
        best_intervention(*of, constraints=Constraints([2, 2, 3]))


def test_kernels_run_without_their_compiler() -> None:
    program = (
        "import numpy as np\n"
        "from causalarms.search import *\n"
        "rng = np.random.default_rng(1)\n"
        "weights = np.triu(rng.normal(size=(3, 6, 6)), 1)\n"
        "nodes = [[0, 4], [1], [2], [3], [5]]\n"
        "factors = Factors.acting_on(levels=[3, 3, 2, 2, 2], nodes=nodes, n_nodes=6)\n"
        "regimes, pair = [3, 3, 2, 2, 3, 2], {1: 2, 2: 1}\n"
        "rules = Constraints(regimes, factors=factors, at_most=3, forbidden=[pair])\n"
        "best = best_intervention(weights, np.ones(6), np.arange(6), 5, constraints=rules)\n"
        "print(best.intervention.tolist(), rules.random(rng).tolist())\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for disabled in ("1", "0")
    ]
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == 1


def test_more_ties_than_are_followed() -> None:
    """Of three regimes the last two are equal and best: 2^14 answers, the first of them wins."""
    n = 15
    weights, mean = np.zeros((3, n, n)), np.zeros((3, n))
    weights[:, : n - 1, n - 1] = 1.0
    mean[1:, : n - 1] = 1.0
    best = best_intervention(weights, mean, np.arange(n), n - 1)
    assert best.exact
    assert best.value == n - 1
    assert best.intervention.tolist() == [1] * (n - 1) + [0]
    top = best_interventions(weights, mean, np.arange(n), n - 1, 4)
    ends = [[1, 0], [1, 1], [1, 2], [2, 0]]
    assert [one.intervention.tolist() for one in top] == [[1] * (n - 2) + end for end in ends]
