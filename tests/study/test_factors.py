"""Studies in factors and levels: what a person sets is not what the core speaks of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalarms import LinearSEM, Study, random_sem
from causalarms.errors import StudyError
from causalarms.rng import stream
from causalarms.sem.factors import NamedFactors
from causalarms.study.records import Trial

NODES = ("rate", "selectivity", "heat", "yield")
FACTORS: dict[str, Any] = {
    "catalyst": {
        "levels": ["old", "new", "none"], "acts_on": ["rate", "selectivity"], "effect": "free"
    },
    "heat": {},
}  # fmt: skip
SEM = random_sem(4, seed=5, regimes=[3, 3, 2, 1])


def create(path: Path | None = None, **more: Any) -> Study:
    given_settings: dict[str, Any] = {
        "nodes": NODES,
        "reward": "yield",
        "factors": FACTORS,
        "seed": 4,
    } | more
    return Study.create(path, **given_settings)


def result(trial: Trial, sem: LinearSEM = SEM) -> list[float]:
    a = np.array([list(trial.intervention.values())], dtype=np.uint8)
    values: list[float] = sem.sample(a, stream(7, "noise", trial.number))[0].tolist()
    return values


def play(study: Study, rounds: int, sem: LinearSEM = SEM) -> None:
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, result(trial, sem))


def allowed_rewards(named: NamedFactors) -> dict[tuple[int, ...], float]:
    rows = np.unique(
        [
            named.intervention({"catalyst": c, "heat": h})
            for c in ("old", "new", "none")
            for h in ("off", "on")
        ],
        axis=0,
    ).astype(np.uint8)
    return dict(zip(map(tuple, rows.tolist()), SEM.expected_reward(rows).tolist(), strict=True))


def test_a_study_speaks_in_levels_and_finds_the_best(tmp_path: Path) -> None:
    path = tmp_path / "line.db"
    with create(path) as study:
        play(study, 60)
        trial = study.ask()
        assert set(trial.levels) == {"catalyst", "heat"}
        assert trial.intervention["rate"] == trial.intervention["selectivity"]
        assert study.policy.regimes.tolist() == [3, 3, 2, 1]
        study.abandon(trial)
    with Study.open(path) as study:
        best = study.best()
        rewards = allowed_rewards(study.settings.named)
        assert rewards[tuple(best.intervention.values())] == max(rewards.values())
        assert best.levels == study.settings.named.levels(list(best.intervention.values()))
        assert study.verify(replay=True).ok
        history = study.history()
        assert set(history["do:catalyst"]) <= {"old", "new", "none"}
        assert set(history["do:heat"]) <= {0, 1}
        found = study.predict([{"catalyst": "new"}, {}])
        assert [p["levels"]["catalyst"] for p in found] == ["new", "old"]
        assert set(found[0]["expected"]["yield"]) == {"mean", "low", "high"}
        told = study.explain(10)
        assert set(told["levels"]) == {"catalyst", "heat"}
        regimes = {sample["regime"] for sample in told["samples"]}
        assert regimes <= {"natural", "intervened", "catalyst=old", "catalyst=new", "catalyst=none"}


def test_what_was_really_set_is_said_in_levels() -> None:
    study = create()
    trial = study.ask()
    study.tell(trial, [1.0, 2.0, 3.0, 4.0], {"catalyst": "none"})
    heat = trial.intervention["heat"]  # as asked
    assert study.ledger().trials[0].intervention == (2, 2, heat, 0)
    with pytest.raises(StudyError, match="'catalyst' is not just on: say which level"):
        study.correct(trial, [1.0, 2.0, 3.0, 4.0], executed=["catalyst"])
    study.correct(trial, [1.0, 2.0, 3.0, 4.0], executed=["heat"])
    asked = study.settings.named.intervention(trial.levels | {"heat": "on"})
    assert study.ledger().trials[0].intervention == asked
    with pytest.raises(StudyError, match="no levels of the factors give the regimes"):
        study.predict([[1, 0, 0, 0]])
    with pytest.raises(StudyError, match="node 'rate' has no switch of its own: factor 'catalyst'"):
        study.predict([{"rate": 1}])
    play(study, 10)
    assert study.predict([[1, 1, 0, 0]])[0]["levels"]["catalyst"] == "new"
    by_node = dict(zip(NODES, (2, 2, 1, 0), strict=True))
    assert study.predict([by_node])[0]["levels"] == {"catalyst": "none", "heat": "on"}


def test_constraints_and_costs_in_levels() -> None:
    study = create(
        constraints={"forbidden": [{"catalyst": ["new", "none"], "heat": "on"}]},
        costs={"catalyst": {"none": 2.5}, "heat": 0.5},
    )
    play(study, 40)
    history = study.history()
    pairs = set(zip(history["do:catalyst"], history["do:heat"], strict=True))
    assert pairs <= {("old", 0), ("old", 1), ("new", 0), ("none", 0)}
    constraints = study.settings.constraints
    rows = [[0, 0, 0, 0], [2, 2, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0]]
    assert constraints.cost(rows).tolist() == [0.0, 2.5, 0.5, 0.0]
    study = create(constraints={"required": [{"catalyst": "new", "heat": "on"}]})
    play(study, 20)
    history = study.history()
    pairs = set(zip(history["do:catalyst"], history["do:heat"], strict=True))
    assert pairs <= {("new", 1), ("old", 0), ("none", 0)}
    study = create(constraints={"max_interventions": 1}, policy="random")
    play(study, 20)
    assert all(len(t.switch) <= 1 for t in study.ask(30))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"constraints": {"forbidden": [{"catalyst": "odd"}]}}, "'catalyst' has no level 'odd'"),
        ({"constraints": {"forbidden": [{}]}}, "combination is empty"),
        ({"constraints": {"forbidden": {"catalyst": "new"}}}, "list of combinations"),
        ({"constraints": {"forbidden": [{"catalyst": []}]}}, "no level of 'catalyst' is named"),
        ({"constraints": {"forbidden": [{"catalyst": "new"}]}}, "never allow level 'new'"),
        (
            {"constraints": {"required": [["catalyst", "heat"]]}},
            "must be {factor: level}",
        ),
        ({"constraints": {"required": [{"heat": 1}]}}, "at least two factors"),
        ({"constraints": {"required": [{"heat": 1, "catalyst": ["new"]}]}}, "name one level"),
        (
            {"constraints": {"required": [{"heat": 1, "catalyst": "new"}], "max_interventions": 1}},
            "never allow",
        ),
        ({"costs": {"catalyst": {"odd": 1}}}, "no level 'odd'"),
        ({"costs": {"catalyst": {"new": -1}}}, "level 'new' of 'catalyst' is -1"),
        ({"costs": {"heat": "dear"}}, "cost of switching 'heat' is 'dear'"),
        ({"costs": {"heat": True}}, "from 0 on"),
        ({"costs": {"rate": 1}}, "node 'rate' has no switch of its own"),
        ({"factors": {"speed": {}}, "policy": "ucb"}, "cannot learn which nodes a factor acts on"),
        ({"factors": {"speed": {}}, "noise_mean": 0.0}, "do not go together"),
        ({"factors": []}, "nothing to try"),
        ({"intervenable": ["rate"]}, "node 'rate' has no switch of its own"),
        ({"policy": "ga-lcb", "noise_mean": 0.0}, "needs two of every node"),
        ({"policy_settings": {"regimes": 2}}, "regimes is given to the study"),
    ],
)
def test_what_is_wrong_is_named_before_there_is_a_file(
    more: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(StudyError, match=message):
        create(tmp_path / "s.db", **more)
    assert not list(tmp_path.iterdir())


def test_a_level_that_sets_a_node_has_no_causes() -> None:
    factors = FACTORS | {"heat": {"sets": ["on"]}}
    study = create(factors=factors)
    play(study, 15)
    belief = study.beliefs().belief
    assert belief is not None
    assert (belief.edge_probability[1, :, 2] == 0).all()
    assert (belief.edge_probability[0, :, 2] > 0).any()
    with pytest.raises(StudyError, match="cannot use knowledge of edges"):
        create(factors=factors, policy="ucb")


def test_factors_cannot_change_and_intervenable_can() -> None:
    study = create()
    with pytest.raises(StudyError, match="factors cannot change"):
        study.change_settings(factors={"heat": {}})
    study.change_settings(intervenable=["heat"])
    play(study, 12)
    assert set(study.history()["do:catalyst"]) == {"old"}
    study.change_settings(intervenable=None)
    assert study.settings.intervenable is None


def test_past_rounds_in_levels(tmp_path: Path) -> None:
    study = create()
    values = {node: [1.0, 2.0, 3.0] for node in NODES}
    study.import_rounds(
        values | {"do:catalyst": ["new", "old", "none"], "do:heat": [0, True, "on"]}
    )
    executed = [r.intervention for r in study.ledger().trials]
    assert executed == [(1, 1, 0, 0), (0, 0, 1, 0), (2, 2, 1, 0)]
    plain, cells = create(), ["new", "old", "none"]  # no node is called `catalyst`
    plain.import_rounds(values | {"catalyst": cells, "do:heat": [0, True, "on"]})
    assert [r.intervention for r in plain.ledger().trials] == executed
    with pytest.raises(StudyError, match="'catalyst' is not a node"):
        plain.import_rounds(values | {"catalyst": cells, "do:catalyst": cells})
    table = study.export(tmp_path / "trials.csv")
    again = create()
    assert again.import_rounds(str(table)) == 3
    assert [r.intervention for r in again.ledger().trials] == executed
    for column, message in (
        ({"do:catalyst": ["new", "", "old"]}, "row 1 of column 'do:catalyst' is empty"),
        ({"do:catalyst": ["new", 1, "old"]}, "row 1 of column 'do:catalyst': factor 'catalyst'"),
        (
            {"do:heat": [0, 2, 0]},
            "row 1 of column 'do:heat': factor 'heat' has no level 2; it has off, on",
        ),
        ({"do:heat": [0, "yes", 0]}, "factor 'heat' has no level 'yes'; it has off, on"),
        ({"do:rate": [0, 1, 0]}, "node 'rate' has no switch in this study"),
        (
            {"intervened": ["catalyst", "", ""]},
            "has more than two levels: use a column do:catalyst",
        ),
        ({"intervened": ["rate", "", ""]}, "which is not a node that is switched"),
    ):
        with pytest.raises(StudyError, match=message):
            create().import_rounds(values | column)
    named = create()
    named.import_rounds(values | {"intervened": ["heat", "", "heat"]})
    assert [r.intervention for r in named.ledger().trials] == [(0, 0, 1, 0), (0,) * 4, (0, 0, 1, 0)]
    two = Study.create(None, ["a", "b"], "b", factors={"pump": {"levels": ["normal", "high"]}})
    two.import_rounds({"a": [1.0, 2.0], "b": [1.0, 2.0], "intervention_targets": ["", "pump"]})
    assert two.history()["do:pump"].tolist() == ["normal", "high"]


def test_levels_in_an_alarm(tmp_path: Path) -> None:
    study = create(changes=True)
    named = study.settings.named
    assert study.settings.policy == "posterior-cd"
    for node, regime, name in ((0, 2, "catalyst=none"), (2, 1, "intervened"), (3, 0, "natural")):
        assert named.regime_name(node, regime) == name


def suggestions(study: Study, sem: LinearSEM, rounds: int) -> list[tuple[int, ...]]:
    asked = []
    for _ in range(rounds):
        trial = study.ask()
        asked.append(tuple(trial.intervention.values()))
        study.tell(trial, result(trial, sem))
    return asked


def test_a_factor_on_two_nodes_equals_two_tied_nodes() -> None:
    """The same rounds, the same questions: a factor is nothing but two switches that agree."""
    sem = random_sem(3, seed=8)
    one = Study.create(
        None, nodes=["a", "b", "y"], reward="y", seed=2,
        factors={"both": {"acts_on": ["a", "b"], "effect": "free"}, "y": {}},
    )  # fmt: skip
    tied = Study.create(
        None, nodes=["a", "b", "y"], reward="y", seed=2, intervenable=["a", "b", "y"],
        constraints={"required": [{"a": "on", "b": "on"}]},
    )  # fmt: skip
    for round_ in range(30):
        first, second = one.ask(), tied.ask()
        if round_ >= 8:  # random rounds are drawn another way
            assert first.intervention == second.intervention, round_
        study_values = result(first, sem)
        one.tell(first, study_values)
        tied.tell(second, study_values, first.intervention)
    assert one.best().intervention == tied.best().intervention
    assert one.best().probability == tied.best().probability
    assert one.best().expected_loss == pytest.approx(tied.best().expected_loss, rel=1e-9)


@settings(max_examples=5, deadline=None)
@given(st.permutations(["catalyst", "heat"]), st.permutations(["old", "new", "none"]))
def test_another_order_of_factors_and_of_levels_asks_for_the_same(
    order: list[str], levels: list[str]
) -> None:
    """Told the same rounds, the best has the same levels and probabilities."""
    relabelled = {name: dict(FACTORS[name]) for name in order}
    relabelled["catalyst"]["levels"] = levels
    plain, other = create(), create(factors=relabelled)
    for number in range(25):
        rng = stream(3, "round", number)
        chosen = {
            "catalyst": ["old", "new", "none"][rng.integers(3)],
            "heat": ["off", "on"][rng.integers(2)],
        }
        a = np.array([plain.settings.named.intervention(chosen)], dtype=np.uint8)
        values = SEM.sample(a, rng)[0].tolist()
        for study in (plain, other):
            study.tell(study.ask(), values, chosen)
    one, two = plain.beliefs().belief, other.beliefs().belief
    assert one is not None
    assert two is not None
    for level in ("old", "new", "none"):
        at = [
            f.factors[f.factor("catalyst")].number(level)
            for f in (plain.settings.named, other.settings.named)
        ]
        np.testing.assert_allclose(
            one.edge_probability[at[0], :, :2], two.edge_probability[at[1], :, :2], atol=1e-9
        )
