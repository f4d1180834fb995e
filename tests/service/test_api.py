"""Asking, telling and looking over the network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from served import Served, served, until

from causalarms.errors import StudyFileError
from causalarms.service import records
from causalarms.service.api import OPERATIONS, PREFIX
from causalarms.service.remote import RemoteStudy
from causalarms.service.wire import URN
from causalarms.study import Study
from causalarms.study.log import Event, chain, encode
from causalarms.study.store import ROOT

NODES = ["heat", "stir", "yield"]
VALUES = {"heat": 1.0, "stir": 2.0, "yield": 3.0}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    Study.create(tmp_path / "line3.db", NODES, "yield", policy="random", seed=1).close()
    with served(tmp_path / "line3.db") as site:
        yield site


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With trial 0 pending; for requests that write nothing."""
    path = tmp_path_factory.mktemp("shared") / "line3.db"
    Study.create(path, NODES, "yield", policy="random", seed=1).close()
    with served(path) as site:
        ask(site)
        yield site
        assert site("GET", "study").json["head"] == 2


def ask(site: Served, worker: str = "w", n: int = 1) -> list[dict[str, Any]]:
    answer = site("POST", "trials", {"worker": worker, "n": n})
    assert answer.status == 200
    return msgspec.to_builtins(msgspec.json.decode(answer.text, type=records.Asked).trials)


def tell(site: Served, number: int, values: dict[str, Any] = VALUES, **more: Any) -> Any:
    body = {"state": "told", "values": values, **more}
    return site("PUT", f"trials/{number}/result", body)


def test_a_worker_gets_its_pending_trials_first(site: Served) -> None:
    (first,) = ask(site, "a")
    assert ask(site, "a") == [first]
    assert [t["trial"] for t in ask(site, "b")] == [1]
    assert [t["trial"] for t in ask(site, "a", 2)] == [0, 2]
    pending = site("GET", "trials?state=asked").json["trials"]
    assert [(t["trial"], t["worker"]) for t in pending] == [(0, "a"), (1, "b"), (2, "a")]


@pytest.mark.parametrize("body", [{}, {"worker": ""}, {"worker": " "}, {"worker": "a", "n": 0}])
def test_a_worker_must_say_who_it_is(shared: Served, body: dict[str, Any]) -> None:
    answer = shared("POST", "trials", body)
    assert (answer.status, answer.json["type"]) == (422, "urn:causalarms:wrong-body")


def test_the_same_result_again_is_fine_and_another_is_refused(site: Served) -> None:
    ask(site)
    assert tell(site, 0).status == 201
    again = tell(site, 0)
    assert (again.status, again.json["repeated"]) == (200, True)
    other = tell(site, 0, VALUES | {"heat": 9.0})
    assert (other.status, other.json["state"], other.json["trial"]) == (409, "told", 0)
    assert other.headers["content-type"] == "application/problem+json"
    assert "not pending" in other.json["detail"]
    assert site("PUT", "trials/0/result", {"state": "failed"}).status == 409
    assert site("GET", "study").json["head"] == 3
    assert site("GET", "trials/0").json["values"] == VALUES


def test_a_repeated_result_is_compared_with_what_was_told_not_with_its_correction(
    site: Served,
) -> None:
    ask(site)
    tell(site, 0, executed={"heat": "on"})
    other = VALUES | {"heat": 9.0}
    body = {"values": other, "reason": "typed wrongly"}
    assert site("POST", "trials/0/corrections", body, key="k").status == 201
    assert tell(site, 0, executed={"heat": "on"}).status == 200
    assert tell(site, 0, other, executed={"heat": "on"}).status == 409
    found = site("GET", "trials/0").json
    assert found["values"] == other
    (before,) = found["corrections"]
    assert (before["values"], before["reason"]) == (VALUES, "typed wrongly")


@pytest.mark.parametrize("state", ["failed", "abandoned"])
def test_trials_end_without_a_result(site: Served, state: str) -> None:
    ask(site)
    body = {"state": state, "reason": "the pump broke"}
    assert site("PUT", "trials/0/result", body).status == 201
    assert site("PUT", "trials/0/result", body).status == 200
    assert site("PUT", "trials/0/result", body | {"reason": "no"}).status == 409
    found = site("GET", "trials/0").json
    assert (found["state"], found["remark"]) == (state, "the pump broke")


