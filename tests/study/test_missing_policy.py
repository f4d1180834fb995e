"""The log needs no policy: a study whose policy is not installed can be read, checked and saved."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from study_rounds import SETTINGS, play, result

from causalarms import Study
from causalarms.cli.main import study as command
from causalarms.errors import StudyError
from causalarms.policies.registry import REGISTRY, make_policy
from causalarms.policies.stopping import StopRule
from causalarms.study import learner
from causalarms.study.learner import MissingPolicyError
from causalarms.study.repair import recover, verify

NAME = "policy-of-another-package"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A study with a pending trial whose policy is gone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REGISTRY.built_in, NAME, REGISTRY.factory("ucb"))
        with Study.create(tmp_path / "s.db", **SETTINGS | {"policy": NAME}) as study:
            play(study, 12)
            study.ask()
    return tmp_path / "s.db"


def test_it_is_read_checked_and_saved(path: Path, tmp_path: Path) -> None:
    with Study.open(path) as study:
        assert study.settings.policy == NAME
        assert list(study.history()["state"]) == ["told"] * 12 + ["asked"]
        assert study.verify().ok
        assert study.backup(tmp_path / "copy.db").ok
        study.export(tmp_path / "trials.csv")
        study.export(tmp_path / "log.json")
        assert study.far_values() == []
    assert verify(path).ok
    assert recover(path, tmp_path / "saved.db").verdict.ok
    with Study.import_from(tmp_path / "log.json", tmp_path / "again.db") as again:
        assert len(again.ledger().trials) == 13


def test_it_still_takes_results(path: Path) -> None:
    with Study.open(path) as study:
        trial = study.ledger().trials[12].number
        study.tell(trial, [1.0, 2.0, 3.0])
        study.correct(3, [1.0, 2.0, 3.0])
        study.note("by hand")
        with pytest.warns(match="left out of learning"):
            study.import_rounds({"heat": [1.0], "stir": [None], "yield": [2.0], "do:heat": [0],
                                    "do:stir": [0], "do:yield": [0]})  # fmt: skip
        assert len(study.ledger().order) == 14


@pytest.mark.parametrize(
    "act",
    [
        lambda study: study.ask(),
        lambda study: study.best(),
        lambda study: study.predict(),
        lambda study: study.graph(),
        lambda study: study.alarms(),
        lambda study: study.suspects(),
        lambda study: study.explain(3),
        lambda study: study.should_stop(StopRule(probability=0.9)),
        lambda study: study.verify(replay=True),
        lambda study: study.policy,
    ],
)
def test_what_needs_it_says_which_is_missing_and_how_to_go_on(
    path: Path, act: Callable[[Study], Any]
) -> None:
    with Study.open(path) as study:
        study.abandon(12)
        with pytest.raises(MissingPolicyError, match=f"'{NAME}' of this study is not") as said:
            act(study)
    assert "study.change_settings(policy='posterior', policy_settings={})" in str(said.value)


def test_another_policy_goes_on(path: Path) -> None:
    with Study.open(path) as study:
        study.change_settings(policy="ucb")
        trial = study.ask()
        study.tell(trial, result(trial))
        assert study.policy.n_told == 13


def test_a_new_study_needs_its_policy(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="refused: unknown policy 'ubc'; did you mean 'ucb'"):
        Study.create(tmp_path / "s.db", **SETTINGS | {"policy": "ubc"})
    assert list(tmp_path.iterdir()) == []
    with Study.create(None, **SETTINGS) as study:
        with pytest.raises(StudyError, match="refused: unknown policy 'ubc'; did you mean 'ucb'"):
            study.change_settings(policy="ubc")
        assert study.settings.policy == "csl-ucb"


def test_the_commands(path: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> Any:
        return CliRunner().invoke(command, list(map(str, arguments)))

    assert run("history", path).exit_code == 0
    assert run("verify", path).exit_code == 0
    assert run("export", path, "--out", tmp_path / "log.json").exit_code == 0
    assert run("backup", path, tmp_path / "copy.db").exit_code == 0
    assert run("recover", path, tmp_path / "saved.db").exit_code == 0
    refused = run("best", path)
    assert isinstance(refused.exception, MissingPolicyError)


def test_a_policy_is_built_once_to_create_and_never_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def counted(name: str, **settings: Any) -> Any:
        built.append(name)
        return make_policy(name, **settings)

    monkeypatch.setattr(learner, "make_policy", counted)
    with Study.create(tmp_path / "s.db", **SETTINGS) as study:
        trial = study.ask()
        assert len(built) == 1
        study.tell(trial, result(trial))
    built.clear()
    with Study.open(tmp_path / "s.db") as study:
        study.far_values()
        study.verify()
        study.note("read")
        study.import_rounds({"heat": [1.0], "stir": [1.0], "yield": [2.0], "intervened": [""]})
    assert built == []


@pytest.mark.parametrize("name", ["random", "ucb", "additive"])
def test_a_policy_that_cannot_watch_says_so(name: str) -> None:
    with pytest.raises(StudyError, match=f"policy '{name}' cannot watch for changes"):
        Study.create(None, **SETTINGS | {"policy": name}, changes=True)


@pytest.mark.parametrize("name", ["posterior", "csl-ucb", "csl-ucb-cd"])
def test_whether_a_study_watches_is_asked_of_its_policy(name: str) -> None:
    settings = SETTINGS | {"policy": name, "noise_mean": 1.0}
    assert Study.create(None, **settings, changes=True).watches
    assert Study.create(None, **settings).watches == (name == "csl-ucb-cd")


def test_every_parameter_of_a_study_is_documented() -> None:
    for name, method in inspect.getmembers(Study, inspect.isroutine):
        if name.startswith("_"):
            continue
        text = inspect.getdoc(method) or ""
        for parameter in inspect.signature(method).parameters:
            if parameter not in ("self", "cls"):
                assert f"`{parameter}`" in text, f"Study.{name}: {parameter}"
