"""Constraints by number: what they allow, cost, list, draw and refuse."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest

from causalarms.errors import InfeasibleError, ModelError
from causalarms.search import Constraints, Factors, feasible


def test_levels_and_regimes_tell_the_same() -> None:
    factors = Factors.acting_on(levels=[3, 2, 1], nodes=[[0, 2], [2, 3], [1]], n_nodes=5)
    levels = list(product(range(3), range(2), range(1)))
    rows = factors.interventions(levels)
    assert rows[3].tolist() == [1, 0, 3, 1, 0]  # node 2: 1 * 2 + 1
    assert factors.levels_of(rows).tolist() == [list(row) for row in levels]
    assert factors.levels_of([[0, 0, 2, 0, 0], [0, 0, 9, 0, 0], [0, 0, 0, 0, 1]]).max() == -1


def test_forbidden_mismatches_are_a_factor_on_two_nodes() -> None:
    tied = Constraints([3, 3], factors=Factors.acting_on(levels=[3], nodes=[[0, 1]], n_nodes=2))
    others: list[dict[int, Any]] = [
        {0: level, 1: [other for other in range(3) if other != level]} for level in range(3)
    ]
    apart = Constraints([3, 3], forbidden=others)
    assert tied.interventions().tolist() == apart.interventions().tolist()
    every = list(product(range(3), repeat=2))
    assert tied.allows(every).tolist() == apart.allows(every).tolist()


def test_what_is_listed_and_counted() -> None:
    at_most = Constraints([2] * 60, at_most=2)
    assert at_most.count() == 1 + 60 + 60 * 59 // 2
    assert len(at_most.interventions()) == at_most.count()
    assert at_most.count(most=1830) is None
    assert at_most.count(most=1831) == 1831
    open_to_all = Constraints([2] * 30)
    assert open_to_all.count() is None
    with pytest.raises(ModelError, match=r"more than 1048576 interventions are allowed"):
        open_to_all.interventions()
    assert open_to_all.free
    assert not at_most.free
    assert not Constraints([2, 2], cost=[[0, 0], [0, 1]]).free
    assert not Constraints([2, 2], allowed={0: [0]}).free


def test_equal_constraints_are_one_key() -> None:
    def made(level: int, cost: float) -> Constraints:
        return Constraints([2, 3], forbidden=[{1: [level, 1], 0: 1}], cost=[[0, cost], [0, 0, 0]])

    assert len({made(2, 1.0), made(2, 1), made(0, 1.0), made(2, 2.0)}) == 3
    copied = pickle.loads(pickle.dumps(made(2, 1.0)))
    assert copied == made(2, 1.0)
    assert hash(copied) == hash(made(2, 1.0))


def frequencies(constraints: Constraints, n: int) -> np.ndarray:
    """How often each allowed intervention is drawn."""
    rng = np.random.default_rng(1)
    rows = np.array([constraints.random(rng) for _ in range(n)])
    listed = constraints.interventions()
    counts = np.array([(rows == row).all(axis=1).sum() for row in listed])
    assert counts.sum() == n
    return counts


@pytest.mark.parametrize("method", ["counted", "repeated", "listed", "wandering"])
def test_draws_are_uniform(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules: dict[str, Any] = {"at_most": 2, "allowed": {3: [1, 2], 0: [0, 2]}}
    if method != "counted":
        rules["forbidden"] = [{0: 2, 1: 1}, {1: 0, 2: 0, 3: 1}]
    if method in ("listed", "wandering"):
        monkeypatch.setattr(feasible, "MAX_DRAWS", 0)
    if method == "wandering":
        monkeypatch.setattr(Constraints, "_start_list", lambda self: None)
    n = 4000
    counts = frequencies(Constraints([3, 2, 2, 3], **rules), n)
    expected = n / len(counts)
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = len(counts) - 1
    assert chi_square < freedom + 4 * np.sqrt(2 * freedom)  # 4 standard errors


def test_a_draw_where_nearly_nothing_is_allowed() -> None:
    """A chain of implications: all on from some node; 41 of 2^40 interventions."""
    chain = Constraints([2] * 40, forbidden=[{i: 1, i + 1: 0} for i in range(39)])
    assert chain.count() == 41
    drawn = np.array([chain.random(np.random.default_rng(seed)) for seed in range(30)])
    assert chain.allows(drawn).all()
    assert len(np.unique(drawn, axis=0)) > 10


def test_infeasible_is_said_with_a_smallest_conflict() -> None:
    with pytest.raises(InfeasibleError, match=r"satisfies allowed 1, forbidden 2$") as raised:
        Constraints(
            [2, 3, 2],
            allowed={0: [0], 1: [2]},
            forbidden=[{0: 1}, {0: 1, 2: 1}, {1: [0, 2]}],
            at_most=3,
        )
    assert raised.value.conflict == (("allowed", 1), ("forbidden", 2))
    with pytest.raises(InfeasibleError, match=r"allowed 0, at_most$"):
        Constraints([2], allowed={0: [1]}, at_most=0)
    with pytest.raises(InfeasibleError, match=r"allowed 0$"):
        Constraints([1], allowed={0: []})
    pigeons = [
        {2 * i + a: 1, 2 * j + a: 1} for i in range(3) for j in range(i) for a in range(2)
    ] + [{2 * i: 0, 2 * i + 1: 0} for i in range(3)]
    with pytest.raises(InfeasibleError, match="forbidden 0, forbidden 1"):
        Constraints([2] * 6, forbidden=pigeons)


def test_a_search_for_a_start_that_ends_too_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    holes = 8  # one pigeon more than holes: no intervention, but long to prove
    pigeons = [
        {holes * i + a: 1, holes * j + a: 1}
        for i in range(holes + 1)
        for j in range(i)
        for a in range(holes)
    ]
    somewhere = [{holes * i + a: 0 for a in range(holes)} for i in range(holes + 1)]
    monkeypatch.setattr(feasible, "MAX_STEPS", 1000)
    with pytest.raises(ModelError, match="was found in 1000 steps, and it is not proven"):
        Constraints([2] * holes * (holes + 1), forbidden=pigeons + somewhere)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"allowed": {2: [0]}}, "there is no node 2"),
        ({"allowed": {1: [3]}}, "node 1 has no regime 3"),
        ({"forbidden": [{}]}, "forbidden combination 0 is empty"),
        ({"forbidden": [{0: 1}, {2: 0}]}, "forbidden combination 1: there is no factor 2"),
        ({"forbidden": [{0: [0, 2]}]}, "combination 0: factor 0 has no level 2"),
        ({"at_most": -1}, "at_most must not be negative, but is -1"),
        ({"cost": [[0, 1]]}, "cost of 1 factors, but there are 2"),
        ({"cost": [[0, 1], [0, 1]]}, "factor 1: 2 costs for 3 levels"),
        ({"cost": [[0, 1], [0, 1, np.inf]]}, "cost of level 2 of factor 1 is inf"),
        ({"factors": Factors.per_node([2])}, "factors for 1 nodes, but there are 2"),
        (
            {"factors": Factors.per_node([2, 4])},
            "node 1 has 3 regimes, but its factors set regime 3",
        ),
    ],
)
def test_constraints_that_are_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Constraints([2, 3], **keywords)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0,), ()), "factor 0 has 0 levels"),
        (((2,), ((1,),)), "node 0: there is no factor 1"),
        (((2,), ((0, 0),)), "node 0: a factor acts on it twice"),
        (((2,), ((),)), "factor 0 acts on no node: its 2 levels would be the same"),
        (((256, 256, 2), ((0, 1, 2),)), "131072 combinations of levels act on it"),
    ],
)
def test_factors_that_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Factors(*arguments)


def test_factors_by_nodes_that_are_refused() -> None:
    with pytest.raises(ModelError, match="factor 0 acts on node 2 of 2 nodes"):
        Factors.acting_on(levels=[2], nodes=[[2]], n_nodes=2)
    with pytest.raises(ModelError, match="2 numbers of levels for 1 factors"):
        Factors.acting_on(levels=[2, 2], nodes=[[0]], n_nodes=2)


def test_rows_that_cannot_be_set() -> None:
    tied = Constraints([2, 2], factors=Factors.acting_on(levels=[2], nodes=[[0, 1]], n_nodes=2))
    rows = np.array([[0, 0], [0, 1], [1, 1], [2, 2]], dtype=np.uint8)
    assert tied.allows(rows).tolist() == [True, False, True, False]
    assert Constraints([2, 2], at_most=1).allows(rows).tolist() == [True, True, False, False]
    with pytest.raises(ModelError, match="row 1: no levels of the factors give this"):
        tied.cost([[0, 0], [0, 1]])
    with pytest.raises(ModelError, match=r"must have shape \(n, 2\), not \(1, 3\)"):
        tied.allows([[0, 0, 0]])
    with pytest.raises(ModelError, match="0 regimes, not between 1 and 256"):
        Constraints([2, 0])
