"""The study from the shell."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Outcome, run

from causalarms import Study, random_sem

NODES = "feed,heat,yield"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "line.db"
    of = ("--nodes", NODES, "--intervenable", NODES, "--reward", "yield")
    made = run("study", "create", path, *of, "--seed", 1)
    assert (made.code, made.err) == (0, "")
    return path


@pytest.fixture
def executed(file: Path, tmp_path: Path) -> Path:
    names = tuple(NODES.split(","))
    random_sem(3, seed=3).replace(nodes=names, reward="yield").save(tmp_path / "system.json")
    system = tmp_path / "system.json"
    assert run("study", "simulate-on", file, "--sem", system, "--rounds", 90).code == 0
    return file


def as_json(*arguments: object) -> Any:
    outcome = run("study", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def with_input(monkeypatch: pytest.MonkeyPatch, text: str, *arguments: object) -> Outcome:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return run("study", *arguments)


def test_ask_and_tell(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = as_json("ask", file)
    assert trial["trial"] == 0
    assert set(trial["intervention"]) == set(NODES.split(","))
    assert as_json("ask", file) == trial
    assert run("study", "ask", file).out.startswith("trial 0: feed ")
    told = run("study", "tell", file, 0, "feed=1", "heat=-2.5e0", "yield=3")
    assert (told.code, told.out) == (0, "trial 0: told\n")
    assert as_json("ask", file, "-n", 2, "--worker", "b")[1]["trial"] == 2
    text = '{"feed": 1, "heat": null, "yield": 2}'
    outcome = with_input(monkeypatch, text, "tell", file, 1, "-")
    assert outcome.code == 0
    assert outcome.err == ""
    assert "missing 1 value of 1 trial was not measured" in run("study", "show", file).out
    assert run("study", "fail", file, 2, "--reason", "broke").code == 0
    assert [row["state"] for row in as_json("history", file)] == ["told", "told", "failed"]


@pytest.mark.parametrize(
    ("values", "code", "message"),
    [
        (("feed=1", "heat=2"), 1, "node 'yield' is missing"),
        (("feed=1", "heat=2", "yield=x"), 1, "'x', not a number"),
        (("feed=None", "heat=null", "yield="), 1, "no value is given: say `fail` or `abandon`"),
        (("feed=1", "heat=2", "yield=nan"), 1, "not finite"),
        (("feed=1", "heat=2", "yield=1", "yield=2"), 1, "given twice"),
        (("feed=1", "heat=2", "yeild=1"), 1, "did you mean 'yield'"),
        (("feed",), 2, "not of the form node=value"),
        ((), 2, "node=value for every node"),
    ],
)
def test_wrong_values(file: Path, values: tuple[str, ...], code: int, message: str) -> None:
    as_json("ask", file)
    outcome = run("study", "tell", file, 0, *values)
    assert outcome.code == code
    assert message in outcome.err
    assert as_json("show", file)["trials"] == {"asked": 1}


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ("-", 2, "'-' is not of the form node=value"),
        ("feed=wet", 1, "context 'feed' is 'wet', not a number"),
    ],
)
def test_wrong_context(
    file: Path, given: str, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("ask", "best", "predict"):
        outcome = with_input(monkeypatch, '{"feed": 1}', command, file, "--context", given)
        assert (outcome.code, message in outcome.err) == (code, True)


@pytest.mark.parametrize(
    "text",
    ["", "[1]", '{"feed": 1', '{"feed": 1, "feed": 2}', "[" * 100_000, '{"feed": NaN}', "\x00"],
)
def test_hostile_standard_input(file: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    as_json("ask", file)
    outcome = with_input(monkeypatch, text, "tell", file, 0, "-")
    assert outcome.code == 1
    assert outcome.err.startswith("error: ")
    if text.count("feed") == 2:
        assert "standard input cannot be read as JSON: the key 'feed' is given twice" in outcome.err


def test_exit_codes(file: Path, tmp_path: Path) -> None:
    assert run("study", "tell", file, 7, "feed=1", "heat=1", "yield=1").code == 1
    assert run("study", "ask", tmp_path / "none.db").code == 1
    assert run("study", "frob", file).code == 2
    assert run("study", "create", file).code == 2
    assert run("study", "create", file, "--nodes", NODES, "--reward", "yield").code == 1
    assert run("study", "--help").code == 0


def test_what_is_known(executed: Path) -> None:
    shown = run("study", "show", executed).out
    for word in ("90 told", "reward  ", "best    feed ", "edge    "):
        assert word in shown
    best = as_json("best", executed)
    assert 0 <= best["probability"] <= 1
    assert "set feed " in run("study", "best", executed).out
    assert as_json("graph", executed)["edges"]
    assert "parent" in run("study", "graph", executed).out
    assert as_json("alarms", executed) == []
    assert "does not watch" in run("study", "alarms", executed).out
    assert as_json("predict", executed, "--switch", "feed")["intervention"]["feed"] == 1
    assert "expected" in run("study", "predict", executed).out
    assert "trial 80" in run("study", "explain", executed, 80).out
    assert as_json("explain", executed, 80)["reason"] in ("explore", "exploit")
    assert len(run("study", "history", executed, "--last", 4).out.splitlines()) == 5


def test_verify_of_a_path_that_leads_to_no_study_is_refused_with_the_reason(file: Path) -> None:
    empty, second = file.with_name("empty.db"), file.with_name("second.db")
    empty.touch()
    assert run("study", "verify", file).out.startswith("ok: intact; 1 events")
    second.hardlink_to(file)
    for place, said in ((empty, "is empty: somebody"), (file, "remove one of the names")):
        outcome = run("study", "verify", place)
        assert (outcome.code, outcome.out) == (1, "")
        assert said in outcome.err


def test_export_import_and_verify(executed: Path, tmp_path: Path) -> None:
    for name in ("log.json", "trials.csv", "trials.parquet"):
        assert run("study", "export", executed, "--out", tmp_path / name).code == 0
    copy = tmp_path / "copy.db"
    assert run("study", "import", copy, tmp_path / "log.json").code == 0
    assert as_json("verify", copy) == as_json("verify", executed, "--replay")
    assert run("study", "export", copy).out == run("study", "export", executed).out
    other = tmp_path / "other.db"
    of = ("--nodes", NODES, "--reward", "yield")
    run("study", "create", tmp_path / "without.db", *of)
    refused = run("study", "import", tmp_path / "without.db", tmp_path / "trials.csv")
    assert (refused.code, "node 'yield' has no switch" in refused.err) == (1, True)
    run("study", "create", other, *of, "--intervenable", NODES)
    outcome = run("study", "import", other, tmp_path / "trials.csv")
    assert (outcome.code, outcome.out) == (0, "imported 90 rounds\n")
    assert as_json("show", other)["trials"] == {"imported": 90}
    assert run("study", "export", executed, "--out", tmp_path / "x.txt").code == 1


def test_past_rounds_with_a_column_of_names(file: Path, tmp_path: Path) -> None:
    table = tmp_path / "past.csv"
    table.write_text("feed,heat,yield,what\n1,2,3,heat;feed\n4,5,6,\n")
    assert as_json("import", file, table, "--intervened", "what")["imported"] == 2
    with Study.open(file) as study:
        assert [r.intervention for r in study.ledger().trials] == [(1, 1, 0), (0, 0, 0)]
    table.write_text("feed,heat\n1,2\n")
    outcome = run("study", "import", file, table)
    assert outcome.code == 1
    assert "no column for node 'yield'" in outcome.err


def test_damage_is_reported_and_repaired(executed: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(executed)
    connection.execute("UPDATE events SET text = replace(text, 'told', 'tolt') WHERE number = 51")
    connection.commit()
    connection.close()
    outcome = run("study", "verify", executed)
    assert outcome.code == 1
    assert "DAMAGED: event 51 is damaged" in outcome.out
    assert "event 51" in run("study", "ask", executed).err
    saved = tmp_path / "saved.db"
    assert run("study", "recover", executed, saved).code == 0
    assert run("study", "verify", saved).code == 0


def test_the_settings_of_a_backup_save_a_study_without_its_first_event(
    executed: Path, tmp_path: Path
) -> None:
    copy, saved = tmp_path / "copy.db", tmp_path / "saved.db"
    assert run("study", "backup", executed, copy).code == 0
    connection = sqlite3.connect(executed)
    connection.execute("UPDATE events SET text = replace(text, 'heat', 'hea!') WHERE number = 1")
    connection.commit()
    connection.close()
    refused = run("study", "recover", executed, saved)
    assert refused.code == 1
    assert "--settings-from BACKUP" in refused.err
    assert f"{saved}.events.jsonl" in refused.err
    found = as_json("recover", executed, saved, "--settings-from", copy)
    assert (found["lost"], found["events_file"]) == ([], f"{saved}.events.jsonl")
    assert as_json("history", saved) == as_json("history", copy)


def test_corrections_notes_and_limits(file: Path, tmp_path: Path) -> None:
    as_json("ask", file)
    run("study", "tell", file, 0, "feed=1", "heat=1", "yield=1")
    assert run("study", "correct", file, 0, "feed=2", "heat=1", "yield=1").code == 0
    assert as_json("history", file)[0]["feed"] == 2.0
    assert run("study", "correct", file, 0, "--withdraw", "--reason", "wrong tube").code == 0
    assert as_json("history", file)[0]["state"] == "withdrawn"
    assert run("study", "note", file, "hello").code == 0
    assert run("study", "acknowledge", file, 0).code == 1
    limited = tmp_path / "limited.db"
    outcome = run(
        "study", "create", limited, "--nodes", NODES, "--reward", "yield", "--minimize",
        "--intervenable", "feed,heat", "--max-interventions", 1, "--cost", "feed=0.5",
        "--policy", "csl-ucb-cd,joint=False", "--json",
    )  # fmt: skip
    settings = json.loads(outcome.out)["settings"]
    assert settings["policy_settings"] == {"joint": False}
    assert settings["costs"] == {"feed": 0.5}
    assert len(as_json("ask", limited)["switch"]) <= 1


def frozen(page: str) -> dict[str, Any]:
    """The answers inside a report."""
    found: dict[str, Any] = json.loads(page.partition('id="frozen">')[2].partition("</script>")[0])
    return found


def test_the_report_is_one_page_and_escapes_everything(tmp_path: Path) -> None:
    evil = '<script>alert("x")</script>$x^2$'
    names = (evil, "heat", "yield")
    path = tmp_path / "evil.db"
    sem = random_sem(3, seed=3).replace(nodes=names, reward="yield")
    sem.save(tmp_path / "system.json")
    with Study.create(path, nodes=names, reward="yield", seed=1) as study:
        study.fail(study.ask(), f"reason {evil}")
    run("study", "simulate-on", path, "--sem", tmp_path / "system.json", "--rounds", 90)
    page = tmp_path / "report.html"
    outcome = run("study", "report", path, "--out", page)
    assert outcome.code == 0, outcome.err
    text = page.read_text()
    assert text.count("<script") == 3  # answers, import map and page; none is the study's
    assert evil not in text
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", text.partition("<script")[0])
    held = frozen(text)
    assert evil in held["study"]["nodes"]
    assert held["trials"]["trials"][0]["remark"] == f"reason {evil}"
    assert len(held["rewards"]["buckets"]) == 90
    assert held["graph"]["edges"]
    assert not held["alarms"]["watches"]
    assert any("% of the variance" in check["verdict"] for check in held["checks"]["checks"])


def test_the_report_of_an_empty_study(file: Path, tmp_path: Path) -> None:
    assert run("study", "report", file, "--out", tmp_path / "r.html").code == 0
    held = frozen((tmp_path / "r.html").read_text())
    assert held["best"]["found"] is None
    assert "no round has been told yet" in held["best"]["why"]
    assert "no trial yet" in run("study", "show", file).out


def test_what_was_really_played(file: Path, tmp_path: Path) -> None:
    asked = as_json("ask", file)["switch"]
    executed = [node for node in NODES.split(",") if node not in asked]
    values = [f"{node}=1.5" for node in NODES.split(",")]
    really = ",".join(executed + [f"{node}=off" for node in asked])
    assert run("study", "tell", file, 0, *values, "--executed", really).code == 0
    with Study.open(file) as study:
        record = study.ledger().trials[0]
        assert [
            n for n, bit in zip(study.nodes, record.intervention, strict=True) if bit
        ] == executed
    line = run("study", "history", file).out.splitlines()[1]
    words = [f"{node} {'on' if node in asked else 'off'}" for node in NODES.split(",")]
    assert f"(asked: {', '.join(words)})" in line
    assert as_json("history", file)[0]["not_as_asked"] == NODES.replace(",", ";")
    assert "It was executed otherwise" in run("study", "explain", file, 0).out
    assert run("study", "correct", file, 0, *values, "--executed", "").code == 0
    with Study.open(file) as study:
        record = study.ledger().trials[0]
        assert record.intervention == record.asked_intervention
    assert run("study", "correct", file, 0, "--withdraw", "--executed", "heat").code == 2
    outcome = run("study", "correct", file, 0, *values, "--executed", "het")
    assert (outcome.code, "there is no factor 'het'" in outcome.err) == (1, True)
    run("study", "ask", file)
    run("study", "tell", file, 1, *values)
    assert "asked:" not in run("study", "history", file, "--last", 1).out


def test_what_is_known_of_edges(tmp_path: Path) -> None:
    create = ("study", "create", tmp_path / "s.db", "--nodes", NODES, "--reward", "yield")
    known = ("--tier", "feed", "--tiers", "heat, yield", "--exclude-edge", "yield:heat")
    outcome = run(*create, *known, "--require-edge", "feed->heat", "--json")
    assert json.loads(outcome.out)["settings"]["knowledge"] == {
        "tiers": [["feed"], ["heat", "yield"]],
        "excluded": [["yield", "heat"]],
        "required": [["feed", "heat"]],
    }
    create = (*create[:2], tmp_path / "t.db", *create[3:])
    for wrong in ("heat", "heat:", ":heat", "a:b:c", "->heat"):
        assert run(*create, "--exclude-edge", wrong).code == 2
    outcome = run(*create, "--require-edge", "heat:feed", "--tier", "feed", "--tier", "heat")
    assert (outcome.code, "required and excluded" in outcome.err) == (1, True)
    outcome = run(*create, "--require-edge", "heat:feed", "--policy", "ucb")
    assert "policy 'ucb' cannot use knowledge of edges" in outcome.err
    assert not (tmp_path / "t.db").exists()


def test_no_table_shows_a_zero_for_what_is_small(tmp_path: Path) -> None:
    """A pressure in pascal moves the yield by 1e-5 per unit, and by much over its range."""
    file = tmp_path / "s.db"
    factors = {"valve": {"levels": [0, 1, 2], "acts_on": ["pressure"]}}
    with Study.create(file, nodes=["pressure", "yield"], reward="yield", factors=factors) as study:
        rng = np.random.default_rng(0)
        for _ in range(30):
            trial = study.ask()
            pressure = 1e5 + 2e5 * trial.levels["valve"] + 3e4 * rng.normal()
            study.tell(trial, [pressure, 2e-5 * pressure + 0.1 * rng.normal()])
    printed = run("study", "graph", file).out
    header, *rows = printed.splitlines()
    assert header.split()[-3:] == ["moves", "yield", "by"]
    (row,) = [line.split() for line in rows if " pressure " in f" {line} " and "yield" in line]
    weight, error, *_ = (float(part) for part in row[3:5])
    assert weight == pytest.approx(2e-5, rel=0.1)
    assert 0 < error < 1e-6
    assert row[5:7] == [">", "0.99"]
    assert float(row[7]) > 5


def test_a_correction_names_what_was_wrong(file: Path) -> None:
    run("study", "ask", file)
    assert run("study", "tell", file, 0, "feed=1", "heat=None", "yield=30").code == 0
    assert run("study", "correct", file, 0, "yield=3").code == 0
    assert as_json("history", file)[0]["yield"] == 3.0
    assert run("study", "correct", file, 0, "heat=2").code == 0
    row = as_json("history", file)[0]
    assert [row[node] for node in NODES.split(",")] == [1.0, 2.0, 3.0]
    closed = run("study", "tell", file, 0, "heat=2")
    assert "trial 0 is not pending: it was told already" in closed.err
    assert "the last is trial 0" in run("study", "tell", file, 7, "heat=2").err


def test_hints_name_the_file_and_folders_are_not_made(tmp_path: Path) -> None:
    path = tmp_path / "my line.db"
    made = run("study", "create", path, "--nodes", "a,y", "--reward", "y", "--policy", "random")
    assert made.code == 0
    with Study.open(path) as study:
        for trial in study.ask(20):
            study.tell(trial, [float(trial.number % 5), 1.0 + trial.number % 3])
    run("study", "ask", path)
    told = run("study", "tell", path, 20, "a=1", "y=10000")
    assert f"causalarms study correct '{path}' 20 y=VALUE" in told.err
    assert f"causalarms study correct '{path}' 20 y=VALUE" in run("study", "show", path).out
    below = tmp_path / "no" / "x.db"
    wrong = run("study", "create", below, "--nodes", "a,y", "--reward", "y")
    assert f"there is no folder {tmp_path / 'no'}" in wrong.err
    assert not below.parent.exists()
