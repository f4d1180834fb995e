"""Factors and levels on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command import run

from causalarms import Study
from causalarms.errors import FarValueWarning
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
    executed_first = done("history", path).splitlines()[1]
    assert "catalyst none, heat on, speed 20.5 (asked: " in executed_first
    found = json.loads(done("predict", path, "--switch", "catalyst=new", "--json"))
    assert found["levels"] == {"catalyst": "new", "heat": "off", "speed": 10}
    assert done("best", path).startswith("set catalyst ")
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
    for wrong, code in (((), 2), (("--retire", "catalyst=odd"), 1), (("--new-level", "odd=1"), 1)):
        assert run("study", "change", path, *wrong).code == code


def test_wrong_words(tmp_path: Path) -> None:
    common = ("create", tmp_path / "s.db", "--nodes", "a,b,y", "--reward", "y")
    for more, code, message in (
        (("--factor", "a", "--factor", "a=1,2"), 1, "factor 'a' is given twice"),
        (("--sets", "a=on"), 1, "there is no --factor 'a'"),
        (("--factor", "a", "--sets", "a"), 2, "factor=level"),
        (("--cost", "a=1", "--cost", "a:on=2"), 1, "as a whole and by level"),
        (("--cost", "a=1", "--cost", "a=2"), 1, "the cost of 'a' is given twice"),
        (("--cost", "a=much"), 1, "the cost of 'a' is 'much', not a number"),
        (("--cost", "-"), 2, "'-' is not of the form factor=cost or factor:level=cost"),
        (("--factor", "z@c"), 1, "there is no node 'c'"),
        (("--forbid", "a=on,a=off"), 1, "factor 'a' is given twice"),
        (("--factor", "z=0..1"), 1, "--factor z=0..1: add the step, z=0..1/STEP"),
        (("--factor", "z=0..1/0.3"), 1, "factor 'z': steps of 0.3 from 0 do not end at 1"),
        (("--factor", "z@unknown:free"), 1, "factor 'z' has a mechanism per level: say which"),
        (("--factor", "z@b:odd"), 1, "the effect 'odd' is not shift or free"),
        (("--factor", "z=440,45O,460"), 1, "factor 'z': level '45O' is not a number, and others"),
        (("--factor", "z", "--sets", "z=on"), 1, "factor 'z' sets nodes: say which nodes it acts"),
    ):
        outcome = run("study", *common, *more)
        assert outcome.code == code, more
        assert message in outcome.err, outcome.err
    assert not list(tmp_path.iterdir())


def test_ranges_effects_and_what_the_data_say(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    done(
        "create", path, "--nodes", "rain,heat,yield", "--reward", "yield",
        "--factor", "load=0.2..0.6/0.2@heat:free", "--factor", "pump=1,2@unknown",
        "--factor", "heat@heat:shift",
    )  # fmt: skip
    with Study.open(path, read_only=True) as study:
        assert study.settings.factors == [
            {"name": "load", "levels": [0.2, 0.4, 0.6], "acts_on": ["heat"]},
            {"name": "pump", "levels": [1, 2], "acts_on": "unknown", "effect": "shift"},
            {"name": "heat", "levels": ["off", "on"], "acts_on": ["heat"], "effect": "shift"},
        ]
    assert done("change", path, "--context", "rain") == f"changed context of {path}\n"
    with Study.open(path, read_only=True) as study:
        assert study.settings.context == ("rain",)
    wrong = run("study", "change", path, "--context", "heat")
    assert (wrong.code, "factor 'load' acts on 'heat'" in wrong.err) == (1, True)
    wrong = run("study", "change", path, "--new-level", "load=7..8/1")
    assert (wrong.code, "load=LEVEL" in wrong.err) == (2, True)


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


def test_a_trial_names_every_factor_and_what_changes(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    done(
        "create", path, "--nodes", "flow,yield", "--reward", "yield",
        "--factor", "catalyst=A,B,C", "--factor", "pump=normal,high", "--factor", "oven=160,180",
    )  # fmt: skip
    first = json.loads(done("ask", path, "--json"))
    everything = ", ".join(f"{factor} {level}" for factor, level in first["levels"].items())
    assert first["before"] is None
    assert done("ask", path).splitlines()[0] == f"trial 0: {everything}"
    executed = {"catalyst": "A", "pump": "high", "oven": 180}
    what = ",".join(f"{factor}={level}" for factor, level in executed.items())
    done("tell", path, "0", "flow=1", "yield=2", "--executed", what)
    second = json.loads(done("ask", path, "--json"))
    assert second["before"] == {"number": 0, "worker": "main", "levels": executed}
    changed = [
        f"{factor} {executed[factor]} -> {level}"
        for factor, level in second["levels"].items()
        if executed[factor] != level
    ]
    kept = [
        f"{factor} {level}"
        for factor, level in second["levels"].items()
        if executed[factor] == level
    ]
    assert changed
    same = f"as in trial 0: {', '.join(kept)}"
    words = "; ".join([", ".join(changed), *[same] * bool(kept)])
    assert done("ask", path).splitlines()[0] == f"trial 1: {words}"
    assert f"pending trial 1 of main: {words}" in done("show", path)
    assert words in done("history", path)
    assert f"trial 1 (asked): {words}" in done("explain", path, "1")


def test_an_alarm_is_a_line_until_it_is_acknowledged(alarmed: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(alarmed, tmp_path / "s.db"))
    words = "results are of check trials: they are random on purpose, to find what else changed"
    asked = json.loads(done("ask", path, "--worker", "bench", "--json"))
    for command in (
        ("show", path),
        ("ask", path, "--worker", "bench"),
        ("tell", path, asked["trial"], "flow=3", "yield=3"),
    ):
        (line,) = [line for line in done(*command).splitlines() if line.startswith("ALARM 0: ")]
        assert "flow seems to have changed after trial" in line
        assert words in line
        assert f"causalarms study acknowledge {path} 0" in line
    asked = json.loads(done("ask", path, "--worker", "bench", "--json"))
    told = json.loads(done("tell", path, asked["trial"], "flow=3", "yield=3", "--json"))
    assert [alarm["alarm"] for alarm in told["alarms"]] == [0]
    done("acknowledge", path, "0")
    assert "ALARM" not in done("ask", path, "--worker", "bench") + done("show", path)
    assert "(acknowledged)" in done("show", path)


def test_best_says_what_each_factor_is_worth_and_how_often_its_rivals_were_tried(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    factors = {"catalyst": {"levels": ["A", "C"]}, "pump": {"levels": ["normal", "high"]}}
    with Study.create(
        path, ["flow", "yield"], "yield", factors=factors, costs={"catalyst": 1.0}, seed=2
    ) as study:
        rng = np.random.default_rng(0)
        for _ in range(40):
            trial = study.ask()
            both = (trial.levels["catalyst"] == "C") + (trial.levels["pump"] == "high")
            flow = 2.0 * both + 0.3 * rng.normal()
            study.tell(trial, [flow, flow + 0.3 * rng.normal()])
        best = study.best()
        ledger = study.ledger()
        assert best.levels == {"catalyst": "C", "pump": "high"}
        worth = {back.factor: back for back in best.taken_back}
        # the cost is taken off what the catalyst gives, and only there
        assert abs(worth["catalyst"].lost - 1.0) < 0.5
        assert abs(worth["pump"].lost - 2.0) < 0.5
        named = study.settings.named
        played = [named.levels(record.intervention) for record in ledger.with_values()]
        assert best.tried == played.count(best.levels)
        assert [rival.tried for rival in best.rivals] == [
            played.count(rival.levels) for rival in best.rivals
        ]
        assert "of the last 20 results are of this setting; its leading rivals were" in best.stayed
    words = done("best", path)
    assert "catalyst C -> A" in words
    lines = words.splitlines()
    rivals = f"leading rivals; yield is before costs; the best was tried {best.tried} times"
    (at,) = [at for at, line in enumerate(lines) if line.startswith(rivals)]
    assert lines[at - 1] == ""
    others = f", others as good {best.tried_equal} times:" if best.tried_equal > 1 else ":"
    assert lines[at].endswith(others)
    assert "\\n" not in words
    chances = [rival.better for rival in best.rivals]
    assert chances == sorted(chances, reverse=True)
    assert f"tried   {best.tried} times; its leading rivals:" in done("show", path)
    assert f"remark  {best.stayed}" in done("show", path)


def test_context_that_may_be_a_typing_error_is_remarked_on(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    done("create", path, "--nodes", "rain,heat,yield", "--reward", "yield",
         "--factor", "load=1,2,3", "--context", "rain")  # fmt: skip
    rng = np.random.default_rng(0)
    with Study.open(path) as study:
        for trial in study.ask(30):
            rain, noise = 45 + rng.normal(), rng.normal(size=2)
            study.tell(trial, [rain, noise[0], rain + trial.levels["load"] + noise[1]])
    far = "context 'rain' is said to be 45000, far outside the 4"
    assert (
        "far" not in (asked := run("study", "ask", path, "--context", "rain=45.2")).err + asked.out
    )
    again = run("study", "ask", path, "--context", "rain=45000")
    assert far in again.err
    assert "trial 30 was pending: it was asked with rain 45.2, and is as it was" in again.err
    assert far in run("study", "predict", path, "--context", "rain=45000").err
    assert far in done("best", path, "--context", "rain=45000")
    assert "is said to be" not in done("best", path, "--context", "rain=45")
    with Study.open(path) as study:
        for call in (study.ask, study.best, study.predict):
            with pytest.warns(FarValueWarning) as said:
                call(context={"rain": 45000.0})
            assert far in str(said[0].message)


def test_what_is_not_allowed_is_marked_in_best(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    done("create", path, "--nodes", "heat,yield", "--reward", "yield", "--factor", "load=1,2,3",
         "--factor", "pump", "--forbid", "load=1,pump=on")  # fmt: skip
    with Study.open(path) as study:
        for trial in study.ask(30):
            gain = trial.levels["load"] + 9 * (trial.levels["pump"] == "on")
            study.tell(trial, [1.0 + trial.number % 3, gain + 0.1 * (trial.number % 5)])
    out = done("best", path)
    assert "load 3 -> 1 (not allowed)" in out
    assert "pump on -> off (not" not in out
