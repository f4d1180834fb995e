"""`causalarms serve`, `serve-token`, and `study` commands on an address instead of a file."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import run

from causalarms.cli import serve
from causalarms.errors import StudyError
from causalarms.extras import EXTRAS
from causalarms.service.remote import RemoteStudy
from causalarms.service.tokens import TokenFile
from causalarms.study import Study

sys.path.append(str(Path(__file__).parents[1] / "service"))
from served import served, until

NODES = ["heat", "yield"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    Study.create(path, NODES, "yield", policy="random", seed=1).close()
    return path


@pytest.fixture
def url(study: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("CAUSALARMS_TOKEN", TokenFile(study).make("operator", "o"))
    with served(study) as site:
        yield f"http://127.0.0.1:{site.port}/"


def of(*arguments: object) -> Any:
    outcome = run("study", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_every_command_takes_an_address(url: str, study: Path, tmp_path: Path) -> None:
    asked = of("ask", url, "-n", 3, "--worker", "w")
    assert [t["trial"] for t in asked] == [0, 1, 2]
    assert of("tell", url, 0, "heat=1", "yield=2")["state"] == "told"
    assert of("fail", url, 1, "--reason", "broke")["state"] == "failed"
    assert of("abandon", url, 2)["state"] == "abandoned"
    assert of("correct", url, 0, "heat=2", "yield=2")["state"] == "corrected"
    assert of("note", url, "hot", "--trial", 0) == {"noted": "hot"}
    table = tmp_path / "t.csv"
    table.write_text("heat,yield,do:heat,do:yield\n1,2,0,0\n")
    assert of("import", url, table)["imported"] == 1
    assert of("show", url)["trials"] == of("show", study)["trials"]
    assert of("history", url) == of("history", study)
    assert of("best", url) == of("best", study)
    assert of("explain", url, 0) == of("explain", study, 0)
    assert of("alarms", url) == []
    assert of("verify", url)["ok"] is True
    of("backup", url, tmp_path / "copy.db")
    assert of("history", tmp_path / "copy.db") == of("history", study)
    of("export", url, "--out", tmp_path / "log.json")
    assert run("study", "export", url).out == run("study", "export", study).out
    for command in (
        ("create", url, "--nodes", "a,b", "--reward", "b"),
        ("recover", url, tmp_path / "r.db"),
        ("import", url, tmp_path / "log.json"),
        ("ask", url),
        ("graph", url),
        ("predict", url),
        ("acknowledge", url, 0),
        ("tell", url, 0, "heat=1", "yield=2"),
    ):
        refused = run("study", *command)
        assert (refused.code, refused.err[:7]) == (1, "error: "), command
        assert "Traceback" not in refused.err


def test_addresses_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run("study", "show", "http://127.0.0.1:1")
    assert (outcome.code, "is `causalarms serve` running there" in outcome.err) == (1, True)


def test_tokens(study: Path) -> None:
    made = run("serve-token", study, "worker", "bench")
    assert made.code == 0
    found = TokenFile(study).find(made.out.strip())
    assert found is not None
    assert found.name == "bench"
    listed = run("serve-token", study, "--list", "--json")
    assert [t["name"] for t in json.loads(listed.out)] == ["bench"]
    assert made.out.strip() not in listed.out
    revoked = run("serve-token", study, "--revoke", "bench")
    assert (revoked.code, "nobody can use the service" in revoked.out) == (0, True)
    assert run("serve-token", study, "--revoke", "bench").code == 1
    assert run("serve-token", study, "owner", "x").code == 2
    assert run("serve-token", study, "read").code == 2
    assert run("serve-token", study, "read", "x", "--list").code == 2
    assert run("serve-token", study.with_name("no.db"), "read", "x").code == 1
    text = study.with_name("text.db")
    text.write_text("hello")
    for arguments in (("read", "x"), ("--open",)):
        refused = run("serve-token", text, *arguments)
        assert refused.code == 1
        assert "is not a study" in refused.err
    assert not text.with_name("text.db.tokens").exists()


def test_only_a_command_of_its_own_opens_a_study_again(study: Path) -> None:
    run("serve-token", study, "worker", "bench")
    run("serve-token", study, "--revoke", "bench")
    assert not TokenFile(study).look().is_open
    run("serve-token", study, "worker", "bench")
    for more in (("read", "x"), ("--list",), ("--revoke", "bench"), ("read",)):
        assert run("serve-token", study, "--open", *more).code == 2
    opened = run("serve-token", study, "--open")
    assert (opened.code, "everybody on this machine may do everything" in opened.out) == (0, True)
    assert json.loads(run("serve-token", study, "--list", "--json").out) == []
    assert TokenFile(study).look().is_open
    TokenFile(study).path.write_text("[]")  # as before there were SQLite files
    for arguments in (("read", "x"), ("--list",), ("--revoke", "x"), ("--open",)):
        refused = run("serve-token", study, *arguments)
        assert (refused.code, "not a database" in refused.err) == (1, True)
        assert "move it away" in refused.err


def test_a_link_has_the_tokens_of_its_study(study: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(study)
    token = run("serve-token", link, "worker", "bench").out.strip()
    assert TokenFile(study).find(token) is not None
    assert [file.name for file in link.parent.iterdir()] == ["link.db"]


def test_the_extra_brings_what_the_service_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["serve"]
    assert sorted(re.split("[<>=]", text)[0] for text in extra) == sorted(EXTRAS["serve"])
    core = {re.split("[<>=]", text)[0] for text in project["dependencies"]}
    known = {*EXTRAS["serve"], *core, *sys.stdlib_module_names, "causalarms"}
    imported = {
        name.partition(".")[0]
        for file in (ROOT / "src/causalarms/service").rglob("*.py")
        for name in re.findall(r"^(?:from|import) ([\w.]+)", file.read_text(), re.MULTILINE)
    }
    assert imported <= known


def test_a_damaged_token_file_keeps_it_from_starting(study: Path) -> None:
    TokenFile(study).make("operator", "o")
    TokenFile(study).path.write_bytes(b"")
    outcome = run("serve", study, "--port", "0")
    assert (outcome.code, "s.db.tokens is empty" in outcome.err) == (1, True)


def test_what_keeps_it_from_starting(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, words in (
        ((study.with_name("no.db"),), "there is no study"),
        ((study, "--host", "0.0.0.0", "--port", "0"), "a token is needed"),
        ((study, "--root-path", "/x", "--port", "0"), "a token is needed"),
        ((study, "--allow-host", "lab.example", "--port", "0"), "causalarms serve-token"),
        ((study, "--host", "no.such.host.invalid"), "is not known"),
        ((study, "--port", "0", "--tls-cert", study), "go together"),
        ((study, "--port", "0", "--tls-cert", study, "--tls-key", study), "cannot be used"),
    ):
        outcome = run("serve", *arguments)
        assert (outcome.code, words in outcome.err) == (1, True), outcome
    with served(study) as site:
        outcome = run("serve", study, "--port", site.port)
        assert (outcome.code, "choose another with --port" in outcome.err) == (1, True)
    monkeypatch.setitem(EXTRAS, "serve", ("no_such_package",))
    outcome = run("serve", study)
    assert (outcome.code, "pip install 'causalarms[serve]'" in outcome.err) == (1, True)


def test_the_demonstration_plays_itself(tmp_path: Path) -> None:
    path = tmp_path / "out" / "living.db"
    serve.create_demo(path)
    serve.create_demo(path)  # the next time it continues
    with served(path) as site:
        serve.play_demo(f"http://127.0.0.1:{site.port}/")
        until(lambda: site("GET", "best").json["found"] is not None)
    levels = {"catalyst": "A", "pump": "normal", "oven": 160, "speed": 0.3}
    before, after = (
        [serve.measure(serve.CHANGE_AFTER_ROUNDS + k, levels)[1] for k in rounds]
        for rounds in (range(-20, 0), range(20))
    )
    assert min(after) > max(before)
    other = tmp_path / "other.db"
    Study.create(other, ["a", "b"], "b").close()
    with pytest.raises(StudyError, match="another study"):
        serve.create_demo(other)


def test_it_runs_until_it_is_told_to_end(study: Path) -> None:
    program = "from causalarms.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "serve", str(study), "--port", "0", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        address = re.search(r"http://\S+", line)
        assert address, line
        with RemoteStudy(address[0]) as remote:
            remote.tell(remote.ask(), [1.0, 2.0])
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        printed, complaints = process.communicate()
        assert json.loads(printed)["address"] == address[0]
        assert complaints == ""
    finally:
        process.kill()
        process.communicate()
    with Study.open(study) as after:
        assert after.ledger().trials[0].values == (1.0, 2.0)


@pytest.mark.parametrize("terminal", [False, True])
def test_it_says_what_takes_long_before_it_begins(tmp_path: Path, terminal: bool) -> None:
    Study.create(tmp_path / "s.db", [*NODES, "stir"], "yield", seed=1).close()
    program = "from causalarms.cli.main import main; main()"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program, "serve", str(tmp_path / "s.db"), "--port", "0", "--json"],
        stdout=subprocess.PIPE, stderr=theirs if terminal else subprocess.PIPE, text=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    try:
        assert process.stdout is not None
        printed = json.loads("".join(process.stdout.readline() for _ in range(4)))
        process.send_signal(signal.SIGTERM)
        rest, complaints = process.communicate(timeout=20)
        if terminal:
            complaints = os.read(ours, 100_000).decode()
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
    assert (printed.keys(), rest) == ({"file", "address"}, "")
    lines = complaints.split("\n")
    assert lines[0].strip() == (
        "compiling the model for 3 nodes: this takes about half a minute the first time"
    )
    assert ("starting" in complaints) is terminal
    if not terminal:
        assert "is served at" in lines[1]
        assert lines[2:] == [""]
