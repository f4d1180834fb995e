"""Context of the day, effects of factors and the graph of one setting, on the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_server import PageServer

from causalarms.service.report import page as report
from causalarms.study import Study
from causalarms.study.records import Effect, Interval, Remark

NODES = ["weather", "flow", "yield"]
# 1.0 is 1 in JavaScript, and both names are properties of every object there
FACTORS: dict[str, Any] = {
    "load": {"levels": [0.5, 1.0]},
    "pump": {"acts_on": ["flow"], "effect": "free"},
    "constructor": {"levels": ["toString", "valueOf"]},
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("factors") / "line4.db"
    with Study.create(path, NODES, "yield", factors=FACTORS, context=["weather"], seed=1) as study:
        rng = np.random.default_rng(0)
        for _ in range(25):
            trial = study.ask()
            weather = 950 + 10 * rng.normal()
            flow = 3 * rng.normal() + (5 if trial.levels["pump"] == "on" else 0)
            load = 8 * float(trial.levels["load"])
            study.tell(trial, [weather, flow, flow + load + 0.2 * (weather - 950) + rng.normal()])
    return path


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[PageServer]:
    with PageServer(path) as running:
        yield running


def test_context_of_the_day_goes_with_asking_best_and_what_if(
    server: PageServer, open_page: Any
) -> None:
    page = open_page(server.address)
    page.get_by_text("no factor moves the context, weather").wait_for()
    usual = float(page.locator("#best .figures dd").first.inner_text())
    page.locator("[name=ask-context-0]").fill("wet")
    page.locator("#ask").click()
    page.get_by_text("“wet” is not a number: weather.").wait_for()
    page.locator("[name=ask-context-0]").fill("980,5")
    page.locator("#best").get_by_text("Today, with weather at 980.5").wait_for()
    page.wait_for_function(
        "usual => Number(document.querySelector('#best .figures dd').innerText) > usual + 3",
        arg=usual,
    )
    page.locator("table.what-if tr", has_text="weather").get_by_text("980.5", exact=True).wait_for()
    page.locator("#ask").click()
    page.locator("#tell").wait_for()
    with Study.open(server.path) as study:
        (number,) = study.ledger().pending
        assert study.ledger().trials[number].asked["context"] == {"weather": 980.5}
        study.abandon(number)


def test_effects_and_kinds_of_nodes(server: PageServer, open_page: Any) -> None:
    page = open_page(server.address)
    effects = page.locator("#effects")
    effects.get_by_text("against 0.5; acts on yield").wait_for()
    # a level of 1.0 is found under its name
    assert effects.locator("tbody", has_text="load").locator("td").count() == 2
    assert effects.locator("tbody", has_text="constructor").get_by_text("valueOf").count() == 1
    page.locator("#graph figure").first.wait_for()
    for kind, count in (("is-factor rect", 2), ("is-context polygon", 1), ("is-reward rect", 1)):
        figure = page.locator("#graph figure").first
        assert figure.locator(f".node.{kind}").count() == count
    page.locator("#graph .legend").get_by_text("context: no factor moves it").wait_for()


def test_the_graph_of_one_setting(server: PageServer, open_page: Any) -> None:
    page = open_page(server.address)
    page.locator("#graph figure").nth(1).wait_for()  # a picture per regime
    page.locator("#graph").get_by_label("the best setting").check(force=True)
    page.locator("#graph figcaption").get_by_text("load=1.0, pump on").wait_for()
    assert page.locator("#graph figure").count() == 1
    page.locator("#graph").get_by_label("the setting of What if").check(force=True)
    page.get_by_role("button", name="Every factor at its first level").click()
    page.locator("#graph figcaption").get_by_text("every factor at its first level").wait_for()


def test_a_report_says_what_changes_how_a_node_answers(
    path: Path, open_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_levels = {"1.0": Interval(1.0, 0.5, 1.5)}
    free = {"flow": 0.934, "yield": 0.5}
    found = Effect("load", {"flow": 1.0, "yield": 0.0}, free, of_levels, of_levels)
    monkeypatch.setattr("causalarms.service.views.effects", lambda _: [found])
    with Study.open(path, read_only=True) as study:
        (tmp_path / "r.html").write_text(report(study, "line 4"), encoding="utf-8")
    page = open_page((tmp_path / "r.html").as_uri(), offline=True)
    words = page.locator("#effects .hint", has_text="against 0.5").inner_text()
    assert words.endswith(
        "acts on flow (over 99 %), and changes how flow answers its causes (93 %)"
    )


def test_a_report_has_effects_and_the_best_setting(
    path: Path, open_page: Any, tmp_path: Path
) -> None:
    with Study.open(path, read_only=True) as study:
        (tmp_path / "r.html").write_text(report(study, "line 4"), encoding="utf-8")
    page = open_page((tmp_path / "r.html").as_uri(), offline=True)
    page.locator("#effects").get_by_text("acts on yield").first.wait_for()
    page.get_by_text("no factor moves the context, weather").wait_for()
    assert page.get_by_label("the setting of What if").count() == 0
    page.locator("#graph").get_by_label("the best setting").check(force=True)
    page.locator("#graph figcaption").get_by_text("load=1.0").wait_for()
    assert page.locator("input[name*=context]").count() == 0


def test_remarks_stand_next_to_the_best(
    path: Path, open_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Remark("flow", "load", 0.97, "load also seems to act on flow <b>(probability 0.97)</b>")
    monkeypatch.setattr("causalarms.study.report.remarks", lambda beliefs: [said])
    with Study.open(path, read_only=True) as study:
        (tmp_path / "r.html").write_text(report(study, "line 4"), encoding="utf-8")
    page = open_page((tmp_path / "r.html").as_uri(), offline=True)
    page.locator("#best").get_by_text(said.text).wait_for()
