"""Policies, learners and detectors of other packages, installed, broken or in each other's way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalarms.changes.registry import detector_names, make_detector
from causalarms.errors import SettingError
from causalarms.graphs.registry import learner_names, make_learner
from causalarms.policies.registry import make_policy, policy_names

MODULE = """
import math
from causalarms.changes import NoChange
from causalarms.graphs import CSL
from causalarms.policies.simple import RandomPolicy

LEVEL = 3

class Quiet(NoChange):
    def __init__(self, n_nodes, *, level, n_regimes=2):
        super().__init__(n_nodes, n_regimes=n_regimes)
        self.level = math.sqrt(level)

class Older(NoChange):
    def __init__(self, n_nodes):
        super().__init__(n_nodes, n_regimes=2)

class Careful(CSL):
    def __init__(self, k=7):
        super().__init__(k=k)

class Lucky(RandomPolicy):
    def __init__(self, n_nodes, reward=-1, *, luck=1.0):
        super().__init__(n_nodes, reward)
        self.luck = luck

def nothing(*given, **settings):
    return None
"""
GROUPS: dict[str, tuple[str, Any, Any]] = {
    "policy": ("causalarms.policies", policy_names, lambda n, **s: make_policy(n, n_nodes=3, **s)),
    "learner": ("causalarms.learners", learner_names, make_learner),
    "detector": (
        "causalarms.detectors",
        detector_names,
        lambda n, **s: make_detector(n, n_nodes=3, **s),
    ),
}
Install = Callable[..., None]
every_kind = pytest.mark.parametrize("kind", GROUPS)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A package as an installer would leave it, with entry points of one kind."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(package: str, kind: str, **entries: str) -> None:
        module = package.replace("-", "_")
        monkeypatch.delitem(sys.modules, module, raising=False)
        (tmp_path / f"{module}.py").write_text(MODULE, encoding="utf-8")
        folder = tmp_path / f"{module}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"[{GROUPS[kind][0]}]", *(f"{n} = {module}:{what}" for n, what in entries.items())]
        (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")

    return installed


def make(kind: str, name: str, **settings: Any) -> Any:
    return GROUPS[kind][2](name, **settings)


def names(kind: str) -> list[str]:
    return list(GROUPS[kind][1]())


@pytest.mark.parametrize(
    ("kind", "what", "settings"),
    [
        ("policy", "Lucky", {"luck": 2.0}),
        ("learner", "Careful", {"k": 9}),
        ("detector", "Quiet", {"level": 4.0}),
    ],
)
def test_they_are_listed_last_made_and_told_their_settings(
    install: Install, kind: str, what: str, settings: dict[str, Any]
) -> None:
    install("parts", kind, mine=what, a_second=what)
    assert names(kind)[-2:] == ["a_second", "mine"]
    assert type(make(kind, "mine", **settings)).__name__ == what
    (setting,) = settings
    with pytest.raises(SettingError, match=f"{kind} 'mine' has no setting '{setting}s'; did you"):
        make(kind, "mine", **{f"{setting}s": 1})
    with pytest.raises(SettingError, match=f"unknown {kind} 'mime'; did you mean 'mine'"):
        make(kind, "mime")


def test_what_they_need_is_named_and_what_they_raise_is_said(install: Install) -> None:
    install("parts", "detector", quiet="Quiet")
    with pytest.raises(SettingError, match="detector 'quiet' must be told level"):
        make_detector("quiet", n_nodes=3)
    with pytest.raises(SettingError, match="of the package 'parts' refuses its settings"):
        make_detector("quiet", n_nodes=3, level=-1.0)


def test_a_detector_that_knows_two_regimes_only(install: Install) -> None:
    install("parts", "detector", older="Older")
    assert make_detector("older", n_nodes=3, n_regimes=2).n_nodes == 3
    assert make_detector("older", n_nodes=3, n_regimes=3).n_regimes == 2  # policies refuse it


def test_a_detector_is_used_by_name(install: Install) -> None:
    install("parts", "detector", older="Older")
    policy = make_policy("csl-ucb", n_nodes=3, horizon=200, detector="older")
    assert type(policy.detector).__name__ == "Older"


def test_a_learner_learns(install: Install) -> None:
    install("parts", "learner", careful="Careful")
    A = np.repeat(np.arange(60) % 2, 3).reshape(-1, 3)
    X = np.random.default_rng(0).normal(size=A.shape)
    assert make_learner("careful").fit(X, interventions=A).adjacency_.shape == (2, 3, 3)


@every_kind
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("Missing", "of the package 'some-parts' cannot be loaded from 'some_parts:Missing'"),
        ("LEVEL", "of the package 'some-parts': 'some_parts:LEVEL' is 3, which makes nothing"),
        ("nothing", "of the package 'some-parts' must make a "),
    ],
)
def test_a_broken_one_is_named_with_its_package(
    install: Install, kind: str, what: str, message: str
) -> None:
    install("some-parts", kind, mine=what)
    assert "mine" in names(kind)
    with pytest.raises(SettingError, match=f"{kind} 'mine' {message}"):
        make(kind, "mine")


@every_kind
def test_a_module_that_fails_when_it_is_imported(
    install: Install, kind: str, tmp_path: Path
) -> None:
    install("parts", kind, mine="Whatever")
    for text, words in (("1 / 0", "ZeroDivisionError"), ("import torch_", "ModuleNotFoundError")):
        (tmp_path / "parts.py").write_text(text)
        with pytest.raises(SettingError, match=f"'parts' cannot be loaded .*{words}.*uninstall"):
            make(kind, "mine")


@every_kind
def test_two_packages_with_one_name(install: Install, kind: str) -> None:
    install("parts", kind, mine="nothing")
    install("other-parts", kind, mine="nothing")
    assert names(kind).count("mine") == 1
    with pytest.raises(SettingError, match="offered by 'other-parts' and 'parts': uninstall"):
        make(kind, "mine")


@every_kind
def test_a_built_in_name_stays_what_it_is(install: Install, kind: str) -> None:
    first = {"policy": "random", "learner": "csl", "detector": "none"}[kind]
    install("parts", kind, **{first: "nothing"})
    assert names(kind).count(first) == 1
    assert make(kind, first) is not None


@every_kind
@pytest.mark.parametrize("name", [None, 3, ["csl"]])
def test_a_name_is_text(kind: str, name: Any) -> None:
    with pytest.raises(SettingError, match=f"{kind} must be a name"):
        make(kind, name)


def test_the_names_of_this_package() -> None:
    assert learner_names()[:4] == ["csl", "golem", "dagma", "posterior"]
    assert detector_names()[:5] == ["none", "authors", "paper", "whole-graph", "evidence"]
    assert type(make_learner("csl", k=3)).__name__ == "CSL"
    with pytest.raises(
        SettingError, match="learner 'golem' has no setting 'step'; did you mean 'steps'"
    ):
        make_learner("golem", step=1.0)