@pytest.mark.parametrize(
    ("body", "node"),
    [
        ({"state": "told"}, None),
        ({"state": "failed", "values": VALUES}, None),
        ({"state": "failed", "executed": {}}, None),
        ({"state": "told", "values": VALUES, "reason": "why"}, None),
        ({"state": "told", "values": {"heat": 1.0}}, "stir"),
        ({"state": "told", "values": VALUES | {"heta": 1.0}}, "heta"),
        ({"state": "told", "values": VALUES | {"heat": 1e200}}, "heat"),
        ({"state": "told", "values": VALUES | {"heat": "1"}}, None),
        ({"state": "told", "values": VALUES, "executed": {"heta": "on"}}, None),
        ({"state": "told", "values": VALUES, "else": 1}, None),
    ],
)
def test_wrong_results_change_nothing(shared: Served, body: Any, node: str | None) -> None:
    answer = shared("PUT", "trials/0/result", body)
    assert (answer.status, answer.json.get("node")) == (422, node)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b'{"worker": "a", "n": NaN}', b"[" * 100_000, b'{"n": 1e999}']
)
def test_what_is_no_json_is_refused(shared: Served, raw: bytes) -> None:
    assert shared("POST", "trials", raw=raw).status in (400, 422)


def test_requests_with_a_key_are_done_once(site: Served) -> None:
    ask(site)
    tell(site, 0)
    for path, body, other in (
        ("notes", {"text": "hot day", "trial": 0}, {"text": "cold day"}),
        ("trials/0/corrections", {"values": None}, {"values": VALUES}),
        (
            "rounds",
            {"rounds": [{"values": VALUES, "levels": {"heat": "on"}}], "source": "1998"},
            {"rounds": [{"values": VALUES}]},
        ),
    ):
        head = site("GET", "study").json["head"]
        assert site("POST", path, body).json["type"] == "urn:causalarms:no-key"
        assert site("POST", path, body, key=path).status == 201
        assert site("POST", path, body, key=path).status == 200
        assert site("POST", path, other, key=path).status == 422
        assert site("GET", "study").json["head"] == head + 1
    assert site("GET", "notes").json["notes"][0]["text"] == "hot day"
    assert site("GET", "trials/1").json["levels"]["heat"] == "on"
    with Study.open(site.service.path, read_only=True) as study:  # durable: it is in the log
        assert study.event_of("notes") == 4


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "trials/7", None, 404),
        ("GET", "trials/7/explanation", None, 404),
        ("PUT", "trials/7/result", {"state": "failed"}, 404),
        ("POST", "trials/7/corrections", {"values": None}, 404),
        ("POST", "trials/0/corrections", {"values": None}, 409),
        ("POST", "notes", {"text": "x", "trial": 7}, 404),
        ("PUT", "alarms/0/acknowledgement", {}, 404),
        ("POST", "predictions", {"interventions": [{}]}, 409),
        ("POST", "predictions", {"interventions": [{"heta": "on"}]}, 422),
        ("GET", "trials/x", None, 422),
        ("GET", "trials/-1", None, 422),
        ("GET", "trials?limit=0", None, 422),
        ("GET", "trials?limit=1001", None, 422),
        ("GET", "trials?after=x", None, 422),
        ("GET", "trials?after=1&after=2", None, 422),
        ("GET", "trials?state=odd", None, 422),
        ("GET", "graph?above=nan", None, 422),
        ("DELETE", "trials", None, 405),
        ("PATCH", "study", None, 405),
        ("GET", "nothing", None, 404),
        ("GET", "/../../etc/passwd", None, 404),
    ],
)
def test_refusals_are_problems(
    shared: Served, method: str, path: str, body: Any, status: int
) -> None:
    answer = shared(method, path, body, key="k")
    assert answer.status == status
    problem = msgspec.json.decode(answer.text, type=records.Problem)
    assert problem.status == status
    assert problem.detail
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "wrong", [{"values": {"heat": 1.0}}, {"values": VALUES, "levels": {"heta": "on"}}]
)
def test_wrong_past_rounds_are_named_by_row(shared: Served, wrong: dict[str, Any]) -> None:
    body = {"rounds": [{"values": VALUES}, wrong]}
    answer = shared("POST", "rounds", body, key="k")
    assert (answer.status, answer.json["detail"][:6]) == (422, "row 2 ")


def test_what_nobody_expected_is_a_problem_too(
    shared: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shared.service.threads, "predict", lambda function: 1 / 0)
    answer = shared("POST", "predictions", {"interventions": [{}]})
    assert (answer.status, answer.json["type"]) == (500, "urn:causalarms:internal")
    assert "ZeroDivisionError" in caplog.text
    assert shared("HEAD", "study").text == b""


def test_pages_of_trials_and_events(site: Served) -> None:
    ask(site, n=5)
    pages, after = [], -1
    while True:
        page = site("GET", f"trials?after={after}&limit=2").json
        pages.append([t["trial"] for t in page["trials"]])
        if page["next"] is None:
            break
        after = page["next"]
    assert pages == [[0, 1], [2, 3], [4]]
    hash_, after = ROOT, 0
    while True:
        page = site("GET", f"events?after={after}&limit=2").json
        for record in page["events"]:
            event = Event(**{k: v for k, v in record.items() if k != "hash"})
            hash_ = chain(hash_, encode(event))
            assert hash_.hex() == record["hash"]
        if page["next"] is None:
            break
        after = page["next"]
    assert (event.number, page["head"]) == (6, 6)


