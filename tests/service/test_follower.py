"""The log follower: events are folded by as few ledgers as possible, and shared from there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Served, served, until

from causalarms.study import Study
from causalarms.study.ledger import Ledger
from causalarms.study.log import Event


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    Study.create(tmp_path / "s.db", ["heat", "yield"], "yield", policy="random").close()
    with served(tmp_path / "s.db") as site:
        yield site


def test_an_event_is_folded_once_for_writing_and_once_for_reading(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded: Counter[int] = Counter()
    ordinary = Ledger.apply

    def apply(ledger: Ledger, event: Event) -> None:
        folded[event.number] += 1
        ordinary(ledger, event)

    monkeypatch.setattr(Ledger, "apply", apply)
    site("POST", "trials", {"worker": "w"})
    body = {"state": "told", "values": {"heat": 1.0, "yield": 2.0}}
    assert site("PUT", "trials/0/result", body).status == 201
    until(lambda: site("GET", "best").json["as_of"] == 3)  # the views have learned it
    assert folded == {2: 2, 3: 2}


def test_views_are_of_the_snapshot_that_was_read(site: Served) -> None:
    site("POST", "trials", {"worker": "w"})
    body = {"state": "told", "values": {"heat": 1.0, "yield": 2.0}}
    site("PUT", "trials/0/result", body)
    until(lambda: site.service.views.as_of == 3)
    assert site.service.views.ledger is site.service.follower.snapshot.ledger
