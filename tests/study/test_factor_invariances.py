"""The same rounds in other words: what is believed of factors, and recommended, is the same.

No level is special: neither the first, with which effects are compared, nor any other.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalarms import Study

NODES = ("weather", "heat", "yield")
LEVELS: dict[str, list[Any]] = {
    "load": [1, 2, 4, 7], "kind": ["x", "y", "z"], "gate": ["low", "high"]
}  # fmt: skip
# kind z answers the weather the other way round: it is free, and does not only shift
SLOPE = {"x": 0.08, "y": 0.08, "z": -0.24}


@cache
def rounds() -> list[dict[str, Any]]:
    rng, found = np.random.default_rng(1), []
    for _ in range(90):
        at = {name: levels[rng.integers(len(levels))] for name, levels in LEVELS.items()}
        weather, heat = 950 + 10 * rng.normal(), 300 + 5 * at["load"] + 3 * rng.normal()
        made = 0.1 * heat + SLOPE[at["kind"]] * (weather - 950) + rng.normal()
        made += 1.5 * (at["kind"] == "y") + 0.8 * (at["gate"] == "high")
        found.append(at | {"weather": weather, "heat": heat, "yield": made})
    return found


class Found(NamedTuple):
    probability: dict[tuple[str, str], float]  # of edges between nodes, and of factors on nodes
    levels: dict[str, Any]
    reward: float
    chance: float  # of being the best


def found_by(
    nodes: Any = NODES,
    levels: dict[str, list[Any]] = LEVELS,
    *,
    scales: dict[str, tuple[float, float]] | None = None,
    called: dict[str, str] | None = None,
    entries: dict[str, dict[str, Any]] | None = None,
    **more: Any,
) -> Found:
    """By a study of the same rounds, with its answer in the words of `rounds`.

    scales   a value or level x of this node or factor is a x + b in the study
    called   other names of nodes, factors and levels
    """
    scales, called, entries = scales or {}, called or {}, entries or {}

    def other(name: str, x: Any) -> Any:
        a, b = scales.get(name, (1, 0))
        return called.get(x, x) if isinstance(x, str) else a * x + b

    def word(name: str) -> str:
        return called.get(name, name)

    study = Study.create(
        None,
        nodes=[word(node) for node in nodes],
        reward=word("yield"),
        factors={
            word(name): {"levels": [other(name, x) for x in each]} | entries.get(name, {})
            for name, each in levels.items()
        },
        seed=1,
        **more,
    )
    columns = {node: word(node) for node in nodes} | {name: f"do:{word(name)}" for name in levels}
    study.import_rounds({
        column: [other(name, x[name]) for x in rounds()] for name, column in columns.items()
    })  # fmt: skip
    belief, named, best = study.beliefs().belief, study.settings.named, study.best()
    assert belief is not None
    places = [*range(len(nodes)), *named.roots]
    edges = belief.edge_probability[0][np.ix_(places, range(len(nodes)))]
    every = [*nodes, *levels]
    a, b = scales.get("yield", (1, 0))
    return Found(
        {(every[i], nodes[j]): float(edges[i, j]) for i, j in np.ndindex(*edges.shape)},
        {name: next(x for x in each if str(other(name, x)) == str(best.levels[word(name)]))
         for name, each in levels.items()},
        (best.reward - b) / a,
        best.probability,
    )  # fmt: skip


@cache
def plain() -> Found:
    return found_by()


def assert_the_same(found: Found, first: Found, *, draws: bool) -> None:
    """`draws`: whether the random numbers mean the same; the rest is exact in any case."""
    assert found.probability == pytest.approx(first.probability, abs=1e-9)
    assert found.levels == first.levels
    assert found.reward == pytest.approx(first.reward, abs=1e-6 if draws else 0.2)
    assert found.chance == pytest.approx(first.chance, abs=1e-6 if draws else 0.2)


def test_there_is_something_to_learn() -> None:
    assert plain().levels == {"load": 7, "kind": "y", "gate": "high"}
    assert plain().probability["kind", "yield"] > 0.99
    assert any(0.1 < chance < 0.9 for chance in plain().probability.values())


def test_units_and_zeros() -> None:
    scales = {"weather": (1e3, 5e5), "heat": (0.01, -3.0), "yield": (7.0, 1e4), "load": (10, 3)}
    assert_the_same(found_by(scales=scales), plain(), draws=True)


def test_names() -> None:
    called = {"weather": "z", "heat": "a", "yield": "m", "kind": "zz", "gate": "aa", "load": "n",
              "x": "r", "y": "q", "z": "p", "low": "up", "high": "down"}  # fmt: skip
    assert_the_same(found_by(called=called), plain(), draws=True)


@settings(max_examples=6, deadline=None)
@given(
    st.permutations(NODES),
    st.permutations(list(LEVELS)),
    st.tuples(*(st.permutations(each) for each in LEVELS.values())),
)
def test_orders_of_nodes_factors_and_levels(nodes: Any, names: list[str], levels: Any) -> None:
    """And so the level that comes first."""
    moved = dict(zip(LEVELS, levels, strict=True))
    found = found_by(nodes, {name: moved[name] for name in names})
    assert_the_same(found, plain(), draws=False)


@pytest.mark.parametrize("name", LEVELS)
def test_any_level_may_be_the_first(name: str) -> None:
    """With context, and a factor that was told what it acts on."""
    told: dict[str, Any] = {"context": ["weather"], "entries": {"load": {"acts_on": ["heat"]}}}
    first = found_by(**told)
    turned = LEVELS[name]
    for _ in turned[1:]:
        turned = [*turned[1:], turned[0]]
        found = found_by(levels=LEVELS | {name: turned}, **told)
        assert_the_same(found, first, draws=False)


def test_two_levels_by_numbers_or_by_names() -> None:
    rename = {"low": "1", "high": "2"}
    found = found_by(entries={"gate": {"levels": [1, 2]}}, called=rename)
    assert_the_same(found, plain(), draws=True)
