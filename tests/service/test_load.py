"""Nobody waits for others: slow work, work for those who have gone, too many connections."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import socket
from typing import Any

import numpy as np
import pytest
from served import Reply, Served, served, until

from causalarms.rng import stream
from causalarms.sem import random_sem
from causalarms.service import server, threads
from causalarms.study import Study
from causalarms.study.explain import explain
from causalarms.study.records import Explanation

SEM = random_sem(3, seed=3)
ROUNDS = 16


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("load") / "s.db"
    reward, switches = SEM.nodes[SEM.reward], SEM.nodes
    with Study.create(path, SEM.nodes, reward, intervenable=switches, seed=1) as study:
        for _ in range(ROUNDS):
            trial = study.ask()
            a = np.array([list(trial.intervention.values())], dtype=np.uint8)
            study.tell(trial, SEM.sample(a, stream(7, "noise", trial.number))[0])
    return path


@pytest.fixture
def path(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(played, tmp_path))


class Explainer:
    """Explains as ever, but not before it may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[int] = []
        self.may = threading.Event()
        monkeypatch.setattr(threads, "explain", self)

    def __call__(self, ledger: Any, number: int, policy: Any) -> Explanation:
        self.begun.append(number)
        assert self.may.wait(60)
        return explain(ledger, number, policy)


@pytest.fixture
def explainer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Explainer]:
    explainer = Explainer(monkeypatch)
    yield explainer
    explainer.may.set()


def explanation(number: int) -> str:
    return f"trials/{number}/explanation"


def begin(site: Served, path: str) -> socket:
    line = site.socket()
    line.sendall(f"GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return line


def under_way(site: Served, count: int) -> Callable[[], bool]:
    return lambda: len(site.server.server_state.tasks) == count


def refused(answer: Reply, slug: str) -> bool:
    assert answer.status == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) > 0
    assert answer.headers["x-content-type-options"] == "nosniff"
    return bool(answer.json["type"] == f"urn:causalarms:{slug}")


def test_nobody_waits_for_an_explanation_of_an_old_trial(path: Path, explainer: Explainer) -> None:
    with served(path) as site, ThreadPoolExecutor() as others:
        old = others.submit(site.__call__, "GET", explanation(9))
        until(lambda: explainer.begun == [9])
        for name in ("events", "trials", "trials/9", "best", "study"):
            assert site("GET", name).status == 200
        assert site("POST", "predictions", {"interventions": [{}]}).status == 200
        past = {"values": dict.fromkeys(SEM.nodes, 0.5)}
        assert site("POST", "rounds", {"rounds": [past]}, key="k").status == 201
        asked = site("POST", "trials", {"worker": "w"}).json["trials"][0]["trial"]
        assert site("GET", explanation(asked)).json["rounds_known"] == ROUNDS + 1
        assert not old.done()
        explainer.may.set()
        assert old.result().status == 200
    assert explainer.begun == [9]


def test_what_those_who_have_gone_wanted_is_not_begun(path: Path, explainer: Explainer) -> None:
    with served(path) as site, ThreadPoolExecutor() as others:
        old = others.submit(site.__call__, "GET", explanation(9))
        until(lambda: explainer.begun == [9])
        gone = [begin(site, explanation(number)) for number in (10, 11, 12, 13)]
        until(under_way(site, 5))
        for line in gone:
            line.close()
        until(under_way(site, 1))
        last = others.submit(site.__call__, "GET", explanation(10))
        until(under_way(site, 2))
        explainer.may.set()
        assert [old.result().status, last.result().status] == [200, 200]
    assert explainer.begun == [9, 10]


def test_few_explanations_may_wait_and_the_same_is_computed_once(
    path: Path, explainer: Explainer
) -> None:
    with served(path) as site, ThreadPoolExecutor(20) as others:
        first = others.submit(site.__call__, "GET", explanation(8))
        until(lambda: explainer.begun == [8])
        waiting = [
            others.submit(site.__call__, "GET", explanation(number))
            for number in (8, 9, 10, 11, 12, 12)
        ]
        until(under_way(site, 7))
        assert refused(site("GET", explanation(13)), "too-much-work")
        explainer.may.set()
        texts = [answer.result().text for answer in waiting]
        assert (texts[0], texts[4]) == (first.result().text, texts[5])
        assert sorted(explainer.begun) == [8, 9, 10, 11, 12]
        assert site("GET", explanation(12)).text == texts[5]  # it was kept
        assert sorted(explainer.begun) == [8, 9, 10, 11, 12]
        values = dict.fromkeys(SEM.nodes, 3.0)
        site("POST", "trials/2/corrections", {"values": values, "reason": "typed"}, key="k")
        assert site("GET", explanation(12)).text != texts[5]
        assert sorted(explainer.begun) == [8, 9, 10, 11, 12, 12]


def test_explanations_are_those_of_the_study(path: Path) -> None:
    with Study.open(path) as study:
        asked = study.ask()
        wanted = [study.explain(n) for n in (3, 12, asked)]
    with served(path) as site:
        for record in wanted:
            answer = site("GET", explanation(record["trial"])).json
            assert {name: answer[name] for name in record} == json.loads(json.dumps(record))


class Line:
    """A connection that is kept open."""

    def __init__(self, site: Served) -> None:
        self.socket = site.socket()
        self.file = self.socket.makefile("rb")

    def get(self, path: str, accept: str = "*/*") -> int:
        head = f"GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n"
        self.socket.sendall(head.encode())
        status = int(self.file.readline().split()[1])
        length = 0
        for line in iter(self.file.readline, b"\r\n"):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        self.file.read(length)
        return status

    @property
    def closed(self) -> bool:
        """Waits until it is."""
        try:
            return self.file.read(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@contextmanager
def crowded(path: Path, places: int) -> Iterator[tuple[Served, Callable[[], Line]]]:
    with served(path, connections=places) as site, ExitStack() as lines:

        def line() -> Line:
            made = Line(site)
            lines.callback(made.close)
            name = made.socket.getsockname()
            known = site.server.server_state.connections
            until(lambda: name in [getattr(c, "client", None) for c in known.copy()])
            return made

        yield site, line


def test_the_oldest_idle_connection_gives_its_place_to_who_comes(path: Path) -> None:
    with crowded(path, 4) as (site, line):
        first, second, silent, third = line(), line(), line(), line()
        for each in (first, second, third):
            assert each.get("study") == 200
        assert second.get("study") == 200
        assert site("GET", "study").status == 200
        assert silent.closed  # it never asked for anything
        new = line()
        assert new.get("study") == 200
        assert line().get("study") == 200
        assert first.closed
        assert [each.get("study") for each in (second, third, new)] == [200, 200, 200]


def test_who_finds_no_place_is_told_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REFUSED_CONNECTIONS", 2)
    with crowded(path, 3) as (site, line):
        viewers = [line() for _ in range(3)]
        for viewer in viewers:
            assert viewer.get("events", "text/event-stream") == 200
        answer = site("GET", "study")
        assert refused(answer, "too-many-connections")
        assert answer.headers["connection"] == "close"
        silent = [Line(site) for _ in range(3)]
        assert silent[0].closed  # those who do not ask are not waited for
        for each in silent:
            each.close()
        viewers[0].close()
        until(lambda: site("GET", "study").status == 200)
        assert all(b"event" in viewer.file.read(40) for viewer in viewers[1:])
