"""Server-sent events: what a viewer hears, and how it goes on after a break."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Served, served, until

from causalarms.errors import StudyError
from causalarms.service import app, live
from causalarms.study import Study


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    Study.create(tmp_path / "s.db", ["heat", "yield"], "yield", policy="random").close()
    with served(tmp_path / "s.db") as site:
        yield site


class Viewer:
    """Reads messages as a browser does."""

    def __init__(self, site: Served, last: str | None = None) -> None:
        self.line: socket.socket = site.socket()
        more = "" if last is None else f"Last-Event-ID: {last}\r\n"
        head = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
        self.line.sendall(f"{head}{more}\r\n".encode())
        self.file = self.line.makefile("rb")
        self.headers = list(iter(self.file.readline, b"\r\n"))

    def next(self) -> tuple[str, int, Any]:
        """Event, id and data of the next message; comments are skipped."""
        fields: dict[str, str] = {}
        while True:
            line = self.file.readline()
            if not line:
                raise EOFError
            text = line.decode().strip("\r\n")
            if not text and "data" in fields:
                return fields["event"], int(fields["id"]), json.loads(fields["data"])
            name, _, value = text.partition(": ")
            if name in ("event", "id", "data", ""):
                fields[name] = value

    def read_all(self) -> None:
        while True:
            self.next()

    def close(self) -> None:
        self.file.close()
        self.line.close()


def note(site: Served, text: str) -> None:
    assert site("POST", "notes", {"text": text}, key=text).status == 201


def test_a_viewer_hears_how_far_the_log_is(site: Served) -> None:
    viewer = Viewer(site)
    assert b"content-type: text/event-stream; charset=utf-8\r\n" in viewer.headers
    assert b"x-accel-buffering: no\r\n" in viewer.headers
    kind, number, first = viewer.next()
    study = site("GET", "study").json
    assert (kind, number, first["reset"]) == ("hello", 1, False)
    assert (first["head"], first["first_hash"]) == (1, study["first_hash"])
    note(site, "a")
    while (heard := viewer.next())[1] == 1:  # what was computed at the start
        assert heard[0] == "head"
    assert heard[:2] == ("head", 2)
    viewer.close()


@pytest.mark.parametrize(
    ("last", "kind"),
    [("1", "hello"), ("0", "hello"), ("9", "reset"), ("x", "hello"), ("9" * 30, "hello")],
)
def test_who_comes_back_resumes_or_is_reset(site: Served, last: str, kind: str) -> None:
    viewer = Viewer(site, last)
    assert viewer.next()[:2] == (kind, 1)
    viewer.close()


def test_messages_are_few_and_the_last_is_the_newest(site: Served) -> None:
    viewer = Viewer(site)
    viewer.next()
    for number in range(30):
        note(site, str(number))
    heard: list[int] = []
    while not heard or heard[-1] < 31:
        heard.append(viewer.next()[1])
    assert heard == sorted(heard)
    assert len(heard) < 30
    viewer.close()


def test_results_are_told_again_once_they_are_learned(site: Served) -> None:
    viewer = Viewer(site)
    viewer.next()
    site("POST", "trials", {"worker": "w"})
    body = {"state": "told", "values": {"heat": 1.0, "yield": 2.0}}
    site("PUT", "trials/0/result", body)
    while viewer.next()[2]["as_of"] < 3:
        pass
    assert site("GET", "rewards").json["as_of"] == 3
    viewer.close()


def test_what_cannot_be_computed_once_is_computed_later(
    site: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compute, fails = site.service.threads.compute_views, [ZeroDivisionError(), StudyError()]

    async def failing(far: Any) -> Any:
        if fails:
            raise fails.pop()
        return await compute(far)

    monkeypatch.setattr(site.service.threads, "compute_views", failing)
    monkeypatch.setattr(app, "RETRY_SECONDS", 0.01)
    site("POST", "trials", {"worker": "w"})
    body = {"state": "told", "values": {"heat": 1.0, "yield": 2.0}}
    site("PUT", "trials/0/result", body)
    until(lambda: site("GET", "best").json["as_of"] == 3)
    assert "could not be computed" in caplog.text


def test_silence_is_broken_by_a_ping(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PING_SECONDS", 0.02)
    viewer = Viewer(site)
    viewer.next()
    text = b"".join(viewer.file.readline() for _ in range(6))
    assert b": ping\n" in text
    viewer.close()


def test_viewers_are_let_go_when_the_service_ends(tmp_path: Path) -> None:
    Study.create(tmp_path / "s.db", ["heat", "yield"], "yield", policy="random").close()
    with served(tmp_path / "s.db") as site:
        viewer = Viewer(site)
        viewer.next()
    with pytest.raises(EOFError):
        viewer.read_all()  # news of the model checks may come before the end
    viewer.close()
