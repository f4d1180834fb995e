"""A long ask, or a long import, keeps nobody waiting at the service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from served import Served, served

from causalarms.limits import MAX_PENDING_TRIALS
from causalarms.policies.base import Suggestion
from causalarms.service import handlers
from causalarms.service.remote import RemoteStudy
from causalarms.study import Study
from causalarms.study.learner import StudyPolicy

NODES = ["heat", "stir", "yield"]
VALUES = {"heat": 1.0, "stir": 2.0, "yield": 3.0}
LATE = 20.0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with Study.create(tmp_path / "s.db", NODES, "yield", policy="random", seed=1) as study:
        study.ask(3, worker="teller")
    with served(tmp_path / "s.db") as site:
        yield site


def tell(site: Served, number: int) -> int:
    body = {"state": "told", "values": VALUES}
    return site("PUT", f"trials/{number}/result", body).status


def ask(site: Served, worker: str, n: int) -> list[int]:
    answer = site("POST", "trials", {"worker": worker, "n": n})
    assert answer.status == 200
    return [trial["trial"] for trial in answer.json["trials"]]


def test_others_tell_and_ask_while_somebody_asks_for_many(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every choice after the tenth waits until another worker has got its trial."""
    choosing, go_on = threading.Event(), threading.Event()
    ordinary = StudyPolicy.choose

    def choose(learner: StudyPolicy, trial: int, pending: Any, *more: Any) -> Suggestion:
        if trial == 13:
            choosing.set()
            assert go_on.wait(LATE)
        return ordinary(learner, trial, pending, *more)

    monkeypatch.setattr(StudyPolicy, "choose", choose)
    monkeypatch.setattr("causalarms.study.study.SLICE_SECONDS", 0.0)  # one trial at a time
    with ThreadPoolExecutor(2) as apart:
        many = apart.submit(ask, site, "many", 40)
        assert choosing.wait(LATE)
        one = apart.submit(ask, site, "one", 1)
        assert tell(site, 0) == 201
        go_on.set()
        (given,) = one.result(LATE)
        found = many.result(LATE)
    assert given < found[-1]  # in between, not after all of them
    assert sorted([*found, given]) == list(range(3, 44))
    with Study.open(site.service.path) as study:
        assert study.verify(replay=True).ok


def test_others_tell_while_rounds_are_checked_and_looked_at(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = {name: threading.Event() for name in ("prepare_import", "remarks")}
    go_on = {name: threading.Event() for name in reached}

    def watch(name: str) -> None:
        ordinary = getattr(handlers, name)

        def slow(*arguments: Any) -> Any:
            reached[name].set()
            assert go_on[name].wait(LATE)
            return ordinary(*arguments)

        monkeypatch.setattr(handlers, name, slow)

    for name in reached:
        watch(name)
    body = {"rounds": [{"values": VALUES, "levels": {"heat": "on"}}, {"values": VALUES}]}
    with ThreadPoolExecutor(1) as apart:
        imported = apart.submit(lambda: site("POST", "rounds", body, key="k"))
        for number, name in enumerate(reached):
            assert reached[name].wait(LATE)
            assert tell(site, number) == 201
            go_on[name].set()
        assert imported.result(LATE).status == 201
    states = [trial["state"] for trial in site("GET", "trials").json["trials"]]
    assert states == ["told", "told", "asked", "imported", "imported"]


def test_the_bound_of_pending_trials_is_named(site: Served) -> None:
    body = {"worker": "robot", "n": MAX_PENDING_TRIALS + 1}
    answer = site("POST", "trials", body)
    assert answer.status == 422
    assert f"'robot' may have at most {MAX_PENDING_TRIALS}" in answer.json["detail"]
    schema = site("GET", "openapi.json").json["components"]["schemas"]["AskRequest"]
    assert schema["properties"]["n"]["maximum"] == MAX_PENDING_TRIALS


def test_a_client_asks_for_many_in_several_requests(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causalarms.service.remote.TRIALS_PER_ANSWER", 4)
    with RemoteStudy(f"http://127.0.0.1:{site.port}") as study:
        assert [trial.number for trial in study.ask(10, worker="w")] == list(range(3, 13))
        assert study.ask(worker="w").number == 3
        assert len(study.ledger().pending) == 13
