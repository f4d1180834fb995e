"""make_policy: names, what each must be told, and policies of other packages."""

from __future__ import annotations

import importlib.metadata
import re
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from causalarms import make_policy
from causalarms.errors import ModelError
from causalarms.policies.base import Policy
from causalarms.policies.csl_ucb import CSLUCB
from causalarms.policies.registry import (
    ENTRY_POINT,
    accepted_settings,
    not_compared,
    policy_factory,
    policy_names,
)
from causalarms.policies.simple import UCB, RandomPolicy


def test_the_names_are_those_of_the_design() -> None:
    assert set(policy_names()) >= {
        "csl-ucb", "csl-ucb-cd", "csl-ucb-joint", "csl-ucb-joint-cd", "ucb",
        "golem-mab", "golem-mab-cd", "dagma-mab", "linsem-ts", "linsem-quantile",
        "linsem-ucb", "robust-linsem", "additive", "ga-lcb", "random", "oracle",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("csl-ubc", "csl-ucb"), ("golem_mab", "golem-mab"), ("linsem", "linsem-ts"), ("ocb", "ucb")],
)
def test_an_unknown_policy_is_answered_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(ModelError, match=f"unknown policy '{name}'; did you mean '{nearest}'"):
        make_policy(name, n_nodes=3)


def test_a_name_like_no_other_is_answered_with_all_of_them() -> None:
    with pytest.raises(ModelError, match="unknown policy 'zzz'; there are csl-ucb, csl-ucb-cd"):
        make_policy("zzz", n_nodes=3)


@pytest.mark.parametrize(
    ("name", "setting", "answer"),
    [
        ("csl-ucb", "min_sample", "did you mean 'min_samples'"),
        ("csl-ucb-cd", "refesh", "did you mean 'refresh'"),
        ("csl-ucb-cd", "zetta", "did you mean 'zeta'"),
        ("golem-mab", "acyclicty", "did you mean 'acyclicity'"),
        ("golem-mab-cd", "treshold", "did you mean 'threshold'"),
        ("dagma-mab", "last_step", "did you mean 'last_steps'"),
        ("linsem-ts", "prior_sd", "did you mean 'prior_std'"),
        ("ucb", "colour", "it has alpha, window"),
        ("random", "colour", "it has none"),
    ],
)
def test_an_unknown_setting_is_answered_with_the_nearest(
    name: str, setting: str, answer: str
) -> None:
    settings: dict[str, Any] = {setting: 1}
    with pytest.raises(ModelError, match=f"policy '{name}' has no setting '{setting}'; {answer}"):
        make_policy(name, n_nodes=3, **settings)


@pytest.mark.parametrize(
    ("name", "settings", "missing"),
    [
        ("csl-ucb", {}, "horizon"),
        ("csl-ucb-cd", {"noise_mean": 1.0}, "horizon"),
        ("golem-mab", {}, "horizon"),
        ("linsem-ts", {"horizon": 100}, "graph, noise_mean"),
        ("linsem-ucb", {}, "graph, noise_mean"),
        ("robust-linsem", {"graph": [[[0]]]}, "noise_mean"),
        ("ga-lcb", {"horizon": 100}, "noise_mean"),
        ("oracle", {}, "systems"),
    ],
)
def test_what_a_policy_must_be_told_is_named(
    name: str, settings: dict[str, Any], missing: str
) -> None:
    with pytest.raises(ModelError, match=f"policy '{name}' must be told {missing}$"):
        make_policy(name, n_nodes=3, **settings)


def test_what_a_policy_has_no_use_for_is_kept_from_it() -> None:
    for name in ("ucb", "random"):
        assert make_policy(name, n_nodes=3, horizon=100, noise_mean=1.0).n_nodes == 3
    assert "noise_mean" not in accepted_settings(policy_factory("ucb"))


def test_settings_reach_the_parts() -> None:
    policy = make_policy("csl-ucb-cd", n_nodes=3, horizon=300, refresh=7, detector="paper")
    assert isinstance(policy, CSLUCB)
    assert policy.refresh == 7
    assert policy.detector.window == 60
    golem = make_policy("golem-mab", n_nodes=3, horizon=300, n_explore=20, l1=0.5)
    assert golem.learner.get_params()["l1"] == 0.5  # type: ignore[attr-defined]


def test_an_unknown_detector_is_refused() -> None:
    with pytest.raises(ModelError, match="unknown detector 'cusum'; there are none, authors"):
        make_policy("csl-ucb-cd", n_nodes=3, horizon=300, detector="cusum")


class TestEntryPoints:
    """Policies of other packages, under the group causalarms.policies."""

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        here = f"{__name__}:strict"
        entries = [
            EntryPoint("strict", here, ENTRY_POINT),
            EntryPoint("open", f"{__name__}:open_ended", ENTRY_POINT),
        ]

        def entry_points(*, group: str) -> EntryPoints:
            return EntryPoints(entries).select(group=group)

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)

    def test_they_are_listed_after_the_built_in_ones(self) -> None:
        assert policy_names()[-2:] == ["open", "strict"]

    def test_they_are_built_and_checked_like_the_others(self) -> None:
        policy = make_policy("strict", n_nodes=3, horizon=50, colour="red")
        assert isinstance(policy, RandomPolicy)
        with pytest.raises(ModelError, match="no setting 'color'; did you mean 'colour'"):
            make_policy("strict", n_nodes=3, colour="red", color="blue")
        with pytest.raises(ModelError, match="must be told colour"):
            make_policy("strict", n_nodes=3)

    def test_one_that_takes_anything_is_given_anything(self) -> None:
        assert make_policy("open", n_nodes=3, whatever=1).n_nodes == 3

    def test_their_names_are_suggested(self) -> None:
        with pytest.raises(ModelError, match="did you mean 'strict'"):
            make_policy("strickt", n_nodes=3)


def strict(n_nodes: int, reward: int = -1, *, colour: str) -> Policy:
    assert colour == "red"
    return RandomPolicy(n_nodes, reward)


def open_ended(n_nodes: int, reward: int = -1, **settings: Any) -> Policy:
    assert settings == {"whatever": 1}
    return RandomPolicy(n_nodes, reward)


@pytest.mark.parametrize("name", ["csl-ucb", "csl-ucb-cd", "csl-ucb-joint", "csl-ucb-joint-cd"])
def test_the_paper_learns_the_regimes_apart_and_one_order_is_named(name: str) -> None:
    policy: Any = make_policy(name, n_nodes=3, horizon=300)
    assert policy.joint == ("joint" in name)
    assert policy.watches == name.endswith("-cd")


def test_the_docs_mark_what_was_not_compared_with_a_full_text() -> None:
    docs = Path(__file__).parents[2] / "docs" / "baselines.md"
    marked = re.findall(r"^\| `([a-z-]+)` \*", docs.read_text(), re.MULTILINE)
    assert set(marked) == {name for name in policy_names() if not_compared(name)}
    assert set(marked) == {"linsem-ucb", "robust-linsem", "additive", "ga-lcb"}
    assert not_compared("csl-ucb") == not_compared(UCB) == not_compared("of nobody") == ""
