"""A client whose answers get lost, and services that are none."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Served, served

from causalarms.errors import ClosedTrialError, RemoteStudyError, StudyBusyError
from causalarms.service import remote
from causalarms.service.remote import RemoteStudy
from causalarms.service.wire import Wire
from causalarms.study import Study

VALUES = {"heat": 1.0, "yield": 3.0}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    Study.create(tmp_path / "s.db", list(VALUES), "yield", policy="random").close()
    with served(tmp_path / "s.db") as site:
        yield site


def lose(monkeypatch: pytest.MonkeyPatch, method: str, times: int) -> list[str]:
    """Answers to requests of a method get lost, after they were carried out."""
    once, lost = Wire._once, list[str]()

    def losing(wire: Wire, given: str, path: str, *rest: Any) -> Any:
        answer = once(wire, given, path, *rest)
        if given == method and len(lost) < times:
            lost.append(path)
            raise ConnectionResetError
        return answer

    monkeypatch.setattr(Wire, "_once", losing)
    return lost


def test_requests_whose_answers_were_lost_are_done_once(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RemoteStudy(f"http://127.0.0.1:{site.port}") as study:
        lost = lose(monkeypatch, "POST", 2)
        trial = study.ask(worker="w")
        assert (trial.number, len(lost)) == (0, 2)
        monkeypatch.undo()
        lost = lose(monkeypatch, "PUT", 2)
        study.tell(trial, VALUES)
        assert len(lost) == 2
        with pytest.raises(ClosedTrialError):
            study.tell(trial, VALUES)  # nothing was lost: somebody told it before
        monkeypatch.undo()
        for act in (
            lambda: study.note("hot"),
            lambda: study.correct(0, VALUES, "again"),
            lambda: study.import_rounds({"heat": [1], "yield": [2], "do:heat": [0]}),
        ):
            lost = lose(monkeypatch, "POST", 1)
            act()
            assert len(lost) == 1
            monkeypatch.undo()
        kinds = [entry.text.partition('"kind":"')[2].partition('"')[0] for entry in
            study.store.entries()]  # fmt: skip
    assert kinds == ["created", "asked", "told", "note", "corrected", "imported"]


def test_a_service_that_never_learns_is_not_asked_for_ever(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: object) -> None:
        raise ArithmeticError("the views could not be computed")

    monkeypatch.setattr(type(site.service), "_compute_views_and_checks", never)
    monkeypatch.setattr(remote, "VIEW_SECONDS", 0.3)
    with RemoteStudy(f"http://127.0.0.1:{site.port}") as study:
        study.tell(study.ask(worker="w"), VALUES)
        with pytest.raises(StudyBusyError, match=r"has not learned event 3 within 0\.3 s"):
            study.best()


def test_patience_ends(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with RemoteStudy(f"http://127.0.0.1:{site.port}", patience=0.2) as study:
        lose(monkeypatch, "POST", 1000)
        with pytest.raises(RemoteStudyError, match="cannot be reached"):
            study.ask()


@pytest.mark.parametrize(
    ("status", "kind", "text", "words"),
    [
        (200, "text/html", b"<html>", "is not a causalarms service"),
        (200, "application/json", b"[]", "is not a causalarms service"),
        (200, "application/json", b'{"version": "0.0.1"}', "its version: '0.0.1'"),
        (404, "text/html", b"no", "is not a causalarms service"),
        (
            404,
            "application/problem+json",
            b'{"type": "urn:causalarms:not-found", "detail": "nothing here"}',
            "may be older",
        ),
        (500, "application/json", b"{}", "{}"),
    ],
)
def test_what_is_no_service_is_said(status: int, kind: str, text: bytes, words: str) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        try:
            with pytest.raises(Exception, match=words) as found:
                RemoteStudy(f"http://127.0.0.1:{other.server_address[1]}")
        finally:
            other.shutdown()
            thread.join()
    assert type(found.value).__name__ in ("RemoteStudyError", "StudyError")
