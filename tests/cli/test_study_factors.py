"""Factors and levels on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import run

from causalarms import Study
from causalarms.study.records import Effect, Interval

NODES = ("rate", "selectivity", "heat", "yield")


def done(*words: object) -> str:
    outcome = run("study", *words)
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_a_study_in_levels(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    done(
        "create", path, "--nodes", ",".join(NODES), "--reward", "yield",
        "--factor", "catalyst=old,new,none@rate,selectivity", "--factor", "heat",
        "--factor", "speed=10,20.5@heat", "--sets", "speed=20.5",
        "--forbid", "catalyst=new,heat", "--require", "heat=on,speed=20.5",
        "--cost", "catalyst:none=2", "--cost", "heat=1",
    )  # fmt: skip
    asked = json.loads(done("ask", path, "--json"))
    assert set(asked["levels"]) == {"catalyst", "heat", "speed"}
    executed = "catalyst=none,heat,speed=20.5"
    done("tell", path, "0", *(f"{node}=1" for node in NODES), "--executed", executed)
    with Study.open(path) as study:
        assert study.settings.costs == {"catalyst": {"none": 2.0}, "heat": 1.0}
        named = study.settings.named
        told = named.levels(study.ledger().trials[0].intervention)
        assert told == {"catalyst": "none", "heat": "on", "speed": 20.5}
        assert named.regimes[:4].tolist() == [1, 1, 4, 1]  # catalyst shifts, heat and speed do not
        assert study.settings.named.set_regimes[[1, 3], 2].all()
        for number in range(1, 12):
            study.tell(study.ask(), [number % 3, number % 5, -number % 4, number % 7])
    assert "catalyst=none, heat, speed=20.5" in done("history", path)
    found = json.loads(done("predict", path, "--switch", "catalyst=new", "--json"))
    assert found["levels"] == {"catalyst": "new", "heat": "off", "speed": 10}
    assert "switch" in done("best", path)
    done("show", path)
    done("report", path, "--out", tmp_path / "r.html")
    wrong = run("study", "predict", path, "--switch", "catalyst=odd")
    assert (wrong.code, "no level 'odd'" in wrong.err) == (1, True)


def test_levels_come_and_go_and_failures_are_told(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    done(
        "create", path, "--nodes", "rate,yield", "--reward", "yield", "--failure-reward", "-5",
        "--factor", "catalyst=old,new,none", "--factor", "heat", "--forbid", "catalyst=new,heat",
    )  # fmt: skip
    with Study.open(path) as study:
        assert study.settings.failure_reward == -5.0
        for number in range(24):
            trial = study.ask()
            if trial.levels["heat"] == "on":
                study.fail(trial)
            else:
                study.tell(trial, [number % 3, number % 5])
    assert "a trial of it fails with probability" in done("best", path)
    assert "a trial of it fails with probability" in done("predict", path, "--switch", "heat")
    assert "fails with probability" in done("show", path)
    done("report", path, "--out", tmp_path / "r.html")
    assert '"failing":0.' in (tmp_path / "r.html").read_text()
    words = done("change", path, "--retire", "catalyst=none", "--new-level", "catalyst=newer,7")
    assert words == f"changed new_levels, forbidden of {path}\n"
    changed = json.loads(
        done("change", path, "--failure-reward", "-1", "--cost", "heat=2", "--json")
    )
    assert changed["settings"]["forbidden"] == [
        {"catalyst": "new", "heat": "on"}, {"catalyst": "none"}
    ]  # fmt: skip
    assert changed["settings"]["factors"][0]["levels"] == ["old", "new", "none", "newer", 7]
    assert (changed["settings"]["failure_reward"], changed["warnings"]) == (-1.0, [])
    done(
        "change",
        path,
        "--forbid",
        "catalyst=7",
        "--policy",
        "posterior,refresh=2",
        "--horizon",
        "90",
    )
    with Study.open(path, read_only=True) as study:
        assert study.settings.forbidden == ({"catalyst": 7},)
        assert study.settings.policy_settings["refresh"] == 2
    for words, code in (((), 2), (("--retire", "catalyst=odd"), 1), (("--new-level", "odd=1"), 1)):
        assert run("study", "change", path, *words).code == code


def test_wrong_words(tmp_path: Path) -> None:
    common = ("create", tmp_path / "s.db", "--nodes", "a,b,y", "--reward", "y")
    for more, code, message in (
        (("--factor", "a", "--factor", "a=1,2"), 1, "factor 'a' is given twice"),
        (("--sets", "a=on"), 1, "there is no --factor 'a'"),
        (("--factor", "a", "--sets", "a"), 2, "factor=level"),
        (("--cost", "a=1", "--cost", "a:on=2"), 1, "as a whole and by level"),
        (("--factor", "z@c"), 1, "there is no node 'c'"),
        (("--forbid", "a=on,a=off"), 1, "factor 'a' is given twice"),
    ):
        outcome = run("study", *common, *more)
        assert outcome.code == code, more
        assert message in outcome.err, outcome.err
    assert not list(tmp_path.iterdir())


def test_effects_context_and_the_graph_of_a_setting(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    done(
        "create", path, "--nodes", "weather,heat,yield", "--reward", "yield",
        "--factor", "load=1,2,4", "--context", "weather",
    )  # fmt: skip
    assert "context weather: no factor moves it" in done("show", path)
    with Study.open(path) as study:
        rng = np.random.default_rng(0)
        for _ in range(25):
            trial = study.ask()
            weather, heat = 950 + 10 * rng.normal(), 300 + 20 * float(trial.levels["load"])
            heat += rng.normal()
            reward = 0.1 * heat + 0.2 * (weather - 950) + rng.normal()
            study.tell(trial, [weather, heat, reward])
    usual = json.loads(done("best", path, "--json"))
    today = json.loads(done("best", path, "--context", "weather=980", "--json"))
    assert today["reward"] > usual["reward"] + 3
    assert usual["remarks"] == []
    predicted = json.loads(done("predict", path, "--context", "weather=980", "--json"))
    assert predicted["expected"]["weather"]["mean"] == 980
    (effect,) = json.loads(done("effects", path, "--json"))
    assert effect["acts_on"]["heat"] > 0.9
    lines = [line.split() for line in done("effects", path).splitlines()]
    assert ["load", "heat", ">", "0.99"] in lines
    assert ["factor", "level", "yield", "low", "high", "direct", "low", "high"] in lines
    assert [line[:2] for line in lines[-2:]] == [["load", "2"], ["load", "4"]]
    edges = json.loads(done("graph", path, "--switch", "load=2", "--json"))["edges"]
    load = next(e for e in edges if (e["parent"], e["child"]) == ("load", "heat"))
    assert (load["when"], round(load["weight"] / 10)) == ("load=2", 2)
    wrong = run("study", "best", path, "--context", "heat=1")
    assert (wrong.code, "'heat' is not context" in wrong.err) == (1, True)


def test_a_change_of_answers_is_told_if_it_is_likely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, of_pump = tmp_path / "s.db", Interval(1.0, 0.5, 1.5)
    done("create", path, "--nodes", "a,b", "--reward", "b", "--factor", "pump=x,z")
    free = {"a": 0.934, "b": 0.5}
    found = Effect("pump", {"a": 1.0, "b": 0.7}, free, {"z": of_pump}, {"z": of_pump})
    monkeypatch.setattr(Study, "effects", lambda _: [found.as_dict()])
    words = done("effects", path)
    assert "\npump also changes how a answers its causes (probability 0.93)\n" in words
    assert "how b answers" not in words
    assert json.loads(done("effects", path, "--json"))[0]["free"] == free


def test_remarks_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    done(
        "create", path, "--nodes", "weather,heat,yield", "--reward", "yield",
        "--factor", "load=1,2,4",
    )  # fmt: skip
    question = "weather has not answered to any factor so far; is it context?"
    with Study.open(path) as study:
        rng = np.random.default_rng(0)
        for _ in range(60):
            trial = study.ask()
            heat = 300 + 20 * float(trial.levels["load"]) + 5 * rng.normal()
            study.tell(trial, [rng.normal(), heat, 0.1 * heat + rng.normal()])
    assert f"remark: {question}" in done("best", path)
    assert f"remark  {question}" in done("show", path)
    assert json.loads(done("show", path, "--json"))["best"]["remarks"][0]["node"] == "weather"
