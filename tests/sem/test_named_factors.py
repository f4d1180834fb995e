"""Names of factors and levels, and the regimes they stand for."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalarms.errors import ModelError
from causalarms.sem.factors import NamedFactors

NODES = ("rate", "selectivity", "heat", "yield")
GIVEN: dict[str, Any] = {
    "catalyst": {"levels": ["old", "new", "none"], "acts_on": ["rate", "selectivity"]},
    "heat": {},
    "stirring": {"levels": [0, 20.5, 40], "acts_on": ["selectivity"], "sets": [40]},
}


def named(given: Any = GIVEN) -> NamedFactors:
    return NamedFactors.of(given, NODES)


def test_levels_and_regimes_tell_the_same() -> None:
    factors = named()
    assert factors.regimes.tolist() == [3, 9, 2, 1]
    seen = set()
    for catalyst, heat, stirring in product(["old", "new", "none"], ["off", "on"], [0, 20.5, 40]):
        levels = {"catalyst": catalyst, "heat": heat, "stirring": stirring}
        regimes = factors.intervention(levels)
        assert factors.levels(regimes) == levels
        seen.add(regimes)
    assert len(seen) == 18


def test_what_is_not_named_stays_at_its_first_level() -> None:
    assert named().intervention({}) == (0, 0, 0, 0)
    assert named().intervention({"catalyst": "none"}) == (2, 6, 0, 0)


@pytest.mark.parametrize(
    ("factor", "level", "number"),
    [
        ("heat", 1, 1),
        ("heat", True, 1),
        ("heat", "0", 0),
        ("heat", np.float64(1), 1),
        ("stirring", "20.5", 1),
        ("stirring", 40.0, 2),
        ("stirring", np.int64(0), 0),
        ("stirring", 20.500000000000004, 1),
        ("catalyst", "none", 2),
    ],
)
def test_a_level_by_value_or_as_text(factor: str, level: object, number: int) -> None:
    factors = named()
    assert factors.factors[factors.factor(factor)].number(level) == number


@pytest.mark.parametrize(
    ("factor", "level"),
    [
        ("heat", 2),
        ("heat", 0.5),
        ("stirring", True),
        ("stirring", 1),
        ("catalyst", 1),
        ("heat", None),
    ],
)
def test_a_level_that_is_none(factor: str, level: object) -> None:
    factors = named()
    with pytest.raises(ModelError, match=f"factor '{factor}' has no level"):
        factors.factors[factors.factor(factor)].number(level)


def test_a_level_that_sets_a_node_leaves_it_without_parents() -> None:
    hard = named().set_regimes
    assert hard.shape == (9, 4)
    assert np.argwhere(hard).tolist() == [[2, 1], [5, 1], [8, 1]]
    only = named({"catalyst": GIVEN["catalyst"] | {"sets": {"rate": ["new", "none"]}}}).set_regimes
    assert np.argwhere(only).tolist() == [[1, 0], [2, 0]]


def test_regimes_are_called_by_their_levels() -> None:
    factors = named()
    assert [factors.regime_name(2, r) for r in range(2)] == ["natural", "intervened"]
    assert factors.regime_name(3, 0) == "natural"
    assert factors.regime_name(0, 2) == "catalyst=none"
    assert factors.regime_name(1, 5) == "catalyst=new, stirring=40"
    assert factors.switched((1, 3, 0, 0)) == ["catalyst"]
    elsewhere = named({"boost": {"acts_on": ["rate"]}})
    assert elsewhere.regime_name(0, 1) == "boost on"


def test_regimes_that_no_levels_give() -> None:
    assert named().numbers_of((1, 0, 0, 0)) is None
    with pytest.raises(
        ModelError, match=r"no levels of the factors give the regimes \[1, 0, 0, 0\]"
    ):
        named().levels((1, 0, 0, 0))


@pytest.mark.parametrize(
    ("given_factors", "message"),
    [
        ({}, "nothing to try"),
        ("heat", "factors are names with their levels"),
        ([{"levels": [1, 2]}], "factors are names with their levels"),
        ([{"name": "heat"}, {"name": "heat"}], "two factors 'heat'"),
        ({"": {}}, "name that is text"),
        ({3: {}}, "name that is text"),
        ({"heat": None}, "factor 'heat': say levels"),
        ({"heat": {"level": [1, 2]}}, "there is no 'level'"),
        ({"boost": {"effect": "free"}}, "'boost' has a mechanism per level: say which nodes"),
        ({"boost": {"effect": "some"}}, "effect is free or shift, not 'some'"),
        ({"boost": {"effect": "shift", "acts_on": ["rate"], "sets": ["on"]}}, "sets nodes"),
        ({"boost": {"range": [1, 2], "levels": [1, 2]}}, "levels and a range"),
        ({"boost": {"range": [2, 1], "step": 0.1}}, "the lower end first"),
        ({"boost": {"range": [1, 2]}}, "range"),
        ({"boost": {"range": [1, 2], "step": 0.3}}, "do not end at 2"),
        ({"boost": {"range": [0, 1], "step": 1e-4}}, "more than 256 levels"),
        ({"boost": {"range": [0, 256], "step": 1}}, "'boost': a step of 1 makes more than 256"),
        ({"boost": {"range": [0, 1e9], "step": 1}}, "more than 256 levels"),
        ({"boost": {"range": [0, 1], "step": 0}}, "'boost': range .* step 0 has no levels"),
        ({"boost": {"range": [0, 1], "step": -0.1}}, "step -0.1 has no levels"),
        ({"boost": {"range": [0, float("nan")], "step": 0.1}}, "nan.* has no levels"),
        ({"boost": {"range": [0, 1], "step": True}}, "step True has no levels"),
        ({"boost": {"range": "12", "step": 1}}, "lowest, highest"),
        ({"boost": {"acts_on": "rate"}}, "acts_on is a list"),
        ({"boost": {"acts_on": []}}, "acts_on is a list"),
        ({"boost": {"acts_on": ["rat"]}}, "did you mean 'rate'"),
        ({"boost": {"acts_on": ["rate", "rate"]}}, "twice"),
        ({"heat": {"levels": "ab"}}, "levels is a list"),
        ({"heat": {"levels": ["a"]}}, "at least two levels"),
        ({"heat": {"levels": ["a", "a"]}}, "'a' is there twice"),
        ({"heat": {"levels": [1, 1.0]}}, "there twice"),
        ({"heat": {"levels": [1, "1"]}}, "there twice"),
        ({"heat": {"levels": ["a", True]}}, "neither text nor a number"),
        ({"heat": {"levels": ["a", " "]}}, "needs a name"),
        ({"heat": {"levels": [0.0, float("nan")]}}, "not finite"),
        ({"heat": {"sets": "on"}}, "sets is a list"),
        ({"heat": {"sets": ["warm"]}}, "no level 'warm'"),
        ({"heat": {"sets": {"rate": ["on"]}}}, "does not act on it"),
        ({"heat": {"levels": list(range(300))}}, "factor 'heat' has more than 256 levels"),
        ({"heat": {"levels": range(10**9)}}, "factor 'heat' has more than 256 levels"),
        ({"heat": {"levels": [1, 2], "step": 1}}, "factor 'heat': step goes with range"),
        ({"boost": {"levels": [1, 2], "sets": [1]}}, "'boost' sets nodes: say which nodes it acts"),
        (
            {f"f{i}": {"levels": list(range(7)), "acts_on": ["rate"]} for i in range(3)},
            "343 regimes, one per combination of the levels of f0, f1, f2",
        ),
    ],
)
def test_what_is_wrong_is_named(given_factors: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        named(given_factors)


def test_as_list_keeps_the_order_and_comes_back() -> None:
    again = NamedFactors.of(named().as_list(), NODES)
    assert again == named()
    assert again.names == ("catalyst", "heat", "stirring")


@given(st.permutations(list(GIVEN)))
def test_the_order_of_factors_changes_names_of_regimes_only(order: list[str]) -> None:
    """Which nodes share a regime, and which are set, does not depend on it."""
    factors, other = named(), named({name: GIVEN[name] for name in order})
    assert factors.regimes.tolist() == other.regimes.tolist()
    levels = {"catalyst": "new", "stirring": 40, "heat": 1}
    one, two = factors.intervention(levels), other.intervention(levels)
    assert factors.levels(one) == {name: other.levels(two)[name] for name in factors.names}
    assert factors.set_regimes.sum() == other.set_regimes.sum()
