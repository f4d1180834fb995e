"""How likely settings fail: against numerical integration, and what does not matter to it."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from causalarms.errors import InfeasibleError
from causalarms.models.failures import (
    BASE_RATES,
    FAULTY_FRACTION,
    OWN_RATE,
    PRIOR_OF_SIZE,
    FailureBelief,
    FailureRates,
)
from causalarms.search.constraints import Constraints
from causalarms.search.factors import NOT_SET, Factors

SIZES = [2, 3, 2]
ROWS = np.array(list(product(*map(range, SIZES))))


def trials(seed: int, n: int = 9) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    levels = np.unique(rng.integers(0, SIZES, (n, 3)), axis=0)
    return levels, rng.integers(0, 4, (len(levels), 2))


@cache
def integral(failed: int, worked: int, power: int) -> float:
    """Of rate^power times the likelihood, over the prior."""
    a, b = OWN_RATE
    # the ends of the prior have no finite density: `quad` takes them as a weight
    over = {"weight": "alg", "wvar": (a - 1, b - 1)}
    found = quad(lambda r: r ** (failed + power) * (1 - r) ** worked, 0, 1, **over)[0]
    return float(found / quad(lambda r: 1.0, 0, 1, **over)[0])


def by_integration(levels: Any, counts: Any, row: Any) -> float:
    """The probability that a row fails, by hypothesis, base rate and combination of levels."""
    total = chance = 0.0
    for size in range(4):
        sets = list(combinations(range(3), size))
        for factors, base in product(sets, BASE_RATES):
            weight = PRIOR_OF_SIZE[size] / len(sets) / len(BASE_RATES)
            mine = 0.0
            for cell in product(*(range(SIZES[f]) for f in factors)):
                inside = (levels[:, list(factors)] == cell).all(axis=1)
                worked, failed = counts[inside].sum(axis=0).tolist()
                plain = (1 - FAULTY_FRACTION) * base**failed * (1 - base) ** worked
                evidence = plain + FAULTY_FRACTION * integral(failed, worked, 0)
                if all(row[f] == level for f, level in zip(factors, cell, strict=True)):
                    mine = (base * plain + FAULTY_FRACTION * integral(failed, worked, 1)) / evidence
                weight *= evidence
            total, chance = total + weight, chance + weight * mine
    return chance / total


@pytest.mark.parametrize("seed", range(4))
def test_as_by_numerical_integration(seed: int) -> None:
    levels, counts = trials(seed)
    found = FailureRates(SIZES, levels, counts).probability(ROWS)
    expected = [by_integration(levels, counts, row) for row in ROWS]
    np.testing.assert_allclose(found, expected, atol=1e-5)  # of hypotheses that are left out


def test_a_level_alone_is_the_average_over_the_others() -> None:
    rates = FailureRates(SIZES, *trials(5))
    whole = rates.probability(ROWS)
    for factor, level in ((0, 1), (1, 2)):
        alone = np.full((1, 3), NOT_SET)
        alone[0, factor] = level
        average = whole[ROWS[:, factor] == level].mean()
        assert rates.probability(alone)[0] == pytest.approx(average)


def test_names_orders_and_first_levels_do_not_matter() -> None:
    levels, counts = trials(6)
    found = FailureRates(SIZES, levels, counts).probability(ROWS)
    others = ([1, 0], [2, 0, 1], [1, 0])  # of every level another number, by factor

    def renamed(rows: Any) -> Any:
        return np.stack([np.array(of)[rows[:, f]] for f, of in enumerate(others)], axis=1)

    turned = [2, 0, 1]
    again = FailureRates([SIZES[f] for f in turned], renamed(levels)[::-1][:, turned], counts[::-1])
    np.testing.assert_allclose(again.probability(renamed(ROWS)[:, turned]), found, rtol=1e-12)


def belief(failed: Any, worked: Any, reward: float = 1.0) -> FailureBelief:
    made = FailureBelief(3)
    for row in worked:
        made.learn(np.array(row, dtype=np.uint8), reward)
    for row in failed:
        made.learn(np.array(row, dtype=np.uint8), None)
    return made


def test_a_level_that_failed_three_times_is_told_from_the_others() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (6, 7))
    rows[:, 0] = [1, 1, 1, 0, 0, 0]
    counts = np.column_stack([1 - rows[:, 0], rows[:, 0]])
    rates = FailureRates([2] * 7, rows, counts)
    alone = np.full((14, 7), NOT_SET)
    for k in range(14):
        alone[k, k // 2] = k % 2
    found = rates.probability(alone).reshape(7, 2)
    assert found[0, 1] > 0.5 > 2 * found[0, 0]
    assert found[1:].max() < found[0, 1] - 0.1


def test_random_failures_are_flat() -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, (100, 6))
    failed = rng.random(100) < 0.1
    found = FailureRates([2] * 6, rows, np.column_stack([~failed, failed])).probability(rows)
    assert np.ptp(found) < 0.01
    assert found.mean() == pytest.approx(failed.mean(), abs=0.03)


def test_two_failures_of_a_level_are_no_more_than_chance_among_many_trials() -> None:
    rows = np.array(list(product(range(2), repeat=4)))
    counts = np.tile([2, 0], (len(rows), 1))
    counts[[9, 14]] = [1, 1]  # both with the first factor on, 2 of 16 trials with it
    found = FailureRates([2] * 4, rows, counts).probability(rows)
    assert found.max() < found.min() + 0.05
    counts[8:] = [0, 2]  # all trials with it
    found = FailureRates([2] * 4, rows, counts).probability(rows)
    assert found[8:].min() > 0.9 > 9 * found[:8].max()


@pytest.mark.parametrize("rate", [0.0005, 0.04, 0.12, 0.3, 0.5, 0.9])
def test_any_base_rate_is_learned_from_many_trials(rate: float) -> None:
    """Also one that is none of the base rates of the prior, or above all of them."""
    rng = np.random.default_rng(4)
    failed = rng.binomial(200, rate, len(ROWS))
    found = FailureRates(SIZES, ROWS, np.column_stack([200 - failed, failed])).probability(ROWS)
    np.testing.assert_allclose(found, failed.mean() / 200, atol=0.02)


def test_nothing_changes_until_something_fails() -> None:
    allowed = Constraints([2, 2, 2])
    made = belief([], [[0, 0, 0], [1, 1, 1]])
    assert made.over(allowed) is allowed
    made.learn(np.array([1, 0, 0], dtype=np.uint8), None)
    assert made.over(allowed) is not allowed


def test_what_mostly_fails_is_not_allowed_any_more() -> None:
    failed = [[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]]
    worked = [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1]]
    allowed = belief(failed, worked, reward=-3.0).over(Constraints([2, 2, 2]))
    assert allowed.interventions()[:, 0].tolist() == [0] * 4
    assert allowed.random(np.random.default_rng(0))[0] == 0
    worth = allowed.worth(allowed.interventions())
    assert worth.failing is not None
    np.testing.assert_allclose(
        worth.net(np.full(4, 5.0)), 5.0 * (1 - worth.failing) - 3.0 * worth.failing
    )
    pair = belief([[1, 1, k % 2] for k in range(6)], [*worked[:2], [1, 0, 0], [1, 0, 1]] * 4)
    rows = pair.over(Constraints([2, 2, 2])).interventions()
    assert not ((rows[:, 0] == 1) & (rows[:, 1] == 1)).any()
    assert (rows[:, 0] == 1).any()
    assert (rows[:, 1] == 1).any()


def test_something_is_always_left() -> None:
    allowed = belief(ROWS[:, [0, 2, 0]].tolist() * 3, []).over(Constraints([2, 2, 2]))
    assert len(allowed.interventions())
    two = Constraints([2, 2])
    assert two.avoiding([{0: 1}, {0: 0}, {1: 1}]).interventions().tolist() == [[0, 0], [0, 1]]
    with pytest.raises(InfeasibleError):
        Constraints([2, 2], forbidden=[{0: 1}, {0: 0}])


def test_a_value_that_is_told_counts_instead_of_the_lowest() -> None:
    made = belief([[1, 0, 0]], [[0, 0, 0]], reward=2.0)
    made.learn(np.array([0, 1, 0], dtype=np.uint8), float("nan"))  # not measured: no bound
    allowed = Constraints([2, 2, 2])
    risk = made.over(allowed).risk
    assert risk is not None
    assert risk.reward == 2.0
    made.told, made._known = -7.0, None
    risk = made.over(allowed).risk
    assert risk is not None
    assert risk.reward == -7.0


def test_factors_that_act_on_several_nodes() -> None:
    factors = Factors.acting_on(levels=[2, 2], nodes=[[0, 1], [1, 2]], n_nodes=3)
    allowed = Constraints(factors.regimes, factors=factors)
    rows = allowed.interventions()
    levels = allowed.levels(rows)
    made = FailureBelief(3)
    for _ in range(3):
        for row, level in zip(rows, levels, strict=True):
            made.learn(row.astype(np.uint8), None if level[1] else 1.0)
    left = made.over(allowed)
    assert left.levels(left.interventions())[:, 1].tolist() == [0, 0]


def test_only_the_last_settings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalarms.models.failures.MAX_FAILURE_SETTINGS", 3)
    made = belief([[1, 0, 0]], [[0, 0, k] for k in range(2)])
    made.learn(np.array([0, 0, 0], dtype=np.uint8), 1.0)  # again: it is not the oldest any more
    made.learn(np.array([0, 1, 0], dtype=np.uint8), 1.0)
    state = made.state()
    assert state["settings"].tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert state["counts"].tolist() == [[0, 1], [2, 0], [1, 0]]


def test_too_many_sets_of_factors_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalarms.models.failures.MAX_FAILURE_SETS", 8)
    rows = np.eye(4, dtype=int)
    rates = FailureRates([2] * 4, rows, np.array([[0, 3], [1, 0], [1, 0], [1, 0]]))
    assert max(len(found.factors) for found in rates.hypotheses) == 1
    monkeypatch.setattr("causalarms.models.failures.MAX_FAILURE_CELLS", 1)
    rates = FailureRates([2] * 4, rows, np.array([[0, 3], [1, 0], [1, 0], [1, 0]]))
    assert [found.factors for found in rates.hypotheses] == [()]