def test_every_answer_has_a_tag_that_saves_sending_it_again(shared: Served) -> None:
    for operation in OPERATIONS:
        path = operation.path.replace("{number}", "0").lstrip("/")
        if operation.method != "GET" or path == "trials/0":  # its age changes
            continue
        first = shared("GET", path)
        again = shared("GET", path, headers={"If-None-Match": first.headers["etag"]})
        assert (first.status, again.status, again.text) == (200, 304, b""), path


def test_routes_are_documented_and_documentation_is_routed(shared: Served) -> None:
    document = shared("GET", "openapi.json").json
    documented = {(m.upper(), p) for p, methods in document["paths"].items() for m in methods}
    routed = {(o.method, o.path) for o in OPERATIONS} | {("GET", "/openapi.json")}
    assert documented == routed
    for method, path in documented:
        answer = shared(method, PREFIX + path.replace("{number}", "999"), {}, key="k")
        assert answer.status != 405, (method, path)
        assert str(answer.status) in document["paths"][path][method.lower()]["responses"]
    for operation in OPERATIONS:
        answer = shared("OPTIONS", PREFIX + operation.path.replace("{number}", "0"))
        assert (answer.status, operation.method in answer.headers["allow"]) == (405, True)


def test_what_others_write_is_seen(site: Served) -> None:
    with Study.open(site.service.path) as other:
        other.tell(other.ask(), VALUES)
        until(lambda: site("GET", "study").json["results"] == 1)
        assert tell(site, 0, VALUES | {"heat": 0.0}).status == 409


def test_names_that_could_be_code_stay_text(tmp_path: Path) -> None:
    odd = ['<script>alert("1")</script>', "\u202eevil\x07", "yield\n"]
    with patch("causalarms.study.study.refuse_odd_names"):  # as older studies
        Study.create(tmp_path / "s.db", odd, odd[2], policy="random").close()
    with served(tmp_path / "s.db") as site:
        ask(site, odd[0])
        site("POST", "notes", {"text": odd[0], "trial": 0}, key="k")
        tell(site, 0, dict.fromkeys(odd, 1.0))
        found = site("GET", "trials/0")
        assert found.json["worker"] == found.json["notes"][0]["text"] == odd[0]
        assert list(found.json["values"]) == odd
        assert found.headers["x-content-type-options"] == "nosniff"
        json.loads(site("GET", "events").text)


def test_a_file_that_is_replaced_is_said(site: Served, tmp_path: Path) -> None:
    site.service.path.rename(tmp_path / "moved.db")
    until(lambda: site("GET", "healthz").status == 503)
    assert site("GET", "study").json["type"] == "urn:causalarms:changed"
    assert site("POST", "trials", {"worker": "a"}).status == 503
    (tmp_path / "moved.db").rename(site.service.path)
    until(lambda: site("GET", "healthz").status == 200)
    assert len(ask(site)) == 1


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:80])


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def given_a_second_name(path: Path) -> None:
    path.with_name("second.db").hardlink_to(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (emptied, "is empty"),
        (cut, "is damaged"),
        (cut_short, "is damaged"),
        (Path.unlink, "is gone"),
        (made_a_folder, "is a folder"),
        (given_a_second_name, "remove one of the names"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_and_is_no_mistake_of_the_caller(
    site: Served, change: Callable[[Path], None], said: str
) -> None:
    (trial,) = ask(site)
    study = RemoteStudy(f"http://127.0.0.1:{site.port}", patience=0)
    path = site.service.path
    change(path)
    before = path.read_bytes() if path.is_file() else None
    for answer in (
        tell(site, trial["trial"]),
        site("POST", "trials", {"worker": "another"}),
        site("POST", "notes", {"text": "hot"}, key="k"),
    ):
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.json["type"].removeprefix(URN) in ("file", "changed", "damaged")
        assert said in answer.json["detail"]
    until(lambda: site("GET", "healthz").status == 503)
    with pytest.raises(StudyFileError, match=said):
        study.tell(trial["trial"], VALUES)
    with pytest.raises(StudyFileError, match=said):
        study.ask(worker="w")
    if said == "is damaged":
        verdict = study.verify()
        assert not verdict.ok
        assert said in verdict.message
    else:
        with pytest.raises(StudyFileError, match=said):
            study.verify()
    study.close()
    assert (path.read_bytes() if path.is_file() else None) == before
