"""What people see: on phones, in the dark, with hostile names, of studies of every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.request import urlopen

import numpy as np
import pytest
from page_server import PageServer

from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.study import Study

HOSTILE = '<img src=x onerror="document.title=1">'
NODES = [HOSTILE, "a_very_long_name_of_a_quantity_that_never_ends", "\u202eright to left", "${x}"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """Names, notes and reasons that would be markup if anybody let them."""
    path = tmp_path_factory.mktemp("looks") / "odd <i>name.db"
    sem = random_sem(4, seed=5)
    with patch("causalarms.study.study.refuse_odd_names"):  # as older studies
        study = Study.create(path, NODES, NODES[-1], seed=3, changes=True, intervenable=NODES)
    with study:
        rng = np.random.default_rng(1)
        arms = rng.integers(0, 2, size=(60, 4)).astype(np.uint8)
        rounds = dict(zip(NODES, sem.sample(arms, rng).T, strict=True))
        levels = dict(zip(NODES, arms.T, strict=True))
        study.import_rounds(rounds, interventions=levels, source=HOSTILE)
        study.fail(study.ask(worker=HOSTILE), HOSTILE)
        study.note(HOSTILE)
        study.note(HOSTILE, trial=3)
        study.ask(worker=HOSTILE)
    with PageServer(path) as running:
        yield running


def answer(server: PageServer, path: str) -> dict[str, Any]:
    with urlopen(f"{server.address}api/v1/{path}") as found:
        body: dict[str, Any] = json.load(found)
    return body


def sideways(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
def test_nothing_is_in_the_way_of_anybody(
    hostile: PageServer, open_page: Any, scheme: str, width: int
) -> None:
    axe = pytest.importorskip("axe_playwright_python.base", reason="pip install 'causalarms[test]'")
    page = open_page(hostile.address, color_scheme=scheme, viewport={"width": width, "height": 800})
    page.get_by_text("live", exact=True).wait_for()
    for summary in page.locator("summary").all():
        summary.click()
    page.locator(".what-if tbody tr").first.wait_for()
    assert sideways(page) == 0
    page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text("utf-8"))
    found = page.evaluate(
        """axe.run(
          { exclude: [["tbody tr:nth-child(n+4)"]] }, // rows look like each other
          { runOnly: ["wcag2a", "wcag2aa", "best-practice"], resultTypes: ["violations"] },
        )"""
    )
    wrong = [
        f"{v['id']}: {node['html'][:120]}" for v in found["violations"] for node in v["nodes"][:3]
    ]
    assert not wrong, wrong


def test_hostile_text_stays_text(hostile: PageServer, open_page: Any) -> None:
    page = open_page(hostile.address, worker=HOSTILE)
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("dialog").get_by_role("heading", name="Why this one").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.locator("#rewards circle").first.wait_for()
    assert page.locator("img, i:not(.chip i):not(.legend i)").count() == 0
    assert page.title() == "odd <i>name"
    assert page.get_by_text(HOSTILE).count() > 5


def test_choices_survive_a_reload(hostile: PageServer, open_page: Any) -> None:
    page = open_page(hostile.address)
    slider = page.get_by_role("slider")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.get_by_label("intervened", exact=True).check()
    page.locator("[name=what-if-3]").select_option("on")
    page.locator("#graph figure").nth(1).wait_for(state="detached")
    page.reload()
    page.locator("#checks").wait_for()
    page.locator("#graph figure").wait_for()
    assert page.get_by_role("slider").input_value() == "70"
    assert page.get_by_label("intervened", exact=True).is_checked()
    assert page.locator("#graph figure").count() == 1
    assert page.locator("[name=what-if-3]").input_value() == "on"
    least = page.locator("#graph td.number:nth-child(4)").all_text_contents()
    assert all(text.startswith("over") or int(text.split()[0]) >= 70 for text in least)


def test_nodes_stay_where_they_are_until_somebody_asks(hostile: PageServer, open_page: Any) -> None:
    """New arrows may need another arrangement; a picture that jumps cannot be read."""
    page = open_page(hostile.address)
    page.locator("#graph svg").first.wait_for()
    places = "[...document.querySelectorAll('.node rect')].map((r) => r.getAttribute('y'))"
    before = page.evaluate(places)

    graph = answer(hostile, "graph")
    graph["layout"] += 1
    for node in graph["nodes"]:
        node["y"] = 1 - node["y"]
    page.route("**/api/v1/graph*", lambda route: route.fulfill(json=graph))
    with Study.open(hostile.path) as study:
        study.note("something happens")
    page.get_by_role("button", name="Rearrange").wait_for()
    assert page.evaluate(places) == before
    page.get_by_role("button", name="Rearrange").click()
    page.get_by_role("button", name="Rearrange").wait_for(state="hidden")
    assert page.evaluate(places) != before


def test_an_alarm_is_shown_and_marked_as_seen(hostile: PageServer, open_page: Any) -> None:
    alarm = {
        "alarm": 0, "trial": 40, "regime": "natural", "node": NODES[1], "changed_after": 31,
        "statistic": 9.0, "threshold": 8.0, "acknowledged": False, "note": "",
        "checks_left": 0, "text": f"{NODES[1]} seems to have changed after trial 31",
    }  # fmt: skip
    marked = {"alarm": 0, "round": 41, "trial": 40, "node": NODES[1], "acknowledged": False}
    sent: list[Any] = []

    rewards = answer(hostile, "rewards") | {"alarms": [marked]}

    def alarms(route: Any) -> None:
        route.fulfill(json={"as_of": 10**6, "watches": True, "alarms": [alarm]})

    def acknowledge(route: Any) -> None:
        sent.append((route.request.method, route.request.post_data_json))
        alarm.update(acknowledged=True, note="new pump")
        route.fulfill(json={"trial": None, "state": "seen", "head": 1, "warnings": []}, status=201)

    context = open_page.context()
    context.route("**/api/v1/rewards", lambda route: route.fulfill(json=rewards))
    context.route("**/api/v1/alarms", alarms)
    context.route("**/api/v1/alarms/0/acknowledgement", acknowledge)
    page = open_page(hostile.address, context=context)
    page.locator("#rewards .alarm-mark").wait_for(state="attached")
    section = page.locator("#rewards")
    section.get_by_text(f"{NODES[1]} seems to have changed after trial 31").wait_for()
    section.get_by_role("button", name="I have seen it").click()
    page.get_by_role("dialog").get_by_label("Note").fill("new pump")
    page.get_by_role("button", name="Mark as seen").click()
    page.get_by_text("Seen: new pump.").wait_for()
    assert sent == [("PUT", {"note": "new pump"})]


def test_whoever_wants_no_motion_gets_none(hostile: PageServer, open_page: Any) -> None:
    page = open_page(hostile.address, reduced_motion="reduce")
    moving = page.evaluate(
        """[...document.querySelectorAll("*")].filter((element) => {
          const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(element);
          return transitionDuration !== "0s" || animationName !== "none" ||
            scrollBehavior === "smooth";
        }).length"""
    )
    assert moving == 0


def make_empty(path: Path) -> None:
    Study.create(path, ["heat", "yield"], "yield", direction="minimize", seed=1).close()


def make_one_trial(path: Path) -> None:
    with Study.create(path, ["heat", "yield"], "yield", seed=1) as study:
        study.tell(study.ask(), [1.0, 2.0])


def make_without_model(path: Path) -> None:
    """No probability, no expected loss, an interval of nan: all null for the page."""
    with Study.create(path, ["heat", "yield"], "yield", policy="random", seed=1) as study:
        study.tell(study.ask(), [1.0, 2.0])


def make_twenty(path: Path) -> None:
    nodes = [f"quantity_{i}" for i in range(20)]
    weights = np.zeros((2, 20, 20))
    weights[:] = 0.5 * np.eye(20, k=1) - 0.3 * np.eye(20, k=3)
    sem = LinearSEM(weights=weights, nodes=nodes)
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 2, size=(80, 20)).astype(np.uint8)
    graph = (weights != 0).tolist()
    with Study.create(
        path, nodes, nodes[-1], policy="linsem-ts", policy_settings={"graph": graph},
        noise_mean=0.0, seed=1, intervenable=nodes,
    ) as study:  # fmt: skip
        study.import_rounds(
            dict(zip(nodes, sem.sample(arms, rng).T, strict=True)),
            interventions=dict(zip(nodes, arms.T, strict=True)),
        )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (make_empty, "No round has been told yet"),
        (make_one_trial, "Trials"),
        (make_without_model, "does not say how probable"),
        (make_twenty, "quantity_19"),
    ],
)
def test_studies_of_every_kind(
    tmp_path: Path, serve: Any, open_page: Any, make: Any, says: str
) -> None:
    make(tmp_path / "study.db")
    server = serve(tmp_path / "study.db")
    page = open_page(server.address, viewport={"width": 360, "height": 700})
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_text(says).first.wait_for(state="attached")
    assert "NaN" not in page.locator("#app").inner_text()
    assert "undefined" not in page.locator("#app").inner_text()
    assert sideways(page) == 0
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_timeout(100)
    assert sideways(page) == 0
