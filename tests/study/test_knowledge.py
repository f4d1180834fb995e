"""What is known of edges before a study: kept, stored, used by those who can, refused by others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_rounds import NODES, SEM, SETTINGS, play, state_of

from causalarms import Study, make_policy
from causalarms.errors import ModelError, SettingError, StudyError
from causalarms.policies.registry import POLICIES
from causalarms.study.settings import Settings

KNOWN = {
    "tiers": [["yield"], ["heat", "stir"]],
    "excluded": [["stir", "heat"]],
    "required": [["yield", "stir"]],
}
CAN = (
    "csl-ucb", "csl-ucb-cd", "csl-ucb-joint", "csl-ucb-joint-cd", "posterior", "posterior-cd",
)  # fmt: skip
EXTRA: dict[str, dict[str, Any]] = {
    name: {"graph": np.triu(np.ones((2, 3, 3), dtype=bool), 1).tolist()}
    for name in ("linsem-ts", "linsem-ucb", "robust-linsem")
}


@pytest.mark.parametrize("policy", CAN)
def test_policies_keep_to_it(policy: str) -> None:
    settings = SETTINGS | {"policy": policy}
    study = Study.create(None, **settings, knowledge=KNOWN)
    free = Study.create(None, **settings)
    play(study, 70)
    play(free, 70)
    heat, stir, reward = range(3)
    excluded = [(heat, reward), (stir, reward), (stir, heat)]
    graph, believed = study.graph(), study.policy.adjacency
    assert believed is not None
    for of in (believed, graph.adjacency):
        assert not any(of[:, parent, child].any() for parent, child in excluded)
    assert believed[:, reward, stir].all()
    assert graph.adjacency[graph.known[:, stir], reward, stir].all()
    found = {(e["parent"], e["child"]) for e in study.graph().edges()}
    assert ("yield", "stir") in found
    unaware = free.graph().adjacency
    assert any(unaware[:, p, c].any() for p, c in excluded) or not unaware[:, reward, stir].all()


@pytest.mark.parametrize("policy", CAN)
def test_nodes_without_a_switch_keep_to_it_too(policy: str) -> None:
    settings = SETTINGS | {"policy": policy, "intervenable": NODES[:2]}
    study = Study.create(None, **settings, knowledge=KNOWN)
    play(study, 90)
    graph = study.graph()
    adjacency, probability = graph.adjacency[0], graph.measures["probability"][0]
    assert not adjacency[:2, 2].any()
    assert adjacency[2, 1]
    assert np.allclose(probability[:2, 2], 0)
    assert probability[2, 1] == 1


@pytest.mark.parametrize("policy", [name for name in POLICIES if name not in (*CAN, "oracle")])
def test_policies_that_cannot_use_it_are_refused_by_name(policy: str, tmp_path: Path) -> None:
    settings = SETTINGS | {"policy": policy, "policy_settings": EXTRA.get(policy, {})}
    with pytest.raises(StudyError, match=f"'{policy}' cannot use knowledge of edges; csl-ucb, "):
        Study.create(tmp_path / "s.db", **settings, knowledge=KNOWN)
    assert not (tmp_path / "s.db").exists()
    if policy in ("ucb", "random"):  # others need more rounds or knowledge
        Study.create(None, **settings, knowledge={"tiers": [], "excluded": []})


@pytest.mark.parametrize(
    ("knowledge", "message"),
    [
        ({"required": [["heat", "stir"], ["stir", "heat"]]}, "cycle heat -> stir -> heat"),
        (KNOWN | {"required": [["stir", "heat"]]}, "stir -> heat is required and excluded"),
        ({"excluded": [["het", "stir"]]}, "no node 'het'; did you mean 'heat'"),
        ({"excluded": [["heat"]]}, r"a pair \[parent, child\], not \['heat'\]"),
        ({"excluded": ["heat:stir"]}, "must be a list of nodes, not 'heat:stir'"),
        ({"excluded": "heat"}, "a list of lists of nodes, not 'heat'"),
        ({"required": [["heat", "heat"]]}, "cannot be its own parent"),
        ({"tiers": [["heat"], ["heat"]]}, "stands in two tiers"),
        ({"tiers": 3}, "'tiers' must be a list of lists"),
        ({"tier": [["heat"]]}, "no knowledge 'tier'; there are tiers, excluded, required"),
        ([], r"knowledge must be tiers, excluded, required with lists of nodes, not \[\]"),
    ],
)
def test_what_contradicts_itself_is_refused(knowledge: Any, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        Study.create(None, **SETTINGS, knowledge=knowledge)


def test_it_is_stored_by_name_and_may_change(tmp_path: Path) -> None:
    given = {"tiers": ([2], ("heat", 1)), "excluded": [(1, 0)], "required": ()}
    with Study.create(tmp_path / "s.db", **SETTINGS, knowledge=given) as study:
        play(study, 60)
        before = state_of(study)
    with Study.open(tmp_path / "s.db") as study:
        assert study.settings.knowledge == {
            "tiers": [["yield"], ["heat", "stir"]],
            "excluded": [["stir", "heat"]],
        }
        assert state_of(study) == before
        assert study.verify(replay=True).ok
        study.change_settings(knowledge={})
        assert study.settings.knowledge == {}
        assert state_of(study) != before
        study.change_settings(knowledge=given)
        assert state_of(study) == before
        with pytest.raises(StudyError, match="'ucb' cannot use knowledge"):
            study.change_settings(policy="ucb")


def test_settings_say_which_factors_there_are() -> None:
    given = {"nodes": NODES, "reward": "yield", "policy": "random", "factors": {"heat": {}}}
    for name in given:
        with pytest.raises(StudyError, match=f"^{name} is missing"):
            Settings.from_dict({other: given[other] for other in given if other != name})
    record = Settings.from_dict(given)
    assert Settings.from_dict(json.loads(json.dumps(record.as_dict()))) == record


def test_masks_are_not_settings_of_a_studys_policy() -> None:
    with pytest.raises(StudyError, match="allowed edges are given to the study as knowledge"):
        Study.create(None, **SETTINGS, policy_settings={"allowed": [[True] * 3] * 3})


@pytest.mark.parametrize("policy", CAN)
@pytest.mark.parametrize("name", ["allowed", "required"])
@pytest.mark.parametrize("mask", ["x", 3, [[1, 2], [3]], np.ones((3, 2)), np.full((3, 3), 0.5),
                                  np.full((3, 3), 2), np.ones((3, 3, 3), dtype=bool)])  # fmt: skip
def test_masks_of_policies_are_checked(policy: str, name: str, mask: Any) -> None:
    with pytest.raises(SettingError, match=f"{name} must say True or False of every edge"):
        make_policy(policy, n_nodes=3, horizon=200, **{name: mask})


@pytest.mark.parametrize("policy", CAN)
def test_masks_of_policies_must_fit_an_order(policy: str) -> None:
    cycle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    with pytest.raises(ModelError, match="no order of the nodes fits the required"):
        make_policy(policy, n_nodes=3, horizon=200, required=cycle)
    with pytest.raises(ModelError, match="0 -> 1 is required and excluded"):
        make_policy(policy, n_nodes=3, horizon=200, required=cycle, allowed=~cycle)


@pytest.mark.parametrize("policy", CAN)
def test_a_required_edge_is_there_against_all_data(policy: str) -> None:
    rng = np.random.default_rng(0)
    regimes = rng.integers(0, 2, (80, 3))
    values = SEM.sample(regimes, rng)
    for parent, child in ((0, 2), (2, 0), (1, 2), (2, 1)):
        required = np.zeros((3, 3), dtype=bool)
        required[parent, child] = True
        made = make_policy(policy, n_nodes=3, horizon=200, required=required)
        for a, x in zip(regimes, values, strict=True):
            made.tell(a, x)
        assert made.adjacency is not None
        assert made.adjacency[:, parent, child].all()
        assert not made.adjacency[:, child, parent].any()


def test_factors_are_parents_in_it() -> None:
    nodes = ["heat", "yield"]
    factors: dict[str, Any] = {"load": {"levels": [1, 2, 3]}, "heat": {"effect": "shift"}}
    known = {"excluded": [["load", "yield"]], "required": [["do:heat", "heat"]]}
    study = Study.create(None, nodes, "yield", factors=factors, knowledge=known, seed=1)
    assert study.settings.knowledge == known
    rng = np.random.default_rng(0)
    for trial in study.ask(20):
        load, noise = trial.levels["load"], rng.normal(size=2)
        study.tell(trial, [load + 0.3 * noise[0], load + 0.3 * noise[1]])
    load, heat = study.effects()
    assert load["acts_on"]["yield"] == 0.0
    assert heat["acts_on"]["heat"] == 1.0
    for wrong, message in (
        ({"required": [["heat", "load"]]}, "load is a factor: nothing that is measured causes it"),
        ({"excluded": [["lod", "yield"]]}, "no node 'lod'; did you mean 'load'"),
    ):
        with pytest.raises(StudyError, match=message):
            Study.create(None, nodes, "yield", factors=factors, knowledge=wrong)
